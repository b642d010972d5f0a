//! Tests the session store in PostgreSQL: what it does in addition to the behavior that all stores share.

use std::sync::Arc;

use acp::v1::SessionId;
use acp_agent::store::{
    EntryFilter, PostgresStore, SessionFilter, SessionProperties, SessionRevision, SessionStore,
    StoreEntry, StoreEntryKind, StoreError,
};
use acp_postgres::{PostgresServer, TestPostgres};

fn entry(text: &str) -> StoreEntry {
    StoreEntry::new(StoreEntryKind::Message, text)
}

fn open(url: &str) -> PostgresStore {
    PostgresStore::new(url, None).unwrap()
}

async fn bodies(store: &PostgresStore, id: &SessionId, revision: SessionRevision) -> Vec<String> {
    let page = store.read(id.clone(), revision, EntryFilter::All, 0).await;
    let entries = page.unwrap().entries.into_iter();
    entries.map(|(_, entry)| entry.body).collect()
}

#[tokio::test]
async fn database_is_shared_by_agents_that_start_at_once() {
    let Some(postgres) = TestPostgres::shared() else {
        return;
    };
    let url = postgres.new_database();
    let stores: Vec<PostgresStore> = (0..8).map(|_| open(&url)).collect();
    let created = stores.iter().enumerate().map(|(n, store)| {
        let id = SessionId::from(format!("s{n}"));
        store.create(id, SessionProperties::default())
    });
    for created in futures_util::future::join_all(created).await {
        created.unwrap();
    }
    let id = SessionId::from("s0");
    let appends = stores
        .iter()
        .map(|store| store.append(id.clone(), SessionRevision(0), vec![entry("1")], None));
    let appends = futures_util::future::join_all(appends).await;
    let (changed, rejected): (Vec<_>, Vec<_>) = appends.into_iter().partition(Result::is_ok);
    assert_eq!(changed, [Ok(SessionRevision(1))]);
    assert_eq!(rejected, vec![Err(StoreError::Conflict(id.clone())); 7]);
    for store in &stores {
        assert_eq!(bodies(store, &id, SessionRevision(1)).await, ["1"]);
    }
    let summary = PostgresStore::summary(&url, None).await.unwrap().unwrap();
    assert_eq!((summary.version, summary.sessions), (1, 8));
}

#[tokio::test]
async fn changes_wait_while_the_database_restarts_and_are_made_once() {
    let Some(postgres) = TestPostgres::start("-c fsync=off").map(Arc::new) else {
        return;
    };
    let store = open(&postgres.new_database());
    let id = SessionId::from("s");
    let created = store.create(id.clone(), SessionProperties::default());
    created.await.unwrap();
    let server = Arc::clone(&postgres);
    let restart = tokio::task::spawn_blocking(move || {
        server.crash();
        server.run();
    });
    let changes = async {
        let mut revision = SessionRevision(0);
        while !restart.is_finished() {
            let number = revision.0.to_string();
            let appended = store.append(id.clone(), revision, vec![entry(&number)], None);
            revision = appended.await.unwrap();
        }
        revision
    };
    let revision = changes.await;
    let found = store.find(id.clone()).await.unwrap();
    assert_eq!((found.revision, found.next_entry), (revision, revision.0));
}

#[tokio::test]
async fn database_that_cannot_be_reached_is_reported_without_the_password() {
    let store = PostgresStore::new("postgres://acp@127.0.0.1:1/acp", Some("secret")).unwrap();
    let error = store.find("s".into()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    assert!(!format!("{error} {error:?} {store:?}").contains("secret"));
}

#[tokio::test]
async fn nul_characters_are_stored_where_they_matter() {
    let Some(postgres) = TestPostgres::shared() else {
        return;
    };
    let store = open(&postgres.new_database());
    let mut properties = SessionProperties::default();
    properties.cwd = "/work".to_owned();
    properties.title = Some("a\0b".to_owned());
    let id = SessionId::from("s");
    store.create(id.clone(), properties.clone()).await.unwrap();
    assert_eq!(store.find(id.clone()).await.unwrap().properties, properties);
    // A client can ask for anything.
    let strange = SessionId::from("s\0");
    let found = store.find(strange.clone()).await;
    assert_eq!(found, Err(StoreError::NotFound(strange)));
    let filter = SessionFilter::default().cwd(Some("/work\0".to_owned()));
    let listed = store.list(filter, None, 9).await.unwrap();
    assert_eq!(listed.sessions, []);
    for cursor in ["1-\0", "9223372036854775807-s", "-1-s"] {
        let listed = store.list(SessionFilter::default(), Some(cursor.to_owned()), 9);
        let listed = listed.await;
        assert!(
            matches!(&listed, Ok(page) if page.sessions.is_empty())
                || matches!(&listed, Err(StoreError::Cursor(_))),
            "{listed:?}"
        );
    }
}

#[tokio::test]
async fn tables_of_a_newer_version_are_not_used() {
    let Some(postgres) = TestPostgres::shared() else {
        return;
    };
    let url = postgres.new_database();
    assert_eq!(PostgresStore::summary(&url, None).await.unwrap(), None);
    for before in [0, 1] {
        let migrated = PostgresStore::migrate(&url, None).await.unwrap();
        assert_eq!(migrated, (before, 1));
    }
    let server = PostgresServer::new(&url, None).unwrap();
    let mut connection = server.connect().await.unwrap();
    let change = "update acp_agent.version set version = 99";
    connection.run(change).await.unwrap();
    let newer = |result: StoreError| matches!(result, StoreError::Newer { theirs: 99, .. });
    let found = open(&url).find("s".into()).await;
    assert!(newer(found.unwrap_err()));
    assert!(newer(PostgresStore::migrate(&url, None).await.unwrap_err()));
}
