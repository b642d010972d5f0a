//! Why a store did not do what it should.

use acp::v1::SessionId;

use crate::private_file::PrivateError;

/// Why a store did not do what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has gone on with the session.
    #[error("session {0} was changed by another process; load it again")]
    Conflict(SessionId),
    /// There is no such session.
    #[error("session not found: {0}")]
    NotFound(SessionId),
    /// There is such a session already.
    #[error("session already exists: {0}")]
    Exists(SessionId),
    /// The cursor is none that this store gave.
    #[error("invalid cursor: {0:?}")]
    Cursor(String),
    /// There is no room: the disk is full, or a limit is reached.
    #[error("session store full: {0}")]
    Full(String),
    /// Other processes have used the store without a pause for too long.
    #[error("session store locked by another process: {0}")]
    Busy(String),
    /// The store was written by a newer version of this program.
    #[error(
        "{path} was written by a newer version of acp (format {theirs}; this version supports {ours})"
    )]
    Newer {
        /// The file.
        path: String,
        /// The format it has.
        theirs: i64,
        /// The latest format that is known.
        ours: i64,
    },
    /// Someone else could read or change what is kept there.
    #[error("{path} belongs to another user; the session store must be private")]
    NotOurs {
        /// The directory, or a file in it.
        path: String,
    },
    /// What was kept cannot be understood.
    #[error("corrupt session entry: {0}")]
    Unreadable(String),
    /// Anything else; the text says what.
    #[error("{0}")]
    Failed(String),
}

impl From<PrivateError> for StoreError {
    fn from(error: PrivateError) -> Self {
        match error {
            PrivateError::NotOurs { path } => Self::NotOurs { path },
            PrivateError::Failed(why) => Self::Failed(why),
        }
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
