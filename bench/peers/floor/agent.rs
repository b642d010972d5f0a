//! The agent.

use std::fs::File;
use std::io::Write;

use bench_work::{Task, Text};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::wire::{Chunk, Lines, Message, PIECE, send, stdio};
use super::{Failure, How};

/// As long as our agent's.
const MESSAGE_ID: &str = "msg_01234567_1";

pub(super) fn run(how: How) -> Result<(), Failure> {
    let (mut lines, mut output) = stdio()?;
    let mut sessions = 0;
    while let Some(line) = lines.next()? {
        let message: Message<'_> = serde_json::from_slice(line)?;
        let (Some(id), Some(method)) = (message.id, message.method) else {
            continue;
        };
        let id = id.to_owned();
        let result = match &*method {
            "initialize" => {
                json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}})
            }
            "session/new" => {
                sessions += 1;
                json!({"sessionId": format!("sess_{sessions:032}")})
            }
            "session/prompt" => {
                let params = message.params.ok_or("no params")?;
                let session = params.session_id.ok_or("no session")?;
                let prompt = params.prompt.ok_or("no prompt")?;
                let text: String = prompt.into_iter().filter_map(|block| block.text).collect();
                let task = Task::of(&text).ok_or("no such task")?;
                carry_out(how, &mut lines, &mut output, &session, task)?;
                json!({"stopReason": "end_turn"})
            }
            "session/load" => {
                let session = message.params.and_then(|params| params.session_id);
                let session = session.ok_or("no session")?;
                let task = Task::of_session(&session).ok_or("no such session")?;
                if let Task::Stream { messages, bytes } = task {
                    stream(how, &mut output, &session, messages, bytes)?;
                }
                json!({})
            }
            "_bench/empty" => json!({}),
            other => return Err(format!("{other}?").into()),
        };
        answer(&mut output, &id, &result)?;
    }
    Ok(())
}

fn answer(output: &mut File, id: &RawValue, result: &Value) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Answer<'a> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        result: &'a Value,
    }
    let jsonrpc = "2.0";
    send(
        output,
        &Answer {
            jsonrpc,
            id,
            result,
        },
    )
}

fn carry_out(
    how: How,
    lines: &mut Lines,
    output: &mut File,
    session: &str,
    task: Task,
) -> Result<(), Failure> {
    match task {
        Task::Stream { messages, bytes } => stream(how, output, session, messages, bytes),
        Task::Pace { .. } => Err("only ours does this".into()),
        Task::Ask(requests) => {
            for number in 0..requests {
                ask(lines, output, session, number)?;
            }
            Ok(())
        }
        Task::Read(path) => {
            let params = json!({"sessionId": session, "path": path});
            let method = "fs/read_text_file";
            send(
                output,
                &json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params}),
            )?;
            let line = lines.next()?.ok_or("the client is gone")?;
            let message: Message<'_> = serde_json::from_slice(line)?;
            let content = message.result.and_then(|result| result.content);
            let length = content.ok_or("no content")?.len().to_string();
            send(output, &Chunk::new(session, MESSAGE_ID, &length))
        }
    }
}

fn ask(lines: &mut Lines, output: &mut File, session: &str, number: u64) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Request<'a> {
        jsonrpc: &'static str,
        id: u64,
        method: &'static str,
        params: Ask<'a>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Ask<'a> {
        session_id: &'a str,
        tool_call: ToolCall,
        options: [Choice; 2],
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct ToolCall {
        tool_call_id: String,
        title: &'static str,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Choice {
        option_id: &'static str,
        name: &'static str,
        kind: &'static str,
    }
    let choice = |option_id, name, kind| Choice {
        option_id,
        name,
        kind,
    };
    let params = Ask {
        session_id: session,
        tool_call: ToolCall {
            tool_call_id: format!("call-{number}"),
            title: "work",
        },
        options: [
            choice("allow", "Allow", "allow_once"),
            choice("reject", "Reject", "reject_once"),
        ],
    };
    let (jsonrpc, method) = ("2.0", "session/request_permission");
    send(
        output,
        &Request {
            jsonrpc,
            id: number,
            method,
            params,
        },
    )?;
    let line = lines.next()?.ok_or("the client is gone")?;
    let message: Message<'_> = serde_json::from_slice(line)?;
    let outcome = message.result.and_then(|result| result.outcome);
    match outcome.and_then(|outcome| outcome.option_id) {
        Some("allow") => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

fn stream(
    how: How,
    output: &mut File,
    session: &str,
    messages: u64,
    bytes: usize,
) -> Result<(), Failure> {
    let mut text = Text::new(bytes);
    let mut buffer = Vec::with_capacity(2 * PIECE);
    for number in 0..messages {
        if how != How::Raw || number == 0 {
            let chunk = Chunk::new(session, MESSAGE_ID, text.of(number));
            serde_json::to_writer(&mut buffer, &chunk)?;
            buffer.push(b'\n');
        }
        match how {
            How::Gathered if buffer.len() < PIECE => {}
            How::Gathered | How::Each => {
                output.write_all(&buffer)?;
                buffer.clear();
            }
            How::Raw => output.write_all(&buffer)?,
        }
    }
    if how != How::Raw {
        output.write_all(&buffer)?;
    }
    Ok(())
}
