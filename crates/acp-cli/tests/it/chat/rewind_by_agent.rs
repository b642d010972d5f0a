//! Tests of undo where the agent can copy a session up to a message. They look at what the model is sent.

use serde_json::json;

use super::*;
use crate::full_task::provider::{AnswerPiece, ProviderReply};
use crate::local_sessions::wait_for;
use prepared_model::{PreparedModel, say};

/// Starts a chat with an agent, and waits until its session is open.
fn start(project: &TestProject, agent: &str, args: &str) -> ChatScreen {
    let args = format!("--allow all {args} -- {agent}");
    let mut screen = start_chat_with_args(project, 100, 40, &args);
    screen.wait_for("Ask");
    screen
}

/// Sends a prompt and waits until the turn has ended with this answer.
pub(super) fn ask(screen: &mut ChatScreen, prompt: &str, answer: &str) {
    screen.send_line(prompt);
    screen.wait_for(answer);
    screen.wait_until_gone("Esc: cancel");
}

const COPY: &str =
    "c and b continue in a copy of the session, which the agent ends before this prompt.";

/// Takes back the conversation of the last turn.
fn undo_conversation(screen: &mut ChatScreen, explanation: &str, gone: &str) {
    screen.send_line("/undo");
    screen.wait_for("Undo 1 turn");
    screen.wait_for(explanation);
    screen.send_keys("c");
    screen.wait_until_gone("Undo 1 turn");
    screen.wait_for("the prompt can be edited and sent again");
    screen.send_keys(CLEAR_LINE);
    screen.wait_until_gone(gone);
}

#[test]
fn the_model_does_not_see_what_was_taken_back() {
    for version in ["1", "2"] {
        check_that_the_model_does_not_see(version);
    }
}

fn check_that_the_model_does_not_see(version: &str) {
    let model = PreparedModel::new(&[
        "Answer 1.",
        "Answer 2.",
        "Answer 3.",
        "Answer 4.",
        "Answer 5.",
    ]);
    let project = TestProject::new();
    let mut screen = start(&project, &model.agent(), &format!("--protocol {version}"));
    ask(&mut screen, "Question 1", "Answer 1.");
    ask(&mut screen, "Question 2", "Answer 2.");
    ask(&mut screen, "Question 3", "Answer 3.");
    undo_conversation(&mut screen, COPY, "Answer 3.");
    // The conversation before is still shown, and nothing goes with the next prompt.
    screen.wait_for("Answer 2.");
    screen.wait_for("Type a prompt");
    assert!(!screen.text().contains("goes with it"), "{}", screen.text());
    ask(&mut screen, "Question 4", "Answer 4.");
    let expected = [
        "user: Question 1",
        "assistant: Answer 1.",
        "user: Question 2",
        "assistant: Answer 2.",
        "user: Question 4",
    ];
    assert_eq!(model.last_messages(4), expected);

    // The copy can be copied in turn, and several turns be taken back together.
    screen.send_keys(ESCAPE);
    screen.settle();
    screen.send_keys(ESCAPE);
    screen.wait_for("Go back to before a prompt");
    screen.wait_for("› Question 4");
    screen.send_keys(DOWN);
    screen.send_keys(ENTER);
    screen.wait_for("Undo 2 turns");
    screen.wait_for(COPY);
    screen.send_keys("c");
    screen.wait_until_gone("Answer 2.");
    screen.wait_for("Answer 1.");
    // The first of the prompts is back.
    screen.wait_for("│Question 2");
    screen.send_keys(CLEAR_LINE);
    ask(&mut screen, "Question 5", "Answer 5.");
    let expected = [
        "user: Question 1",
        "assistant: Answer 1.",
        "user: Question 5",
    ];
    assert_eq!(model.last_messages(5), expected);
}

