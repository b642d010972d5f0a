//! Forks a stored session.

use acp::v1::SessionId;
use rusqlite::{Connection, params};

use super::statements::{create, find};
use crate::store::error::StoreError;
use crate::store::sqlite::error::store_error;
use crate::store::stored_session::{HistoryEnd, SessionProperties, StoredSession};

/// Copies a session inside the database, without reading its entries into memory.
pub(super) fn fork(
    db: &Connection,
    from: &SessionId,
    id: &SessionId,
    properties: &SessionProperties,
    end: Option<HistoryEnd>,
) -> Result<StoredSession, StoreError> {
    let original = find(db, from)?;
    if end.is_some_and(|end| end.revision != original.revision) {
        return Err(StoreError::Conflict(from.clone()));
    }
    let next = end.map_or(original.next_entry, |end| end.next_entry);
    let folded = original.folded_until.min(next);
    create(db, id, properties)?;
    db.execute(
        "UPDATE session SET next = ?, folded = ? WHERE id = ?",
        params![next, folded, id.as_str()],
    )
    .and_then(|_| {
        db.execute(
            "INSERT INTO entry (session, number, kind, body)
             SELECT (SELECT key FROM session WHERE id = ?), number, kind, body FROM entry
             WHERE session = (SELECT key FROM session WHERE id = ?) AND number < ?",
            params![id.as_str(), from.as_str(), next],
        )
    })
    .map_err(store_error)?;
    find(db, id)
}
