//! The database statements: one function for each store operation.

use std::time::SystemTime;

use acp::v1::SessionId;
use rusqlite::{Connection, OptionalExtension, named_params, params};

use super::row::{SESSION_COLUMNS, json_columns, stored_session};
use crate::store::entry::{StoreEntry, StoreEntryKind};
use crate::store::error::StoreError;
use crate::store::list_cursor::{list_cursor, parse_list_cursor, to_millis};
use crate::store::sqlite::error::store_error;
use crate::store::stored_session::{
    EntryFilter, EntryPage, SessionFilter, SessionPage, SessionProperties, SessionRevision,
    StoredSession,
};

/// A session at its expected revision.
struct ExpectedSession {
    key: i64,
    next: u64,
    version: SessionRevision,
}

fn find_expected(
    db: &Connection,
    id: &SessionId,
    version: SessionRevision,
) -> Result<ExpectedSession, StoreError> {
    let mut select = db
        .prepare_cached("SELECT key, next, version FROM session WHERE id = ?")
        .map_err(store_error)?;
    let found = select
        .query_row([id.as_str()], |row| {
            Ok(ExpectedSession {
                key: row.get(0)?,
                next: row.get(1)?,
                version: SessionRevision(row.get(2)?),
            })
        })
        .optional()
        .map_err(store_error)?
        .ok_or_else(|| StoreError::NotFound(id.clone()))?;
    if found.version != version {
        return Err(StoreError::Conflict(id.clone()));
    }
    Ok(found)
}

fn insert_entries(
    db: &Connection,
    key: i64,
    from: u64,
    entries: &[StoreEntry],
) -> Result<(), StoreError> {
    let mut insert = db
        .prepare_cached("INSERT INTO entry (session, number, kind, body) VALUES (?, ?, ?, ?)")
        .map_err(store_error)?;
    for (number, entry) in (from..).zip(entries) {
        insert
            .execute(params![key, number, entry.kind as i64, entry.body])
            .map_err(store_error)?;
    }
    Ok(())
}

pub(super) fn create(
    db: &Connection,
    id: &SessionId,
    properties: &SessionProperties,
) -> Result<StoredSession, StoreError> {
    let (directories, always, more) = json_columns(properties)?;
    let now = to_millis(SystemTime::now());
    let made = db
        .execute(
            "INSERT INTO session (id, cwd, directories, title, mode, calls, always, created, updated, more)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            params![
                id.as_str(),
                properties.cwd,
                directories,
                properties.title,
                properties.mode,
                properties.calls,
                always,
                now,
                now,
                more
            ],
        )
        .map_err(store_error)?;
    if made == 0 {
        return Err(StoreError::Exists(id.clone()));
    }
    find(db, id)
}

pub(super) fn find(db: &Connection, id: &SessionId) -> Result<StoredSession, StoreError> {
    let sql = format!("SELECT {SESSION_COLUMNS} FROM session WHERE id = ?");
    let mut select = db.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = select.query([id.as_str()]).map_err(store_error)?;
    match rows.next().map_err(store_error)? {
        Some(row) => stored_session(row),
        None => Err(StoreError::NotFound(id.clone())),
    }
}

pub(super) fn append(
    db: &Connection,
    id: &SessionId,
    version: SessionRevision,
    entries: &[StoreEntry],
    properties: Option<&SessionProperties>,
) -> Result<SessionRevision, StoreError> {
    let session = find_expected(db, id, version)?;
    insert_entries(db, session.key, session.next, entries)?;
    let version = SessionRevision(version.0 + 1);
    let next = session.next + entries.len() as u64;
    let updated = (!entries.is_empty()).then(|| to_millis(SystemTime::now()));
    db.prepare_cached(
        "UPDATE session SET version = ?, next = ?, updated = coalesce(?, updated) WHERE key = ?",
    )
    .and_then(|mut update| update.execute(params![version.0, next, updated, session.key]))
    .map_err(store_error)?;
    if let Some(properties) = properties {
        let (directories, always, more) = json_columns(properties)?;
        db.prepare_cached(
            "UPDATE session SET cwd = ?, directories = ?, title = ?, mode = ?, calls = ?, always = ?, more = ?
             WHERE key = ?",
        )
        .and_then(|mut update| {
            update.execute(params![
                properties.cwd,
                directories,
                properties.title,
                properties.mode,
                properties.calls,
                always,
                more,
                session.key
            ])
        })
        .map_err(store_error)?;
    }
    Ok(version)
}

