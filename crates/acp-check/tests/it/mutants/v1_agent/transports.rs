//! Mutants that read or write lines incorrectly, or do not exit.

use serde_json::Value;

use crate::mutants::layer::{
    InterceptedMessage, LayerLine, Mutant, Mutation, mutant, mutate_messages,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = writing_mutants();
    mutants.extend(reading_mutants());
    mutants.extend(damaged_input_mutants());
    mutants.extend(closing_mutants());
    mutants
}

fn writing_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/transports/1",
            "Starting the agent",
            "the agent logs to stdout",
            mutate_messages(|passing| {
                if passing.said && passing.answers && passing.method == "initialize" {
                    let log = b"Starting the agent\n".to_vec();
                    passing.then.push(LayerLine::Bytes(log));
                }
            }),
        ),
        mutant(
            "v1/transports/2",
            "a line contains only part of a message",
            "the agent splits a message into several lines",
            mutate_messages(|passing| {
                if passing.said
                    && let Some(message) = passing.message.take()
                {
                    let pretty = format!("{message:#}\n");
                    passing.then.push(LayerLine::Bytes(pretty.into_bytes()));
                }
            }),
        ),
        mutant(
            "v1/transports/3",
            "line is not valid UTF-8",
            "the agent writes Latin-1",
            mutate_messages(|passing| {
                if passing.said
                    && passing.method == "session/update"
                    && let Some(message) = passing.message.take()
                {
                    let text = message.to_string().replace("notes.txt", "n\u{1}tes.txt");
                    let latin = text.bytes().map(|byte| if byte == 1 { 0xf6 } else { byte });
                    passing
                        .then
                        .push(LayerLine::Bytes(latin.chain(*b"\n").collect()));
                }
            }),
        ),
    ]
}

/// Drops the lines for which `cannot` returns true, as if the agent were unable to read them.
fn drop_unreadable_lines(
    cannot: impl Fn(&[u8]) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if !passing.said && cannot(passing.line) {
            *passing.message = None;
        }
    })
}

fn contains(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

fn reading_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/transports/4",
            "waiting for a response to request \"pieces\"",
            "the agent treats each read as a whole message",
            drop_unreadable_lines(|line| contains(line, br#""pieces""#)),
        ),
        mutant(
            "v1/transports/5",
            "waiting for responses to 3 requests",
            "the agent ignores all lines of a read except the first",
            drop_unreadable_lines(|line| {
                contains(line, br#""id":"b""#) || contains(line, br#""id":"c""#)
            }),
        ),
        mutant(
            "v1/transports/6",
            "waiting for a response to request \"cr\"",
            "the agent rejects a carriage return before the line end",
            drop_unreadable_lines(|line| line.ends_with(b"\r\n")),
        ),
        mutant(
            "v1/transports/7",
            "after empty lines",
            "the agent treats an empty line as the end of its input",
            mutate_messages(|passing| {
                if !passing.said && passing.line == b"\n" {
                    passing.back.push(LayerLine::End);
                }
            }),
        ),
        mutant(
            "v1/transports/8",
            "waiting for a response to request \"spaced\"",
            "the agent requires that a message starts without whitespace",
            drop_unreadable_lines(|line| line.starts_with(b" ")),
        ),
        mutant(
            "v1/transports/9",
            "waiting for a response to request \"escaped 😀\"",
            "the agent does not decode escapes in method names",
            drop_unreadable_lines(|line| contains(line, b"\\u0061")),
        ),
        mutant(
            "v1/transports/10",
            "waiting for a response to request \"Grüße 😀\"",
            "the agent decodes each piece of a message on its own",
            drop_unreadable_lines(|line| contains(line, "Grüße".as_bytes())),
        ),
        mutant(
            "v1/transports/11",
            "`session/prompt` failed with error -32602",
            "the agent supports only ASCII",
            mutate_messages(|passing| {
                let foreign = |message: &Value| !message["params"].to_string().is_ascii();
                if !passing.said
                    && passing.method == "session/prompt"
                    && let Some(message) = passing.message.take_if(|message| foreign(message))
                {
                    let error = serde_json::json!({"code": -32602, "message": "no"});
                    let id = &message["id"];
                    let answer = serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error});
                    passing.back.push(LayerLine::Json(answer));
                }
            }),
        ),
        mutant(
            "v1/transports/12",
            "waiting for a response to request 1",
            "the agent reads at most 64 KiB of a line",
            drop_unreadable_lines(|line| line.len() > 64 * 1024),
        ),
    ]
}

/// Makes the agent exit when it reads bytes for which `fatal` returns true.
fn crash_on_line(
    fatal: impl Fn(&[u8]) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing: &mut InterceptedMessage<'_>| {
        if !passing.said && fatal(passing.line) {
            passing.back.push(LayerLine::End);
        }
    })
}

fn damaged_input_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/transports/13",
            "after a line that is not valid UTF-8",
            "the agent exits on a line of invalid UTF-8",
            crash_on_line(|line| std::str::from_utf8(line).is_err()),
        ),
        mutant(
            "v1/transports/14",
            "after lines of invalid JSON",
            "the agent exits on a line of invalid JSON",
            crash_on_line(|line| serde_json::from_slice::<Value>(line).is_err()),
        ),
        mutant(
            "v1/transports/15",
            "the agent stopped responding after a message nested 100,000 levels deep",
            "the agent's stack overflows",
            crash_on_line(|line| contains(line, &b"[".repeat(5000))),
        ),
        mutant(
            "v1/transports/16",
            "after JSON that is not a message",
            "the agent exits on an array",
            crash_on_line(|line| line.starts_with(b"[")),
        ),
    ]
}

fn closing_mutants() -> Vec<Mutant> {
    let nothing = || -> Mutation { Box::new(|_| {}) };
    vec![
        mutant(
            "v1/transports/17",
            "the agent did not close its output within",
            "the agent does not exit when its input is closed",
            nothing,
        )
        .keep_running_after_input_ends(),
        mutant(
            "v1/transports/18",
            "the agent did not close its output within",
            "the agent does not exit when its input is closed during a turn",
            nothing,
        )
        .keep_running_after_input_ends(),
    ]
}
