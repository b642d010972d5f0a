//! Reads lines from a connection.

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

/// The maximum number of bytes to read from one connection. There is a limit because all messages are kept in memory until the
/// end. Exceeding it does not fail the check, because the specification sets no limit.
pub(super) const MAX_OUTPUT_BYTES: usize = 64 * 1024 * 1024;

/// An item read from the connection.
pub(super) enum WireInput {
    Line(Vec<u8>),
    TooLong,
    End,
}

/// Reads lines and sends them to the channel, until the end or until the receiver is dropped.
pub(super) async fn read_lines(mut reader: impl AsyncRead + Unpin, to: mpsc::Sender<WireInput>) {
    let mut line = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut all = 0;
    loop {
        let read = tokio::select! {
            read = reader.read(&mut buffer) => read.unwrap_or(0),
            () = to.closed() => return,
        };
        if read == 0 {
            break;
        }
        let mut rest = buffer.get(..read).unwrap_or_default();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (head, tail) = rest.split_at(end);
            line.extend_from_slice(head);
            rest = tail.get(1..).unwrap_or_default();
            let mut whole = std::mem::take(&mut line);
            if whole.last() == Some(&b'\r') {
                whole.pop();
            }
            if !whole.is_empty() && to.send(WireInput::Line(whole)).await.is_err() {
                return;
            }
        }
        line.extend_from_slice(rest);
        all += read;
        if all > MAX_OUTPUT_BYTES {
            let _ = to.send(WireInput::TooLong).await;
            return;
        }
    }
    if !line.is_empty() {
        let _ = to.send(WireInput::Line(line)).await;
    }
    let _ = to.send(WireInput::End).await;
}
