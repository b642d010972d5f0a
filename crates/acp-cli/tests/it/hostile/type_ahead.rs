//! Tests that input typed before a question is shown does not answer the question.

use serde_json::{Value, json};

use super::*;
use agent::{notification_step, permission_step, request_without_waiting_step, wait_step};

/// Returns the option that was selected for the agent's last question.
#[track_caller]
fn last_choice(project: &TestProject) -> Value {
    let answers = agent::read_responses(project);
    let last = answers.last().expect("the agent was answered");
    last["result"]["outcome"]["optionId"].clone()
}

fn tool_call_fields(command: &str) -> Value {
    json!({"toolCallId": command, "title": command, "kind": "execute", "rawInput": {"command": command}})
}

#[test]
fn line_typed_before_the_question_does_not_answer_it() {
    let project = TestProject::new();
    let steps = [
        wait_step("go"),
        permission_step(tool_call_fields("touch stolen")),
    ];
    let mut terminal = agent::run_on_terminal(&project, "", &steps);
    terminal.send_keys("1\n");
    terminal.wait_for("1\r\n");
    project.write_file("go", "");
    terminal.answer("answer [1-3]: ", "3\n");
    terminal.expect_exit(0);
    assert_eq!(last_choice(&project), "reject_once");
}

#[test]
fn partial_line_typed_before_the_question_does_not_answer_it() {
    let project = TestProject::new();
    let steps = [
        wait_step("go"),
        permission_step(tool_call_fields("touch stolen")),
    ];
    let mut terminal = agent::run_on_terminal(&project, "", &steps);
    terminal.send_keys("1");
    terminal.wait_for("1");
    project.write_file("go", "");
    terminal.answer("answer [1-3]: ", "\n");
    // Enter alone is no answer.
    terminal.answer("answer [1-3]: ", "3\n");
    terminal.expect_exit(0);
    assert_eq!(last_choice(&project), "reject_once");
}

/// Returns steps that ask a harmless question and then replace it with another question.
fn replaced_question_steps() -> [Value; 4] {
    let asks_first = json!({"sessionId": agent::SESSION_ID, "toolCall": tool_call_fields("ls"), "options": [
        {"optionId": "allow_once", "name": "Allow", "kind": "allow_once"},
        {"optionId": "reject_once", "name": "Reject", "kind": "reject_once"}]});
    let method = "session/request_permission";
    [
        request_without_waiting_step(method, asks_first),
        wait_step("go"),
        notification_step("$/cancel_request", json!({"requestId": method})),
        permission_step(tool_call_fields("touch stolen")),
    ]
}

#[test]
fn answer_to_a_withdrawn_question_does_not_answer_the_next() {
    let project = TestProject::new();
    let mut terminal = agent::run_on_terminal(&project, "", &replaced_question_steps());
    // The finger is over Enter.
    terminal.answer("answer [1-2]: ", "1");
    terminal.wait_for("1");
    project.write_file("go", "");
    terminal.wait_for("the agent withdrew this question");
    terminal.answer("touch stolen", "\n");
    terminal.answer("answer [1-3]: ", "3\n");
    terminal.expect_exit(0);
    assert_eq!(last_choice(&project), "reject_once");
}

#[test]
fn line_arriving_with_the_question_does_not_answer_it() {
    let project = TestProject::new();
    let mut terminal = agent::run_on_terminal(&project, "", &replaced_question_steps());
    terminal.wait_for("answer [1-2]: ");
    project.write_file("go", "");
    // As soon as anything of the next question is seen.
    terminal.answer("touch stolen", "1\n");
    terminal.wait_for("ignored the input that was typed before the question");
    terminal.answer("answer [1-3]: ", "3\n");
    terminal.expect_exit(0);
    assert_eq!(last_choice(&project), "reject_once");
}

#[test]
fn replaced_question_in_the_chat_ignores_earlier_keys() {
    let project = TestProject::new();
    let mut screen = agent::start_chat(&project, 80, 24, &replaced_question_steps());
    screen.send_line("go");
    screen.wait_for("ls (execute)");
    project.write_file("go", "");
    screen.wait_for("touch stolen (execute)");
    screen.send_keys("y");
    screen.wait_for("key ignored because it came too soon");
    assert_eq!(
        agent::read_responses(&project).len(),
        1,
        "only the first has ended"
    );
}
