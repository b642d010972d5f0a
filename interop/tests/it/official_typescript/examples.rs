//! Tests with the unchanged examples of the official SDK, from an older release, because newer releases do not include
//! them.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::common::typescript::TypeScriptPrograms;
use crate::common::{acp_program, with_timeout};
use crate::official_typescript::TypeScriptFixture;

const EXAMPLES_DIRECTORY: &str = "node_modules/sdk-with-examples/dist/examples";

#[tokio::test]
async fn acp_run_completes_a_turn_with_the_example_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let agent = TypeScriptPrograms::find_installed().unwrap();
    let agent = agent.program(&format!("{EXAMPLES_DIRECTORY}/agent.js"));
    let run = async |policy, end| {
        let args = ["run", "--allow", policy, "Hello", "--", "node", &agent];
        let ended = official.project.run_program(acp_program(), args).await;
        // With `reads`, the one change that the agent asks for is denied.
        let code = if policy == "reads" { 8 } else { 0 };
        ended.expect_code(code).expect_stdout(&[
            "I'll help you with that.",
            "Reading project files (read)",
            "completed",
            "Now I understand the project structure.",
            "Modifying critical configuration file (edit)",
            end,
        ]);
    };
    // The example sleeps for seconds, so run both turns at once.
    tokio::join!(
        run(
            "all",
            "Perfect! I've successfully updated the configuration."
        ),
        run("reads", "I understand you prefer not to make that change."),
    );
}

/// The example client starts its agent with `npx` and asks on stdin. Its prompt is fixed, so the bundled agent follows
/// a script.
#[tokio::test]
async fn example_client_completes_a_turn_with_the_bundled_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let programs = TypeScriptPrograms::find_installed().unwrap();
    let project = &official.project;
    let script = json!({"turns": [[
        {"say": "I write."},
        {"write": {"path": "new.txt", "text": "hello"}},
        {"say": "Written."},
    ]]});
    project.write_file("script.json", &script.to_string());
    let npx = format!(
        "#!/bin/sh\nexec '{}' agent --script script.json\n",
        acp_program()
    );
    project.write_file("npx", &npx);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(project.file("npx"), executable).unwrap();

    let path = std::env::var("PATH").unwrap();
    let mut client = tokio::process::Command::new("node")
        .arg(programs.program(&format!("{EXAMPLES_DIRECTORY}/client.js")))
        .env("PATH", format!("{}:{path}", project.path().display()))
        .env("XDG_STATE_HOME", project.state_directory())
        .current_dir(project.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    // Keep stdin open, because the client treats its end as a missing answer.
    let mut person = client.stdin.take().unwrap();
    person.write_all(b"1\n").await.unwrap();
    let output = with_timeout("the client ends", client.wait_with_output()).await;
    let output = output.unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let mut rest = shown.as_str();
    for part in [
        "Connected to agent (protocol v1)",
        "I write.",
        "(pending)",
        "Permission requested",
        "(allow_once)",
        "updated: completed",
        "Written.",
        "Agent completed with: end_turn",
    ] {
        let found = rest.split_once(part);
        (_, rest) = found.unwrap_or_else(|| panic!("no {part:?} in {shown}"));
    }
    // This client does not write files, but only prints the requests.
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("Write text file called with"), "{told}");
    assert!(told.contains("new.txt"), "{told}");
    drop(person);
}
