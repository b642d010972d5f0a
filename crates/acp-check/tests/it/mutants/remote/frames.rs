//! A proxy that changes WebSocket frames.

use std::io::Cursor;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::OpCode;

/// A frame passing through the proxy.
pub(crate) struct InterceptedFrame {
    /// Whether the client sent the frame.
    pub(crate) from_client: bool,
    pub(crate) opcode: OpCode,
    pub(crate) is_final: bool,
    pub(crate) mask: Option<[u8; 4]>,
    pub(crate) payload: Vec<u8>,
}

/// What the proxy does with a frame.
pub(crate) enum FrameAction {
    Pass,
    Drop,
    /// Cut the connection.
    Cut,
}

pub(crate) type FrameChange = fn(&mut InterceptedFrame) -> FrameAction;

/// Passes on the bytes of one client. After an upgrade, applies the change to each frame.
pub(crate) async fn proxy(
    client: TcpStream,
    server: SocketAddr,
    change: Option<FrameChange>,
    http1: bool,
) {
    let server = TcpStream::connect(server).await.unwrap();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let upgraded = AtomicBool::new(false);
    tokio::select! {
        () = pass(true, from_client, to_server, change, http1, &upgraded) => {}
        () = pass(false, from_server, to_client, change, http1, &upgraded) => {}
    }
}

async fn pass(
    from_client: bool,
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    change: Option<FrameChange>,
    http1: bool,
    upgraded: &AtomicBool,
) {
    let mut buf = Vec::new();
    let mut is_first = true;
    loop {
        if from.read_buf(&mut buf).await.unwrap_or(0) == 0 {
            return;
        }
        if std::mem::take(&mut is_first) {
            if http1 && from_client && buf.starts_with(b"PRI ") {
                return;
            }
            if !from_client && buf.starts_with(b"HTTP/1.1 101") {
                let Some(end) = buf.windows(4).position(|four| four == b"\r\n\r\n") else {
                    is_first = true;
                    continue;
                };
                upgraded.store(true, Ordering::Relaxed);
                let head: Vec<u8> = buf.drain(..end + 4).collect();
                to.write_all(&head).await.unwrap();
            }
        }
        let change = change.filter(|_| upgraded.load(Ordering::Relaxed));
        let Some(change) = change else {
            if to.write_all(&std::mem::take(&mut buf)).await.is_err() {
                return;
            }
            continue;
        };
        while let Some(mut frame) = take_frame(from_client, &mut buf) {
            match change(&mut frame) {
                FrameAction::Pass => {}
                FrameAction::Drop => continue,
                FrameAction::Cut => return,
            }
            if to.write_all(&encode(frame)).await.is_err() {
                return;
            }
        }
    }
}

/// Takes the first frame from the buffer, if all of it has arrived.
fn take_frame(from_client: bool, buf: &mut Vec<u8>) -> Option<InterceptedFrame> {
    let mut cursor = Cursor::new(&*buf);
    let (header, length) = FrameHeader::parse(&mut cursor).unwrap()?;
    let start = usize::try_from(cursor.position()).unwrap();
    let end = start + usize::try_from(length).unwrap();
    if buf.len() < end {
        return None;
    }
    let bytes: Vec<u8> = buf.drain(..end).collect();
    let mut payload = bytes[start..].to_vec();
    apply(header.mask, &mut payload);
    Some(InterceptedFrame {
        from_client,
        opcode: header.opcode,
        is_final: header.is_final,
        mask: header.mask,
        payload,
    })
}

fn encode(mut frame: InterceptedFrame) -> Vec<u8> {
    let header = FrameHeader {
        is_final: frame.is_final,
        opcode: frame.opcode,
        mask: frame.mask,
        ..FrameHeader::default()
    };
    let mut bytes = Vec::new();
    let length = frame.payload.len() as u64;
    header.format(length, &mut bytes).unwrap();
    apply(frame.mask, &mut frame.payload);
    bytes.extend(frame.payload);
    bytes
}

fn apply(mask: Option<[u8; 4]>, payload: &mut [u8]) {
    if let Some(mask) = mask {
        for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
            *byte ^= mask;
        }
    }
}
