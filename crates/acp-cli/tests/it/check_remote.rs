//! Tests of `acp check server` with `acp serve`, and of `acp check remote-client` with `acp run --url`.

use serde_json::Value;

use crate::common::{ACP, CommandResult, TestProject};
use crate::serve::Server;

/// Runs `acp check` with these arguments, and returns the report.
fn run_check(project: &TestProject, args: &[&str]) -> Value {
    let mut command = project.acp_command(&["check"]);
    let output = command.args(args).output().unwrap();
    let result = CommandResult::from_output(output).expect_code(0);
    serde_json::from_str(&result.stdout).unwrap()
}

/// Asserts that all checks passed, except for those that are expected to be skipped.
fn require_passed(report: &Value, skipped: &[&str]) {
    for check in report["checks"].as_array().unwrap() {
        let id = check["id"].as_str().unwrap();
        let expected = if skipped.contains(&id) {
            "skip"
        } else {
            "pass"
        };
        assert_eq!(check["verdict"], expected, "{check:#}");
    }
}

#[test]
fn a_server_passes_all_checks() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    let cwd = project.path().to_str().unwrap();
    let args = [
        "server",
        server.url(),
        "--format",
        "json",
        "--strict",
        "--cwd",
        cwd,
        "--prompt-for",
        "run=/run echo checked",
        "--prompt-for",
        "long=/run sleep 60",
    ];
    let report = run_check(&project, &args);
    let program = report["program"].as_str().unwrap();
    assert!(!program.contains("token"), "{program}");
    // The bundled agent keeps the cancelled command's output to itself.
    require_passed(&report, &[]);
}

#[test]
fn a_client_passes_all_checks() {
    let project = TestProject::new();
    let args = [
        "remote-client",
        "--format",
        "json",
        "--strict",
        "--",
        ACP,
        "run",
        "--url",
        "{url}",
        "--allow",
        "all",
        "Do it.",
    ];
    let report = run_check(&project, &args);
    require_passed(&report, &[]);
}

#[test]
fn unreachable_or_invalid_target_is_an_error() {
    let project = TestProject::new();
    let check = |args: &[&str]| {
        let mut command = project.acp_command(&["check"]);
        CommandResult::from_output(command.args(args).output().unwrap())
    };
    check(&["server", "http://127.0.0.1:1/acp"])
        .expect_code(3)
        .expect_stderr("cannot connect to 127.0.0.1:1");
    check(&["server", "ftp://127.0.0.1/"])
        .expect_code(2)
        .expect_stderr("ftp");
    check(&["remote-client", "--", "client"])
        .expect_code(2)
        .expect_stderr("must contain {url}");
    check(&["server", "--list", "--only", "remote/websocket/1"])
        .expect_code(0)
        .expect_stdout(&["remote/websocket/1", "MUST"]);
}
