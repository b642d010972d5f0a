//! Defines the errors of session stores.

use acp::v1::SessionId;
use acp_postgres::{DriverError, PostgresError};

use crate::private_file::PrivateFileError;

/// An error from an operation on a session store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has changed the session.
    #[error("session {0} was changed by another process; load it again")]
    Conflict(SessionId),
    /// There is no session with this id.
    #[error("session not found: {0}")]
    NotFound(SessionId),
    /// A session with this id already exists.
    #[error("session already exists: {0}")]
    Exists(SessionId),
    /// The cursor is not from this store.
    #[error("invalid cursor: {0:?}")]
    Cursor(String),
    /// There is no space left: the disk is full, or a limit was reached.
    #[error("session store full: {0}")]
    Full(String),
    /// Other processes kept the store locked for too long.
    #[error("session store locked by another process: {0}")]
    Busy(String),
    /// A newer version of this program wrote the store.
    #[error(
        "{path} was written by a newer version of acp (format {theirs}; this version supports {ours})"
    )]
    Newer {
        /// The path of the store's database file, or what it is.
        path: String,
        /// The format version of the store's file.
        theirs: i64,
        /// The latest format version that this program supports.
        ours: i64,
    },
    /// An older version of this program wrote the store, and others may still be using it.
    #[error(
        "the session store has format {theirs}, but this version needs {ours}; run `acp store migrate`"
    )]
    Older {
        /// The format version of the store.
        theirs: i64,
        /// The format version that this program needs.
        ours: i64,
    },
    /// The database cannot be reached, or does not respond.
    #[error("cannot reach the session store: {0}")]
    Unavailable(String),
    /// The store belongs to another user, who could read or change the sessions.
    #[error("{path} belongs to another user; the session store must be private")]
    WrongOwner {
        /// The path of the directory, or of a file in it.
        path: String,
    },
    /// A stored entry cannot be parsed.
    #[error("corrupt session entry: {0}")]
    Corrupt(String),
    /// Any other error, as a message.
    #[error("{0}")]
    Failed(String),
}

impl From<PrivateFileError> for StoreError {
    fn from(error: PrivateFileError) -> Self {
        match error {
            PrivateFileError::WrongOwner { path } => Self::WrongOwner { path },
            PrivateFileError::Failed(why) => Self::Failed(why),
        }
    }
}

impl From<PostgresError> for StoreError {
    fn from(error: PostgresError) -> Self {
        match error {
            PostgresError::InvalidAddress(why) => Self::Failed(format!("invalid address: {why}")),
            PostgresError::Unavailable(why) => Self::Unavailable(why),
            PostgresError::Newer { found, known } => Self::Newer {
                path: "the database".to_owned(),
                theirs: found.into(),
                ours: known.into(),
            },
            PostgresError::Older { found, known } => Self::Older {
                theirs: found.into(),
                ours: known.into(),
            },
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<DriverError> for StoreError {
    fn from(error: DriverError) -> Self {
        PostgresError::from(error).into()
    }
}

impl From<StoreError> for acp::Error {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::NotFound(id) => {
                let missing = acp::jsonrpc::Error::resource_not_found(format!("session {id}"));
                Self::Rpc(missing.data(serde_json::json!({ "sessionId": id })))
            }
            StoreError::Cursor(_) => Self::invalid_params(text),
            _ => Self::internal(text),
        }
    }
}
