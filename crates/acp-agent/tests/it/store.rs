//! Tests session stores: the behavior that all stores share, and the additional behavior of the on-disk store.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use acp::v1::SessionId;
use acp_agent::store::{
    AlwaysAnswer, AlwaysSubject, EntryFilter, HistoryEnd, LazyStore, MemoryStore, PostgresStore,
    SessionFilter, SessionProperties, SessionRevision, SessionStore, SqliteStore, StoreEntry,
    StoreEntryKind, StoreError,
};
use acp_postgres::TestPostgres;

/// Runs the test with a store of each kind.
async fn run_on_each_store<F: AsyncFn(&dyn SessionStore)>(test: F) {
    test(&MemoryStore::new()).await;
    let dir = tempfile::tempdir().unwrap();
    test(&SqliteStore::open(dir.path()).unwrap()).await;
    test(&LazyStore::new(|| Ok(Arc::new(MemoryStore::new())))).await;
    if let Some(postgres) = TestPostgres::shared() {
        test(&PostgresStore::new(&postgres.new_database(), None).unwrap()).await;
    }
}

fn text_update_entry(text: impl Into<String>) -> StoreEntry {
    StoreEntry::new(StoreEntryKind::UpdateV1, text)
}

fn message_entry(text: &str) -> StoreEntry {
    StoreEntry::new(StoreEntryKind::Message, text)
}

fn properties_with_cwd(cwd: &str) -> SessionProperties {
    let mut properties = SessionProperties::default();
    properties.cwd = cwd.to_owned();
    properties
}

async fn create_session(
    store: &dyn SessionStore,
    id: &str,
    entries: Vec<StoreEntry>,
) -> (SessionId, SessionRevision) {
    let id = SessionId::from(id);
    let kept = store
        .create(id.clone(), properties_with_cwd("/work"))
        .await
        .unwrap();
    let version = store.append(id.clone(), kept.revision, entries, None);
    let version = version.await.unwrap();
    (id, version)
}

/// Returns all entries, page by page, and the number of pages.
async fn read_all(
    store: &dyn SessionStore,
    id: &SessionId,
    version: SessionRevision,
    which: EntryFilter,
) -> (Vec<(u64, StoreEntry)>, usize) {
    let (mut entries, mut pages, mut from) = (Vec::new(), 0, Some(0));
    while let Some(at) = from {
        let page = store.read(id.clone(), version, which, at).await.unwrap();
        pages += 1;
        entries.extend(page.entries);
        from = page.next;
    }
    (entries, pages)
}

#[tokio::test]
async fn session_stores_properties_and_entries() {
    run_on_each_store(async |store| {
        let id = SessionId::from("s");
        let mut properties = properties_with_cwd("/work");
        properties.additional_directories = vec!["/more".to_owned()];
        let kept = store.create(id.clone(), properties.clone()).await.unwrap();
        assert_eq!((&kept.properties, kept.next_entry), (&properties, 0));
        let again = store.create(id.clone(), properties.clone()).await;
        assert_eq!(again, Err(StoreError::Exists(id.clone())));

        properties.title = Some("Title".to_owned());
        properties.mode = "code".to_owned();
        properties.calls = 7;
        properties.always = vec![
            AlwaysAnswer::new(
                AlwaysSubject::Tool("edit".to_owned()),
                true,
                vec!["/w".to_owned()],
            ),
            AlwaysAnswer::new(
                AlwaysSubject::Command("rm -rf /".to_owned()),
                false,
                Vec::new(),
            ),
        ];
        let entries = vec![text_update_entry("\"a\""), message_entry("\"b\"")];
        let changed = store.append(id.clone(), kept.revision, entries, Some(properties.clone()));
        let version = changed.await.unwrap();
        let found = store.find(id.clone()).await.unwrap();
        assert_eq!(found.properties, properties);
        assert_eq!(
            (found.revision, found.next_entry, found.folded_until),
            (version, 2, 0)
        );
        assert!(found.updated_at >= found.created_at);
        let (entries, _) = read_all(store, &id, version, EntryFilter::All).await;
        assert_eq!(
            entries,
            [(0, text_update_entry("\"a\"")), (1, message_entry("\"b\""))]
        );

        store.delete(id.clone()).await.unwrap();
        let gone = StoreError::NotFound(id.clone());
        assert_eq!(store.find(id.clone()).await, Err(gone.clone()));
        assert_eq!(store.delete(id.clone()).await, Err(gone.clone()));
        let appended = store.append(id.clone(), version, Vec::new(), None).await;
        assert_eq!(appended, Err(gone));
    })
    .await;
}

