//! The client mutants of the remote transport.

use http::{HeaderValue, Method};
use serde_json::Value;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::client::{ClientChange, ClientMutant, Message};
use super::frames::{FrameAction, InterceptedFrame};

fn mutant(
    kills: &'static str,
    why: &'static str,
    what: &'static str,
    change: ClientChange,
) -> ClientMutant {
    ClientMutant {
        kills,
        why,
        what,
        change,
    }
}

pub(crate) fn mutants() -> Vec<ClientMutant> {
    [requests(), stream_mutants(), websocket_mutants()]
        .into_iter()
        .flatten()
        .collect()
}

fn contains_bytes(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn requests() -> Vec<ClientMutant> {
    vec![
        mutant(
            "remote/requests/101",
            "`initialize` has Acp-Connection-Id `mine`",
            "it chooses the id of the connection",
            ClientChange::Headers(|message, headers| {
                if message.is("initialize") {
                    headers.insert("acp-connection-id", HeaderValue::from_static("mine"));
                }
            }),
        ),
        mutant(
            "remote/requests/102",
            "the POST of `initialize` has Content-Type `text/plain`",
            "it sends text",
            ClientChange::Headers(|message, headers| {
                if message.method == Method::POST {
                    headers.insert("content-type", HeaderValue::from_static("text/plain"));
                }
            }),
        ),
        mutant(
            "remote/requests/103",
            "the GET has Accept `*/*`",
            "it accepts everything",
            ClientChange::Headers(|message, headers| {
                if message.method == Method::GET {
                    headers.insert("accept", HeaderValue::from_static("*/*"));
                }
            }),
        ),
        mutant(
            "remote/requests/104",
            "the POST of `session/prompt` has no Acp-Connection-Id",
            "it names only the session",
            ClientChange::Headers(|message, headers| {
                if message.is("session/prompt") {
                    headers.remove("acp-connection-id");
                }
            }),
        ),
        mutant(
            "remote/requests/105",
            "the POST of `session/prompt` has no Acp-Session-Id",
            "it names only the connection",
            ClientChange::Headers(|message, headers| {
                if message.is("session/prompt") {
                    headers.remove("acp-session-id");
                }
            }),
        ),
        mutant(
            "remote/requests/106",
            "the POST of a response has no Acp-Session-Id",
            "its answers do not name the session, as those of some clients",
            ClientChange::Headers(|message, headers| {
                if message.message.get("method").is_none() && message.method == Method::POST {
                    headers.remove("acp-session-id");
                }
            }),
        ),
        mutant(
            "remote/requests/107",
            "uses HTTP/1.1",
            "it speaks HTTP/1.1",
            ClientChange::Http1,
        ),
        mutant(
            "remote/requests/108",
            "has no Cookie; expected `acp-check=one`",
            "it keeps no cookies",
            ClientChange::Headers(|_, headers| {
                headers.remove("cookie");
            }),
        ),
        mutant(
            "remote/requests/109",
            "the POST of `session/prompt` has Cookie `acp-check=one`; expected `acp-check=two`",
            "it keeps the first cookie",
            ClientChange::Headers(|_, headers| {
                if headers.contains_key("cookie") {
                    headers.insert("cookie", HeaderValue::from_static("acp-check=one"));
                }
            }),
        ),
        mutant(
            "remote/requests/110",
            "waiting for a DELETE",
            "it goes without a word",
            ClientChange::Withhold(|message| message.method == Method::DELETE),
        ),
        mutant(
            "remote/requests/111",
            "waiting for the end of the connection after a POST that got status 400",
            "it does not look at the status",
            ClientChange::IgnoreStatus,
        ),
    ]
}

fn stream_mutants() -> Vec<ClientMutant> {
    vec![
        mutant(
            "remote/streams/101",
            "waiting for `session/prompt`",
            "it does not open the connection's stream",
            ClientChange::Withhold(
                |Message {
                     method,
                     is_about_session,
                     ..
                 }| { *method == Method::GET && !is_about_session },
            ),
        ),
        mutant(
            "remote/streams/102",
            "waiting for a GET with the session's id",
            "it does not open the session's stream",
            ClientChange::Withhold(|message| {
                message.method == Method::GET && message.is_about_session
            }),
        ),
        mutant(
            "remote/streams/103",
            "waiting for the response to a request after comments",
            "it knows no comments",
            ClientChange::StopReading(|bytes| contains_bytes(bytes, b": hello")),
        ),
        mutant(
            "remote/streams/104",
            "waiting for the response to a request after lines that end with \"\\r\\n\"",
            "it knows no carriage returns",
            ClientChange::StopReading(|bytes| bytes.contains(&b'\r')),
        ),
        mutant(
            "remote/streams/104",
            "waiting for the response to a request after lines that end with \"\\r\"",
            "it knows carriage returns only before line feeds",
            ClientChange::StopReading(|bytes| bytes.contains(&b'\r') && !bytes.contains(&b'\n')),
        ),
        mutant(
            "remote/streams/105",
            "after an event with several `data` lines",
            "it takes a line for a message",
            ClientChange::StopReading(|bytes| contains_bytes(bytes, b"data: {\n")),
        ),
        mutant(
            "remote/streams/106",
            "after `data:` without a space",
            "it wants a space after the colon",
            ClientChange::StopReading(|bytes| contains_bytes(bytes, b"data:{")),
        ),
        mutant(
            "remote/streams/107",
            "after an event with other fields",
            "it knows only data",
            ClientChange::StopReading(|bytes| contains_bytes(bytes, b"retry:")),
        ),
        mutant(
            "remote/streams/108",
            "after an event in pieces",
            "it takes what it reads for a whole event",
            ClientChange::StopReading(|bytes| !bytes.ends_with(b"\n\n")),
        ),
        mutant(
            "remote/streams/109",
            "after two events at once",
            "it takes what it reads for one event",
            ClientChange::StopReading(|bytes| contains_bytes(bytes, b"\n\ndata: ")),
        ),
        mutant(
            "remote/streams/110",
            "after a byte order mark",
            "it knows no byte order mark, as the official client in Rust",
            ClientChange::StopReading(|bytes| contains_bytes(bytes, "\u{feff}".as_bytes())),
        ),
        mutant(
            "remote/streams/111",
            "the client neither reopened it nor ended the connection",
            "it does not notice that the stream has ended",
            ClientChange::KeepStreams,
        ),
    ]
}

const PONG: OpCode = OpCode::Control(Control::Pong);
const CLOSE: OpCode = OpCode::Control(Control::Close);
const TEXT: OpCode = OpCode::Data(Data::Text);
const BINARY: OpCode = OpCode::Data(Data::Binary);
const CONTINUATION: OpCode = OpCode::Data(Data::Continue);

/// Drops a frame if `is_so` is true.
fn drop_frame_if(is_so: bool) -> FrameAction {
    if is_so {
        FrameAction::Drop
    } else {
        FrameAction::Pass
    }
}

fn message(frame: &InterceptedFrame) -> Value {
    serde_json::from_slice(&frame.payload).unwrap_or_default()
}

fn websocket_mutants() -> Vec<ClientMutant> {
    vec![
        mutant(
            "remote/websocket/101",
            "waiting for an upgrade",
            "it has only HTTP",
            ClientChange::Refuse(|url| url.starts_with("ws:")),
        ),
        mutant(
            "remote/websocket/102",
            "the first message is not `initialize`",
            "it starts with a session",
            ClientChange::Frame(|frame| {
                let mut message = message(frame);
                if frame.from_client && message["method"] == "initialize" {
                    message["method"] = "session/new".into();
                    frame.payload = message.to_string().into_bytes();
                }
                FrameAction::Pass
            }),
        ),
        mutant(
            "remote/websocket/103",
            "a message was sent in a binary frame",
            "its messages are binary",
            ClientChange::Frame(|frame| {
                if frame.from_client && frame.opcode == TEXT {
                    frame.opcode = BINARY;
                }
                FrameAction::Pass
            }),
        ),
        mutant(
            "remote/websocket/104",
            "a frame is not masked",
            "it does not mask",
            ClientChange::Frame(|frame| {
                frame.mask = None;
                FrameAction::Pass
            }),
        ),
        mutant(
            "remote/websocket/105",
            "the client disconnected before the response to a request after a binary frame",
            "it closes at a binary frame",
            ClientChange::Frame(|frame| {
                if !frame.from_client && frame.opcode == BINARY {
                    return FrameAction::Cut;
                }
                FrameAction::Pass
            }),
        ),
        mutant(
            "remote/websocket/106",
            "waiting for the response to a request after a message in three frames",
            "it takes a frame for a message",
            ClientChange::Frame(|frame| {
                let is_part = !frame.is_final || frame.opcode == CONTINUATION;
                drop_frame_if(!frame.from_client && is_part)
            }),
        ),
        mutant(
            "remote/websocket/107",
            "waiting for a pong with the content of the ping",
            "it does not answer pings",
            ClientChange::Frame(|frame| drop_frame_if(frame.from_client && frame.opcode == PONG)),
        ),
        mutant(
            "remote/websocket/108",
            "the client closed the connection without a close frame",
            "it does not answer close frames",
            ClientChange::Frame(|frame| drop_frame_if(frame.from_client && frame.opcode == CLOSE)),
        ),
        mutant(
            "remote/websocket/109",
            "the client closed the connection without a close frame",
            "it goes without a word",
            ClientChange::Frame(|frame| {
                if frame.from_client && frame.opcode == CLOSE {
                    return FrameAction::Cut;
                }
                FrameAction::Pass
            }),
        ),
    ]
}
