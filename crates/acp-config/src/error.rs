//! Errors in the user's configuration and in stored files.

use acp_host::StateFileError;

/// Why something configured or stored cannot be used. The text is for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The input is wrong, and the user can correct it.
    #[error("{0}")]
    Usage(String),
    /// The input is right, but the operation failed.
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