#[tokio::test]
async fn write_with_an_outdated_revision_fails() {
    run_on_each_store(async |store| {
        let (id, old) = create_session(
            store,
            "s",
            vec![text_update_entry("1"), text_update_entry("2")],
        )
        .await;
        let new = store
            .append(id.clone(), old, vec![text_update_entry("3")], None)
            .await;
        let new = new.unwrap();
        let conflict = StoreError::Conflict(id.clone());
        let appended = store
            .append(id.clone(), old, vec![text_update_entry("4")], None)
            .await;
        assert_eq!(appended, Err(conflict.clone()));
        let folded = store
            .fold(id.clone(), old, 0, 2, vec![text_update_entry("12")])
            .await;
        assert_eq!(folded, Err(conflict.clone()));
        let read = store.read(id.clone(), old, EntryFilter::All, 0).await;
        assert_eq!(read, Err(conflict.clone()));
        let (entries, _) = read_all(store, &id, new, EntryFilter::All).await;
        assert_eq!(entries.len(), 3);
        // A reader also notices that another process has folded entries.
        let newer = store
            .fold(id.clone(), new, 0, 2, vec![text_update_entry("12")])
            .await;
        let read = store.read(id.clone(), new, EntryFilter::All, 2).await;
        assert_eq!(read, Err(conflict));
        let (entries, _) = read_all(store, &id, newer.unwrap(), EntryFilter::All).await;
        assert_eq!(
            entries,
            [(0, text_update_entry("12")), (2, text_update_entry("3"))]
        );
        assert_eq!(store.find(id).await.unwrap().folded_until, 2);
    })
    .await;
}

#[tokio::test]
async fn a_fork_can_end_before_an_entry() {
    run_on_each_store(async |store| {
        let entries = ["1", "2", "3", "4"].map(message_entry).to_vec();
        let (id, unfolded) = create_session(store, "s", entries).await;
        let version = store.fold(
            id.clone(),
            unfolded,
            0,
            3,
            vec![message_entry("12"), message_entry("3")],
        );
        let version = version.await.unwrap();
        let fork = |to: &str, end| {
            let properties = properties_with_cwd("/other");
            store.fork(id.clone(), to.into(), properties, Some(end))
        };
        for (to, end, folded, numbers) in [
            ("early", 1, 1, &[0][..]),
            ("folded", 3, 3, &[0, 1]),
            ("late", 4, 3, &[0, 1, 3]),
        ] {
            let forked = fork(to, HistoryEnd::new(version, end)).await.unwrap();
            assert_eq!(
                (forked.next_entry, forked.folded_until),
                (end, folded),
                "{to}"
            );
            let (read, _) = read_all(store, &forked.id, forked.revision, EntryFilter::All).await;
            let read: Vec<u64> = read.into_iter().map(|(number, _)| number).collect();
            assert_eq!(read, numbers, "{to}");
            // The session goes on from there.
            let more = vec![message_entry("more")];
            let more = store.append(forked.id.clone(), forked.revision, more, None);
            let (read, _) =
                read_all(store, &forked.id, more.await.unwrap(), EntryFilter::All).await;
            assert_eq!(read.last(), Some(&(end, message_entry("more"))), "{to}");
        }
        // The number of the entry had another meaning before the history was folded.
        let outdated = fork("outdated", HistoryEnd::new(unfolded, 1)).await;
        assert_eq!(outdated, Err(StoreError::Conflict(id.clone())));
        let properties = properties_with_cwd("/other");
        let missing = store.fork(
            "no".into(),
            "outdated".into(),
            properties,
            Some(HistoryEnd::new(version, 1)),
        );
        assert_eq!(missing.await, Err(StoreError::NotFound("no".into())));
        let created = store.find("outdated".into()).await;
        assert_eq!(created, Err(StoreError::NotFound("outdated".into())));
        let (whole, _) = read_all(store, &id, version, EntryFilter::All).await;
        assert_eq!(whole.len(), 3);
    })
    .await;
}

#[tokio::test]
async fn fork_copies_the_log_and_has_its_own_properties() {
    run_on_each_store(async |store| {
        let entries = vec![
            text_update_entry("1"),
            text_update_entry("2"),
            message_entry("3"),
        ];
        let (id, version) = create_session(store, "s", entries).await;
        let version = store.fold(id.clone(), version, 0, 2, vec![text_update_entry("12")]);
        let version = version.await.unwrap();
        let copy = SessionId::from("copy");
        let forked = store.fork(
            id.clone(),
            copy.clone(),
            properties_with_cwd("/other"),
            None,
        );
        let forked = forked.await.unwrap();
        assert_eq!(forked.properties, properties_with_cwd("/other"));
        assert_eq!((forked.next_entry, forked.folded_until), (3, 2));
        let whole = [(0, text_update_entry("12")), (2, message_entry("3"))];
        assert_eq!(
            read_all(store, &copy, forked.revision, EntryFilter::All)
                .await
                .0,
            whole
        );

        let again = store.fork(
            id.clone(),
            copy.clone(),
            properties_with_cwd("/other"),
            None,
        );
        assert_eq!(again.await, Err(StoreError::Exists(copy.clone())));
        let missing = store.fork(
            "no".into(),
            "new".into(),
            properties_with_cwd("/other"),
            None,
        );
        assert_eq!(missing.await, Err(StoreError::NotFound("no".into())));
        // Each session is changed independently of the other.
        let more = store.append(
            copy.clone(),
            forked.revision,
            vec![text_update_entry("4")],
            None,
        );
        more.await.unwrap();
        assert_eq!(
            read_all(store, &id, version, EntryFilter::All).await.0,
            whole
        );
        store.delete(id).await.unwrap();
        assert_eq!(store.find(copy).await.unwrap().next_entry, 4);
    })
    .await;
}