#[test]
fn what_was_taken_back_goes_on_after_a_redo() {
    let model = PreparedModel::new(&["Answer 1.", "Answer 2.", "Answer 3."]);
    let project = TestProject::new();
    let mut screen = start(&project, &model.agent(), "");
    ask(&mut screen, "Question 1", "Answer 1.");
    ask(&mut screen, "Question 2", "Answer 2.");
    undo_conversation(&mut screen, COPY, "Answer 2.");
    screen.wait_for("Answer 1.");
    undo_conversation(
        &mut screen,
        "c and b begin a new session, because this prompt is the first one.",
        "Answer 1.",
    );
    screen.wait_for("Type a prompt");
    for answer in ["Answer 1.", "Answer 2."] {
        screen.send_line("/redo");
        screen.wait_for("The conversation that was left is shown again.");
        screen.send_keys("r");
        screen.wait_for(answer);
    }
    ask(&mut screen, "Question 3", "Answer 3.");
    let expected = [
        "user: Question 1",
        "assistant: Answer 1.",
        "user: Question 2",
        "assistant: Answer 2.",
        "user: Question 3",
    ];
    assert_eq!(model.last_messages(3), expected);
    // The copy, in which nothing was said, is gone.
    quit(&mut screen);
    let listed = project
        .acp_command(&["sessions", "--format", "json", "--"])
        .args(model.agent().split(' '))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&listed.stderr);
    assert!(listed.status.success(), "{errors}");
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(listed.matches("Question 1").count(), 1, "{listed}");
}

#[test]
fn the_name_of_a_session_moves_to_the_copy_and_back() {
    let model = PreparedModel::new(&["Answer 1.", "Answer 2.", "Answer 3."]);
    let project = TestProject::new();
    let named = "--session garden --no-server";
    let mut screen = start(&project, &model.agent(), named);
    ask(&mut screen, "Question 1", "Answer 1.");
    ask(&mut screen, "Question 2", "Answer 2.");
    undo_conversation(&mut screen, COPY, "Answer 2.");
    // The name moves when the copy is open.
    let export = format!("acp sessions export garden -- {}", model.agent());
    wait_for("the name at the copy", || {
        let exported = project.run_shell(&export).stdout;
        (exported.contains("Answer 1.") && !exported.contains("Answer 2.")).then_some(())
    });
    quit(&mut screen);
    screen.wait_for_exit();
    let mut screen = start(&project, &model.agent(), named);
    screen.wait_for("Answer 1.");
    assert!(!screen.text().contains("Answer 2."), "{}", screen.text());
    ask(&mut screen, "Question 3", "Answer 3.");
    undo_conversation(&mut screen, COPY, "Answer 3.");
    screen.send_line("/redo");
    screen.wait_for("Redo 1 turn");
    screen.send_keys("r");
    screen.wait_for("Answer 3.");
    quit(&mut screen);
    screen.wait_for_exit();
    let mut screen = start(&project, &model.agent(), named);
    screen.wait_for("Answer 3.");
}

/// A program between the chat and the agent. When the file `refuse` exists, it asks for a copy up to a message that does
/// not exist. When the file `die` exists, it removes the file and ends instead.
const MEDDLER: &str = r#"while IFS= read -r line; do
    case $line in *session/fork*)
        if test -e die; then rm die; exit 1; fi
        if test -e refuse; then line=$(printf '%s\n' "$line" | sed 's/"messageId":"/&no-/'); fi
    esac
    printf '%s\n' "$line"
done | exec "$@"
"#;

/// Returns the command line of an agent behind the [`MEDDLER`].
fn meddled(project: &TestProject, model: &PreparedModel) -> String {
    project.write_file(".meddler.sh", MEDDLER);
    let script = project.file(".meddler.sh");
    format!("sh {} {}", script.display(), model.agent())
}

#[test]
fn a_new_session_gets_the_conversation_if_the_agent_refuses_to_copy_it() {
    let model = PreparedModel::new(&["Answer 1.", "Answer 2.", "Answer 3."]);
    let project = TestProject::new();
    let mut screen = start(&project, &meddled(&project, &model), "");
    ask(&mut screen, "Question 1", "Answer 1.");
    ask(&mut screen, "Question 2", "Answer 2.");
    project.write_file("refuse", "");
    undo_conversation(&mut screen, COPY, "Answer 2.");
    screen.wait_for("the agent did not copy the session, so a new one gets the conversation");
    screen.wait_for("the agent's reason: session ");
    screen.wait_for("Type a prompt; the conversation so far goes with it (1 KB)");
    ask(&mut screen, "Question 3", "Answer 3.");
    let messages = model.last_messages(3);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("Answer 1.") && messages[0].ends_with("Question 3"));
    assert!(!messages[0].contains("Question 2"), "{messages:?}");
}

