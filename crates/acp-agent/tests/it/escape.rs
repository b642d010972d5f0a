//! Tries to escape from a session's roots with each of the agent's tools, as a deceived model might. The tools access
//! files both through the client and directly.

#[path = "../../../acp-host/tests/it/common/ordinary_user.rs"]
mod ordinary_user;
#[path = "../../../acp-host/tests/it/common/scene.rs"]
#[allow(dead_code)]
mod scene;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Duration;

use acp::client::{Client, ClientSession, ReadTextFile, SessionSetup, WriteTextFile};
use acp::thread::{ItemKind, ThreadToolCall, ToolCallStatus};
use acp::v1::{
    ReadTextFileRequest, ReadTextFileResponse, StopReason, WriteTextFileRequest,
    WriteTextFileResponse,
};
use acp_agent::{CodingAgent, ScriptedModel};
use acp_host::Files;
use scene::{ATTEMPT_TEXT, EscapeScene, NameSwapper, RefusalReason, SECRET_TEXT};
use serde_json::{Value, json};

/// A timeout long enough for every step of a test, but short enough to catch a test that hangs.
const TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn tests_pass_as_an_ordinary_user() {
    ordinary_user::rerun_as_ordinary_user(module_path!(), &[]);
}

/// A client that gives the agent access to its files. With `None`, it gives access to no files.
struct LendingClient(Option<Files>);

impl ReadTextFile<()> for LendingClient {
    async fn read(
        &self,
        (): &(),
        request: ReadTextFileRequest,
    ) -> acp::Result<ReadTextFileResponse> {
        Ok(self.0.as_ref().unwrap().read(&request).await?)
    }
}

impl WriteTextFile<()> for LendingClient {
    async fn write(
        &self,
        (): &(),
        request: WriteTextFileRequest,
    ) -> acp::Result<WriteTextFileResponse> {
        Ok(self.0.as_ref().unwrap().write(&request).await?)
    }
}

impl Client for LendingClient {
    type State = ();

    fn read_text_file(&self) -> Option<&impl ReadTextFile<()>> {
        self.0.as_ref().map(|_| self)
    }
    fn write_text_file(&self) -> Option<&impl WriteTextFile<()>> {
        self.0.as_ref().map(|_| self)
    }
}

/// Opens a session in the scene's root, with an agent that makes these calls. Project files may be changed without
/// asking.
async fn open_session(
    scene: &EscapeScene,
    more: &[PathBuf],
    lends: bool,
    calls: &[Value],
) -> ClientSession {
    let model = json!({ "turns": [calls] }).to_string();
    let agent = CodingAgent::with_model(ScriptedModel::parse(&model).unwrap())
        .max_requests(calls.len() + 1);
    let mut roots = vec![scene.root.clone()];
    roots.extend_from_slice(more);
    let client = LendingClient(lends.then(|| Files::new(roots).unwrap()));
    let (ours, theirs) = acp::transport::memory();
    acp::testing::start_agent(theirs, agent, acp::Options::new());
    let agent = acp::testing::start_client(ours, client, acp::Options::new())
        .await
        .unwrap();
    let mut setup = SessionSetup::new(&scene.root);
    let more = more.iter().map(|path| path.to_str().unwrap().to_owned());
    setup.additional_directories = more.collect();
    let session = agent.new_session(setup).await.unwrap();
    session.set_mode("code").await.unwrap();
    session
}

/// Runs the turn and returns its tool calls.
async fn run_calls(session: &ClientSession) -> Vec<ThreadToolCall> {
    let prompted = tokio::time::timeout(TIMEOUT, session.prompt("go")).await;
    assert_eq!(prompted.expect("it hangs").unwrap(), StopReason::EndTurn);
    session.thread().read(|thread| {
        let calls = thread.items().iter().filter_map(|item| match &item.kind {
            ItemKind::ToolCall(call) => Some((**call).clone()),
            _ => None,
        });
        calls.collect()
    })
}

fn file_calls(path: &str) -> [Value; 4] {
    [
        json!({ "read": { "path": path } }),
        json!({ "read": { "path": path, "line": 1, "limit": 1 } }),
        json!({ "write": { "path": path, "text": ATTEMPT_TEXT } }),
        json!({ "edit": { "path": path, "search": SECRET_TEXT, "replacement": ATTEMPT_TEXT } }),
    ]
}

fn directory_calls(path: &str) -> [Value; 4] {
    let glob = json!({ "path": path, "pattern": "**" });
    [
        json!({ "list": { "path": path } }),
        json!({ "search": { "path": path, "pattern": "." } }),
        json!({ "search": { "path": path, "pattern": SECRET_TEXT, "glob": "**" } }),
        json!({ "call": { "tool": "glob", "arguments": glob } }),
    ]
}

#[tokio::test]
async fn no_tool_escapes_the_roots() {
    for lends in [false, true] {
        let scene = EscapeScene::new();
        let mut steps = Vec::new();
        for attempt in scene.escape_attempts() {
            // A relative path is resolved against the working directory. In other paths, `..` is kept.
            let inside = attempt.why == RefusalReason::Relative;
            if let Some(path) = attempt.path.to_str().filter(|_| !inside) {
                steps.extend(file_calls(path));
            }
        }
        let relative = "../proj-secret/secret";
        steps.extend(file_calls(relative));
        for directory in scene.watched_directories() {
            steps.extend(directory_calls(directory.to_str().unwrap()));
        }
        steps.extend(directory_calls("../proj-secret"));
        let session = open_session(&scene, &[], lends, &steps).await;
        let calls = run_calls(&session).await;
        assert_eq!(calls.len(), steps.len());
        for (step, call) in steps.iter().zip(&calls) {
            let step = step.to_string();
            let step = &step[..step.len().min(300)];
            assert_eq!(call.status, ToolCallStatus::Failed, "{step}: {call:?}");
            let shown = format!(
                "{:?} {:?} {:?}",
                call.content, call.raw_output, call.locations
            );
            assert!(!shown.contains("root:x:"), "{step}: {shown}");
            // The error repeats the path that was requested.
            if !step.contains(SECRET_TEXT) {
                assert!(!shown.contains(SECRET_TEXT), "{step}: {shown}");
            }
        }
        scene.assert_untouched(&"all tools");
        let by = if lends {
            "the client's files"
        } else {
            "its own access"
        };
        println!("{} tool calls by {by}, none got out", steps.len());
    }
}

