//! Mutants that run commands incorrectly.

use serde_json::{Value, json};

use crate::mutants::changes::respond_with;
use crate::mutants::layer::{
    Mutant, Mutation, apply_both, change_call, change_incoming, change_result, drop_outgoing,
    mutant, mutate_messages,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = lifecycle_mutants();
    mutants.extend(command_mutants());
    mutants
}

fn lifecycle_mutants() -> Vec<Mutant> {
    let ended = || json!({"exitCode": 0});
    vec![
        mutant(
            "v1/terminals/101",
            "no response to request 0",
            "the client does not respond until the command has ended",
            drop_outgoing("terminal/create", true),
        ),
        mutant(
            "v1/terminals/102",
            "no command output within",
            "the client returns output only after the command has ended",
            change_result("terminal/output", |result| {
                if result["exitStatus"].is_null() {
                    result["output"] = json!("");
                }
            }),
        ),
        mutant(
            "v1/terminals/103",
            "the command is running, but its exit status is",
            "the client returns an exit status while the command is running",
            change_result("terminal/output", |result| {
                result["exitStatus"] = json!({"exitCode": 0})
            }),
        ),
        mutant(
            "v1/terminals/104",
            "the command exited with code 3, but its exit status is null",
            "the client returns no exit status",
            change_result("terminal/output", |result| {
                result["exitStatus"] = Value::Null
            }),
        ),
        mutant(
            "v1/terminals/105",
            "the command exited with code 7, but the response was",
            "the client always returns exit code 0",
            change_result("terminal/wait_for_exit", |result| {
                result["exitCode"] = json!(0)
            }),
        ),
        mutant(
            "v1/terminals/106",
            "the command is running, but `terminal/wait_for_exit` returned",
            "the client does not wait for the command to exit",
            respond_with("terminal/wait_for_exit", ended()),
        ),
        mutant(
            "v1/terminals/107",
            "after two concurrent `terminal/wait_for_exit` requests",
            "the client supports only one wait at a time",
            respond_only_to_first("terminal/wait_for_exit"),
        ),
        mutant(
            "v1/terminals/108",
            "after `terminal/kill`, no response to request 2",
            "the client accepts a request to kill a command, but does not kill it",
            respond_with("terminal/kill", json!({})),
        ),
        mutant(
            "v1/terminals/109",
            "the command printed \"begun\", but after `terminal/kill` the output is \"\"",
            "the client drops the output of a killed command",
            change_result("terminal/output", |result| {
                if !result["exitStatus"].is_null() {
                    result["output"] = json!("");
                }
            }),
        ),
        mutant(
            "v1/terminals/110",
            "the command is still running after `terminal/release`",
            "the client does not kill the command of a released terminal",
            respond_with("terminal/release", json!({})),
        ),
        mutant(
            "v1/terminals/111",
            "`terminal/output` for a released terminal succeeded with",
            "the client keeps a released terminal",
            respond_with("terminal/release", json!({})),
        ),
        mutant(
            "v1/terminals/112",
            "`terminal/wait_for_exit` for an unknown terminal succeeded with",
            "the client returns an exit status for an unknown terminal",
            respond_with("terminal/wait_for_exit", ended()),
        ),
        mutant(
            "v1/terminals/113",
            "`terminal/create`, which the client does not support, succeeded with",
            "the client supports terminals, but does not advertise them",
            apply_both(
                change_call("initialize", |params| {
                    params["clientCapabilities"]["terminal"] = json!(false)
                }),
                respond_with("terminal/create", json!({"terminalId": "term_1"})),
            ),
        ),
        mutant(
            "v1/terminals/114",
            "the command was terminated by a signal, but the response was",
            "the client returns exit code 0 for a command terminated by a signal",
            change_result("terminal/wait_for_exit", |result| {
                if result["exitCode"].is_null() {
                    result["exitCode"] = json!(0);
                }
            }),
        ),
    ]
}

fn command_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/terminals/121",
            "the arguments",
            "the client joins the arguments and splits them again",
            change_created_command(|params| {
                let args = params["args"].as_array().unwrap().clone();
                let words = args.iter().filter_map(Value::as_str);
                let (flags, words): (Vec<&str>, Vec<&str>) =
                    words.partition(|word| word.contains('%') || *word == "-c");
                let line = words.join(" ");
                let words = line.split_whitespace();
                params["args"] = json!(flags.into_iter().chain(words).collect::<Vec<_>>());
            }),
        ),
        mutant(
            "v1/terminals/122",
            "the variables in `env` reached the command as",
            "the client ignores the environment variables",
            change_created_command(|params| params["env"] = json!([])),
        ),
        mutant(
            "v1/terminals/123",
            "but the command ran in",
            "the client ignores the working directory",
            change_created_command(|params| params["cwd"] = Value::Null),
        ),
        mutant(
            "v1/terminals/124",
            "the limit was 10 bytes, but 16 were returned: \"0123456789abcdef\"",
            "the client does not truncate output",
            change_created_command(|params| params["outputByteLimit"] = Value::Null),
        ),
        mutant(
            "v1/terminals/124",
            "the output ended with \"6789abcdef\", but \"0123456789\" was returned",
            "the client truncates the end of the output",
            change_result("terminal/output", |result| {
                result["output"] = json!("0123456789")
            }),
        ),
        mutant(
            "v1/terminals/125",
            "output was truncated within a character:",
            "the client truncates output within a character",
            change_result("terminal/output", |result| {
                result["output"] = json!("\u{fffd}界世")
            }),
        ),
        mutant(
            "v1/terminals/126",
            "output was cut, but `truncated` is false",
            "the client does not report that output was truncated",
            change_result("terminal/output", |result| {
                result["truncated"] = json!(false)
            }),
        ),
        mutant(
            "v1/terminals/126",
            "output was not truncated, but `truncated` is true",
            "the client always reports that output was truncated",
            change_result("terminal/output", |result| {
                result["truncated"] = json!(true)
            }),
        ),
        mutant(
            "v1/terminals/127",
            "\"wrong\" was written to stderr, but the output is \"\"",
            "the client does not return stderr",
            change_result("terminal/output", |result| result["output"] = json!("")),
        ),
    ]
}

/// Modifies the params of requests to start a command.
fn change_created_command(
    heard: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    change_incoming("terminal/create", heard)
}

/// Makes the client respond only to the first call to `method`.
fn respond_only_to_first(method: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    let answered = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    mutate_messages(move |passing| {
        if passing.said
            && passing.answers
            && passing.method == method
            && answered.swap(true, std::sync::atomic::Ordering::Relaxed)
        {
            *passing.message = None;
        }
    })
}
