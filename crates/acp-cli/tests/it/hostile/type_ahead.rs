//! What was typed before a question was there answers nothing.

use serde_json::{Value, json};

use super::*;
use agent::{ask, notify, request_at_once, wait_for};

/// What the agent was told about its last question.
#[track_caller]
fn last_choice(project: &TestProject) -> Value {
    let answers = agent::answers(project);
    let last = answers.last().expect("the agent was answered");
    last["result"]["outcome"]["optionId"].clone()
}

fn tool_call(command: &str) -> Value {
    json!({"toolCallId": command, "title": command, "kind": "execute", "rawInput": {"command": command}})
}

#[test]
fn a_line_typed_before_the_question_does_not_answer_it() {
    let project = TestProject::new();
    let steps = [wait_for("go"), ask(tool_call("touch stolen"))];
    let mut terminal = agent::run_on_terminal(&project, "", &steps);
    terminal.key("1\n");
    terminal.until("1\r\n");
    project.write("go", "");
    terminal.answer("answer [1-3]: ", "3\n");
    terminal.ends(0);
    assert_eq!(last_choice(&project), "reject_once");
}

#[test]
fn half_a_line_typed_before_the_question_does_not_answer_it() {
    let project = TestProject::new();
    let steps = [wait_for("go"), ask(tool_call("touch stolen"))];
    let mut terminal = agent::run_on_terminal(&project, "", &steps);
    terminal.key("1");
    terminal.until("1");
    project.write("go", "");
    terminal.answer("answer [1-3]: ", "\n");
    // Enter alone is no answer.
    terminal.answer("answer [1-3]: ", "3\n");
    terminal.ends(0);
    assert_eq!(last_choice(&project), "reject_once");
}

/// The steps of an agent that asks something harmless, and replaces it by something else.
fn replaces() -> [Value; 4] {
    let asks_first = json!({"sessionId": agent::SESSION, "toolCall": tool_call("ls"), "options": [
        {"optionId": "allow_once", "name": "Allow", "kind": "allow_once"},
        {"optionId": "reject_once", "name": "Reject", "kind": "reject_once"}]});
    let method = "session/request_permission";
    [
        request_at_once(method, asks_first),
        wait_for("go"),
        notify("$/cancel_request", json!({"requestId": method})),
        ask(tool_call("touch stolen")),
    ]
}

#[test]
fn an_answer_to_a_question_that_was_withdrawn_is_not_one_to_the_next() {
    let project = TestProject::new();
    let mut terminal = agent::run_on_terminal(&project, "", &replaces());
    // The finger is over Enter.
    terminal.answer("answer [1-2]: ", "1");
    terminal.until("1");
    project.write("go", "");
    terminal.until("the agent withdrew this question");
    terminal.answer("touch stolen", "\n");
    terminal.answer("answer [1-3]: ", "3\n");
    terminal.ends(0);
    assert_eq!(last_choice(&project), "reject_once");
}

#[test]
fn a_line_that_comes_with_the_question_does_not_answer_it() {
    let project = TestProject::new();
    let mut terminal = agent::run_on_terminal(&project, "", &replaces());
    terminal.until("answer [1-2]: ");
    project.write("go", "");
    // As soon as anything of the next question is seen.
    terminal.answer("touch stolen", "1\n");
    terminal.until("input typed before the question was ignored");
    terminal.answer("answer [1-3]: ", "3\n");
    terminal.ends(0);
    assert_eq!(last_choice(&project), "reject_once");
}

#[test]
fn in_the_chat_a_replaced_question_takes_no_key_of_the_first() {
    let project = TestProject::new();
    let mut screen = agent::chat(&project, 80, 24, &replaces());
    screen.say("go");
    screen.until("ls (execute)");
    project.write("go", "");
    screen.until("touch stolen (execute)");
    screen.key("y");
    screen.until("key ignored because it came too soon");
    assert_eq!(
        agent::answers(&project).len(),
        1,
        "only the first has ended"
    );
}
