//! Checks for clients over WebSocket: "WebSocket Request Flow", and the requirements of RFC 6455 for both sides.

use tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::check::remote_checks;
use crate::remote::client_harness::{
    RemoteClientEvent, RemoteClientHarness, RemotePrompt, liveness_request,
};
use crate::remote::websocket::{BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT};
use crate::verdict::{CheckStop, fail, require};

remote_checks! { RemoteClient "websocket";
    101 Must "The client can also connect over WebSocket." => connects_over_websocket;
    102 Must "`initialize` is the first message." => initializes_first;
    103 Must "Messages are sent in text frames." => sends_text_frames;
    104 Must "Frames are masked (RFC 6455, 5.1)." => masks_frames;
    105 Must "Binary frames are ignored." => ignores_binary_frames;
    106 Must "A message may arrive in several frames (RFC 6455, 5.4)." => accepts_fragmented_message;
    107 Must "A ping gets a pong with the same content (RFC 6455, 5.5.2)." => answers_pings;
    108 Must "A close frame is answered with a close frame (RFC 6455, 5.5.1)." => answers_close_frame;
    109 Should "A close frame ends the connection." => ends_connection_with_close_frame;
}

async fn open(harness: &mut RemoteClientHarness) -> Result<RemotePrompt, CheckStop> {
    harness.start("ws").await?;
    harness.wait_for_prompt().await
}

async fn connects_over_websocket(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    harness.start("ws").await?;
    let patience = harness.options.turn_timeout;
    harness
        .wait_within(patience, "an upgrade", |harness, _| {
            harness.socket.is_some().then_some(())
        })
        .await
}

async fn initializes_first(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    harness.start("ws").await?;
    let patience = harness.options.turn_timeout;
    let first = harness
        .wait_within(patience, "a message", |_, event| match event {
            RemoteClientEvent::Message(message) => Some(message.clone()),
            _ => None,
        })
        .await?;
    require(first["method"] == "initialize", || {
        format!("the first message is not `initialize`: {first}")
    })
}

async fn sends_text_frames(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let opened = open(harness).await;
    let mut frames = harness.frames.iter();
    require(!frames.any(|frame| frame.opcode == BINARY), || {
        "a message was sent in a binary frame".to_owned()
    })?;
    let prompt = opened?;
    harness.end_turn(&prompt).await
}

async fn masks_frames(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let prompt = open(harness).await?;
    harness.end_turn(&prompt).await?;
    let mut frames = harness.frames.iter();
    require(frames.all(|frame| frame.is_masked), || {
        "a frame is not masked".to_owned()
    })
}

async fn ignores_binary_frames(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let prompt = open(harness).await?;
    harness
        .send_frame(BINARY, true, &[0, 159, 146, 150])
        .await?;
    let request = liveness_request("alive").to_string();
    harness.send_frame(TEXT, true, request.as_bytes()).await?;
    harness.wait_for_response("alive", "a binary frame").await?;
    harness.end_turn(&prompt).await
}

async fn accepts_fragmented_message(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let prompt = open(harness).await?;
    let request = liveness_request("alive").to_string().into_bytes();
    let mut pieces = request.chunks(request.len().div_ceil(3).max(1)).peekable();
    let mut opcode = OpCode::Data(Data::Text);
    while let Some(piece) = pieces.next() {
        let is_final = pieces.peek().is_none();
        harness.send_frame(opcode, is_final, piece).await?;
        opcode = CONTINUATION;
    }
    harness
        .wait_for_response("alive", "a message in three frames")
        .await?;
    harness.end_turn(&prompt).await
}

async fn answers_pings(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let prompt = open(harness).await?;
    harness.send_frame(PING, true, b"acp-check").await?;
    let patience = harness.options.timeout;
    let what = "a pong with the content of the ping";
    harness
        .wait_within(patience, what, |_, event| match event {
            RemoteClientEvent::Frame(frame) => {
                (frame.opcode == PONG && frame.payload == b"acp-check").then_some(())
            }
            _ => None,
        })
        .await?;
    harness.end_turn(&prompt).await
}

async fn answers_close_frame(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    open(harness).await?;
    // The code 1000, for a normal end.
    let code = 1000_u16.to_be_bytes();
    harness.send_frame(CLOSE, true, &code).await?;
    wait_for_close(harness).await
}

async fn ends_connection_with_close_frame(
    harness: &mut RemoteClientHarness,
) -> Result<(), CheckStop> {
    let prompt = open(harness).await?;
    harness.end_turn(&prompt).await?;
    wait_for_close(harness).await
}

async fn wait_for_close(harness: &mut RemoteClientHarness) -> Result<(), CheckStop> {
    let patience = harness.options.timeout;
    let closed = harness
        .wait_within(patience, "a close frame", |_, event| match event {
            RemoteClientEvent::Frame(frame) => (frame.opcode == CLOSE).then_some(true),
            RemoteClientEvent::Ended => Some(false),
            _ => None,
        })
        .await?;
    if closed {
        return Ok(());
    }
    fail("the client closed the connection without a close frame")
}
