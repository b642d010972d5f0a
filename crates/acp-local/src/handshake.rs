//! The first two lines of a connection: each side proves that it knows the token.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::time::timeout;

use crate::endpoint::{LocalReader, LocalStream, LocalWriter};
use crate::token::{LocalToken, constant_time_eq};

/// How long a first line may be, in bytes, its end included.
const LONGEST: u64 = 256;

/// How long the first line may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the other side is not talked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// It closed the connection instead of saying a line.
    #[error("connection closed")]
    Closed,
    /// It said nothing, or not enough, in time.
    #[error("timed out waiting for a token ({} s)", PATIENCE.as_secs())]
    TimedOut,
    /// What it said is too long for a token.
    #[error("expected a token, got a line longer than {LONGEST} bytes")]
    TooLong,
    /// It does not know the token. What it said instead is told to nobody.
    #[error("wrong token")]
    WrongToken,
    /// Reading or writing failed.
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for HandshakeError {
    /// Who closes a connection without reading what was said breaks it.
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        match error.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

/// A connection whose first lines have been read.
pub struct AuthenticatedConnection {
    /// What the peer says next.
    pub reader: BufReader<LocalReader>,
    /// What is said to it.
    pub writer: LocalWriter,
}

impl fmt::Debug for AuthenticatedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

/// The listening side: the connection is taken if the other side says the token, within five seconds. Nothing is said to
/// who does not know it.
///
/// # Errors
/// It does not say the token, or not in time, and why.
pub async fn accept_handshake(
    stream: LocalStream,
    token: &LocalToken,
) -> Result<AuthenticatedConnection, HandshakeError> {
    let mut known = AuthenticatedConnection::from(stream);
    let within = async {
        expect_line(&mut known.reader, &token.client_half()).await?;
        write_line(&mut known.writer, &token.server_half()).await
    };
    timeout(PATIENCE, within)
        .await
        .map_err(|_| HandshakeError::TimedOut)??;
    Ok(known)
}

/// The side that has connected: says its half of the token, and is answered with the other, within five seconds.
///
/// # Errors
/// It is not answered, or not as one who knows the token would.
pub async fn send_handshake(
    stream: LocalStream,
    token: &LocalToken,
) -> Result<AuthenticatedConnection, HandshakeError> {
    let mut known = AuthenticatedConnection::from(stream);
    let within = async {
        write_line(&mut known.writer, &token.client_half()).await?;
        expect_line(&mut known.reader, &token.server_half()).await
    };
    timeout(PATIENCE, within)
        .await
        .map_err(|_| HandshakeError::TimedOut)??;
    Ok(known)
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

/// Reads this line, and nothing behind it.
async fn expect_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    line: &str,
) -> Result<(), HandshakeError> {
    let mut read = Vec::new();
    let length = reader.take(LONGEST).read_until(b'\n', &mut read).await?;
    match read.last() {
        Some(b'\n') if constant_time_eq(&read, line.as_bytes()) => Ok(()),
        Some(b'\n') => Err(HandshakeError::WrongToken),
        _ if length as u64 == LONGEST => Err(HandshakeError::TooLong),
        _ => Err(HandshakeError::Closed),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;

    use super::*;

    fn pair() -> (DuplexStream, LocalStream) {
        let (theirs, ours) = tokio::io::duplex(1024);
        let (reader, writer) = tokio::io::split(ours);
        let stream = LocalStream {
            reader: Box::new(reader),
            writer: Box::new(writer),
        };
        (theirs, stream)
    }

    #[tokio::test]
    async fn two_that_know_the_token_find_each_other_and_lose_no_byte() {
        let token = LocalToken::random();
        let (theirs, ours) = pair();
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
        // What comes in one piece with the token is kept, too.
        let (mut theirs, ours) = pair();
        let bytes = format!("{}first\n", token.client_half());
        theirs.write_all(bytes.as_bytes()).await.unwrap();
        let mut server = accept_handshake(ours, &token).await.unwrap();
        line.clear();
        server.reader.read_line(&mut line).await.unwrap();
        assert_eq!(line, "first\n");
    }

    #[tokio::test]
    async fn who_does_not_know_the_token_is_told_nothing() {
        let token = LocalToken::random();
        let other = LocalToken::random().client_half();
        let long = "x".repeat(1000);
        let begun = &token.client_half()[..20];
        for said in [&*other, "\n", &*long, begun, "", &*token.server_half()] {
            let (mut theirs, ours) = pair();
            theirs.write_all(said.as_bytes()).await.unwrap();
            theirs.shutdown().await.unwrap();
            assert!(accept_handshake(ours, &token).await.is_err(), "{said:?}");
            let mut told = Vec::new();
            theirs.read_to_end(&mut told).await.unwrap();
            assert_eq!(told, b"", "{said:?}");
        }
    }

    #[tokio::test]
    async fn a_long_line_is_not_read_to_its_end() {
        let (mut theirs, ours) = pair();
        theirs.write_all(&[b'x'; 1000]).await.unwrap();
        // It is still open, and more could come.
        let refused = accept_handshake(ours, &LocalToken::random()).await;
        assert!(matches!(refused, Err(HandshakeError::TooLong)));
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_is_not_waited_for() {
        let token = LocalToken::random();
        let (mut theirs, ours) = pair();
        theirs
            .write_all(&token.client_half().as_bytes()[..10])
            .await
            .unwrap();
        let began = tokio::time::Instant::now();
        assert!(matches!(
            accept_handshake(ours, &token).await,
            Err(HandshakeError::TimedOut)
        ));
        assert_eq!(began.elapsed(), PATIENCE);
    }

    #[tokio::test]
    async fn nobody_talks_to_one_that_took_the_place_of_another() {
        let token = LocalToken::random();
        // The one that listened has ended, and this one does not know what to answer.
        let (mut theirs, ours) = pair();
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