#[tokio::test]
async fn log_is_read_in_pages() {
    run_on_each_store(async |store| {
        let many: Vec<StoreEntry> = (0..1000)
            .map(|n| text_update_entry(n.to_string()))
            .collect();
        let (id, version) = create_session(store, "many", many).await;
        let (entries, pages) = read_all(store, &id, version, EntryFilter::All).await;
        assert_eq!((entries.len(), pages), (1000, 4));
        assert!(entries.iter().map(|(n, _)| *n).eq(0..1000));

        // The size is limited too. An entry that is too large for any page has a page of its own.
        let large = "x".repeat(600_000);
        let entries = vec![
            text_update_entry(large.clone()),
            message_entry(&large),
            text_update_entry("y".repeat(3_000_000)),
            text_update_entry(large),
        ];
        let (id, version) = create_session(store, "large", entries).await;
        assert_eq!(read_all(store, &id, version, EntryFilter::All).await.1, 4);
        let (messages, pages) = read_all(store, &id, version, EntryFilter::Messages).await;
        assert_eq!((messages.len(), messages[0].0, pages), (1, 1, 1));
        let (shown, _) = read_all(store, &id, version, EntryFilter::Updates).await;
        assert_eq!(shown.len(), 3);
    })
    .await;
}

#[tokio::test]
async fn sessions_are_listed_in_pages_newest_first() {
    run_on_each_store(async |store| {
        for n in 0..7 {
            let id = SessionId::from(format!("s{n}"));
            let cwd = if n == 3 { "/elsewhere" } else { "/work" };
            let kept = store
                .create(id.clone(), properties_with_cwd(cwd))
                .await
                .unwrap();
            // The last session has no entries.
            if n < 6 {
                let appended = store.append(id, kept.revision, vec![text_update_entry("1")], None);
                appended.await.unwrap();
            }
        }
        let list = async |cwd: Option<&str>, most| {
            let (mut ids, mut cursor, mut pages) = (Vec::new(), None, 0);
            loop {
                let listed = store
                    .list(
                        SessionFilter::default().cwd(cwd.map(str::to_owned)),
                        cursor,
                        most,
                    )
                    .await;
                let listed = listed.unwrap();
                assert!(
                    listed
                        .sessions
                        .is_sorted_by(|a, b| a.updated_at >= b.updated_at)
                );
                ids.extend(listed.sessions.iter().map(|kept| kept.id.to_string()));
                (cursor, pages) = (listed.cursor, pages + 1);
                if cursor.is_none() {
                    return (ids, pages);
                }
            }
        };
        for (most, expected) in [(1, 6), (2, 3), (4, 2), (6, 1), (99, 1)] {
            let (mut ids, pages) = list(None, most).await;
            assert_eq!(pages, expected, "{most}");
            ids.sort();
            assert_eq!(ids, ["s0", "s1", "s2", "s3", "s4", "s5"]);
        }
        assert_eq!(list(Some("/elsewhere"), 9).await.0, ["s3"]);
        assert_eq!(list(Some("/nowhere"), 9).await.0, [] as [String; 0]);
        let wrong = store
            .list(SessionFilter::default(), Some("x".to_owned()), 9)
            .await;
        assert_eq!(wrong, Err(StoreError::Cursor("x".to_owned())));
    })
    .await;
}

#[tokio::test]
async fn memory_store_is_bounded() {
    let store = MemoryStore::with_limit(100);
    let (id, version) = create_session(&store, "s", vec![text_update_entry("x".repeat(60))]).await;
    let more = store.append(
        id.clone(),
        version,
        vec![text_update_entry("x".repeat(60))],
        None,
    );
    assert!(matches!(more.await, Err(StoreError::Full(_))));
    let folded = store.fold(id.clone(), version, 0, 1, vec![text_update_entry("x")]);
    let version = folded.await.unwrap();
    let more = store.append(
        id.clone(),
        version,
        vec![text_update_entry("x".repeat(60))],
        None,
    );
    more.await.unwrap();
    let copied = store.fork(
        id.clone(),
        "copy".into(),
        SessionProperties::default(),
        None,
    );
    assert!(matches!(copied.await, Err(StoreError::Full(_))));
    store.delete(id).await.unwrap();
    create_session(&store, "t", vec![text_update_entry("x".repeat(99))]).await;
}

