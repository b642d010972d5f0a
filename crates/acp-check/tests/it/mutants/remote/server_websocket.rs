//! Server mutants that communicate over WebSocket.

use http::{HeaderValue, StatusCode};
use serde_json::Value;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::frames::{FrameAction, InterceptedFrame};
use super::server::{ServerChange, ServerMutant};

const TEXT: OpCode = OpCode::Data(Data::Text);
const BINARY: OpCode = OpCode::Data(Data::Binary);

fn message(frame: &InterceptedFrame) -> Value {
    serde_json::from_slice(&frame.payload).unwrap_or_default()
}

/// Cuts the connection at this frame if `is_so` is true.
fn cut_connection_if(is_so: bool) -> FrameAction {
    if is_so {
        FrameAction::Cut
    } else {
        FrameAction::Pass
    }
}

pub(crate) fn mutants() -> Vec<ServerMutant> {
    let mutant = |kills, why, what, change| ServerMutant {
        kills,
        why,
        what,
        change,
    };
    vec![
        mutant(
            "remote/websocket/1",
            "has no Acp-Connection-Id",
            "the upgrade does not name the connection",
            ServerChange::Response(|_, parts, _| {
                parts.headers.remove("acp-connection-id");
            }),
        ),
        mutant(
            "remote/websocket/2",
            "Sec-WebSocket-Accept is `yes`",
            "it does not confirm the key",
            ServerChange::Response(|_, parts, _| {
                if parts.status == StatusCode::SWITCHING_PROTOCOLS {
                    let yes = HeaderValue::from_static("yes");
                    parts.headers.insert("sec-websocket-accept", yes);
                }
            }),
        ),
        mutant(
            "remote/websocket/3",
            "two connections have the same id",
            "all connections have one id",
            ServerChange::Response(|_, parts, _| {
                let id = HeaderValue::from_static("the-only-one");
                parts.headers.insert("acp-connection-id", id);
            }),
        ),
        mutant(
            "remote/websocket/4",
            "waiting for the response to `initialize`",
            "it does not answer `initialize`",
            ServerChange::Frame(|frame| match message(frame)["result"]["protocolVersion"] {
                Value::Null => FrameAction::Pass,
                _ => FrameAction::Drop,
            }),
        ),
        mutant(
            "remote/websocket/5",
            "a message arrived in a binary frame",
            "messages are binary",
            ServerChange::Frame(|frame| {
                if !frame.from_client && frame.opcode == TEXT {
                    frame.opcode = BINARY;
                }
                FrameAction::Pass
            }),
        ),
        mutant(
            "remote/websocket/5",
            "a text frame is not a JSON-RPC message",
            "a frame has several messages",
            ServerChange::Frame(|frame| {
                if message(frame)["method"] == "session/update" {
                    let again = frame.payload.clone();
                    frame.payload.push(b'\n');
                    frame.payload.extend(again);
                }
                FrameAction::Pass
            }),
        ),
        mutant(
            "remote/websocket/6",
            "after a binary frame: the server closed the connection",
            "it closes at a binary frame",
            ServerChange::Frame(|frame| {
                cut_connection_if(frame.from_client && frame.opcode == BINARY)
            }),
        ),
        mutant(
            "remote/websocket/7",
            "closed the connection before the response to a message in three frames",
            "it takes a frame for a message",
            ServerChange::Frame(|frame| cut_connection_if(frame.from_client && !frame.is_final)),
        ),
        mutant(
            "remote/websocket/8",
            "waiting for a pong with the content of the ping",
            "it does not answer pings",
            ServerChange::Frame(|frame| match frame.opcode {
                OpCode::Control(Control::Pong) => FrameAction::Drop,
                _ => FrameAction::Pass,
            }),
        ),
        mutant(
            "remote/websocket/9",
            "the server closed the connection before a close frame",
            "it cuts the connection at a close frame",
            ServerChange::Frame(|frame| {
                cut_connection_if(
                    frame.from_client && frame.opcode == OpCode::Control(Control::Close),
                )
            }),
        ),
        mutant(
            "remote/websocket/10",
            "after a text frame that is not JSON: the server closed the connection",
            "it closes at what is not JSON",
            ServerChange::Frame(|frame| {
                let is_message = message(frame).is_object();
                cut_connection_if(frame.from_client && frame.opcode == TEXT && !is_message)
            }),
        ),
        mutant(
            "remote/websocket/11",
            "the server closed the connection before the response to a 1 MB message",
            "its frames have 64 KiB at most",
            ServerChange::Frame(|frame| {
                cut_connection_if(frame.from_client && frame.payload.len() > 64 * 1024)
            }),
        ),
    ]
}
