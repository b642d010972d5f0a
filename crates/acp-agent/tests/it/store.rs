//! Stores of sessions: what every store does, and what the one on disk does besides.

use std::path::Path;

use acp::v1::SessionId;
use acp_agent::store::{
    AlwaysAnswer, AlwaysSubject, EntryFilter, MemoryStore, SessionFilter, SessionProperties,
    SessionRevision, SessionStore, SqliteStore, StoreEntry, StoreEntryKind, StoreError,
};

/// Does the same with a store of each kind.
async fn each<F: AsyncFn(&dyn SessionStore)>(test: F) {
    test(&MemoryStore::new()).await;
    let dir = tempfile::tempdir().unwrap();
    test(&SqliteStore::open(dir.path()).unwrap()).await;
}

fn shown(text: impl Into<String>) -> StoreEntry {
    StoreEntry::new(StoreEntryKind::UpdateV1, text)
}

fn message(text: &str) -> StoreEntry {
    StoreEntry::new(StoreEntryKind::Message, text)
}

fn properties(cwd: &str) -> SessionProperties {
    let mut properties = SessionProperties::default();
    properties.cwd = cwd.to_owned();
    properties
}

async fn session(
    store: &dyn SessionStore,
    id: &str,
    entries: Vec<StoreEntry>,
) -> (SessionId, SessionRevision) {
    let id = SessionId::from(id);
    let kept = store.create(id.clone(), properties("/work")).await.unwrap();
    let version = store.append(id.clone(), kept.revision, entries, None);
    let version = version.await.unwrap();
    (id, version)
}

