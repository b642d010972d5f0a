//! Tests of `acp trace serve`, which serves agents over the network and records a trace of each connection.

use std::path::{Path, PathBuf};

use crate::common::{ACP, TestProject};
use crate::connect::token_file;
use crate::serve::Server;

/// Returns the traces in a directory.
fn traces_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Runs two turns on the server, each over its own connection.
fn run_two_turns(project: &TestProject, server: &Server) {
    let token = token_file(project, server.token().expose());
    for prompt in ["/read notes.txt", "/help"] {
        let agent = ["--url", server.plain_url(), "--token-file", &token];
        project
            .run(&[&[prompt], &agent[..]].concat())
            .expect_code(0);
    }
}

#[test]
fn each_connection_has_a_trace() {
    let project = TestProject::new();
    let directory = project.path_outside("state").join("traces");
    let at = directory.to_str().unwrap();
    let command = project.acp_command(&["trace", "serve", at, "--listen", "127.0.0.1:0"]);
    let server = Server::from_command(command, 1);
    run_two_turns(&project, &server);
    server.stop();
    let traces = traces_in(&directory);
    assert_eq!(traces.len(), 2, "{traces:?}");
    let shown = |file: &Path| {
        let file = file.to_str().unwrap();
        let shown = project.acp_command(&["trace", "show", file]).output();
        String::from_utf8(shown.unwrap().stdout).unwrap()
    };
    let all: String = traces.iter().map(|file| shown(file)).collect();
    assert_eq!(all.matches("→ session/prompt").count(), 2, "{all}");
    assert!(
        all.contains("/read notes.txt") && all.contains("/help"),
        "{all}"
    );
    for file in &traces {
        let file = file.to_str().unwrap();
        let lint = project.acp_command(&["trace", "lint", file]).output();
        assert_eq!(lint.unwrap().status.code(), Some(0));
    }
}

#[test]
fn messages_between_clients_and_another_server_are_recorded() {
    let project = TestProject::new();
    let remote = Server::start(&project, &[]);
    let directory = project.path_outside("traces");
    let at = directory.to_str().unwrap();
    let args = [
        "trace",
        "serve",
        at,
        "--listen",
        "127.0.0.1:0",
        "--env",
        "ACP_TOKEN",
        "--",
    ];
    let mut command = project.acp_command(&args);
    command.args([ACP, "connect", remote.plain_url()]);
    command.env("ACP_TOKEN", remote.token().expose());
    let server = Server::from_command(command, 1);
    let token = remote.token();
    let file = token_file(&project, token.expose());
    project
        .run(&[
            "/read notes.txt",
            "--url",
            server.plain_url(),
            "--token-file",
            &file,
        ])
        .expect_code(0)
        .expect_stdout(&["second"]);
    server.stop();
    let traces = traces_in(&directory);
    assert_eq!(traces.len(), 1, "{traces:?}");
    let trace = std::fs::read_to_string(&traces[0]).unwrap();
    assert!(trace.contains("session/prompt"), "{trace}");
    assert!(!trace.contains(token.expose()), "{trace}");
}

#[cfg(target_os = "linux")]
#[test]
fn recorder_writes_in_a_sandbox() {
    if let Err(error) = acp_host::Sandbox::new([]) {
        println!("skipped: {error}");
        return;
    }
    let project = TestProject::new();
    let directory = project.path_outside("traces");
    let at = directory.to_str().unwrap();
    let args = ["trace", "serve", at, "--listen", "127.0.0.1:0", "--sandbox"];
    let server = Server::from_command(project.acp_command(&args), 1);
    run_two_turns(&project, &server);
    server.stop();
    assert_eq!(traces_in(&directory).len(), 2);
}
