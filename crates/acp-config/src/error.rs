//! Errors in the user's configuration and in stored state.

use acp_host::StateFileError;

/// An error in the configuration or in stored state. The message is meant for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Invalid input, which the user can correct.
    #[error("{0}")]
    Usage(String),
    /// An operation failed even though the input was valid.
    #[error("{0}")]
    Failure(String),
}

impl ConfigError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    pub(crate) fn failure(message: impl Into<String>) -> Self {
        Self::Failure(message.into())
    }
}

impl From<StateFileError> for ConfigError {
    fn from(error: StateFileError) -> Self {
        Self::Failure(error.to_string())
    }
}
