//! Messages over WebSocket, with the blocking sockets of tungstenite. Reader and writer share the socket, so that one can
//! be borrowed while the other is used.

use std::net::{TcpListener, TcpStream};

use tungstenite::protocol::Role;
use tungstenite::{Bytes, Error, Message, WebSocket};

use super::FloorError;
use super::wire::{FloorInput, FloorOutput};

/// Accepts clients at this address, up to one that completes the handshake.
pub(super) fn accept(address: &str) -> Result<(FloorInput, FloorOutput), FloorError> {
    let listener = TcpListener::bind(address)?;
    loop {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        // The benchmark connects, too, to see whether this program is listening.
        if let Ok(socket) = tungstenite::accept(stream) {
            return split(socket.get_ref(), Role::Server);
        }
    }
}

/// Connects to an agent.
pub(super) fn connect(url: &str) -> Result<(FloorInput, FloorOutput), FloorError> {
    let address = url
        .strip_prefix("ws://")
        .and_then(|rest| rest.split('/').next());
    let stream = TcpStream::connect(address.ok_or("not a ws:// URL")?)?;
    stream.set_nodelay(true)?;
    let (socket, _) = tungstenite::client(url, stream)?;
    split(socket.get_ref(), Role::Client)
}

fn split(stream: &TcpStream, role: Role) -> Result<(FloorInput, FloorOutput), FloorError> {
    let socket = || {
        let stream = stream.try_clone()?;
        Ok::<_, FloorError>(WebSocket::from_raw_socket(stream, role, None))
    };
    let reader = FloorSocketReader {
        socket: socket()?,
        message: Bytes::new(),
    };
    let writer = FloorSocketWriter { socket: socket()? };
    let input = FloorInput::Socket(Box::new(reader));
    Ok((input, FloorOutput::Socket(Box::new(writer))))
}

/// A reader of messages.
pub(super) struct FloorSocketReader {
    socket: WebSocket<TcpStream>,
    message: Bytes,
}

impl FloorSocketReader {
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, FloorError> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    self.message = text.into();
                    return Ok(Some(&self.message));
                }
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(_) | Err(Error::ConnectionClosed) => return Ok(None),
                Err(Error::Io(_) | Error::Protocol(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A writer of messages.
pub(super) struct FloorSocketWriter {
    socket: WebSocket<TcpStream>,
}

impl FloorSocketWriter {
    pub(super) fn write_all(&mut self, messages: &[u8]) -> Result<(), FloorError> {
        for line in messages.split_inclusive(|byte| *byte == b'\n') {
            let text = std::str::from_utf8(line)?.trim_end_matches('\n');
            self.socket.write(Message::text(text))?;
        }
        Ok(self.socket.flush()?)
    }
}
