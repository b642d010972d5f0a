//! Sessions in an SQLite database.

mod fork;
mod open;
mod worker;

use std::path::Path;
use std::time::{Duration, SystemTime};

use acp::v1::SessionId;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, named_params, params};
use serde::{Deserialize, Serialize};

use self::worker::{Starting, Worker};
use super::{
    Entry, EntryKind, Kept, Listed, Page, Properties, SessionStore, StoreError, Stored, Version,
    Which,
};

/// Keeps sessions in a directory that is its user's alone.
///
/// Any number of processes may use one directory. What is kept survives the death of the process; the death of
/// the machine may take what was kept last, and never the rest.
#[derive(Debug)]
pub struct SqliteStore {
    worker: Worker,
}

impl SqliteStore {
    /// Opens the store in this directory; what is not there is made. Blocks for as long as that takes.
    ///
    /// # Errors
    /// The directory belongs to another user ([`StoreError::NotOurs`]), it was written by a newer version of
    /// this program ([`StoreError::Newer`]), or it cannot be read or written.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::begin(directory).wait()
    }

    /// Begins to [`open`](Self::open) the store, and returns at once: for a program that has something else to
    /// do meanwhile.
    #[must_use]
    pub fn begin(directory: impl AsRef<Path>) -> Opening {
        let directory = directory.as_ref().to_owned();
        Opening(Worker::start(move || open::open(&directory)))
    }
}

/// A store that is being opened.
#[derive(Debug)]
pub struct Opening(Starting);

impl Opening {
    /// The store. Blocks until it is open.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub fn wait(self) -> Result<SqliteStore, StoreError> {
        let worker = self.0.wait()?;
        Ok(SqliteStore { worker })
    }
}

/// An error of SQLite's.
fn failed(error: rusqlite::Error) -> StoreError {
    let text = format!("the sessions' database: {error}");
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(text),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy(text),
        _ => StoreError::Failed(text),
    }
}

/// Milliseconds since 1970.
fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

fn time(millis: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis.try_into().unwrap_or_default())
}

/// The columns of a session, in the order in which [`kept`] reads them.
const COLUMNS: &str = "id, cwd, directories, title, mode, calls, always, created, updated, version, next, folded, more";

fn kept(row: &Row<'_>) -> Result<Kept, StoreError> {
    let json = |column: usize| -> Result<String, StoreError> { row.get(column).map_err(failed) };
    fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|e| StoreError::Unreadable(e.to_string()))
    }
    let more: More = read(&json(12)?)?;
    let properties = Properties {
        cwd: row.get(1).map_err(failed)?,
        additional_directories: read(&json(2)?)?,
        title: row.get(3).map_err(failed)?,
        mode: row.get(4).map_err(failed)?,
        calls: row.get(5).map_err(failed)?,
        always: read(&json(6)?)?,
        spent: more.spent,
        model: more.model,
        thought_level: more.thought_level,
    };
    Ok(Kept {
        id: row.get::<_, String>(0).map_err(failed)?.into(),
        properties,
        created: time(row.get(7).map_err(failed)?),
        updated: time(row.get(8).map_err(failed)?),
        version: Version(row.get(9).map_err(failed)?),
        next: row.get(10).map_err(failed)?,
        folded: row.get(11).map_err(failed)?,
    })
}

/// Properties that nobody looks for: each by its name in one column, so that a further one is no new format.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct More {
    spent: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_level: Option<String>,
}

/// What of the properties is kept as JSON: the directories, the answers, and the rest.
fn lists(properties: &Properties) -> Result<(String, String, String), StoreError> {
    let write = |e: serde_json::Error| StoreError::Failed(format!("it cannot be written: {e}"));
    let directories = serde_json::to_string(&properties.additional_directories).map_err(write)?;
    let always = serde_json::to_string(&properties.always).map_err(write)?;
    let more = More {
        spent: properties.spent,
        model: properties.model.clone(),
        thought_level: properties.thought_level.clone(),
    };
    let more = serde_json::to_string(&more).map_err(write)?;
    Ok((directories, always, more))
}

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

fn create(db: &Connection, id: &SessionId, properties: &Properties) -> Result<Kept, StoreError> {
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

fn find(db: &Connection, id: &SessionId) -> Result<Kept, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM session WHERE id = ?");
    let mut select = db.prepare_cached(&sql).map_err(failed)?;
    let mut rows = select.query([id.as_str()]).map_err(failed)?;
    match rows.next().map_err(failed)? {
        Some(row) => kept(row),
        None => Err(StoreError::NotFound(id.clone())),
    }
}

