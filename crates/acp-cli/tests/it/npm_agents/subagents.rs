//! Subagents of agents from npm. `../subagents.rs` has scripted agents that send the same messages.

use serde_json::{Value, json};

use super::claude::claude_command;
use super::install::{CLAUDE, OPENCODE};
use super::opencode::opencode_command;
use super::{call_tool, say_to};
use crate::chat::start_chat_with_args;
use crate::common::TestProject;
use crate::common::prepared_model::PreparedModel;
use acp_agent::Provider;

/// The command that the subagent runs. It must be allowed, because it writes a file.
const COMMAND: &str = "echo counted > count.txt; cat count.txt";

/// Returns the model of an agent that has a subagent run a command.
fn delegating_model(provider: Provider, tool: &'static str, shell: &'static str) -> PreparedModel {
    let task = json!({
        "description": "Count files",
        "prompt": "Run the count",
        "subagent_type": if tool == "Agent" { "general-purpose" } else { "general" },
        "run_in_background": false,
    });
    let command = json!({"command": COMMAND, "description": "Counts"});
    let replies = vec![
        call_tool("Please delegate", "I delegate this.", "call_1", tool, task),
        call_tool("Run the count", "I count now.", "call_2", shell, command),
        say_to("Run the count", "The count is done."),
        say_to("Please delegate", "The subagent has counted."),
    ];
    PreparedModel::with_format(provider, replies)
}

#[test]
fn subagent_of_claude_is_shown_with_its_work_and_its_question() {
    let Some(program) = CLAUDE.find_program() else {
        return;
    };
    let project = TestProject::new();
    let home = tempfile::tempdir().unwrap();
    let model = delegating_model(Provider::Anthropic, "Agent", "Bash");
    let agent = claude_command(&program, home.path(), &model);
    let mut screen = start_chat_with_args(&project, 110, 45, &format!("-- {agent}"));
    screen.send_line("Please delegate");
    // The question names the subagent, and its work can be seen meanwhile.
    screen.wait_for("asks for permission");
    screen.wait_for("subagent: Count files");
    screen.wait_for(&format!("$ {COMMAND}"));
    screen.wait_for("Subagent: Count files needs your answer");
    screen.wait_for("│ I count now.");
    screen.wait_for("│ ✉ message from the parent session");
    assert!(!project.file("count.txt").exists());
    let text = screen.text();
    assert_eq!(text.matches("Run the count").count(), 1, "{text}");
    assert!(!text.contains("[terminal"), "{text}");
    crate::chat::wait_until_question_accepts_keys();
    screen.send_keys("y");
    screen.wait_for("The subagent has counted.");
    screen.wait_for("■ Subagent: Count files done");
    screen.wait_for("│ The count is done.");
    assert_eq!(project.read_file("count.txt"), "counted\n");
}

#[test]
fn acp_run_shows_the_work_of_claudes_subagent_and_leaves_it_out_of_the_answer() {
    let Some(program) = CLAUDE.find_program() else {
        return;
    };
    let project = TestProject::new();
    let home = tempfile::tempdir().unwrap();
    let model = delegating_model(Provider::Anthropic, "Agent", "Bash");
    let agent = claude_command(&program, home.path(), &model);
    let line = format!("acp run --allow all --output r.json 'Please delegate' -- {agent}");
    let ended = project.run_shell(&line).expect_code(0);
    ended.expect_stdout(&[
        "I delegate this.\n",
        "(message to Count files)\n│ Run the count\n",
        "Subagent: Count files\n│ I count now.\n",
        "│ * echo counted > count.txt; cat count.txt (execute)\n",
        "│   | counted\n",
        "│ The count is done.\n│ (end_turn)\n",
        "The subagent has counted.",
    ]);
    let result: Value = serde_json::from_str(&project.read_file("r.json")).unwrap();
    let answer = result["answer"].as_str().unwrap();
    assert!(answer.ends_with("The subagent has counted."), "{result:#}");
    assert!(!answer.contains("The count is done."), "{result:#}");
}

/// opencode does not report what its subagents do, only what they return. It does not pass on their questions either,
/// so `docs/agents.md` tells users to decide in its configuration.
#[test]
fn result_of_a_subagent_of_opencode_is_shown_under_its_tool_call() {
    let Some(program) = OPENCODE.find_program() else {
        return;
    };
    let project = TestProject::new();
    let home = tempfile::tempdir().unwrap();
    let model = delegating_model(Provider::OpenAi, "task", "bash");
    let subagents = json!({"bash": "allow"});
    let asks = json!({"bash": "ask"});
    let agent = opencode_command(&program, home.path(), &model, &asks, &subagents);
    let line = format!("acp run --allow all 'Please delegate' -- {agent}");
    let ended = project.run_shell(&line).expect_code(0);
    ended.expect_stdout(&[
        "I delegate this.\n",
        // The agent first calls it "task". The title follows, which is often too late for what has been printed.
        " (think)\n",
        "The count is done.\n",
        "completed\n",
        "The subagent has counted.",
    ]);
    assert_eq!(project.read_file("count.txt"), "counted\n");
}
