//! A WebSocket connection to a server under test, with the check acting as the client.

use std::time::Duration;

use acp_rules::schema::{Direction, Envelope};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::server_harness::{ServerHarness, response_to};
use super::websocket::{
    BINARY, CLOSE, CONTINUATION, Frame, PING, PONG, TEXT, UpgradeResponse, WebSocket,
    request_upgrade,
};
use crate::agent_harness::UNKNOWN_METHOD;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

/// A WebSocket connection, with the frames received on it.
pub(crate) struct WebSocketPeer {
    pub(crate) socket: WebSocket,
    /// The connection id in the response to the upgrade, or an empty string.
    pub(crate) id: String,
    /// The frames received so far, in order.
    pub(crate) frames: Vec<Frame>,
    /// The part of a message received so far. Its last frame has not arrived yet.
    message: Vec<u8>,
}

impl ServerHarness {
    /// Requests an upgrade.
    pub(crate) async fn upgrade(&mut self) -> Result<UpgradeResponse, CheckStop> {
        let path = self.server.path();
        let line = format!("GET {path} [Upgrade: websocket]");
        self.transcript
            .push_line(Direction::ToAgent, line.as_bytes());
        match timeout(self.timeout(), request_upgrade(&self.server)).await {
            Ok(Ok(response)) => {
                let id = response.header("acp-connection-id");
                let line = format!("{} [Acp-Connection-Id: {id}]", response.status);
                self.transcript
                    .push_line(Direction::ToClient, line.as_bytes());
                Ok(response)
            }
            Ok(Err(why)) => fail(format!("no response to the WebSocket upgrade: {why}")),
            Err(_) => fail(format!(
                "timed out after {:?} waiting for the response to the WebSocket upgrade",
                self.timeout()
            )),
        }
    }

    /// Opens a WebSocket. Skips the check if the server does not offer it.
    pub(crate) async fn open_websocket(&mut self) -> Result<WebSocketPeer, CheckStop> {
        if !self.offered.websocket {
            return skip("the server does not offer WebSocket");
        }
        let response = self.upgrade().await?;
        require(response.status == 101, || {
            format!(
                "the WebSocket upgrade got status {}; expected 101",
                response.status
            )
        })?;
        Ok(WebSocketPeer {
            id: response.header("acp-connection-id").to_owned(),
            socket: response.socket,
            frames: Vec::new(),
            message: Vec::new(),
        })
    }

    /// Opens a WebSocket and sends `initialize`, which must succeed.
    pub(crate) async fn initialize_websocket(&mut self) -> Result<WebSocketPeer, CheckStop> {
        let mut peer = self.open_websocket().await?;
        let params = Self::initialize_params();
        match self
            .request_on_websocket(&mut peer, "initialize", params)
            .await?
        {
            ReceivedResponse::Result(result) if result["protocolVersion"] == 1 => Ok(peer),
            ReceivedResponse::Result(_) => skip("the agent does not speak protocol version 1"),
            ReceivedResponse::Error { code, message, .. } => {
                fail(format!("`initialize` failed with error {code}: {message}"))
            }
        }
    }

    /// Sends a frame.
    pub(crate) async fn send_frame(
        &mut self,
        peer: &mut WebSocketPeer,
        frame: &Frame,
    ) -> Result<(), CheckStop> {
        let line = describe(frame);
        self.transcript
            .push_line(Direction::ToAgent, line.as_bytes());
        let sending = peer
            .socket
            .send(frame.opcode, frame.is_final, &frame.payload);
        match timeout(self.options.timeout, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => fail(why),
            Err(_) => fail("the server is not reading from the WebSocket"),
        }
    }

    /// Sends a request and returns its response.
    pub(crate) async fn request_on_websocket(
        &mut self,
        peer: &mut WebSocketPeer,
        method: &str,
        params: Value,
    ) -> Result<ReceivedResponse, CheckStop> {
        let (id, message) = self.request_message(method, params);
        self.send_frame(peer, &text(&message)).await?;
        let what = format!("the response to `{method}`");
        let patience = match method {
            "session/prompt" => self.options.turn_timeout,
            _ => self.options.timeout,
        };
        self.wait_on_websocket(peer, patience, &what, |message| response_to(message, &id))
            .await
    }

    /// Opens a session, and returns its id.
    pub(crate) async fn new_session_on_websocket(
        &mut self,
        peer: &mut WebSocketPeer,
    ) -> Result<String, CheckStop> {
        let params = self.session_params();
        let mut response = self
            .request_on_websocket(peer, "session/new", params.clone())
            .await?;
        if response.code() == Some(-32000) {
            let Some(method) = self.options.auth_method.clone() else {
                return skip("the agent requires a login; choose an auth method with --login");
            };
            let login = json!({"methodId": method});
            self.request_on_websocket(peer, "authenticate", login)
                .await?;
            response = self
                .request_on_websocket(peer, "session/new", params)
                .await?;
        }
        match response {
            ReceivedResponse::Result(result) => match result["sessionId"].as_str() {
                Some(session) => Ok(session.to_owned()),
                None => fail("the response to `session/new` has no `sessionId`"),
            },
            ReceivedResponse::Error { code, message, .. } => {
                fail(format!("`session/new` failed with error {code}: {message}"))
            }
        }
    }

