//! What is done with the database: a function for each thing that a store can do.

use std::time::SystemTime;

use acp::v1::SessionId;
use rusqlite::{Connection, OptionalExtension, named_params, params};

use super::row::{COLUMNS, kept, lists, millis};
use crate::store::entry::{Entry, EntryKind};
use crate::store::error::StoreError;
use crate::store::kept::{Kept, Listed, Page, Properties, SessionFilter, Version, Which};
use crate::store::sqlite::failed::failed;

/// A session of the version that is expected.
struct Expected {
    key: i64,
    next: u64,
    version: Version,
}

fn expected(db: &Connection, id: &SessionId, version: Version) -> Result<Expected, StoreError> {
    let mut select = db
        .prepare_cached("SELECT key, next, version FROM session WHERE id = ?")
        .map_err(failed)?;
    let found = select
        .query_row([id.as_str()], |row| {
            Ok(Expected {
                key: row.get(0)?,
                next: row.get(1)?,
                version: Version(row.get(2)?),
            })
        })
        .optional()
        .map_err(failed)?
        .ok_or_else(|| StoreError::NotFound(id.clone()))?;
    if found.version != version {
        return Err(StoreError::Conflict(id.clone()));
    }
    Ok(found)
}

fn insert(db: &Connection, key: i64, from: u64, entries: &[Entry]) -> Result<(), StoreError> {
    let mut insert = db
        .prepare_cached("INSERT INTO entry (session, number, kind, body) VALUES (?, ?, ?, ?)")
        .map_err(failed)?;
    for (number, entry) in (from..).zip(entries) {
        insert
            .execute(params![key, number, entry.kind as i64, entry.body])
            .map_err(failed)?;
    }
    Ok(())
}

pub(super) fn create(
    db: &Connection,
    id: &SessionId,
    properties: &Properties,
) -> Result<Kept, StoreError> {
    let (directories, always, more) = lists(properties)?;
    let now = millis(SystemTime::now());
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
        .map_err(failed)?;
    if made == 0 {
        return Err(StoreError::Exists(id.clone()));
    }
    find(db, id)
}

pub(super) fn find(db: &Connection, id: &SessionId) -> Result<Kept, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM session WHERE id = ?");
    let mut select = db.prepare_cached(&sql).map_err(failed)?;
    let mut rows = select.query([id.as_str()]).map_err(failed)?;
    match rows.next().map_err(failed)? {
        Some(row) => kept(row),
        None => Err(StoreError::NotFound(id.clone())),
    }
}

pub(super) fn append(
    db: &Connection,
    id: &SessionId,
    version: Version,
    entries: &[Entry],
    properties: Option<&Properties>,
) -> Result<Version, StoreError> {
    let session = expected(db, id, version)?;
    insert(db, session.key, session.next, entries)?;
    let version = Version(version.0 + 1);
    let next = session.next + entries.len() as u64;
    let updated = (!entries.is_empty()).then(|| millis(SystemTime::now()));
    db.prepare_cached(
        "UPDATE session SET version = ?, next = ?, updated = coalesce(?, updated) WHERE key = ?",
    )
    .and_then(|mut update| update.execute(params![version.0, next, updated, session.key]))
    .map_err(failed)?;
    if let Some(properties) = properties {
        let (directories, always, more) = lists(properties)?;
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
        .map_err(failed)?;
    }
    Ok(version)
}

/// What finds these entries of a session, from a number on. The database leaves out the others before it has
/// their bodies in its hands. Whatever is of a kind that is not known is found by each: it is not to be passed
/// over.
fn selecting(which: Which) -> &'static str {
    match which {
        Which::All => {
            "SELECT number, kind, body FROM entry
             WHERE session = ? AND number >= ? ORDER BY number"
        }
        Which::Shown => {
            "SELECT number, kind, body FROM entry
             WHERE session = ? AND number >= ? AND kind NOT IN (3, 4) ORDER BY number"
        }
        Which::Messages => {
            "SELECT number, kind, body FROM entry
             WHERE session = ? AND number >= ? AND kind NOT IN (1, 2) ORDER BY number"
        }
    }
}

pub(super) fn read(
    db: &Connection,
    id: &SessionId,
    version: Version,
    which: Which,
    from: u64,
) -> Result<Page, StoreError> {
    let session = expected(db, id, version)?;
    let mut select = db.prepare_cached(selecting(which)).map_err(failed)?;
    let rows = select
        .query_map(params![session.key, from], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get(2)?))
        })
        .map_err(failed)?;
    let entries = rows.map(|row| {
        let (number, kind, body) = row.map_err(failed)?;
        let kind = EntryKind::of(kind)
            .ok_or_else(|| StoreError::Unreadable(format!("it is of an unknown kind, {kind}")))?;
        Ok((number, Entry { kind, body }))
    });
    Page::of(entries)
}

pub(super) fn fold(
    db: &Connection,
    id: &SessionId,
    version: Version,
    (from, to): (u64, u64),
    entries: &[Entry],
) -> Result<Version, StoreError> {
    let session = expected(db, id, version)?;
    if entries.len() as u64 > to.saturating_sub(from) || to > session.next {
        return Err(StoreError::Failed(
            "entries are folded into more than there were".to_owned(),
        ));
    }
    db.prepare_cached("DELETE FROM entry WHERE session = ? AND number >= ? AND number < ?")
        .and_then(|mut delete| delete.execute(params![session.key, from, to]))
        .map_err(failed)?;
    insert(db, session.key, from, entries)?;
    let version = Version(version.0 + 1);
    db.prepare_cached("UPDATE session SET version = ?, folded = ? WHERE key = ?")
        .and_then(|mut update| update.execute(params![version.0, to, session.key]))
        .map_err(failed)?;
    Ok(version)
}

pub(super) fn list(
    db: &Connection,
    filter: &SessionFilter,
    cursor: Option<&str>,
    most: usize,
) -> Result<Listed, StoreError> {
    let place = |cursor: &str| {
        let (updated, id) = cursor.split_once('-')?;
        Some((updated.parse::<i64>().ok()?, id.to_owned()))
    };
    let after = cursor
        .map(|cursor| place(cursor).ok_or_else(|| StoreError::Cursor(cursor.to_owned())))
        .transpose()?;
    let (updated, after) = after.unzip();
    let sql = format!(
        "SELECT {COLUMNS} FROM session
         WHERE next > 0 AND (:cwd IS NULL OR cwd = :cwd)
           AND (:archived IS NULL OR COALESCE(json_extract(more, '$.archived'), 0) = :archived)
           AND (:updated IS NULL OR updated < :updated OR (updated = :updated AND id > :after))
         ORDER BY updated DESC, id LIMIT :most"
    );
    let mut select = db.prepare_cached(&sql).map_err(failed)?;
    let limit = i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1);
    let mut rows = select
        .query(named_params! {":cwd": filter.cwd, ":archived": filter.archived, ":updated": updated, ":after": after, ":most": limit})
        .map_err(failed)?;
    let mut listed = Listed::default();
    while let Some(row) = rows.next().map_err(failed)? {
        if listed.sessions.len() == most {
            let last = listed.sessions.last();
            listed.cursor = last.map(|last| format!("{}-{}", millis(last.updated), last.id));
            break;
        }
        listed.sessions.push(kept(row)?);
    }
    Ok(listed)
}

pub(super) fn delete(db: &Connection, id: &SessionId) -> Result<(), StoreError> {
    let deleted = db.execute("DELETE FROM session WHERE id = ?", [id.as_str()]);
    match deleted.map_err(failed)? {
        0 => Err(StoreError::NotFound(id.clone())),
        _ => Ok(()),
    }
}
