//! The proxy: a program that agents start as an MCP server and that forwards bytes between agent and client.
//!
//! `acp mcp-proxy` is a proxy. To use your own program with [`ProxyCommand`](crate::ProxyCommand), have it call
//! [`run_proxy`].

use std::io;
use std::time::Duration;

use acp::Transport;
use acp_local::{AuthenticatedConnection, Endpoint, HandshakeError, LocalToken, send_handshake};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// The environment variable that contains the proxy's token. It is not passed as an argument, because every user on the
/// machine could see it there.
pub const TOKEN_VARIABLE: &str = "ACP_MCP_TOKEN";

/// How long the client may take to respond to the last requests after the agent has closed its side. Otherwise, a
/// client that hangs would keep the proxy running.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The size of the copy buffer, in bytes. The same as that of a pipe's buffer.
const BUFFER_SIZE: usize = 64 * 1024;

/// The reason why the proxy stopped or could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The environment variable does not contain a valid token.
    #[error(
        "{TOKEN_VARIABLE} does not contain a token; this command is started by agents and cannot be run by hand"
    )]
    MissingToken,
    /// stdin and stdout cannot be used for the protocol.
    #[error("cannot use stdin and stdout: {0}")]
    Stdio(io::Error),
    /// The connection to the endpoint failed.
    #[error("cannot connect to the client at {endpoint}: {source}")]
    Connect {
        /// The endpoint where the client listens.
        endpoint: Endpoint,
        /// The error from the operating system.
        source: io::Error,
    },
    /// The client rejected the connection, because the token is wrong or there are too many connections.
    #[error("the client at {endpoint} rejected the connection: {reason}")]
    Rejected {
        /// The endpoint where the client listens.
        endpoint: Endpoint,
        /// The reason why the client rejected the connection.
        reason: String,
    },
    /// The client closed the connection while the agent was still using it.
    #[error("the client closed the connection")]
    Closed,
    /// The client did not close the connection in time after the agent had closed its side.
    #[error("the client did not close the connection within {} s", CLOSE_TIMEOUT.as_secs())]
    TimedOut,
    /// Reading from or writing to the agent failed.
    #[error("the connection to the agent failed: {0}")]
    AgentIo(io::Error),
}

/// Forwards bytes between the agent, on stdin and stdout, and the tool server at `endpoint`, until either side closes
/// the connection. Reads the token from the environment variable [`TOKEN_VARIABLE`].
///
/// Takes over this process's stdin and stdout, as [`acp::transport::stdio`] does.
///
/// # Errors
/// See [`ProxyError`]. It is not an error if the agent closes stdin.
pub async fn run_proxy(endpoint: &Endpoint) -> Result<(), ProxyError> {
    let token = std::env::var(TOKEN_VARIABLE).map_err(|_| ProxyError::MissingToken)?;
    let token = token.parse().map_err(|_| ProxyError::MissingToken)?;
    let stdio = acp::transport::stdio().map_err(ProxyError::Stdio)?;
    run_proxy_with(endpoint, &token, stdio).await
}

/// Like [`run_proxy`], but forwards bytes over any transport and with the given token.
///
/// # Errors
/// Same as for [`run_proxy`].
pub async fn run_proxy_with(
    endpoint: &Endpoint,
    token: &LocalToken,
    agent: Transport,
) -> Result<(), ProxyError> {
    let connected = endpoint.connect().await;
    let stream = connected.map_err(|source| ProxyError::Connect {
        endpoint: endpoint.clone(),
        source,
    })?;
    let handshake = send_handshake(stream, token).await;
    let client = handshake.map_err(|error| ProxyError::Rejected {
        endpoint: endpoint.clone(),
        reason: match error {
            // A server does not reveal more than this.
            HandshakeError::Closed => "wrong token or too many connections".to_owned(),
            other => other.to_string(),
        },
    })?;
    tunnel(agent, client).await
}

/// Forwards bytes between the agent and the client in both directions.
async fn tunnel(agent: Transport, client: AuthenticatedConnection) -> Result<(), ProxyError> {
    let (mut input, mut output) = agent.into_split();
    let AuthenticatedConnection {
        mut reader,
        mut writer,
    } = client;
    let mut asking = Box::pin(async {
        let asked = copy_bytes(&mut input, &mut writer).await;
        // The client sees the end of the stream but still responds to earlier requests.
        writer
            .shutdown()
            .await
            .map_err(TunnelError::Write)
            .and(asked)
    });
    let mut answering = Box::pin(copy_bytes(&mut reader, &mut output));
    let asked = tokio::select! {
        biased;
        asked = &mut asking => asked,
        answered = &mut answering => return Err(match answered {
            Err(TunnelError::Write(e)) => ProxyError::AgentIo(e),
            Ok(()) | Err(TunnelError::Read(_)) => ProxyError::Closed,
        }),
    };
    let answered = timeout(CLOSE_TIMEOUT, answering).await;
    match (asked, answered.map_err(|_| ProxyError::TimedOut)?) {
        (Ok(()), Ok(())) => Ok(()),
        (Err(TunnelError::Read(e)), _) | (_, Err(TunnelError::Write(e))) => {
            Err(ProxyError::AgentIo(e))
        }
        (Err(TunnelError::Write(_)), _) | (_, Err(TunnelError::Read(_))) => Err(ProxyError::Closed),
    }
}