#[test]
fn an_agent_that_dies_while_it_copies_a_session_copies_it_after_a_restart() {
    let model = PreparedModel::new(&["Answer 1.", "Answer 2.", "Answer 3."]);
    let project = TestProject::new();
    let mut screen = start(&project, &meddled(&project, &model), "");
    ask(&mut screen, "Question 1", "Answer 1.");
    ask(&mut screen, "Question 2", "Answer 2.");
    project.write_file("die", "");
    screen.send_line("/undo");
    screen.wait_for(COPY);
    screen.send_keys("c");
    screen.wait_for("sh ended: exit code");
    screen.wait_for("F5: restart and load the session");
    screen.send_keys(F5);
    screen.wait_for("Answer 1.");
    screen.wait_for("│Question 2");
    screen.send_keys(CLEAR_LINE);
    ask(&mut screen, "Question 3", "Answer 3.");
    let expected = [
        "user: Question 1",
        "assistant: Answer 1.",
        "user: Question 3",
    ];
    assert_eq!(model.last_messages(3), expected);
}

/// Returns the reply of a model that writes a file.
fn write_file(path: &str, text: &str) -> ProviderReply {
    let arguments = json!({"path": path, "text": text});
    ProviderReply::Says(vec![AnswerPiece::Call("call", "write", arguments)])
}

#[test]
fn turns_of_an_earlier_chat_are_undone() {
    let model = PreparedModel::with_replies(vec![
        write_file("a.txt", "a"),
        say("Answer 1."),
        write_file("b.txt", "b"),
        say("Answer 2."),
        say("Answer 3."),
        say("Answer 4."),
    ]);
    let project = TestProject::new();
    let mut screen = start(&project, &model.agent(), "");
    ask(&mut screen, "Question 1", "Answer 1.");
    ask(&mut screen, "Question 2", "Answer 2.");
    quit(&mut screen);
    screen.wait_for_exit();
    // The user goes on by hand before the next chat.
    project.write_file("mine.txt", "mine");
    let mut screen = start(&project, &model.agent(), "--continue");
    screen.wait_for("Answer 2.");
    ask(&mut screen, "Question 3", "Answer 3.");
    screen.send_line("/rewind");
    screen.wait_for("Go back to before a prompt");
    screen.wait_for("› Question 3");
    screen.wait_for("Question 1");
    screen.send_keys(DOWN);
    screen.send_keys(ENTER);
    screen.wait_for("Undo 2 turns");
    screen.wait_for("delete b.txt");
    screen.wait_for("delete mine.txt");
    screen.wait_for(COPY);
    assert!(!screen.text().contains("delete a.txt"), "{}", screen.text());
    screen.send_keys("b");
    screen.wait_for("files restored");
    screen.wait_until_gone("Answer 2.");
    screen.wait_for("Answer 1.");
    // The prompt is known from the conversation.
    screen.wait_for("│Question 2");
    screen.send_keys(CLEAR_LINE);
    assert!(!project.file("b.txt").exists() && !project.file("mine.txt").exists());
    assert_eq!(project.read_file("a.txt"), "a");
    ask(&mut screen, "Question 4", "Answer 4.");
    let messages = model.last_messages(6);
    assert_eq!(messages.last().unwrap(), "user: Question 4");
    assert!(
        messages.contains(&"assistant: Answer 1.".to_owned()),
        "{messages:?}"
    );
    assert!(
        !messages
            .iter()
            .any(|message| message.contains("Question 2")),
        "{messages:?}"
    );

    // The first turn can be undone in the next chat, too, although it ran in another session.
    quit(&mut screen);
    screen.wait_for_exit();
    let mut screen = start(&project, &model.agent(), "--continue");
    screen.wait_for("Answer 4.");
    screen.send_line("/rewind");
    screen.wait_for("› Question 4");
    screen.send_keys(DOWN);
    screen.send_keys(ENTER);
    screen.wait_for("Undo 2 turns");
    screen.wait_for("delete a.txt");
    screen.wait_for("c and b begin a new session, because this prompt is the first one.");
    screen.send_keys("f");
    screen.wait_for("files restored");
    assert!(!project.file("a.txt").exists());
}
