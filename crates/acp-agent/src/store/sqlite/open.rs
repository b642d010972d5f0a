//! Opens the database and creates its schema.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::private_file;
use crate::store::error::StoreError;
use crate::store::sqlite::error::store_error;

/// How long to wait for another process to release its lock on the database.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The statements that migrate each database format to the next. Never change released statements. Append new ones
/// instead.
const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE session (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    cwd TEXT NOT NULL,
    directories TEXT NOT NULL,
    title TEXT,
    mode TEXT NOT NULL,
    calls INTEGER NOT NULL,
    always TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 0,
    next INTEGER NOT NULL DEFAULT 0,
    folded INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX session_by_time ON session (updated DESC, id);
CREATE TABLE entry (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, number)
) STRICT;
",
    "
ALTER TABLE session ADD COLUMN more TEXT NOT NULL DEFAULT '{}';
",
];

/// The database format that this program uses.
const CURRENT_FORMAT: i64 = MIGRATIONS.len() as i64;

pub(super) fn open(directory: &Path) -> Result<Connection, StoreError> {
    let directory = private_file::make_private_dir(directory)?;
    let path = directory.join("sessions.db");
    // One process at a time sets up the database. The system releases the lock if the process dies.
    let lock = directory.join("sessions.lock");
    private_file::make_private_file(&lock)?;
    let locked = File::open(&lock).and_then(|lock| lock.lock().map(|()| lock));
    let locked = locked.map_err(|e| StoreError::Failed(format!("{}: {e}", lock.display())))?;
    // SQLite gives the files that it creates beside this one the same permissions.
    private_file::make_private_file(&path)?;
    for beside in ["sessions.db-wal", "sessions.db-shm", "sessions.db-journal"] {
        private_file::restrict_existing_file(&directory.join(beside))?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(&path, flags).map_err(store_error)?;
    // SQLite opens a file that it cannot write as read-only, and the first session would fail.
    if connection.is_readonly("main").map_err(store_error)? {
        let path = path.display();
        return Err(StoreError::Failed(format!("{path}: not writable")));
    }
    connection.busy_timeout(LOCK_TIMEOUT).map_err(store_error)?;
    // Some network drives do not support WAL. There the journal mode stays as it was, which is slower.
    connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .map_err(store_error)?;
    connection
        .pragma_update(None, "synchronous", "NORMAL")
        .map_err(store_error)?;
    connection
        .pragma_update(None, "foreign_keys", true)
        .map_err(store_error)?;
    connection.set_prepared_statement_cache_capacity(32);
    migrate(&mut connection, &path)?;
    drop(locked);
    Ok(connection)
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    // Usually, no migration is missing. In that case, this does not wait for another process that writes.
    if missing_migrations(connection, path)?.is_empty() {
        return Ok(());
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(store_error)?;
    // Check again: another process may have migrated the database meanwhile.
    let missing = missing_migrations(&transaction, path)?;
    for format in missing {
        transaction.execute_batch(format).map_err(store_error)?;
    }
    if !missing.is_empty() {
        transaction
            .pragma_update(None, "user_version", CURRENT_FORMAT)
            .map_err(store_error)?;
    }
    transaction.commit().map_err(store_error)
}

/// Returns the migration statements that the database still needs.
fn missing_migrations(
    connection: &Connection,
    path: &Path,
) -> Result<&'static [&'static str], StoreError> {
    let theirs: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(store_error)?;
    usize::try_from(theirs)
        .ok()
        .and_then(|at| MIGRATIONS.get(at..))
        .ok_or_else(|| StoreError::Newer {
            path: path.display().to_string(),
            theirs,
            ours: CURRENT_FORMAT,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_format_is_rejected_and_left_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path()).unwrap());
        let db = Connection::open(dir.path().join("sessions.db")).unwrap();
        db.pragma_update(None, "user_version", 7).unwrap();
        drop(db);
        let error = open(dir.path()).unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Newer {
                    theirs: 7,
                    ours: 2,
                    ..
                }
            ),
            "{error}"
        );
        assert!(error.to_string().contains("newer version"), "{error}");
    }

    #[test]
    fn older_format_is_migrated() {
        let dir = tempfile::tempdir().unwrap();
        let db = Connection::open(dir.path().join("sessions.db")).unwrap();
        db.execute_batch(MIGRATIONS[0]).unwrap();
        db.execute_batch(
            "INSERT INTO session (id, cwd, directories, mode, calls, always, created, updated)
             VALUES ('old', '/', '[]', 'ask', 3, '[]', 0, 0); PRAGMA user_version = 1;",
        )
        .unwrap();
        drop(db);
        let old =
            super::super::statements::find(&open(dir.path()).unwrap(), &"old".into()).unwrap();
        assert_eq!((old.properties.calls, old.properties.spent), (3, 0));
    }

    #[test]
    fn opening_without_migrations_does_not_wait_for_writers() {
        let dir = tempfile::tempdir().unwrap();
        let mut writing = open(dir.path()).unwrap();
        let transaction = writing
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .unwrap();
        // This would fail with `Busy` if it waited for the transaction.
        drop(open(dir.path()).unwrap());
        transaction.commit().unwrap();
    }

    #[test]
    fn reopened_database_is_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let db = open(dir.path()).unwrap();
            let pragma = |name| {
                db.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
                    .unwrap()
            };
            assert_eq!(pragma("user_version"), 2.into());
            assert_eq!(pragma("journal_mode"), "wal".to_owned().into());
            assert_eq!(pragma("synchronous"), 1.into());
            assert_eq!(pragma("foreign_keys"), 1.into());
        }
    }
}
