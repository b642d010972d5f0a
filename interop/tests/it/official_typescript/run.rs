//! Tests of `acp run` with the official agent.

use serde_json::json;

use crate::common::{ProgramResult, WORK_OUTLINE, acp_program, update_outline};
use crate::official_typescript::TypeScriptFixture;

impl TypeScriptFixture {
    /// Runs a turn of the official agent with `acp run`.
    async fn run_acp(&self, args: &[&str], agent_args: &[&str]) -> ProgramResult {
        let agent = self.agent_command(agent_args);
        let args = [&["run"], args, &["--"], &agent].concat();
        self.project.run_program(acp_program(), args).await
    }
}

#[tokio::test]
async fn acp_run_shows_a_full_turn_of_the_official_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let ended = official.run_acp(&["--allow", "all", "work"], &[]).await;
    ended.expect_code(0).expect_stdout(&[
        "First I look.",
        "Reading the note.",
        "Look",
        "Read note.txt (read)",
        "completed",
        "Shout (edit)",
        "-two",
        "+TWO",
        "completed",
        "Count (execute)",
        "| hello",
        "exit code 3",
        "Wait (execute)",
        "failed",
        "Done.",
    ]);
    assert_eq!(official.project.read_file("note.txt"), "ONE\nTWO\n");
}

#[tokio::test]
async fn acp_run_prints_the_messages_of_the_official_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let args = ["--allow", "all", "--format", "json", "work"];
    let messages = official
        .run_acp(&args, &[])
        .await
        .expect_code(0)
        .json_lines();
    let updates = messages
        .iter()
        .filter(|message| message["method"] == "session/update");
    let outline: Vec<String> = updates
        .filter_map(|message| update_outline(&message["params"]["update"]))
        .collect();
    assert_eq!(outline[..4], WORK_OUTLINE[..4]);
    for method in [
        "session/request_permission",
        "fs/read_text_file",
        "fs/write_text_file",
        "terminal/create",
        "terminal/output",
        "terminal/wait_for_exit",
        "terminal/kill",
        "terminal/release",
    ] {
        assert!(
            messages.iter().any(|message| message["method"] == method),
            "no {method}"
        );
    }
    assert_eq!(
        messages.last().unwrap()["result"],
        json!({"stopReason": "end_turn"})
    );
}

#[tokio::test]
async fn acp_run_sets_options_of_the_official_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let args = [
        "--mode",
        "code",
        "--set",
        "model=large",
        "--set",
        "loud=true",
    ];
    let args = [&args[..], &["--format", "json", "settings"]].concat();
    let messages = official
        .run_acp(&args, &[])
        .await
        .expect_code(0)
        .json_lines();
    let said = messages
        .iter()
        .find_map(|message| message["params"]["update"]["content"]["text"].as_str());
    assert_eq!(said, Some("code large true"));
    official
        .run_acp(&["--set", "model=huge", "hello"], &[])
        .await
        .expect_code(2)
        .expect_stderr(&["small, large"]);
}

#[tokio::test]
async fn acp_run_exit_code_reflects_the_official_agents_stop_reason() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let ended = official.run_acp(&["hello"], &["--auth"]).await;
    ended
        .expect_code(1)
        .expect_stderr(&["Authentication required", "acp login ", "# A key"]);
    let ended = official.run_acp(&["fail"], &[]).await;
    ended
        .expect_code(1)
        .expect_stderr(&["agent error: the model is on holiday"]);
    official
        .run_acp(&["refuse"], &[])
        .await
        .expect_code(4)
        .expect_stderr(&["refused"]);
    official.run_acp(&["max-tokens"], &[]).await.expect_code(5);
    let ended = official.run_acp(&["--format", "quiet", "hello"], &[]).await;
    let ended = ended.expect_code(0);
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("hello\n", "")
    );
    // Changes are not allowed, and nothing was changed.
    let ended = official.run_acp(&["--allow", "reads", "work"], &[]).await;
    ended
        .expect_code(8)
        .expect_stdout(&["I was not allowed to."]);
    assert_eq!(official.project.read_file("note.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn ctrl_c_cancels_a_turn_of_the_official_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let agent = official.agent_command(&[]);
    let (last, code) = official
        .project
        .run_interrupted("wait-command", &agent, "terminal/wait_for_exit")
        .await;
    assert_eq!(last["result"], json!({"stopReason": "cancelled"}));
    assert_eq!(code, Some(130));
    // The command may not have written its process id. If it has, the process has exited.
    if official.project.file("pid").exists() && !official.project.read_file("pid").is_empty() {
        official.project.assert_command_ended();
    }
}