/// Returns the statement that selects a session's entries, starting at a given number. The statement does the
/// filtering, so that other entries are not read. It always selects entries of unknown kinds, because they must be
/// reported rather than skipped.
fn select_statement(which: EntryFilter) -> &'static str {
    match which {
        EntryFilter::All => {
            "SELECT number, kind, body FROM entry
             WHERE session = ? AND number >= ? ORDER BY number"
        }
        EntryFilter::Updates => {
            "SELECT number, kind, body FROM entry
             WHERE session = ? AND number >= ? AND kind NOT IN (3, 4) ORDER BY number"
        }
        EntryFilter::Messages => {
            "SELECT number, kind, body FROM entry
             WHERE session = ? AND number >= ? AND kind NOT IN (1, 2) ORDER BY number"
        }
    }
}

pub(super) fn read(
    db: &Connection,
    id: &SessionId,
    version: SessionRevision,
    which: EntryFilter,
    from: u64,
) -> Result<EntryPage, StoreError> {
    let session = find_expected(db, id, version)?;
    let mut select = db
        .prepare_cached(select_statement(which))
        .map_err(store_error)?;
    let rows = select
        .query_map(params![session.key, from], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get(2)?))
        })
        .map_err(store_error)?;
    let entries = rows.map(|row| {
        let (number, kind, body) = row.map_err(store_error)?;
        let kind = StoreEntryKind::from_number(kind)
            .ok_or_else(|| StoreError::Corrupt(format!("unknown entry kind {kind}")))?;
        Ok((number, StoreEntry { kind, body }))
    });
    EntryPage::from_entries(entries)
}

pub(super) fn fold(
    db: &Connection,
    id: &SessionId,
    version: SessionRevision,
    (from, to): (u64, u64),
    entries: &[StoreEntry],
) -> Result<SessionRevision, StoreError> {
    let session = find_expected(db, id, version)?;
    if entries.len() as u64 > to.saturating_sub(from) || to > session.next {
        return Err(StoreError::Failed(
            "folding would increase the number of entries".to_owned(),
        ));
    }
    db.prepare_cached("DELETE FROM entry WHERE session = ? AND number >= ? AND number < ?")
        .and_then(|mut delete| delete.execute(params![session.key, from, to]))
        .map_err(store_error)?;
    insert_entries(db, session.key, from, entries)?;
    let version = SessionRevision(version.0 + 1);
    db.prepare_cached("UPDATE session SET version = ?, folded = ? WHERE key = ?")
        .and_then(|mut update| update.execute(params![version.0, to, session.key]))
        .map_err(store_error)?;
    Ok(version)
}

pub(super) fn list(
    db: &Connection,
    filter: &SessionFilter,
    cursor: Option<&str>,
    most: usize,
) -> Result<SessionPage, StoreError> {
    let after = cursor.map(parse_list_cursor).transpose()?;
    let (updated, after) = after.unzip();
    let sql = format!(
        "SELECT {SESSION_COLUMNS} FROM session
         WHERE next > 0 AND (:cwd IS NULL OR cwd = :cwd)
           AND (:archived IS NULL OR COALESCE(json_extract(more, '$.archived'), 0) = :archived)
           AND (:updated IS NULL OR updated < :updated OR (updated = :updated AND id > :after))
         ORDER BY updated DESC, id LIMIT :most"
    );
    let mut select = db.prepare_cached(&sql).map_err(store_error)?;
    let limit = i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1);
    let mut rows = select
        .query(named_params! {":cwd": filter.cwd, ":archived": filter.archived, ":updated": updated, ":after": after, ":most": limit})
        .map_err(store_error)?;
    let mut listed = SessionPage::default();
    while let Some(row) = rows.next().map_err(store_error)? {
        if listed.sessions.len() == most {
            listed.cursor = listed.sessions.last().map(list_cursor);
            break;
        }
        listed.sessions.push(stored_session(row)?);
    }
    Ok(listed)
}

pub(super) fn delete(db: &Connection, id: &SessionId) -> Result<(), StoreError> {
    let deleted = db.execute("DELETE FROM session WHERE id = ?", [id.as_str()]);
    match deleted.map_err(store_error)? {
        0 => Err(StoreError::NotFound(id.clone())),
        _ => Ok(()),
    }
}