#[tokio::test]
async fn database_is_shared_and_survives_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("a").join("b");
    let store = SqliteStore::open(&dir).unwrap();
    let (id, version) = create_session(&store, "s", vec![text_update_entry("1")]).await;
    // Beside the first store.
    let other = SqliteStore::open(&dir).unwrap();
    assert_eq!(other.find(id.clone()).await.unwrap().revision, version);
    let next = other.append(id.clone(), version, vec![text_update_entry("2")], None);
    let next = next.await.unwrap();
    let stale = store.append(id.clone(), version, vec![text_update_entry("3")], None);
    assert_eq!(stale.await, Err(StoreError::Conflict(id.clone())));
    // And after both.
    drop((store, other));
    let store = SqliteStore::open(&dir).unwrap();
    let (entries, _) = read_all(&store, &id, next, EntryFilter::All).await;
    assert_eq!(
        entries,
        [(0, text_update_entry("1")), (1, text_update_entry("2"))]
    );
}

#[cfg(unix)]
fn file_mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
#[tokio::test]
async fn permissions_of_existing_files_are_restricted() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("sessions");
    let store = SqliteStore::open(&dir).unwrap();
    create_session(&store, "s", vec![text_update_entry("1")]).await;
    let files = ["sessions.db", "sessions.db-wal", "sessions.db-shm"].map(|file| dir.join(file));
    for file in &files {
        assert_eq!(file_mode(file), 0o600, "{}", file.display());
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o666)).unwrap();
    }
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
    // This works even while another process has the store open.
    let other = SqliteStore::open(&dir).unwrap();
    other.find("s".into()).await.unwrap();
    assert_eq!(file_mode(&dir), 0o700);
    for file in &files {
        assert_eq!(file_mode(file), 0o600, "{}", file.display());
    }
}

#[cfg(unix)]
#[test]
fn directory_of_another_user_is_rejected() {
    // This works for any user: root can change the owner of a directory, and all other users are not root.
    let dir = tempfile::tempdir().unwrap();
    let path = if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(dir.path(), Some(65534), Some(65534)).unwrap();
        dir.path().to_owned()
    } else {
        Path::new("/usr").to_owned()
    };
    let error = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::WrongOwner { .. }), "{error}");
    assert!(error.to_string().contains("another user"), "{error}");
    assert!(!path.join("sessions.db").exists());
}

#[cfg(unix)]
#[test]
fn planted_symlink_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    let sessions = dir.path().join("sessions");
    std::fs::create_dir(&sessions).unwrap();
    for file in ["sessions.lock", "sessions.db", "sessions.db-wal"] {
        std::os::unix::fs::symlink(&target, sessions.join(file)).unwrap();
        let error = SqliteStore::open(&sessions).unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
        assert!(!target.exists());
        std::fs::remove_file(sessions.join(file)).unwrap();
    }
    // The directory itself may be a symlink, because its user has chosen it.
    std::os::unix::fs::symlink(&sessions, dir.path().join("link")).unwrap();
    SqliteStore::open(dir.path().join("link")).unwrap();
}

#[test]
fn file_that_is_not_a_database_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sessions.db"), "x".repeat(5000)).unwrap();
    let error = SqliteStore::open(dir.path()).unwrap_err();
    assert!(error.to_string().contains("not a database"), "{error}");
    let file = dir.path().join("sessions.db");
    assert!(SqliteStore::open(&file).is_err());
}

#[tokio::test]
async fn lazy_store_is_opened_once_when_it_is_first_used() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let store = LazyStore::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::new(MemoryStore::new()))
    });
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    let find = |id: &str| store.find(SessionId::from(id));
    let (one, other) = tokio::join!(find("one"), find("other"));
    assert_eq!(one, Err(StoreError::NotFound("one".into())));
    assert_eq!(other, Err(StoreError::NotFound("other".into())));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn lazy_store_that_cannot_be_opened_is_tried_again_on_the_next_use() {
    let full = StoreError::Full("disk".to_owned());
    let mut results = vec![Ok(Arc::new(MemoryStore::new()) as _), Err(full.clone())];
    let results = Mutex::new(std::iter::from_fn(move || results.pop()));
    let store = LazyStore::new(move || results.lock().unwrap().next().unwrap());
    let create = || store.create("s".into(), properties_with_cwd("/work"));
    assert_eq!(create().await, Err(full));
    create().await.unwrap();
    store.find("s".into()).await.unwrap();
}
