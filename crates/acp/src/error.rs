//! What can go wrong, told apart by who caused it.

use std::sync::Arc;

use acp_wire::jsonrpc;

/// The result of nearly everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
///
/// A handler of an [`Agent`](crate::Agent) or [`Client`](crate::Client) returns one to answer a
/// request with an error: [`Error::Rpc`] is sent as it is, any other as an internal error with its
/// text.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A JSON-RPC error: the peer's answer to a request, or a handler's own.
    #[error("{0}")]
    Rpc(jsonrpc::Error),
    /// The connection has ended.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
    /// The peer answered, but with something the method does not give.
    #[error("the answer to {method} cannot be read: {reason}")]
    Unreadable {
        /// The method that was called.
        method: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The message cannot be written as JSON.
    #[error("{method} cannot be written: {reason}")]
    Unwritable {
        /// The method of the message.
        method: String,
        /// Why.
        reason: String,
    },
    /// The peer did not say that it can do this, so it was not asked to.
    #[error("the {peer} does not offer {what}")]
    NotOffered {
        /// `agent` or `client`.
        peer: &'static str,
        /// The capability, as the specification names it.
        what: String,
    },
    /// This side's own request makes no sense, and was not sent; the text says why.
    #[error("{0}")]
    Invalid(String),
    /// The peer speaks another version of the protocol.
    #[error("the agent speaks protocol version {theirs}, this client speaks version {ours}")]
    Version {
        /// The version it answered with.
        theirs: u16,
        /// The version it was asked for.
        ours: u16,
    },
    /// The turn, or the request, was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A request was made from inside an update handler, and its answer is behind more unread
    /// updates than may be kept ([`Limits::backlog`](crate::Limits::backlog)).
    #[error("the answer is behind {held} bytes of updates that the update handler has not taken")]
    Backlog {
        /// How many bytes are kept.
        held: usize,
    },
}

impl Error {
    /// Whether it says that one must authenticate first.
    #[must_use]
    pub fn is_auth_required(&self) -> bool {
        matches!(self, Self::Rpc(e) if e.code == jsonrpc::Error::AUTH_REQUIRED)
    }

    /// An error with [`jsonrpc::Error::INTERNAL_ERROR`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Rpc(jsonrpc::Error::internal(message))
    }

    /// An error with [`jsonrpc::Error::INVALID_PARAMS`].
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::Rpc(jsonrpc::Error::invalid_params(message))
    }

    /// What to answer a request with that failed like this.
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
    #[error("closed on this side")]
    Local,
    /// The peer closed it.
    #[error("the peer closed it")]
    Peer,
    /// Reading or writing failed.
    #[error("{0}")]
    Transport(Arc<std::io::Error>),
}
