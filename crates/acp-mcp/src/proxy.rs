//! The proxy: what an agent starts as an MCP server, and which passes the bytes on to the client.
//!
//! It is `acp mcp-proxy`. A program of your own that [`ProxyCommand`](crate::ProxyCommand) names
//! calls [`run`].

use std::io;
use std::time::Duration;

use acp::Transport;
use tokio::io::{AsyncWriteExt, copy};
use tokio::time::timeout;

use crate::endpoint::Endpoint;
use crate::handshake::{Known, Stranger, introduce};
use crate::token::{TOKEN_VAR, Token};

/// How long the client may take to answer what was asked before the agent stopped asking. A proxy
/// must not stay behind because of a client that hangs.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// How a proxy fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The environment has no token.
    #[error("{TOKEN_VAR} is not set to a token; this is for agents to start, as their client says")]
    NoToken,
    /// stdin and stdout cannot be used.
    #[error("cannot use stdin and stdout: {0}")]
    Stdio(io::Error),
    /// Nobody listens at the endpoint.
    #[error("cannot connect to the client at {endpoint}: {source}")]
    Connect {
        /// Where it was to be.
        endpoint: Endpoint,
        /// Why not.
        source: io::Error,
    },
    /// The two do not know each other: the token is wrong, or one of too many connections.
    #[error("the client at {endpoint} does not take the connection: {reason}")]
    Refused {
        /// Where it is.
        endpoint: Endpoint,
        /// What happened instead of an answer.
        reason: String,
    },
    /// The client closed the connection while the agent still used it.
    #[error("the client has closed the connection")]
    Gone,
    /// The client took too long to end after the agent had.
    #[error("the client did not end within {} s", LAST_WORDS.as_secs())]
    Hangs,
    /// Reading or writing failed.
    #[error("the connection broke: {0}")]
    Broken(io::Error),
}

/// Connects stdin and stdout with the tool server at this endpoint, until either ends. The token is
/// taken from the environment ([`TOKEN_VAR`]).
///
/// Takes this process's stdin and stdout as [`acp::transport::stdio`] does.
///
/// # Errors
/// See [`ProxyError`]. That the agent closes stdin is no error.
pub async fn run(endpoint: &Endpoint) -> Result<(), ProxyError> {
    let token = std::env::var(TOKEN_VAR).map_err(|_| ProxyError::NoToken)?;
    let token = token.parse().map_err(|_| ProxyError::NoToken)?;
    let stdio = acp::transport::stdio().map_err(ProxyError::Stdio)?;
    run_with(endpoint, &token, stdio).await
}

/// As [`run`], with a transport and a token of your own.
///
/// # Errors
/// As [`run`].
pub async fn run_with(
    endpoint: &Endpoint,
    token: &Token,
    agent: Transport,
) -> Result<(), ProxyError> {
    let connected = endpoint.connect().await;
    let stream = connected.map_err(|source| ProxyError::Connect {
        endpoint: endpoint.clone(),
        source,
    })?;
    let known = introduce(stream, token).await;
    let client = known.map_err(|stranger| ProxyError::Refused {
        endpoint: endpoint.clone(),
        reason: match stranger {
            // All that a server lets one know.
            Stranger::Closed => "the token is wrong, or there are too many connections".to_owned(),
            other => other.to_string(),
        },
    })?;
    tunnel(agent, client).await
}

/// Passes the bytes on, both ways.
async fn tunnel(agent: Transport, client: Known) -> Result<(), ProxyError> {
    let (mut input, mut output) = agent.into_split();
    let Known {
        mut reader,
        mut writer,
    } = client;
    let mut asking = Box::pin(async {
        let copied = copy(&mut input, &mut writer).await;
        // The client is told of the end, and answers what it was asked before.
        let told = writer.shutdown().await;
        copied.and(told)
    });
    let mut answering = Box::pin(async {
        copy(&mut reader, &mut output).await?;
        output.shutdown().await
    });
    let asked = tokio::select! {
        biased;
        asked = &mut asking => asked,
        answered = &mut answering => {
            return Err(answered.map_or_else(ProxyError::Broken, |()| ProxyError::Gone));
        }
    };
    match timeout(LAST_WORDS, answering).await {
        Ok(Ok(())) => asked.map_err(ProxyError::Broken),
        Ok(Err(e)) => Err(ProxyError::Broken(e)),
        Err(_) => Err(ProxyError::Hangs),
    }
}
