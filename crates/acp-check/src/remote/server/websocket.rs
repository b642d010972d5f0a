//! Checks for servers over WebSocket: "WebSocket Request Flow", and the requirements of RFC 6455 for both sides.

use serde_json::{Value, json};

use crate::agent_harness::UNKNOWN_METHOD;
use crate::check::remote_checks;
use crate::options::AgentTask;
use crate::remote::server_harness::ServerHarness;
use crate::remote::websocket::{
    BINARY, CLOSE, CONTINUATION, Frame, HANDSHAKE_ACCEPT, PING, PONG, TEXT,
};
use crate::remote::websocket_peer::{WebSocketPeer, frame, text};
use crate::verdict::{CheckStop, require};

remote_checks! { Server "websocket";
    1 Must "The response to the upgrade has the header `Acp-Connection-Id`." => returns_connection_id_in_header;
    2 Must "The response to the upgrade confirms the client's key (RFC 6455, 4.2.2)." => confirms_websocket_key;
    3 Must "Each upgrade opens a separate connection." => opens_connection_for_each_initialize;
    4 Must "`initialize` is answered on the WebSocket." => answers_initialize;
    5 Must "Messages arrive in text frames, with one JSON-RPC message in each frame." => sends_text_frames;
    6 Must "Binary frames are ignored." => ignores_binary_frames;
    7 Must "A message may arrive in several frames (RFC 6455, 5.4)." => accepts_fragmented_message;
    8 Must "A ping gets a pong with the same content (RFC 6455, 5.5.2)." => answers_pings;
    9 Must "A close frame is answered with a close frame (RFC 6455, 5.5.1)." => answers_close_frame;
    10 Should "A text frame that is not JSON does not end the connection." => survives_invalid_json;
    11 Should "A 1 MB request gets a response." => accepts_large_message;
}

async fn returns_connection_id_in_header(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let peer = harness.open_websocket().await?;
    require(!peer.id.is_empty(), || {
        "the response to the upgrade has no Acp-Connection-Id".to_owned()
    })
}

async fn confirms_websocket_key(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    drop(harness.open_websocket().await?);
    let response = harness.upgrade().await?;
    let accept = response.header("sec-websocket-accept");
    require(accept == HANDSHAKE_ACCEPT, || {
        format!("Sec-WebSocket-Accept is `{accept}`; expected `{HANDSHAKE_ACCEPT}`")
    })
}

async fn opens_connection_for_each_initialize(
    harness: &mut ServerHarness,
) -> Result<(), CheckStop> {
    let one = harness.open_websocket().await?;
    let two = harness.open_websocket().await?;
    require(one.id != two.id, || {
        format!("two connections have the same id: {}", one.id)
    })
}

async fn answers_initialize(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    harness.initialize_websocket().await.map(drop)
}

/// Runs a turn with this prompt.
async fn run_turn(
    harness: &mut ServerHarness,
    peer: &mut WebSocketPeer,
    text: &str,
) -> Result<(), CheckStop> {
    let session = harness.new_session_on_websocket(peer).await?;
    let prompt = json!([{"type": "text", "text": text}]);
    let params = json!({"sessionId": session, "prompt": prompt});
    harness
        .request_on_websocket(peer, "session/prompt", params)
        .await
        .map(drop)
}

async fn sends_text_frames(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let mut peer = harness.initialize_websocket().await?;
    let prompt = harness.options.prompt_for(AgentTask::Answer);
    let turn = run_turn(harness, &mut peer, &prompt).await;
    require(
        !peer.frames.iter().any(|frame| frame.opcode == BINARY),
        || "a message arrived in a binary frame".to_owned(),
    )?;
    for frame in peer.frames.iter().filter(|frame| frame.opcode == TEXT) {
        if frame.is_final {
            let message: Value = serde_json::from_slice(&frame.payload).unwrap_or_default();
            require(message["jsonrpc"] == "2.0", || {
                let text = String::from_utf8_lossy(&frame.payload);
                format!("a text frame is not a JSON-RPC message: {text:?}")
            })?;
        }
    }
    turn
}

async fn ignores_binary_frames(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let mut peer = harness.initialize_websocket().await?;
    let binary = frame(BINARY, [0, 159, 146, 150]);
    harness.send_frame(&mut peer, &binary).await?;
    harness
        .require_responsive_websocket(&mut peer, "a binary frame")
        .await
}

async fn accepts_fragmented_message(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let mut peer = harness.open_websocket().await?;
    let (id, message) = harness.request_message("initialize", ServerHarness::initialize_params());
    let message = message.to_string().into_bytes();
    let mut pieces = message.chunks(message.len().div_ceil(3).max(1)).peekable();
    let mut opcode = TEXT;
    while let Some(piece) = pieces.next() {
        let part = Frame {
            is_final: pieces.peek().is_none(),
            ..frame(opcode, piece)
        };
        harness.send_frame(&mut peer, &part).await?;
        opcode = CONTINUATION;
    }
    let patience = harness.timeout();
    let what = "the response to a message in three frames";
    harness
        .wait_on_websocket(&mut peer, patience, what, |message| {
            (message["id"] == id).then_some(())
        })
        .await
}

async fn answers_pings(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let mut peer = harness.initialize_websocket().await?;
    let ping = frame(PING, "acp-check");
    harness.send_frame(&mut peer, &ping).await?;
    let is_pong = |frame: &Frame| frame.opcode == PONG && frame.payload == b"acp-check";
    harness
        .wait_for_frame(&mut peer, "a pong with the content of the ping", is_pong)
        .await
        .map(drop)
}

async fn answers_close_frame(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let mut peer = harness.initialize_websocket().await?;
    // The code 1000, for a normal end.
    let close = frame(CLOSE, 1000_u16.to_be_bytes());
    harness.send_frame(&mut peer, &close).await?;
    harness
        .wait_for_frame(&mut peer, "a close frame", |frame| frame.opcode == CLOSE)
        .await
        .map(drop)
}

async fn survives_invalid_json(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let mut peer = harness.initialize_websocket().await?;
    harness
        .send_frame(&mut peer, &frame(TEXT, "{\"jsonrpc\": "))
        .await?;
    harness
        .require_responsive_websocket(&mut peer, "a text frame that is not JSON")
        .await
}

async fn accepts_large_message(harness: &mut ServerHarness) -> Result<(), CheckStop> {
    let mut peer = harness.initialize_websocket().await?;
    let params = json!({"text": "0123456789abcdef".repeat(64 * 1024)});
    let (id, message) = harness.request_message(UNKNOWN_METHOD, params);
    harness.send_frame(&mut peer, &text(&message)).await?;
    let patience = harness.timeout();
    let what = "the response to a 1 MB message";
    harness
        .wait_on_websocket(&mut peer, patience, what, |message| {
            (message["id"] == id).then_some(())
        })
        .await
}
