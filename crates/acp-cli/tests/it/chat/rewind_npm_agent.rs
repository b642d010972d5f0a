//! A test of undo with an agent from npm that writes files by itself and knows nothing of this project.

use serde_json::json;

use super::*;
use crate::full_task::provider::{AnswerPiece, ProviderReply};
use crate::npm_agents::{OPENCODE, opencode_command};
use prepared_model::{PreparedModel, say};
use rewind_by_agent::ask;

#[test]
fn files_that_another_agent_wrote_by_itself_are_restored() {
    let Some(program) = OPENCODE.find_program() else {
        return;
    };
    let project = TestProject::new();
    let home = tempfile::tempdir().unwrap();
    let file = project.file("new.txt").display().to_string();
    let write = json!({"filePath": file, "content": "by the agent\n"});
    let model = PreparedModel::with_replies(vec![
        say("Hello, user."),
        ProviderReply::Says(vec![AnswerPiece::Call("call", "write", write)]),
        say("It is written."),
        say("We go on."),
    ]);
    let agent = opencode_command(
        &program,
        home.path(),
        &model,
        &json!("allow"),
        &json!("allow"),
    );
    let mut screen = start_chat_with_args(&project, 100, 40, &format!("--allow all -- {agent}"));
    ask(&mut screen, "Greet me", "Hello, user.");
    ask(&mut screen, "Write the file", "It is written.");
    assert_eq!(project.read_file("new.txt"), "by the agent\n");
    screen.send_line("/undo");
    screen.wait_for("Undo 1 turn");
    screen.wait_for("delete new.txt");
    screen.wait_for("c and b continue the conversation in a new session");
    screen.send_keys("b");
    screen.wait_for("files restored");
    screen.send_keys(CLEAR_LINE);
    assert!(!project.file("new.txt").exists());
    screen.wait_for("Type a prompt; the conversation so far goes with it (1 KB)");
    ask(&mut screen, "What now?", "We go on.");
    let messages = model.last_messages(4);
    let said = messages.join("\n");
    assert!(
        said.contains("Greet me") && said.contains("Hello, user."),
        "{said}"
    );
    assert!(
        said.contains("What now?") && !said.contains("Write the file"),
        "{said}"
    );
}
