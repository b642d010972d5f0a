//! `acp run` with the official agent.

use serde_json::json;

use crate::common::{ProgramResult, WORK, acp, outline_of_update};
use crate::official_typescript::TypeScriptFixture;

impl TypeScriptFixture {
    /// Makes `acp run` run a turn of the official agent.
    async fn run(&self, args: &[&str], agent_args: &[&str]) -> ProgramResult {
        let agent = self.agent(agent_args);
        let args = [&["run"], args, &["--"], &agent].concat();
        self.project.run(acp(), args).await
    }
}

#[tokio::test]
async fn acp_run_shows_a_whole_turn_of_the_official_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let ended = official.run(&["--allow", "all", "work"], &[]).await;
    ended.code(0).shows(&[
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
    assert_eq!(official.project.read("note.txt"), "ONE\nTWO\n");
}

#[tokio::test]
async fn acp_run_prints_the_official_agent_s_messages() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let args = ["--allow", "all", "--format", "json", "work"];
    let messages = official.run(&args, &[]).await.code(0).lines();
    let updates = messages
        .iter()
        .filter(|message| message["method"] == "session/update");
    let outline: Vec<String> = updates
        .filter_map(|message| outline_of_update(&message["params"]["update"]))
        .collect();
    assert_eq!(outline[..4], WORK[..4]);
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
async fn acp_run_sets_what_the_official_agent_offers() {
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
    let messages = official.run(&args, &[]).await.code(0).lines();
    let said = messages
        .iter()
        .find_map(|message| message["params"]["update"]["content"]["text"].as_str());
    assert_eq!(said, Some("code large true"));
    official
        .run(&["--set", "model=huge", "hello"], &[])
        .await
        .code(2)
        .says(&["small, large"]);
}

#[tokio::test]
async fn acp_run_says_how_a_turn_of_the_official_agent_ends() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let ended = official.run(&["hello"], &["--auth"]).await;
    ended
        .code(1)
        .says(&["Authentication required", "acp login ", "# A key"]);
    let ended = official.run(&["fail"], &[]).await;
    ended
        .code(1)
        .says(&["agent error: the model is on holiday"]);
    official
        .run(&["refuse"], &[])
        .await
        .code(4)
        .says(&["refused"]);
    official.run(&["max-tokens"], &[]).await.code(5);
    let ended = official.run(&["--format", "quiet", "hello"], &[]).await;
    let ended = ended.code(0);
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("hello\n", "")
    );
    // Nothing may be changed, and nothing was.
    let ended = official.run(&["--allow", "reads", "work"], &[]).await;
    ended.code(0).shows(&["I was not allowed to."]);
    assert_eq!(official.project.read("note.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn ctrl_c_cancels_a_turn_of_the_official_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let agent = official.agent(&[]);
    let (last, code) = official
        .project
        .interrupted_run("wait-command", &agent, "terminal/wait_for_exit")
        .await;
    assert_eq!(last["result"], json!({"stopReason": "cancelled"}));
    assert_eq!(code, Some(130));
    // It may not have come to write its process id; whoever did is gone.
    if official.project.file("pid").exists() && !official.project.read("pid").is_empty() {
        official.project.command_has_ended();
    }
}
