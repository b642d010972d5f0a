//! Errors in establishing or keeping a connection.

use http::StatusCode;

use crate::CloseStatus;

/// The reason why connecting failed or a connection was lost. A connected transport returns these errors inside
/// [`std::io::Error`]s.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is invalid, or its scheme is not supported.
    #[error("invalid URL `{url}`: {reason}")]
    InvalidUrl {
        /// The URL, without its token.
        url: String,
        /// The reason why the URL is invalid.
        reason: String,
    },
    /// The server could not be reached.
    #[error("cannot connect to {to}: {reason}")]
    Unreachable {
        /// The host and port, or the socket's path.
        to: String,
        /// The reason why the server could not be reached.
        reason: String,
    },
    /// TLS failed: the certificate is not trusted, or the server does not speak TLS.
    #[error("TLS with {to} failed: {reason}")]
    Tls {
        /// The server's host and port.
        to: String,
        /// The reason why TLS failed.
        reason: String,
    },
    /// The server requires a token, or rejected the client's token (status 401).
    #[error("the server rejected the token (401 Unauthorized): {reason}")]
    Unauthorized {
        /// The server's explanation: the start of the response body.
        reason: String,
    },
    /// The server responded with an unexpected HTTP status.
    #[error("the server responded with {status}: {reason}")]
    Status {
        /// The HTTP status of the response.
        status: StatusCode,
        /// The server's explanation: the start of the response body.
        reason: String,
    },
    /// The server violated the draft specification or the WebSocket protocol.
    #[error("the server violated the protocol: {0}")]
    Protocol(String),
    /// A message of this side cannot be sent over this transport.
    #[error("cannot send a message: {0}")]
    UnsendableMessage(String),
    /// The connection was cut and cannot be resumed. Some messages may be lost.
    #[error("connection lost: {reason}; messages may be missing, because {why}")]
    Lost {
        /// The reason why the connection was cut.
        reason: String,
        /// The reason why the connection could not be resumed.
        why: String,
    },
    /// The server closed the connection because something failed.
    #[error("the server closed the connection: {0}")]
    Closed(CloseStatus),
}

impl From<ConnectError> for std::io::Error {
    fn from(error: ConnectError) -> Self {
        use std::io::ErrorKind;
        let kind = match &error {
            ConnectError::InvalidUrl { .. } | ConnectError::UnsendableMessage(_) => {
                ErrorKind::InvalidInput
            }
            ConnectError::Unauthorized { .. } => ErrorKind::PermissionDenied,
            ConnectError::Protocol(_) => ErrorKind::InvalidData,
            ConnectError::Unreachable { .. } => ErrorKind::NotConnected,
            ConnectError::Lost { .. } | ConnectError::Closed(_) => ErrorKind::ConnectionAborted,
            ConnectError::Tls { .. } | ConnectError::Status { .. } => ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// Creates the error for a response with an unexpected status.
pub(super) fn rejected_error(status: StatusCode, body: &[u8]) -> ConnectError {
    let text = String::from_utf8_lossy(body);
    // The text is for people, so one line is enough.
    let line = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("no reason given");
    let reason: String = line
        .trim()
        .chars()
        .filter(|c| !c.is_control())
        .take(300)
        .collect();
    match status {
        StatusCode::UNAUTHORIZED => ConnectError::Unauthorized { reason },
        status => ConnectError::Status { status, reason },
    }
}

/// Formats an error and its causes.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}
