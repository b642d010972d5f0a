//! Converts SQLite errors.

use rusqlite::ErrorCode;

use crate::store::error::StoreError;

/// Converts an SQLite error to an error of the store.
pub(super) fn store_error(error: rusqlite::Error) -> StoreError {
    let text = format!("session database: {error}");
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(text),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy(text),
        _ => StoreError::Failed(text),
    }
}
