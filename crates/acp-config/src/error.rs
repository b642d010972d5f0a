//! What can be wrong with what the user has configured, and with what is kept for them.

use acp_host::StateFileError;

/// Why something configured, or something kept, is of no use. A message says it to the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// What is written or asked for is wrong; the user can say it right.
    #[error("{0}")]
    Usage(String),
    /// Nothing is wrong with what was asked for, and it could not be done.
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
