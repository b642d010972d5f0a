//! Implements a session store in an SQLite database.

mod error;
mod fork;
mod open;
mod row;
mod statements;
mod worker;

use std::path::Path;

use acp::v1::SessionId;

use self::worker::SqliteWorker;
use super::entry::StoreEntry;
use super::error::StoreError;
use super::session_store::{SessionStore, StoreFuture};
use super::stored_session::{
    EntryFilter, EntryPage, HistoryEnd, SessionFilter, SessionPage, SessionProperties,
    SessionRevision, StoredSession,
};
use crate::private_file;

/// A session store in a database, in a directory that only the user can access.
///
/// Any number of processes can use one directory. Stored data survives a crash of the process. A crash of the machine
/// may lose the latest changes, but never anything older.
#[derive(Debug)]
pub struct SqliteStore {
    worker: SqliteWorker,
}

impl SqliteStore {
    /// Opens the store in this directory, and creates it if it does not exist. Blocks until the store is open.
    ///
    /// # Errors
    /// The directory belongs to another user ([`StoreError::WrongOwner`]), it was written by a newer version of
    /// this program ([`StoreError::Newer`]), or it cannot be read or written.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, StoreError> {
        let directory = directory.as_ref().to_owned();
        let worker = SqliteWorker::start(move || open::open(&directory))?;
        Ok(Self { worker })
    }

    /// Creates the directory of a store if it does not exist, and makes it accessible only to the user. Finds most of
    /// the problems that [`open`](Self::open) would find, in much less time.
    ///
    /// # Errors
    /// The directory cannot be created, or it belongs to another user ([`StoreError::WrongOwner`]).
    pub fn prepare_directory(directory: impl AsRef<Path>) -> Result<(), StoreError> {
        private_file::make_private_dir(directory.as_ref())?;
        Ok(())
    }
}

impl SessionStore for SqliteStore {
    fn create(
        &self,
        id: SessionId,
        properties: SessionProperties,
    ) -> StoreFuture<'_, StoredSession> {
        Box::pin(
            self.worker
                .write(move |db| statements::create(db, &id, &properties)),
        )
    }

    fn fork(
        &self,
        from: SessionId,
        id: SessionId,
        properties: SessionProperties,
        end: Option<HistoryEnd>,
    ) -> StoreFuture<'_, StoredSession> {
        Box::pin(
            self.worker
                .write(move |db| fork::fork(db, &from, &id, &properties, end)),
        )
    }

    fn find(&self, id: SessionId) -> StoreFuture<'_, StoredSession> {
        Box::pin(self.worker.read(move |db| statements::find(db, &id)))
    }

    fn append(
        &self,
        id: SessionId,
        expected: SessionRevision,
        entries: Vec<StoreEntry>,
        properties: Option<SessionProperties>,
    ) -> StoreFuture<'_, SessionRevision> {
        Box::pin(
            self.worker.write(move |db| {
                statements::append(db, &id, expected, &entries, properties.as_ref())
            }),
        )
    }

    fn read(
        &self,
        id: SessionId,
        expected: SessionRevision,
        which: EntryFilter,
        from: u64,
    ) -> StoreFuture<'_, EntryPage> {
        Box::pin(
            self.worker
                .read(move |db| statements::read(db, &id, expected, which, from)),
        )
    }

    fn fold(
        &self,
        id: SessionId,
        expected: SessionRevision,
        from: u64,
        to: u64,
        entries: Vec<StoreEntry>,
    ) -> StoreFuture<'_, SessionRevision> {
        Box::pin(
            self.worker
                .write(move |db| statements::fold(db, &id, expected, (from, to), &entries)),
        )
    }

    fn list(
        &self,
        filter: SessionFilter,
        cursor: Option<String>,
        most: usize,
    ) -> StoreFuture<'_, SessionPage> {
        Box::pin(
            self.worker
                .read(move |db| statements::list(db, &filter, cursor.as_deref(), most)),
        )
    }

    fn delete(&self, id: SessionId) -> StoreFuture<'_, ()> {
        Box::pin(self.worker.write(move |db| statements::delete(db, &id)))
    }
}

