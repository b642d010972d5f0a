//! Why a model cannot answer, and what its client is told then.

use acp::jsonrpc;
use serde_json::json;

/// Why a model cannot answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ModelError {
    /// What it is, for programs.
    pub kind: ModelErrorKind,
    /// What went wrong, and what to do about it, for people.
    pub message: String,
}

/// What kind of failure it is that keeps a model from answering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// There is no key, or the provider does not take it.
    Unauthorized,
    /// The provider has no such model, or not for this key.
    UnknownModel,
    /// The conversation is longer than the model's window.
    ContextFull,
    /// The provider is overloaded, or the limit of what may be asked is reached, and trying again did not help.
    Overloaded,
    /// The provider cannot be reached.
    Unreachable,
    /// The answer broke off, or is none that its format allows.
    Broken,
    /// Anything else.
    #[default]
    Other,
}

impl ModelErrorKind {
    /// Its name, as clients find it in the `data` of an error.
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
    /// An error of no kind in particular.
    pub fn new(message: impl Into<String>) -> Self {
        Self::of(ModelErrorKind::Other, message)
    }

    /// An error of that kind.
    pub fn of(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// What a prompt is answered with when the model fails. Error Handling: what it is, is in `data`, for programs.
pub(crate) fn failure(error: ModelError) -> acp::Error {
    let kind = error.kind;
    let mut answer = match kind {
        ModelErrorKind::Unauthorized => jsonrpc::Error::auth_required(),
        _ => jsonrpc::Error::internal(""),
    };
    answer.message = error.message;
    acp::Error::Rpc(answer.data(json!({ "kind": kind.as_str() })))
}
