//! Model errors, and how they are reported to the client.

use acp::jsonrpc;
use serde_json::json;

/// Why a model cannot respond.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ModelError {
    /// The kind of error, for programs.
    pub kind: ModelErrorKind,
    /// What went wrong and what to do about it, for the user.
    pub message: String,
}

/// The kinds of model errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// There is no key, or the provider rejects it.
    Unauthorized,
    /// The provider does not have the model, or not for this key.
    UnknownModel,
    /// The conversation is longer than the model's context window.
    ContextFull,
    /// The provider is overloaded or a rate limit is reached, and retries did not help.
    Overloaded,
    /// The provider cannot be reached.
    Unreachable,
    /// The response broke off, or its format does not allow it.
    Broken,
    /// Anything else.
    #[default]
    Other,
}

impl ModelErrorKind {
    /// Returns the name that clients find in the `data` of an error.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::UnknownModel => "unknown_model",
            Self::ContextFull => "context_full",
            Self::Overloaded => "overloaded",
            Self::Unreachable => "unreachable",
            Self::Broken => "broken",
            Self::Other => "other",
        }
    }
}

impl ModelError {
    /// Creates an error of the kind [`ModelErrorKind::Other`].
    pub fn new(message: impl Into<String>) -> Self {
        Self::of(ModelErrorKind::Other, message)
    }

    /// Creates an error of the given kind.
    pub fn of(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// Returns the error response to a prompt whose model fails. Its `data` has the error's kind for programs ("Error
/// Handling" of the specification).
pub(crate) fn failure(error: ModelError) -> acp::Error {
    let kind = error.kind;
    let mut answer = match kind {
        ModelErrorKind::Unauthorized => jsonrpc::Error::auth_required(),
        _ => jsonrpc::Error::internal(""),
    };
    answer.message = error.message;
    acp::Error::Rpc(answer.data(json!({ "kind": kind.as_str() })))
}
