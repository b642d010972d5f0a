//! The handshake at the start of a connection, which consists of its first two lines. Each side proves that it knows
//! the token.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::time::timeout;

use crate::endpoint::{LocalReader, LocalStream, LocalWriter};
use crate::token::{LocalToken, constant_time_eq};

/// The maximum length of a first line, in bytes, including the line ending.
const MAX_LINE_BYTES: u64 = 256;

/// How long to wait for the first line.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why a handshake failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The peer closed the connection without sending a line.
    #[error("connection closed")]
    Closed,
    /// The peer did not send a complete line before the timeout.
    #[error("the peer did not send a token within {} s", HANDSHAKE_TIMEOUT.as_secs())]
    TimedOut,
    /// The peer sent a line that is too long for a token.
    #[error("expected a token, but received a line longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// The peer sent something other than the expected token. The error does not reveal what was sent.
    #[error("wrong token")]
    WrongToken,
    /// Reading or writing failed.
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for HandshakeError {
    /// Converts an I/O error. An error that means that the peer closed the connection without reading everything
    /// becomes [`Closed`](Self::Closed).
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        match error.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

/// A connection after a successful handshake.
pub struct AuthenticatedConnection {
    /// The half that reads from the peer.
    pub reader: BufReader<LocalReader>,
    /// The half that writes to the peer.
    pub writer: LocalWriter,
}

impl fmt::Debug for AuthenticatedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthenticatedConnection")
            .finish_non_exhaustive()
    }
}

/// Performs the handshake on the listening side: waits up to five seconds for the peer's half of the token. A peer that
/// does not know the token gets no data.
///
/// # Errors
/// The peer does not send its half of the token within five seconds.
pub async fn accept_handshake(
    stream: LocalStream,
    token: &LocalToken,
) -> Result<AuthenticatedConnection, HandshakeError> {
    let mut authenticated = AuthenticatedConnection::from(stream);
    let within = async {
        read_expected_line(&mut authenticated.reader, &token.client_half()).await?;
        write_line(&mut authenticated.writer, &token.server_half()).await
    };
    timeout(HANDSHAKE_TIMEOUT, within)
        .await
        .map_err(|_| HandshakeError::TimedOut)??;
    Ok(authenticated)
}

/// Performs the handshake on the connecting side: sends one half of the token and waits up to five seconds for the
/// other half.
///
/// # Errors
/// The peer does not respond in time, or does not respond with the other half.
pub async fn send_handshake(
    stream: LocalStream,
    token: &LocalToken,
) -> Result<AuthenticatedConnection, HandshakeError> {
    let mut authenticated = AuthenticatedConnection::from(stream);
    let within = async {
        write_line(&mut authenticated.writer, &token.client_half()).await?;
        read_expected_line(&mut authenticated.reader, &token.server_half()).await
    };
    timeout(HANDSHAKE_TIMEOUT, within)
        .await
        .map_err(|_| HandshakeError::TimedOut)??;
    Ok(authenticated)
}

impl From<LocalStream> for AuthenticatedConnection {
    fn from(stream: LocalStream) -> Self {
        Self {
            reader: BufReader::new(stream.reader),
            writer: stream.writer,
        }
    }
}

async fn write_line(
    writer: &mut (impl AsyncWrite + Unpin),
    line: &str,
) -> Result<(), HandshakeError> {
    writer.write_all(line.as_bytes()).await?;
    Ok(writer.flush().await?)
}

/// Reads a line and checks that it equals `line`. Does not read past the end of the line.
async fn read_expected_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    line: &str,
) -> Result<(), HandshakeError> {
    let mut read = Vec::new();
    let length = reader
        .take(MAX_LINE_BYTES)
        .read_until(b'\n', &mut read)
        .await?;
    match read.last() {
        Some(b'\n') if constant_time_eq(&read, line.as_bytes()) => Ok(()),
        Some(b'\n') => Err(HandshakeError::WrongToken),
        _ if length as u64 == MAX_LINE_BYTES => Err(HandshakeError::TooLong),
        _ => Err(HandshakeError::Closed),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;

    use super::*;

    fn stream_pair() -> (DuplexStream, LocalStream) {
        let (theirs, ours) = tokio::io::duplex(1024);
        let (reader, writer) = tokio::io::split(ours);
        let stream = LocalStream {
            reader: Box::new(reader),
            writer: Box::new(writer),
        };
        (theirs, stream)
    }

    #[tokio::test]
    async fn peers_with_the_token_connect_and_lose_no_bytes() {
        let token = LocalToken::random();
        let (theirs, ours) = stream_pair();
        let (reader, writer) = tokio::io::split(theirs);
        let theirs = LocalStream {
            reader: Box::new(reader),
            writer: Box::new(writer),
        };
        let (caller, server) = tokio::join!(
            send_handshake(theirs, &token),
            accept_handshake(ours, &token)
        );
        let (mut caller, mut server) = (caller.unwrap(), server.unwrap());
        caller.writer.write_all(b"{}\n").await.unwrap();
        let mut line = String::new();
        server.reader.read_line(&mut line).await.unwrap();
        assert_eq!(line, "{}\n");
        // Bytes that arrive together with the token are not lost.
        let (mut theirs, ours) = stream_pair();
        let bytes = format!("{}first\n", token.client_half());
        theirs.write_all(bytes.as_bytes()).await.unwrap();
        let mut server = accept_handshake(ours, &token).await.unwrap();
        line.clear();
        server.reader.read_line(&mut line).await.unwrap();
        assert_eq!(line, "first\n");
    }

    #[tokio::test]
    async fn peer_without_the_token_learns_nothing() {
        let token = LocalToken::random();
        let other = LocalToken::random().client_half();
        let long = "x".repeat(1000);
        let begun = &token.client_half()[..20];
        for said in [&*other, "\n", &*long, begun, "", &*token.server_half()] {
            let (mut theirs, ours) = stream_pair();
            theirs.write_all(said.as_bytes()).await.unwrap();
            theirs.shutdown().await.unwrap();
            assert!(accept_handshake(ours, &token).await.is_err(), "{said:?}");
            let mut told = Vec::new();
            theirs.read_to_end(&mut told).await.unwrap();
            assert_eq!(told, b"", "{said:?}");
        }
    }

    #[tokio::test]
    async fn overlong_line_is_not_read_to_its_end() {
        let (mut theirs, ours) = stream_pair();
        theirs.write_all(&[b'x'; 1000]).await.unwrap();
        // The connection is still open, and more could arrive.
        let refused = accept_handshake(ours, &LocalToken::random()).await;
        assert!(matches!(refused, Err(HandshakeError::TooLong)));
    }

    #[tokio::test(start_paused = true)]
    async fn silent_peer_times_out() {
        let token = LocalToken::random();
        let (mut theirs, ours) = stream_pair();
        theirs
            .write_all(&token.client_half().as_bytes()[..10])
            .await
            .unwrap();
        let began = tokio::time::Instant::now();
        assert!(matches!(
            accept_handshake(ours, &token).await,
            Err(HandshakeError::TimedOut)
        ));
        assert_eq!(began.elapsed(), HANDSHAKE_TIMEOUT);
    }

    #[tokio::test]
    async fn replaced_server_is_detected() {
        let token = LocalToken::random();
        // The original listener has ended, and the new one does not know the other half.
        let (mut theirs, ours) = stream_pair();
        theirs
            .write_all(LocalToken::random().server_half().as_bytes())
            .await
            .unwrap();
        assert!(matches!(
            send_handshake(ours, &token).await,
            Err(HandshakeError::WrongToken)
        ));
    }
}
