//! The floor's agent.

use bench_work::{BenchTask, BenchText};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::wire::{BUFFER_SIZE, FloorChunk, FloorInput, FloorMessage, FloorOutput, send};
use super::{ChunkMode, FloorError};

/// The message id, as long as our agent's.
const MESSAGE_ID: &str = "msg_01234567_1";

pub(super) fn run(
    how: ChunkMode,
    (mut lines, mut output): (FloorInput, FloorOutput),
) -> Result<(), FloorError> {
    let mut sessions = 0;
    while let Some(line) = lines.next()? {
        let message: FloorMessage<'_> = serde_json::from_slice(line)?;
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
                let task = BenchTask::from_prompt(&text).ok_or("no such task")?;
                run_task(how, &mut lines, &mut output, &session, task)?;
                json!({"stopReason": "end_turn"})
            }
            "session/load" => {
                let session = message.params.and_then(|params| params.session_id);
                let session = session.ok_or("no session")?;
                let task = BenchTask::from_session_id(&session).ok_or("no such session")?;
                if let BenchTask::Stream { messages, bytes } = task {
                    stream(how, &mut output, &session, messages, bytes)?;
                }
                json!({})
            }
            "_bench/empty" => json!({}),
            other => return Err(format!("{other}?").into()),
        };
        respond(&mut output, &id, &result)?;
    }
    Ok(())
}

fn respond(output: &mut FloorOutput, id: &RawValue, result: &Value) -> Result<(), FloorError> {
    #[derive(Serialize)]
    struct FloorResponse<'a> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        result: &'a Value,
    }
    let jsonrpc = "2.0";
    send(
        output,
        &FloorResponse {
            jsonrpc,
            id,
            result,
        },
    )
}

fn run_task(
    how: ChunkMode,
    lines: &mut FloorInput,
    output: &mut FloorOutput,
    session: &str,
    task: BenchTask,
) -> Result<(), FloorError> {
    match task {
        BenchTask::Stream { messages, bytes } => stream(how, output, session, messages, bytes),
        BenchTask::Pace { .. } => Err("only ours does this".into()),
        BenchTask::Ask(requests) => {
            for number in 0..requests {
                request_permission(lines, output, session, number)?;
            }
            Ok(())
        }
        BenchTask::Read(path) => {
            let params = json!({"sessionId": session, "path": path});
            let method = "fs/read_text_file";
            send(
                output,
                &json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params}),
            )?;
            let line = lines.next()?.ok_or("the client is gone")?;
            let message: FloorMessage<'_> = serde_json::from_slice(line)?;
            let content = message.result.and_then(|result| result.content);
            let length = content.ok_or("no content")?.len().to_string();
            send(output, &FloorChunk::new(session, MESSAGE_ID, &length))
        }
    }
}

fn request_permission(
    lines: &mut FloorInput,
    output: &mut FloorOutput,
    session: &str,
    number: u64,
) -> Result<(), FloorError> {
    #[derive(Serialize)]
    struct FloorPermissionMessage<'a> {
        jsonrpc: &'static str,
        id: u64,
        method: &'static str,
        params: FloorPermissionParams<'a>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct FloorPermissionParams<'a> {
        session_id: &'a str,
        tool_call: FloorToolCall,
        options: [FloorOption; 2],
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct FloorToolCall {
        tool_call_id: String,
        title: &'static str,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct FloorOption {
        option_id: &'static str,
        name: &'static str,
        kind: &'static str,
    }
    let choice = |option_id, name, kind| FloorOption {
        option_id,
        name,
        kind,
    };
    let params = FloorPermissionParams {
        session_id: session,
        tool_call: FloorToolCall {
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
        &FloorPermissionMessage {
            jsonrpc,
            id: number,
            method,
            params,
        },
    )?;
    let line = lines.next()?.ok_or("the client is gone")?;
    let message: FloorMessage<'_> = serde_json::from_slice(line)?;
    let outcome = message.result.and_then(|result| result.outcome);
    match outcome.and_then(|outcome| outcome.option_id) {
        Some("allow") => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

fn stream(
    how: ChunkMode,
    output: &mut FloorOutput,
    session: &str,
    messages: u64,
    bytes: usize,
) -> Result<(), FloorError> {
    let mut text = BenchText::new(bytes);
    let mut buffer = Vec::with_capacity(2 * BUFFER_SIZE);
    for number in 0..messages {
        if how != ChunkMode::Raw || number == 0 {
            let chunk = FloorChunk::new(session, MESSAGE_ID, text.text_for(number));
            serde_json::to_writer(&mut buffer, &chunk)?;
            buffer.push(b'\n');
        }
        match how {
            ChunkMode::Buffered if buffer.len() < BUFFER_SIZE => {}
            ChunkMode::Buffered | ChunkMode::Unbuffered => {
                output.write_all(&buffer)?;
                buffer.clear();
            }
            ChunkMode::Raw => output.write_all(&buffer)?,
        }
    }
    if how != ChunkMode::Raw {
        output.write_all(&buffer)?;
    }
    Ok(())
}
