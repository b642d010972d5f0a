//! Tests with an agent that asks `acp run` for forbidden files, using `fs/*` requests over real pipes.

#[path = "../../../acp-host/tests/it/common/scene.rs"]
#[allow(dead_code)]
mod scene;

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::reach::{PATHS_FILE, REACH_RESULTS_FILE};
use crate::common::{ACP, BINARY_VARIABLE, CommandResult, agent, itself};
use crate::ordinary_user;
use scene::{EscapeScene, RefusalReason, SECRET_TEXT};

#[test]

fn tests_pass_as_an_ordinary_user() {
    ordinary_user::rerun_as_ordinary_user(module_path!(), &[(BINARY_VARIABLE, Path::new(ACP))]);
}

/// Makes the agent try to read and write these paths in the root. For each path, returns the content read and whether
/// writing succeeded.
fn try_paths(scene: &EscapeScene, paths: &[String], flags: &[&str]) -> Vec<(Option<String>, bool)> {
    let file = |name| scene.root.join(name);
    std::fs::write(file(PATHS_FILE), serde_json::to_string(paths).unwrap()).unwrap();
    let acp = std::env::var_os(BINARY_VARIABLE).unwrap_or_else(|| ACP.into());
    let ended = Command::new(acp)
        .args(["run", "--allow", "all", "reach", "--"])
        .args([
            "sh",
            "-c",
            &itself::agent_script(agent::AGENT_TEST_NAME, ""),
            "sh",
        ])
        .args(flags)
        .current_dir(&scene.root)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    CommandResult::from_output(ended)
        .expect_code(0)
        .expect_stdout(&[&format!("tried {} paths", paths.len())]);
    // Where the root is by then is the test's business.
    let moved = scene.outside.join("moved");
    let directory = if moved.is_dir() {
        moved
    } else {
        scene.root.clone()
    };
    let reached = std::fs::read_to_string(directory.join(REACH_RESULTS_FILE)).unwrap();
    serde_json::from_str(&reached).unwrap()
}

#[test]

fn no_request_escapes_the_roots() {
    let scene = EscapeScene::new();
    let attempts = scene.escape_attempts();
    // What is no text cannot be asked for over the wire.
    let paths: Vec<String> = attempts
        .iter()
        .filter(|attempt| attempt.why != RefusalReason::Name)
        .filter_map(|attempt| Some(attempt.path.to_str()?.to_owned()))
        .collect();
    let reached = try_paths(&scene, &paths, &[]);
    assert_eq!(reached.len(), paths.len());
    for (path, reached) in paths.iter().zip(&reached) {
        assert_eq!(*reached, (None, false), "{path:?}");
    }
    scene.assert_untouched(&"all requests");
    println!("{} requests, none got out", paths.len() * 3);
    // It does reach what it may.
    let file = scene.root.join("file").to_str().unwrap().to_owned();
    let reached = try_paths(&scene, &[file], &[]);
    assert_eq!(reached, [(Some("inside".to_owned()), true)]);
}

/// Tests an agent that, as soon as it starts, moves the root and puts a symlink in its place.
#[test]
fn root_is_pinned_before_the_agent_starts() {
    let scene = EscapeScene::new();
    let moved = scene.outside.join("moved");
    let path = |name: &str| scene.root.join(name).to_str().unwrap().to_owned();
    let paths = [path("file"), path("secret"), path("inner/secret")];
    let reached = try_paths(
        &scene,
        &paths,
        &["--moves-root-to", moved.to_str().unwrap()],
    );
    assert_eq!(
        reached,
        [
            (Some("inside".to_owned()), true),
            (None, true),
            (None, true)
        ]
    );
    // What was written is in the directory that the session began with.
    for name in ["file", "secret", "inner/secret"] {
        let text = std::fs::read_to_string(moved.join(name)).unwrap();
        assert_eq!(text, "written by an attempt");
    }
    for secret in ["secret", "inner/secret"] {
        let text = std::fs::read_to_string(scene.outside.join(secret)).unwrap();
        assert_eq!(text, SECRET_TEXT);
    }
}
