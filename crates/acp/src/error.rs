//! The error types of this crate.

use std::sync::Arc;

use acp_wire::jsonrpc;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// This crate's error type. The chapter [`guide::errors`](crate::guide::errors) explains what causes each variant and
/// how to handle it.
///
/// A handler of an [`Agent`](crate::Agent) or [`Client`](crate::Client) returns an error to fail a request.
/// [`Error::Rpc`] is sent unchanged, [`Error::Cancelled`] with the code -32800, and any other error as an internal
/// error with its text.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A JSON-RPC error, sent by the peer or returned by a handler. See "Error Handling" on the specification's page
    /// "Overview".
    #[error("{0}")]
    Rpc(jsonrpc::Error),
    /// The connection has ended. Pending requests get no response, and nothing more can be sent.
    #[error("connection closed: {0}")]
    Closed(CloseReason),
    /// The peer's response does not match the method's schema, or is larger than
    /// [`Limits::message`](crate::Limits::message).
    #[error("invalid response to {method}: {reason}")]
    InvalidResponse {
        /// The method that was called.
        method: String,
        /// Why the response is invalid.
        reason: String,
    },
    /// A message was not sent because it cannot be serialized as JSON. This can happen only with params that this side
    /// supplies itself, as in [`Connection::request_raw`](crate::Connection::request_raw).
    #[error("cannot serialize {method}: {reason}")]
    NotSerializable {
        /// The message's method.
        method: String,
        /// Why the message cannot be serialized.
        reason: String,
    },
    /// The peer lacks a capability, so the message was not sent. See "Capabilities" on the specification's page
    /// "Initialization".
    #[error("the {peer} does not support {what}")]
    Unsupported {
        /// The side that lacks the capability: `agent` or `client`.
        peer: &'static str,
        /// The name of the capability, as in the specification.
        what: String,
    },
    /// A request from this side is invalid and was not sent. The text is the reason.
    #[error("{0}")]
    InvalidRequest(String),
    /// The agent speaks a protocol version that this side does not support. See "Protocol version" on the
    /// specification's page "Initialization".
    #[error(
        "protocol version mismatch: the agent speaks version {theirs}, this client speaks version {ours}"
    )]
    Version {
        /// The version in the agent's response.
        theirs: u16,
        /// The version that was requested.
        ours: u16,
    },
    /// This side cancelled the turn or the request.
    #[error("cancelled")]
    Cancelled,
    /// The agent's [`Recorder`](crate::agent::Recorder) could not store an update, so the update was not sent.
    #[error("update not sent because it could not be recorded: {reason}")]
    RecordFailed {
        /// Why the update could not be stored.
        reason: String,
    },
    /// An update handler sent a request, and the updates to process before its response exceed
    /// [`Limits::backlog`](crate::Limits::backlog).
    #[error("too many unhandled updates ahead of the response: {held} bytes")]
    Backlog {
        /// The size of the waiting updates, in bytes.
        held: usize,
    },
}

impl Error {
    /// Creates the error for an invalid response to `method`.
    pub(crate) fn unreadable_response(method: &str, error: &acp_wire::ReadError) -> Self {
        Self::InvalidResponse {
            method: method.to_owned(),
            reason: error.to_string(),
        }
    }

    /// Returns the JSON-RPC error, if any. This can also be one that a handler has created for the peer, for example
    /// with [`Error::internal`].
    #[must_use]
    pub fn peer_error(&self) -> Option<&jsonrpc::Error> {
        match self {
            Self::Rpc(e) => Some(e),
            _ => None,
        }
    }

    /// Returns `true` if the client must authenticate first.
    #[must_use]
    pub fn is_auth_required(&self) -> bool {
        self.peer_code() == Some(jsonrpc::Error::AUTH_REQUIRED)
    }

    /// Returns `true` if this side or the peer (-32800) cancelled the turn or request.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled)
            || self.peer_code() == Some(jsonrpc::Error::REQUEST_CANCELLED)
    }

    /// Returns `true` if the connection has ended, for any reason.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }

    /// Returns `true` if the connection ended because reading or writing failed. When a peer exits, this side sees
    /// either a failed write or the end of its input, whichever comes first.
    #[must_use]
    pub fn is_transport(&self) -> bool {
        matches!(self, Self::Closed(CloseReason::Transport(_)))
    }

    /// Returns `true` if the peer has violated the protocol or speaks another version.
    #[must_use]
    pub fn is_protocol(&self) -> bool {
        matches!(self, Self::InvalidResponse { .. } | Self::Version { .. })
    }

    /// Returns the code of the JSON-RPC error, if any.
    fn peer_code(&self) -> Option<i32> {
        self.peer_error().map(|e| e.code)
    }

    /// Creates an internal error ([`jsonrpc::Error::INTERNAL_ERROR`]).
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Rpc(jsonrpc::Error::internal(message))
    }

    /// Creates an error for invalid params ([`jsonrpc::Error::INVALID_PARAMS`]).
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::Rpc(jsonrpc::Error::invalid_params(message))
    }

    /// Converts this error to a JSON-RPC error to respond with. [`Error::Rpc`] is unchanged, [`Error::Cancelled`] gets
    /// the code -32800, and any other error gets the code -32603 and its text.
    #[must_use]
    pub fn into_rpc(self) -> jsonrpc::Error {
        match self {
            Self::Rpc(e) => e,
            Self::Cancelled => jsonrpc::Error::request_cancelled(),
            other => jsonrpc::Error::internal(other.to_string()),
        }
    }
}

impl From<jsonrpc::Error> for Error {
    fn from(e: jsonrpc::Error) -> Self {
        Self::Rpc(e)
    }
}

impl From<acp_wire::ReadError> for Error {
    fn from(e: acp_wire::ReadError) -> Self {
        Self::Rpc(e.into())
    }
}

/// Why a connection ended: one side closed it, or it failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed the connection.
    #[error("closed by this side")]
    Local,
    /// The peer closed the connection, which ended this side's input.
    #[error("closed by the peer")]
    Peer,
    /// Reading or writing failed, for example with a broken pipe because the peer no longer reads.
    #[error("{0}")]
    Transport(Arc<std::io::Error>),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls each predicate on an error and returns the results in this order: peer error, auth required, cancelled,
    /// closed, transport, protocol.
    fn error_predicates(error: &Error) -> [bool; 6] {
        [
            error.peer_error().is_some(),
            error.is_auth_required(),
            error.is_cancelled(),
            error.is_closed(),
            error.is_transport(),
            error.is_protocol(),
        ]
    }

    #[test]
    fn predicates_classify_errors_by_cause() {
        let rpc = |code| Error::Rpc(jsonrpc::Error::new(code, "why"));
        let broken = CloseReason::Transport(Arc::new(std::io::ErrorKind::BrokenPipe.into()));
        let (yes, no) = (true, false);
        for (error, said) in [
            (rpc(-1), [yes, no, no, no, no, no]),
            (rpc(-32000), [yes, yes, no, no, no, no]),
            (rpc(-32800), [yes, no, yes, no, no, no]),
            (Error::Cancelled, [no, no, yes, no, no, no]),
            (Error::Closed(CloseReason::Peer), [no, no, no, yes, no, no]),
            (Error::Closed(broken), [no, no, no, yes, yes, no]),
            (
                Error::Version { theirs: 9, ours: 1 },
                [no, no, no, no, no, yes],
            ),
            (Error::InvalidRequest("so".to_owned()), [no; 6]),
        ] {
            assert_eq!(error_predicates(&error), said, "{error:?}");
        }
    }
}