#[cfg(test)]
mod tests {
    use super::error::store_error;
    use super::*;
    use crate::store::entry::StoreEntryKind;

    fn text_entry(text: &str) -> StoreEntry {
        StoreEntry::new(StoreEntryKind::Message, text)
    }

    #[tokio::test]
    async fn full_disk_is_reported_without_data_loss() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        let id = SessionId::from("s");
        let kept = store
            .create(id.clone(), SessionProperties::default())
            .await
            .unwrap();
        let version = store.append(id.clone(), kept.revision, vec![text_entry("kept")], None);
        let version = version.await.unwrap();
        // For SQLite, a database that must not grow is the same as a full disk.
        let room = |pages: i64| {
            store.worker.read(move |db| {
                let now: i64 = db
                    .pragma_query_value(None, "page_count", |row| row.get(0))
                    .unwrap();
                db.pragma_update_and_check(None, "max_page_count", now + pages, |_| Ok(()))
                    .map_err(store_error)
            })
        };
        room(0).await.unwrap();
        let long = text_entry(&"x".repeat(100_000));
        let big = store.append(
            id.clone(),
            version,
            vec![text_entry("lost"), long.clone()],
            None,
        );
        // `find` may run in the same transaction. In either case, the earlier revision must remain.
        let find = store.find(id.clone());
        let (big, found) = tokio::join!(big, find);
        assert!(matches!(big, Err(StoreError::Full(_))), "{big:?}");
        assert_eq!(found.unwrap().revision, version);
        let page = store
            .read(id.clone(), version, EntryFilter::All, 0)
            .await
            .unwrap();
        assert_eq!(page.entries, [(0, text_entry("kept"))]);
        // The store works again once there is space.
        room(1000).await.unwrap();
        let version = store
            .append(id.clone(), version, vec![long], None)
            .await
            .unwrap();
        let page = store.read(id, version, EntryFilter::All, 1).await.unwrap();
        assert_eq!(page.entries.len(), 1);
    }

    #[tokio::test]
    async fn unknown_entry_kind_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        let id = SessionId::from("s");
        store
            .create(id.clone(), SessionProperties::default())
            .await
            .unwrap();
        let version = store.append(
            id.clone(),
            SessionRevision(0),
            vec![text_entry("known")],
            None,
        );
        let version = version.await.unwrap();
        let change = store.worker.write(|db| {
            db.execute("UPDATE entry SET kind = 9", [])
                .map_err(store_error)
                .map(drop)
        });
        change.await.unwrap();
        for which in [
            EntryFilter::All,
            EntryFilter::Updates,
            EntryFilter::Messages,
        ] {
            let read = store.read(id.clone(), version, which, 0).await;
            assert!(
                matches!(&read, Err(StoreError::Corrupt(why)) if why.contains("kind 9")),
                "{which:?}: {read:?}"
            );
        }
    }

    #[tokio::test]
    async fn failed_job_does_not_affect_other_jobs() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        for id in ["a", "b"] {
            store
                .create(id.into(), SessionProperties::default())
                .await
                .unwrap();
        }
        // While the thread is blocked, all of these jobs are gathered in one transaction.
        let (go, wait) = std::sync::mpsc::channel();
        let held = store.worker.read(move |_| {
            wait.recv().unwrap();
            Ok(())
        });
        let append = |id: &'static str, version| {
            store.append(
                id.into(),
                SessionRevision(version),
                vec![text_entry(id)],
                None,
            )
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
        assert_eq!(
            (one, three),
            (Ok(SessionRevision(1)), Ok(SessionRevision(2)))
        );
        assert_eq!(stale, Err(StoreError::Conflict("a".into())));
        assert_eq!(two, Ok(SessionRevision(1)));
        assert_eq!(missing, Err(StoreError::NotFound("c".into())));
        let page = store
            .read("a".into(), SessionRevision(2), EntryFilter::All, 0)
            .await
            .unwrap();
        assert_eq!(page.entries.len(), 2);
    }
}
