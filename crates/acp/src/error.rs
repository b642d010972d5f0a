//! What can go wrong, told apart by who caused it.

use std::sync::Arc;

use acp_wire::jsonrpc;

/// The result of nearly everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. The chapter [`guide::errors`](crate::guide::errors) says of each who caused it, and
/// what to do about it.
///
/// A handler of an [`Agent`](crate::Agent) or [`Client`](crate::Client) returns one to answer a
/// request with an error: [`Error::Rpc`] is sent as it is, [`Error::Cancelled`] with the code -32800, any
/// other as an internal error with its text.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A JSON-RPC error: the peer's answer to a request, or a handler's own. Overview, "Error Handling".
    #[error("{0}")]
    Rpc(jsonrpc::Error),
    /// The connection has ended: nothing that waits is answered any more, and nothing more can be sent.
    #[error("connection closed: {0}")]
    Closed(CloseReason),
    /// The peer answered, but with something the method does not give, or with more bytes than
    /// [`Limits::message`](crate::Limits::message).
    #[error("invalid response to {method}: {reason}")]
    Unreadable {
        /// The method that was called.
        method: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The message cannot be written as JSON, and was not sent: only possible where the params are this
    /// side's own, as in [`Connection::request_raw`](crate::Connection::request_raw).
    #[error("cannot serialize {method}: {reason}")]
    Unwritable {
        /// The method of the message.
        method: String,
        /// Why.
        reason: String,
    },
    /// The peer did not say that it can do this, so it was not asked to: Initialization, "Capabilities".
    #[error("the {peer} does not support {what}")]
    Unsupported {
        /// `agent` or `client`.
        peer: &'static str,
        /// The capability, as the specification names it.
        what: String,
    },
    /// This side's own request makes no sense, and was not sent; the text says why.
    #[error("{0}")]
    Invalid(String),
    /// The agent speaks another version of the protocol: Initialization, "Protocol version".
    #[error(
        "protocol version mismatch: the agent speaks version {theirs}, this client version {ours}"
    )]
    Version {
        /// The version it answered with.
        theirs: u16,
        /// The version it was asked for.
        ours: u16,
    },
    /// The turn, or the request, was cancelled on this side.
    #[error("cancelled")]
    Cancelled,
    /// The agent's [`Recorder`](crate::agent::Recorder) could not keep it, so it was not sent.
    #[error("not sent because it could not be recorded: {reason}")]
    RecordFailed {
        /// Why.
        reason: String,
    },
    /// A request was made from inside an update handler, and its answer is behind more unread
    /// updates than may be kept ([`Limits::backlog`](crate::Limits::backlog)).
    #[error(
        "the response is queued behind {held} bytes of updates that the update handler has not processed"
    )]
    Backlog {
        /// How many bytes are kept.
        held: usize,
    },
}

impl Error {
    /// The answer to `method` cannot be read.
    pub(crate) fn unreadable_response(method: &str, error: &acp_wire::ReadError) -> Self {
        Self::Unreadable {
            method: method.to_owned(),
            reason: error.to_string(),
        }
    }

    /// What the peer answered, if the error is that it answered with one. A handler's own
    /// ([`Error::internal`]) is no different: it is what the peer will see.
    #[must_use]
    pub fn peer_error(&self) -> Option<&jsonrpc::Error> {
        match self {
            Self::Rpc(e) => Some(e),
            _ => None,
        }
    }

    /// Whether the peer answered that one must authenticate first: Authentication.
    #[must_use]
    pub fn is_auth_required(&self) -> bool {
        self.peer_code() == Some(jsonrpc::Error::AUTH_REQUIRED)
    }

    /// Whether it was cancelled, on this side or, as the peer answers, on its side (-32800).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled)
            || self.peer_code() == Some(jsonrpc::Error::REQUEST_CANCELLED)
    }

    /// Whether the connection has ended, in whichever way.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }

    /// Whether the connection has ended because reading or writing failed. A peer that is gone may be
    /// noticed by that, or by the end of what it wrote, whichever comes first.
    #[must_use]
    pub fn is_transport(&self) -> bool {
        matches!(self, Self::Closed(CloseReason::Transport(_)))
    }

    /// Whether the peer does not speak the protocol as this library does: its answer cannot be read, or
    /// is of another version.
    #[must_use]
    pub fn is_protocol(&self) -> bool {
        matches!(self, Self::Unreadable { .. } | Self::Version { .. })
    }

    fn peer_code(&self) -> Option<i32> {
        self.peer_error().map(|e| e.code)
    }

    /// An error with [`jsonrpc::Error::INTERNAL_ERROR`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Rpc(jsonrpc::Error::internal(message))
    }

    /// An error with [`jsonrpc::Error::INVALID_PARAMS`].
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::Rpc(jsonrpc::Error::invalid_params(message))
    }

    /// What to answer a request with that failed like this: [`Error::Rpc`] as it is, [`Error::Cancelled`]
    /// as -32800, any other as -32603 with its text.
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

/// Why a connection has ended.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed it.
    #[error("closed by this side")]
    Local,
    /// The peer closed it: there is nothing more to read.
    #[error("closed by the peer")]
    Peer,
    /// Reading or writing failed. A broken pipe is among them: the peer reads no more.
    #[error("{0}")]
    Transport(Arc<std::io::Error>),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an error says of itself: the peer's answer, login, cancelled, closed, transport, protocol.
    fn says(error: &Error) -> [bool; 6] {
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
    fn errors_are_told_apart_by_who_caused_them() {
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
            (Error::Invalid("so".to_owned()), [no; 6]),
        ] {
            assert_eq!(says(&error), said, "{error:?}");
        }
    }
}