/// Lists and searches the root. The results show that symlinks exist, but reveal nothing about their targets.
#[tokio::test]
async fn only_files_under_the_root_are_visible() {
    let scene = EscapeScene::new();
    fs::write(scene.root.join("seen"), "a line with s3cr\n").unwrap();
    // Ignore rules outside the root do not apply, and no error shows them.
    fs::write(scene.base.join("proj/.ignore"), "").unwrap();
    symlink(scene.outside.join("secret"), scene.root.join(".gitignore")).unwrap();
    let steps = [
        json!({ "list": {} }),
        json!({ "search": { "pattern": "s3cr" } }),
        json!({ "search": { "pattern": SECRET_TEXT } }),
    ];
    let session = open_session(&scene, &[], false, &steps).await;
    let calls = run_calls(&session).await;
    for call in &calls {
        assert_eq!(call.status, ToolCallStatus::Completed, "{call:?}");
    }
    let data = |n: usize| calls[n].raw_output.clone().unwrap();
    let entries = data(0)["entries"].as_array().unwrap().clone();
    let link = entries.iter().find(|entry| entry["name"] == "d-absolute");
    assert_eq!(link.unwrap()["kind"], "symlink");
    assert!(entries.iter().all(|entry| entry["name"] != "secret"));
    assert_eq!(data(1)["matches"], 1);
    assert_eq!(data(2)["matches"], 0);
    scene.assert_untouched(&"the root was searched");
}

/// Repeatedly swaps a directory with a symlink that points outside the roots.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapping_a_path_during_a_call_does_not_escape_the_roots() {
    let scene = EscapeScene::new();
    let race = scene.root.join("race");
    fs::create_dir_all(race.join("dir/below")).unwrap();
    fs::write(race.join("dir/below/file"), "inside").unwrap();
    symlink(&scene.outside, race.join("away")).unwrap();
    let steps: Vec<Value> = (0..50)
        .flat_map(|turn| {
            [
                json!({ "list": { "path": "race/dir" } }),
                json!({ "search": { "path": "race", "pattern": "." } }),
                json!({ "search": { "path": "race/dir", "pattern": "." } }),
                json!({ "read": { "path": "race/dir/secret" } }),
                json!({ "edit": { "path": "race/dir/secret", "search": SECRET_TEXT, "replacement": ATTEMPT_TEXT } }),
                json!({ "write": { "path": format!("race/dir/new-{turn}"), "text": ATTEMPT_TEXT } }),
            ]
        })
        .collect();
    let session = open_session(&scene, &[], false, &steps).await;
    let swapper = NameSwapper::new(race.join("dir"), race.join("away"));
    let calls = run_calls(&session).await;
    drop(swapper);
    for (step, call) in steps.iter().zip(&calls) {
        if step["edit"].is_null() {
            let shown = format!("{:?} {:?}", call.content, call.raw_output);
            assert!(!shown.contains(SECRET_TEXT), "{step}: {shown}");
        } else {
            assert_eq!(call.status, ToolCallStatus::Failed, "{step}: {call:?}");
        }
    }
    scene.assert_untouched(&"a directory was swapped");
}

/// Renames the roots after the session is opened. All tools still use the original directories.
#[tokio::test]
async fn roots_are_pinned_when_the_session_starts() {
    for lends in [false, true] {
        let scene = EscapeScene::new();
        let more = scene.root.join("sub");
        let steps: Vec<Value> = [&scene.root, &more]
            .iter()
            .flat_map(|root| {
                let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
                [
                    json!({ "read": { "path": path("file") } }),
                    json!({ "edit": { "path": path("file"), "search": "inside", "replacement": "edited" } }),
                    json!({ "write": { "path": path("made/here"), "text": ATTEMPT_TEXT } }),
                    json!({ "list": { "path": path("made") } }),
                    json!({ "search": { "path": path("made"), "pattern": ATTEMPT_TEXT } }),
                ]
            })
            .collect();
        let session = open_session(&scene, std::slice::from_ref(&more), lends, &steps).await;
        let (aside, moved) = (scene.root.join("sub-aside"), scene.base.join("moved"));
        fs::rename(&more, &aside).unwrap();
        symlink(&scene.outside, &more).unwrap();
        fs::rename(&scene.root, &moved).unwrap();
        symlink(&scene.outside, &scene.root).unwrap();
        for call in run_calls(&session).await {
            assert_eq!(call.status, ToolCallStatus::Completed, "{call:?}");
        }
        for place in ["", "sub-aside"] {
            let text = |name: &str| fs::read_to_string(moved.join(place).join(name)).unwrap();
            assert_eq!(text("file"), "edited");
            assert_eq!(text("made/here"), ATTEMPT_TEXT);
        }
        fs::remove_file(&scene.root).unwrap();
        fs::rename(&moved, &scene.root).unwrap();
        scene.assert_untouched(&"the roots' names were swapped");
    }
}
