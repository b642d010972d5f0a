//! `acp check agent` with an agent from npm.

use std::fs;

use acp_agent::Provider;
use serde_json::{Value, json};

use super::install::OPENCODE;
use super::opencode::opencode_command;
use crate::common::TestProject;
use crate::common::prepared_model::{PreparedModel, say};

/// The number of replies of the model, which are enough for all checks.
const MAX_REPLIES: usize = 200;

/// Checks that opencode passes.
const CHECKS: [&str; 8] = [
    "v1/session-setup/1",
    "v1/session-setup/2",
    "v1/session-setup/7",
    "v1/session-setup/8",
    "v1/prompt-turn/1",
    "v1/prompt-turn/2",
    "v1/prompt-turn/4",
    "v1/prompt-turn/6",
];

#[test]
fn checks_of_sessions_share_opencode_and_have_no_false_alarms() {
    let Some(program) = OPENCODE.find_program() else {
        return;
    };
    let project = TestProject::new();
    let home = tempfile::tempdir().unwrap();
    let model = PreparedModel::with_format(
        Provider::OpenAi,
        vec![say("Hello, I am here."); MAX_REPLIES],
    );
    let allow = json!("allow");
    let agent = opencode_command(&program, home.path(), &model, &allow, &allow);
    // The script counts how often the agent is started.
    let starts = project.file("starts");
    let script = format!("echo >> {}\nexec {agent}\n", starts.display());
    project.write_file("agent.sh", &script);
    let script = project.file("agent.sh");
    let mut args = vec!["check", "agent", "--format", "json", "--protocol", "1"];
    // A busy computer must not make the agent fail.
    args.extend(["--jobs", "2", "--timeout", "60"]);
    for id in CHECKS {
        args.extend(["--only", id]);
    }
    args.extend(["--", "sh", script.to_str().unwrap()]);
    let ended = project.acp_command(&args).output().unwrap();
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let found = report["checks"].as_array().unwrap();
    for id in CHECKS {
        let check = found.iter().find(|check| check["id"] == id);
        let verdict = check.map(|check| &check["verdict"]);
        assert_eq!(verdict, Some(&json!("pass")), "{id}: {report:#}");
    }
    let started = fs::read_to_string(starts).unwrap().lines().count();
    // Two to find out the versions, and one for each job. One more is for a connection that a busy computer has lost.
    assert!(started <= 5, "{started} starts: {report:#}");
}