/// A read or write error that occurred while bytes were being forwarded.
enum TunnelError {
    Read(io::Error),
    Write(io::Error),
}

/// Forwards bytes in one direction until the input ends.
async fn copy_bytes(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> Result<(), TunnelError> {
    let mut piece = Vec::with_capacity(BUFFER_SIZE);
    loop {
        piece.clear();
        let read = from.read_buf(&mut piece).await.map_err(TunnelError::Read)?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&piece).await.map_err(TunnelError::Write)?;
        to.flush().await.map_err(TunnelError::Write)?;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{BufReader, DuplexStream, duplex};
    use tokio::task::JoinHandle;

    use super::*;

    /// The agent's and the client's ends of a running tunnel.
    struct TunnelEnds {
        stdin: DuplexStream,
        stdout: DuplexStream,
        questions: DuplexStream,
        answers: DuplexStream,
        tunnel: JoinHandle<Result<(), ProxyError>>,
    }

    fn tunnel_ends() -> TunnelEnds {
        let ((stdin, input), (output, stdout)) = (duplex(64), duplex(64));
        let ((answers, reader), (writer, questions)) = (duplex(64), duplex(64));
        let agent = Transport::new(input, output);
        let client = AuthenticatedConnection {
            reader: BufReader::new(Box::new(reader)),
            writer: Box::new(writer),
        };
        let tunnel = tokio::spawn(tunnel(agent, client));
        TunnelEnds {
            stdin,
            stdout,
            questions,
            answers,
            tunnel,
        }
    }

    async fn read_to_end(mut from: DuplexStream) -> Vec<u8> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).await.unwrap();
        bytes
    }

    #[tokio::test(start_paused = true)]
    async fn tunnel_passes_every_byte_and_closes_in_both_directions() {
        let TunnelEnds {
            mut stdin,
            stdout,
            questions,
            mut answers,
            tunnel,
        } = tunnel_ends();
        // Far more bytes than the streams can hold, which are not text.
        let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
        let asked = bytes.clone();
        tokio::spawn(async move { stdin.write_all(&asked).await.unwrap() });
        assert!(read_to_end(questions).await == bytes);
        // The agent has sent all its requests. The client responds now.
        let answered = bytes.clone();
        tokio::spawn(async move { answers.write_all(&answered).await.unwrap() });
        assert!(read_to_end(stdout).await == bytes);
        tunnel.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn losing_the_client_and_losing_the_agent_are_different_errors() {
        // The client ends.
        let mut ends_of_client = tunnel_ends();
        drop((ends_of_client.answers, ends_of_client.questions));
        let _ = ends_of_client.stdin.write_all(b"?").await;
        let ended = ends_of_client.tunnel.await.unwrap();
        assert!(matches!(ended, Err(ProxyError::Closed)), "{ended:?}");

        // The client ends while the agent is sending, so that the write fails first.
        let mut asking = tunnel_ends();
        drop(asking.questions);
        asking.stdin.write_all(b"?").await.unwrap();
        asking.answers.write_all(b"last words").await.unwrap();
        drop(asking.answers);
        assert_eq!(read_to_end(asking.stdout).await, b"last words");
        let ended = asking.tunnel.await.unwrap();
        assert!(matches!(ended, Err(ProxyError::Closed)), "{ended:?}");

        // The agent stops reading.
        let mut deaf = tunnel_ends();
        drop(deaf.stdout);
        deaf.answers.write_all(b"!").await.unwrap();
        let ended = deaf.tunnel.await.unwrap();
        assert!(matches!(ended, Err(ProxyError::AgentIo(_))), "{ended:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_client_does_not_block_the_proxy() {
        let TunnelEnds {
            stdin,
            stdout: _stdout,
            questions: _questions,
            answers: _answers,
            tunnel,
        } = tunnel_ends();
        let began = tokio::time::Instant::now();
        drop(stdin);
        let ended = tunnel.await.unwrap();
        assert!(matches!(ended, Err(ProxyError::TimedOut)), "{ended:?}");
        assert_eq!(began.elapsed(), CLOSE_TIMEOUT);
    }
}
