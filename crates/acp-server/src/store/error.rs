//! Errors of stores.

use std::error::Error;

use acp_postgres::{DriverError, PostgresError};

/// The error of a store of live sessions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveStoreError {
    /// The database cannot be reached, or does not respond. Trying again may help.
    #[error("cannot reach the store: {0}")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
    /// This server's lease has expired. Other servers may own its sessions.
    #[error("the lease of this server has expired")]
    LeaseExpired,
    /// The cursor of a list is not one of this store.
    #[error("invalid cursor")]
    InvalidCursor,
    /// The tables were created by a newer version of this program.
    #[error(
        "the store has version {found}, but this program knows versions up to {known}; use a newer program"
    )]
    Newer {
        /// The version of the tables.
        found: u32,
        /// The latest version that this program knows.
        known: u32,
    },
    /// The tables were created by an older version of this program, which other servers may still be running.
    #[error(
        "the store has version {found}, but this program needs version {known}; run `acp store migrate`"
    )]
    Older {
        /// The version of the tables.
        found: u32,
        /// The version that this program needs.
        known: u32,
    },
    /// The address of the store is invalid.
    #[error("invalid store address: {0}")]
    InvalidAddress(String),
    /// The database has rejected a statement, or contains something unexpected.
    #[error("the store has failed: {0}")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

impl From<PostgresError> for LiveStoreError {
    fn from(error: PostgresError) -> Self {
        match error {
            PostgresError::InvalidAddress(why) => Self::InvalidAddress(why),
            PostgresError::Unavailable(why) => Self::Unavailable(why.into()),
            PostgresError::Newer { found, known } => Self::Newer { found, known },
            PostgresError::Older { found, known } => Self::Older { found, known },
            other => Self::Failed(other.into()),
        }
    }
}

impl From<DriverError> for LiveStoreError {
    fn from(error: DriverError) -> Self {
        PostgresError::from(error).into()
    }
}