    /// Reads messages until `found` returns a value. Answers requests from the agent with an error.
    pub(crate) async fn wait_on_websocket<T>(
        &mut self,
        peer: &mut WebSocketPeer,
        patience: Duration,
        what: &str,
        mut found: impl FnMut(&Value) -> Option<T>,
    ) -> Result<T, CheckStop> {
        let waiting = async {
            loop {
                let frame = self.next_frame(peer, what).await?;
                let Some(message) = peer.add_to_message(&frame) else {
                    continue;
                };
                if let Some(found) = found(&message) {
                    return Ok(found);
                }
                if let Some(Envelope::Request { id, .. }) = Envelope::parse(&message) {
                    let error = json!({"code": -32601, "message": "method not found"});
                    let response = json!({"jsonrpc": "2.0", "id": id, "error": error});
                    self.send_frame(peer, &text(&response)).await?;
                }
            }
        };
        match timeout(patience, waiting).await {
            Ok(found) => found,
            Err(_) => fail(format!("timed out after {patience:?} waiting for {what}")),
        }
    }

    /// Waits for a frame that `is_wanted` accepts.
    pub(crate) async fn wait_for_frame(
        &mut self,
        peer: &mut WebSocketPeer,
        what: &str,
        mut is_wanted: impl FnMut(&Frame) -> bool,
    ) -> Result<Frame, CheckStop> {
        let patience = self.options.timeout;
        let waiting = async {
            loop {
                let frame = self.next_frame(peer, what).await?;
                if is_wanted(&frame) {
                    return Ok(frame);
                }
            }
        };
        match timeout(patience, waiting).await {
            Ok(found) => found,
            Err(_) => fail(format!("timed out after {patience:?} waiting for {what}")),
        }
    }

    /// Reads the next frame, and responds to pings. Fails if the server closes the connection.
    async fn next_frame(
        &mut self,
        peer: &mut WebSocketPeer,
        what: &str,
    ) -> Result<Frame, CheckStop> {
        let frame = match peer.socket.next().await {
            Ok(Some(frame)) => frame,
            Ok(None) => return fail(format!("the server closed the connection before {what}")),
            Err(why) => return fail(why),
        };
        let line = describe(&frame);
        self.transcript
            .push_line(Direction::ToClient, line.as_bytes());
        peer.frames.push(frame.clone());
        if frame.opcode == PING {
            let pong = Frame {
                opcode: PONG,
                ..frame.clone()
            };
            self.send_frame(peer, &pong).await?;
        }
        Ok(frame)
    }

    /// Requires that the server still responds. If the check fails, the reason mentions `after`, the preceding event.
    pub(crate) async fn require_responsive_websocket(
        &mut self,
        peer: &mut WebSocketPeer,
        after: &str,
    ) -> Result<(), CheckStop> {
        let response = self
            .request_on_websocket(peer, UNKNOWN_METHOD, json!({}))
            .await;
        match response {
            Ok(_) => Ok(()),
            Err(CheckStop::Fail(why)) => fail(format!("after {after}: {why}")),
            Err(stop) => Err(stop),
        }
    }
}

impl WebSocketPeer {
    /// Adds a frame to the message that it belongs to. Returns the message if it is complete and valid JSON.
    fn add_to_message(&mut self, frame: &Frame) -> Option<Value> {
        if ![TEXT, BINARY, CONTINUATION].contains(&frame.opcode) {
            return None;
        }
        self.message.extend_from_slice(&frame.payload);
        if !frame.is_final {
            return None;
        }
        serde_json::from_slice(&std::mem::take(&mut self.message)).ok()
    }
}

/// Returns a text frame with a whole message.
pub(crate) fn text(message: &Value) -> Frame {
    frame(TEXT, message.to_string())
}

/// Returns a frame that contains a whole message, or a control frame.
pub(crate) fn frame(
    opcode: tungstenite::protocol::frame::coding::OpCode,
    payload: impl Into<Vec<u8>>,
) -> Frame {
    Frame {
        opcode,
        is_final: true,
        is_masked: true,
        payload: payload.into(),
    }
}

/// Describes a frame for the transcript.
fn describe(frame: &Frame) -> String {
    let kind = match frame.opcode {
        TEXT => "text",
        BINARY => "binary",
        CONTINUATION => "continuation",
        PING => "ping",
        PONG => "pong",
        CLOSE => "close",
        _ => "unknown frame",
    };
    let more = if frame.is_final { "" } else { ", not final" };
    let payload = String::from_utf8_lossy(&frame.payload);
    format!("[{kind}{more}] {payload}")
}
