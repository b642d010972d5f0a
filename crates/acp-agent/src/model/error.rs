//! Model errors, and how they are reported to the client.

use acp::jsonrpc;
use serde_json::json;

/// The reason why a model could not respond.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ModelError {
    /// The kind of error, for programs to check.
    pub kind: ModelErrorKind,
    /// A message that tells the user what went wrong and what to do about it.
    pub message: String,
}

/// The kind of a model error, so that programs can tell errors apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The key is missing, or the provider rejected it.
    Unauthorized,
    /// The provider does not have the model, or the key has no access to it.
    UnknownModel,
    /// The conversation does not fit into the model's context window.
    ContextFull,
    /// The provider is overloaded or a rate limit was reached, and retries did not help.
    Overloaded,
    /// The provider cannot be reached.
    Unreachable,
    /// The response was cut off or is invalid.
    InvalidResponse,
    /// Any other error, described only by the message.
    #[default]
    Other,
}

impl ModelErrorKind {
    /// Returns the name of the kind, as sent to clients in the error response's `data`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::UnknownModel => "unknown_model",
            Self::ContextFull => "context_full",
            Self::Overloaded => "overloaded",
            Self::Unreachable => "unreachable",
            Self::InvalidResponse => "broken",
            Self::Other => "other",
        }
    }
}

impl ModelError {
    /// Creates an error of the kind [`ModelErrorKind::Other`].
    pub fn new(message: impl Into<String>) -> Self {
        Self::with_kind(ModelErrorKind::Other, message)
    }

    /// Creates an error of this kind.
    pub fn with_kind(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// Converts a model error into the error response to a prompt. Its `data` contains the kind of the error, for programs
/// (see "Error Handling" in the specification).
pub(crate) fn to_acp_error(error: ModelError) -> acp::Error {
    let kind = error.kind;
    let mut answer = match kind {
        ModelErrorKind::Unauthorized => jsonrpc::Error::auth_required(),
        _ => jsonrpc::Error::internal(""),
    };
    answer.message = error.message;
    acp::Error::Rpc(answer.data(json!({ "kind": kind.as_str() })))
}
