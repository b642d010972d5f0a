//! Sends and receives individual WebSocket frames (RFC 6455), giving checks control over every detail.

use std::fmt::Write as _;
use std::io::Cursor;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::server_target::{ALPN_HTTP_1, RemoteServer, ServerSocket};

/// The maximum length of a message, or of the headers of an upgrade response, in bytes.
const MAX_WEBSOCKET_LEN: usize = 64 * 1024 * 1024;

/// The handshake key and the server's response to it, from the example in RFC 6455, 1.3.
const HANDSHAKE_KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub(crate) const HANDSHAKE_ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The mask used for every frame. It need not be random, because random masks only protect proxies from malicious
/// clients.
const FRAME_MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

pub(crate) const TEXT: OpCode = OpCode::Data(Data::Text);
pub(crate) const BINARY: OpCode = OpCode::Data(Data::Binary);
pub(crate) const CONTINUATION: OpCode = OpCode::Data(Data::Continue);
pub(crate) const PING: OpCode = OpCode::Control(Control::Ping);
pub(crate) const PONG: OpCode = OpCode::Control(Control::Pong);
pub(crate) const CLOSE: OpCode = OpCode::Control(Control::Close);

/// A WebSocket frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) opcode: OpCode,
    pub(crate) is_final: bool,
    pub(crate) is_masked: bool,
    pub(crate) payload: Vec<u8>,
}

/// A WebSocket connection after the upgrade.
pub(crate) struct WebSocket {
    socket: Box<dyn ServerSocket>,
    /// Whether to mask frames, as clients must.
    masks: bool,
    buf: Vec<u8>,
}

/// The response to a request for an upgrade.
pub(crate) struct UpgradeResponse {
    pub(crate) status: u16,
    /// The headers, with their names in lowercase.
    pub(crate) headers: Vec<(String, String)>,
    /// The socket. If the status is 101, frames follow.
    pub(crate) socket: WebSocket,
}

impl UpgradeResponse {
    /// Returns a header's value, or an empty string if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(each, _)| each == name);
        found.map_or("", |(_, value)| value)
    }
}

/// Requests an upgrade to WebSocket.
pub(crate) async fn request_upgrade(server: &RemoteServer) -> Result<UpgradeResponse, String> {
    let (mut socket, _) = server.dial(&[ALPN_HTTP_1]).await?;
    let mut head = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {HANDSHAKE_KEY}\r\n",
        server.path_and_query(),
        server.authority(),
    );
    if let Some((name, value)) = server.token_header() {
        // Writing to a string cannot fail.
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    let sent = socket.write_all(head.as_bytes()).await;
    sent.map_err(|e| format!("cannot send the request: {e}"))?;
    let mut buf = Vec::new();
    let end = loop {
        if let Some(at) = buf.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        let read = socket.read_buf(&mut buf).await;
        match read.map_err(|e| format!("cannot read the response: {e}"))? {
            0 => return Err("the server closed the connection before responding".to_owned()),
            _ if buf.len() > MAX_WEBSOCKET_LEN => {
                return Err("the response headers are too long".to_owned());
            }
            _ => {}
        }
    };
    let rest = buf.split_off(end);
    let text = String::from_utf8_lossy(&buf);
    let mut lines = text.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let status = status.and_then(|status| status.parse().ok());
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers = headers
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Ok(UpgradeResponse {
        status: status.ok_or("the response is not HTTP")?,
        headers,
        socket: WebSocket {
            socket,
            masks: true,
            buf: rest,
        },
    })
}

impl WebSocket {
    /// Creates the server's end of a WebSocket connection after the upgrade.
    pub(crate) fn server(socket: Box<dyn ServerSocket>) -> Self {
        Self {
            socket,
            masks: false,
            buf: Vec::new(),
        }
    }

    /// Sends a frame.
    pub(crate) async fn send(
        &mut self,
        opcode: OpCode,
        is_final: bool,
        payload: &[u8],
    ) -> Result<(), String> {
        let header = FrameHeader {
            is_final,
            opcode,
            mask: self.masks.then_some(FRAME_MASK),
            ..FrameHeader::default()
        };
        let mut bytes = Vec::new();
        let formatted = header.format(payload.len() as u64, &mut bytes);
        formatted.map_err(|e| e.to_string())?;
        if self.masks {
            let masked = payload.iter().zip(FRAME_MASK.iter().cycle());
            bytes.extend(masked.map(|(byte, mask)| byte ^ mask));
        } else {
            bytes.extend_from_slice(payload);
        }
        let sent = async {
            self.socket.write_all(&bytes).await?;
            self.socket.flush().await
        };
        sent.await
            .map_err(|e| format!("cannot write to the WebSocket: {e}"))
    }

    /// Reads the next frame. Returns `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, String> {
        loop {
            let mut cursor = Cursor::new(&self.buf);
            let parsed = FrameHeader::parse(&mut cursor);
            let parsed = parsed.map_err(|e| format!("a frame has an invalid header: {e}"))?;
            if let Some((header, length)) = parsed {
                let start = usize::try_from(cursor.position()).unwrap_or(usize::MAX);
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > MAX_WEBSOCKET_LEN {
                    return Err(format!("a frame is too long: {length} bytes"));
                }
                if self.buf.len() >= start + length {
                    let rest = self.buf.split_off(start + length);
                    let mut payload = std::mem::replace(&mut self.buf, rest).split_off(start);
                    if let Some(mask) = header.mask {
                        for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
                            *byte ^= mask;
                        }
                    }
                    return Ok(Some(Frame {
                        opcode: header.opcode,
                        is_final: header.is_final,
                        is_masked: header.mask.is_some(),
                        payload,
                    }));
                }
            }
            match self.socket.read_buf(&mut self.buf).await {
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) => {}
            }
        }
    }
}
