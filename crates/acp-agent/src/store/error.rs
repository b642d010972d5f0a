//! Errors of a session store.

use acp::v1::SessionId;

use crate::private_file::PrivateError;

/// An error of a session store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has changed the session.
    #[error("session {0} was changed by another process; load it again")]
    Conflict(SessionId),
    /// The session does not exist.
    #[error("session not found: {0}")]
    NotFound(SessionId),
    /// A session with this id already exists.
    #[error("session already exists: {0}")]
    Exists(SessionId),
    /// The cursor was not made by this store.
    #[error("invalid cursor: {0:?}")]
    Cursor(String),
    /// No space is left: the disk is full, or a limit is reached.
    #[error("session store full: {0}")]
    Full(String),
    /// Other processes have locked the store for too long.
    #[error("session store locked by another process: {0}")]
    Busy(String),
    /// The store was written by a newer version of this program.
    #[error(
        "{path} was written by a newer version of acp (format {theirs}; this version supports {ours})"
    )]
    Newer {
        /// The file.
        path: String,
        /// The format of the file.
        theirs: i64,
        /// The latest format that this program supports.
        ours: i64,
    },
    /// Another user could read or change the stored sessions.
    #[error("{path} belongs to another user; the session store must be private")]
    NotOurs {
        /// The directory, or a file in it.
        path: String,
    },
    /// A stored entry cannot be parsed.
    #[error("corrupt session entry: {0}")]
    Unreadable(String),
    /// Any other error, described by the text.
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