/// All entries, page by page, with the number of pages.
async fn all(
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
async fn a_session_has_its_properties_and_its_log() {
    each(async |store| {
        let id = SessionId::from("s");
        let mut properties = properties("/work");
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
        let entries = vec![shown("\"a\""), message("\"b\"")];
        let changed = store.append(id.clone(), kept.revision, entries, Some(properties.clone()));
        let version = changed.await.unwrap();
        let found = store.find(id.clone()).await.unwrap();
        assert_eq!(found.properties, properties);
        assert_eq!(
            (found.revision, found.next_entry, found.folded_until),
            (version, 2, 0)
        );
        assert!(found.updated_at >= found.created_at);
        let (entries, _) = all(store, &id, version, EntryFilter::All).await;
        assert_eq!(entries, [(0, shown("\"a\"")), (1, message("\"b\""))]);

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
async fn who_does_not_know_the_latest_version_changes_nothing() {
    each(async |store| {
        let (id, old) = session(store, "s", vec![shown("1"), shown("2")]).await;
        let new = store.append(id.clone(), old, vec![shown("3")], None).await;
        let new = new.unwrap();
        let conflict = StoreError::Conflict(id.clone());
        let appended = store.append(id.clone(), old, vec![shown("4")], None).await;
        assert_eq!(appended, Err(conflict.clone()));
        let folded = store.fold(id.clone(), old, 0, 2, vec![shown("12")]).await;
        assert_eq!(folded, Err(conflict.clone()));
        let read = store.read(id.clone(), old, EntryFilter::All, 0).await;
        assert_eq!(read, Err(conflict.clone()));
        let (entries, _) = all(store, &id, new, EntryFilter::All).await;
        assert_eq!(entries.len(), 3);
        // Also who has folded is noticed by who reads meanwhile.
        let newer = store.fold(id.clone(), new, 0, 2, vec![shown("12")]).await;
        let read = store.read(id.clone(), new, EntryFilter::All, 2).await;
        assert_eq!(read, Err(conflict));
        let (entries, _) = all(store, &id, newer.unwrap(), EntryFilter::All).await;
        assert_eq!(entries, [(0, shown("12")), (2, shown("3"))]);
        assert_eq!(store.find(id).await.unwrap().folded_until, 2);
    })
    .await;
}

#[tokio::test]
async fn a_copy_has_all_of_the_log_and_properties_of_its_own() {
    each(async |store| {
        let entries = vec![shown("1"), shown("2"), message("3")];
        let (id, version) = session(store, "s", entries).await;
        let version = store.fold(id.clone(), version, 0, 2, vec![shown("12")]);
        let version = version.await.unwrap();
        let copy = SessionId::from("copy");
        let forked = store.fork(id.clone(), copy.clone(), properties("/other"));
        let forked = forked.await.unwrap();
        assert_eq!(forked.properties, properties("/other"));
        assert_eq!((forked.next_entry, forked.folded_until), (3, 2));
        let whole = [(0, shown("12")), (2, message("3"))];
        assert_eq!(
            all(store, &copy, forked.revision, EntryFilter::All).await.0,
            whole
        );

        let again = store.fork(id.clone(), copy.clone(), properties("/other"));
        assert_eq!(again.await, Err(StoreError::Exists(copy.clone())));
        let missing = store.fork("no".into(), "new".into(), properties("/other"));
        assert_eq!(missing.await, Err(StoreError::NotFound("no".into())));
        // Each is changed without the other.
        let more = store.append(copy.clone(), forked.revision, vec![shown("4")], None);
        more.await.unwrap();
        assert_eq!(all(store, &id, version, EntryFilter::All).await.0, whole);
        store.delete(id).await.unwrap();
        assert_eq!(store.find(copy).await.unwrap().next_entry, 4);
    })
    .await;
}

#[tokio::test]
async fn a_log_is_read_in_pages() {
    each(async |store| {
        let many: Vec<StoreEntry> = (0..1000).map(|n| shown(n.to_string())).collect();
        let (id, version) = session(store, "many", many).await;
        let (entries, pages) = all(store, &id, version, EntryFilter::All).await;
        assert_eq!((entries.len(), pages), (1000, 4));
        assert!(entries.iter().map(|(n, _)| *n).eq(0..1000));

        // By their size, too; one that is too large for any page has one of its own.
        let large = "x".repeat(600_000);
        let entries = vec![
            shown(large.clone()),
            message(&large),
            shown("y".repeat(3_000_000)),
            shown(large),
        ];
        let (id, version) = session(store, "large", entries).await;
        assert_eq!(all(store, &id, version, EntryFilter::All).await.1, 4);
        let (messages, pages) = all(store, &id, version, EntryFilter::Messages).await;
        assert_eq!((messages.len(), messages[0].0, pages), (1, 1, 1));
        let (shown, _) = all(store, &id, version, EntryFilter::Updates).await;
        assert_eq!(shown.len(), 3);
    })
    .await;
}

#[tokio::test]
async fn sessions_are_listed_page_by_page_the_newest_first() {
    each(async |store| {
        for n in 0..7 {
            let id = SessionId::from(format!("s{n}"));
            let cwd = if n == 3 { "/elsewhere" } else { "/work" };
            let kept = store.create(id.clone(), properties(cwd)).await.unwrap();
            // Nothing was ever said in the last one.
            if n < 6 {
                let appended = store.append(id, kept.revision, vec![shown("1")], None);
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
async fn memory_is_bounded() {
    let store = MemoryStore::with_limit(100);
    let (id, version) = session(&store, "s", vec![shown("x".repeat(60))]).await;
    let more = store.append(id.clone(), version, vec![shown("x".repeat(60))], None);
    assert!(matches!(more.await, Err(StoreError::Full(_))));
    let folded = store.fold(id.clone(), version, 0, 1, vec![shown("x")]);
    let version = folded.await.unwrap();
    let more = store.append(id.clone(), version, vec![shown("x".repeat(60))], None);
    more.await.unwrap();
    let copied = store.fork(id.clone(), "copy".into(), SessionProperties::default());
    assert!(matches!(copied.await, Err(StoreError::Full(_))));
    store.delete(id).await.unwrap();
    session(&store, "t", vec![shown("x".repeat(99))]).await;
}

#[tokio::test]
async fn what_is_on_disk_is_there_for_the_next_and_for_others() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("a").join("b");
    let store = SqliteStore::open(&dir).unwrap();
    let (id, version) = session(&store, "s", vec![shown("1")]).await;
    // Beside the first one.
    let other = SqliteStore::open(&dir).unwrap();
    assert_eq!(other.find(id.clone()).await.unwrap().revision, version);
    let next = other.append(id.clone(), version, vec![shown("2")], None);
    let next = next.await.unwrap();
    let stale = store.append(id.clone(), version, vec![shown("3")], None);
    assert_eq!(stale.await, Err(StoreError::Conflict(id.clone())));
    // And after them.
    drop((store, other));
    let store = SqliteStore::open(&dir).unwrap();
    let (entries, _) = all(&store, &id, next, EntryFilter::All).await;
    assert_eq!(entries, [(0, shown("1")), (1, shown("2"))]);
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
#[tokio::test]
async fn what_was_open_to_others_is_closed_to_them() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("sessions");
    let store = SqliteStore::open(&dir).unwrap();
    session(&store, "s", vec![shown("1")]).await;
    let files = ["sessions.db", "sessions.db-wal", "sessions.db-shm"].map(|file| dir.join(file));
    for file in &files {
        assert_eq!(mode(file), 0o600, "{}", file.display());
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o666)).unwrap();
    }
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
    // Also while another one has it open.
    let other = SqliteStore::open(&dir).unwrap();
    other.find("s".into()).await.unwrap();
    assert_eq!(mode(&dir), 0o700);
    for file in &files {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
}

#[cfg(unix)]
#[test]
fn another_users_directory_is_refused() {
    // Whoever runs this: root can give a directory away, and all others are not root.
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
fn a_link_that_lies_in_wait_is_not_followed() {
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
    // The directory itself may be one: that is its user's choice.
    std::os::unix::fs::symlink(&sessions, dir.path().join("link")).unwrap();
    SqliteStore::open(dir.path().join("link")).unwrap();
}

#[test]
fn what_is_no_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sessions.db"), "x".repeat(5000)).unwrap();
    let error = SqliteStore::open(dir.path()).unwrap_err();
    assert!(error.to_string().contains("not a database"), "{error}");
    let file = dir.path().join("sessions.db");
    assert!(SqliteStore::open(&file).is_err());
}