fn append(
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

fn read(
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

fn fold(
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

fn list(
    db: &Connection,
    cwd: Option<&str>,
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
           AND (:updated IS NULL OR updated < :updated OR (updated = :updated AND id > :after))
         ORDER BY updated DESC, id LIMIT :most"
    );
    let mut select = db.prepare_cached(&sql).map_err(failed)?;
    let limit = i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1);
    let mut rows = select
        .query(named_params! {":cwd": cwd, ":updated": updated, ":after": after, ":most": limit})
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

fn delete(db: &Connection, id: &SessionId) -> Result<(), StoreError> {
    let deleted = db.execute("DELETE FROM session WHERE id = ?", [id.as_str()]);
    match deleted.map_err(failed)? {
        0 => Err(StoreError::NotFound(id.clone())),
        _ => Ok(()),
    }
}

impl SessionStore for SqliteStore {
    fn create(&self, id: SessionId, properties: Properties) -> Stored<'_, Kept> {
        Box::pin(self.worker.write(move |db| create(db, &id, &properties)))
    }

    fn fork(&self, from: SessionId, id: SessionId, properties: Properties) -> Stored<'_, Kept> {
        Box::pin(
            self.worker
                .write(move |db| fork::fork(db, &from, &id, &properties)),
        )
    }

    fn find(&self, id: SessionId) -> Stored<'_, Kept> {
        Box::pin(self.worker.read(move |db| find(db, &id)))
    }

    fn append(
        &self,
        id: SessionId,
        expected: Version,
        entries: Vec<Entry>,
        properties: Option<Properties>,
    ) -> Stored<'_, Version> {
        Box::pin(
            self.worker
                .write(move |db| append(db, &id, expected, &entries, properties.as_ref())),
        )
    }

    fn read(&self, id: SessionId, expected: Version, which: Which, from: u64) -> Stored<'_, Page> {
        Box::pin(
            self.worker
                .read(move |db| read(db, &id, expected, which, from)),
        )
    }

    fn fold(
        &self,
        id: SessionId,
        expected: Version,
        from: u64,
        to: u64,
        entries: Vec<Entry>,
    ) -> Stored<'_, Version> {
        Box::pin(
            self.worker
                .write(move |db| fold(db, &id, expected, (from, to), &entries)),
        )
    }

    fn list(&self, cwd: Option<String>, cursor: Option<String>, most: usize) -> Stored<'_, Listed> {
        Box::pin(
            self.worker
                .read(move |db| list(db, cwd.as_deref(), cursor.as_deref(), most)),
        )
    }

    fn delete(&self, id: SessionId) -> Stored<'_, ()> {
        Box::pin(self.worker.write(move |db| delete(db, &id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Entry {
        Entry::new(EntryKind::Message, text)
    }

    #[tokio::test]
    async fn a_full_disk_is_told_and_harms_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        let id = SessionId::from("s");
        let kept = store
            .create(id.clone(), Properties::default())
            .await
            .unwrap();
        let version = store.append(id.clone(), kept.version, vec![entry("kept")], None);
        let version = version.await.unwrap();
        // A database that may not grow is what a full disk is to SQLite.
        let room = |pages: i64| {
            store.worker.read(move |db| {
                let now: i64 = db
                    .pragma_query_value(None, "page_count", |row| row.get(0))
                    .unwrap();
                db.pragma_update_and_check(None, "max_page_count", now + pages, |_| Ok(()))
                    .map_err(failed)
            })
        };
        room(0).await.unwrap();
        let long = entry(&"x".repeat(100_000));
        let big = store.append(id.clone(), version, vec![entry("lost"), long.clone()], None);
        // In the same transaction, maybe; either way the one that fits is kept.
        let find = store.find(id.clone());
        let (big, found) = tokio::join!(big, find);
        assert!(matches!(big, Err(StoreError::Full(_))), "{big:?}");
        assert_eq!(found.unwrap().version, version);
        let page = store
            .read(id.clone(), version, Which::All, 0)
            .await
            .unwrap();
        assert_eq!(page.entries, [(0, entry("kept"))]);
        // It goes on as soon as there is room.
        room(1000).await.unwrap();
        let version = store
            .append(id.clone(), version, vec![long], None)
            .await
            .unwrap();
        let page = store.read(id, version, Which::All, 1).await.unwrap();
        assert_eq!(page.entries.len(), 1);
    }

    #[tokio::test]
    async fn what_is_of_an_unknown_kind_is_not_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        let id = SessionId::from("s");
        store
            .create(id.clone(), Properties::default())
            .await
            .unwrap();
        let version = store.append(id.clone(), Version(0), vec![entry("known")], None);
        let version = version.await.unwrap();
        let change = store.worker.write(|db| {
            db.execute("UPDATE entry SET kind = 9", [])
                .map_err(failed)
                .map(drop)
        });
        change.await.unwrap();
        for which in [Which::All, Which::Shown, Which::Messages] {
            let read = store.read(id.clone(), version, which, 0).await;
            assert!(
                matches!(&read, Err(StoreError::Unreadable(why)) if why.contains("kind, 9")),
                "{which:?}: {read:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_job_that_fails_takes_nothing_of_the_others_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        for id in ["a", "b"] {
            store
                .create(id.into(), Properties::default())
                .await
                .unwrap();
        }
        // While the thread waits, all of these gather for one transaction.
        let (go, wait) = std::sync::mpsc::channel();
        let held = store.worker.read(move |_| {
            wait.recv().unwrap();
            Ok(())
        });
        let append = |id: &'static str, version| {
            store.append(id.into(), Version(version), vec![entry(id)], None)
        };
        let all = async {
            tokio::join!(
                append("a", 0),
                append("a", 7),
                append("b", 0),
                append("c", 0),
                append("a", 1),
                async { go.send(()).unwrap() },
            )
        };
        let (held, (one, stale, two, missing, three, ())) = tokio::join!(held, all);
        held.unwrap();
        assert_eq!((one, three), (Ok(Version(1)), Ok(Version(2))));
        assert_eq!(stale, Err(StoreError::Conflict("a".into())));
        assert_eq!(two, Ok(Version(1)));
        assert_eq!(missing, Err(StoreError::NotFound("c".into())));
        let page = store
            .read("a".into(), Version(2), Which::All, 0)
            .await
            .unwrap();
        assert_eq!(page.entries.len(), 2);
    }
}
