//! A session store that is opened when it is first used.

use std::fmt;
use std::sync::Arc;

use acp::v1::SessionId;
use tokio::sync::OnceCell;

use super::entry::StoreEntry;
use super::error::StoreError;
use super::session_store::{SessionStore, StoreFuture};
use super::stored_session::{
    EntryFilter, EntryPage, HistoryEnd, SessionFilter, SessionPage, SessionProperties,
    SessionRevision, StoredSession,
};

/// Opens a store. May block.
type OpenStore = dyn Fn() -> Result<Arc<dyn SessionStore>, StoreError> + Send + Sync;

/// A session store that is opened when it is first used, so that an agent that has no session yet starts sooner.
pub struct LazyStore {
    open: Arc<OpenStore>,
    store: OnceCell<Arc<dyn SessionStore>>,
}

impl LazyStore {
    /// Creates a store that calls `open` when it is first used, on a thread that may block. If `open` fails, so does
    /// that use of the store, and the next use calls `open` again.
    pub fn new(
        open: impl Fn() -> Result<Arc<dyn SessionStore>, StoreError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            open: Arc::new(open),
            store: OnceCell::new(),
        }
    }

    async fn store(&self) -> Result<&dyn SessionStore, StoreError> {
        let open = || async {
            let open = Arc::clone(&self.open);
            let opened = tokio::task::spawn_blocking(move || open()).await;
            opened.unwrap_or_else(|e| Err(StoreError::Failed(e.to_string())))
        };
        let store = self.store.get_or_try_init(open).await?;
        Ok(store.as_ref())
    }
}

impl fmt::Debug for LazyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyStore")
            .field("open", &self.store.initialized())
            .finish()
    }
}

impl SessionStore for LazyStore {
    fn create(
        &self,
        id: SessionId,
        properties: SessionProperties,
    ) -> StoreFuture<'_, StoredSession> {
        Box::pin(async move { self.store().await?.create(id, properties).await })
    }

    fn fork(
        &self,
        from: SessionId,
        id: SessionId,
        properties: SessionProperties,
        end: Option<HistoryEnd>,
    ) -> StoreFuture<'_, StoredSession> {
        Box::pin(async move {
            let store = self.store().await?;
            store.fork(from, id, properties, end).await
        })
    }

    fn find(&self, id: SessionId) -> StoreFuture<'_, StoredSession> {
        Box::pin(async move { self.store().await?.find(id).await })
    }

    fn append(
        &self,
        id: SessionId,
        expected: SessionRevision,
        entries: Vec<StoreEntry>,
        properties: Option<SessionProperties>,
    ) -> StoreFuture<'_, SessionRevision> {
        Box::pin(async move {
            let store = self.store().await?;
            store.append(id, expected, entries, properties).await
        })
    }

    fn read(
        &self,
        id: SessionId,
        expected: SessionRevision,
        which: EntryFilter,
        from: u64,
    ) -> StoreFuture<'_, EntryPage> {
        Box::pin(async move { self.store().await?.read(id, expected, which, from).await })
    }

    fn fold(
        &self,
        id: SessionId,
        expected: SessionRevision,
        from: u64,
        to: u64,
        entries: Vec<StoreEntry>,
    ) -> StoreFuture<'_, SessionRevision> {
        Box::pin(async move {
            let store = self.store().await?;
            store.fold(id, expected, from, to, entries).await
        })
    }

    fn list(
        &self,
        filter: SessionFilter,
        cursor: Option<String>,
        most: usize,
    ) -> StoreFuture<'_, SessionPage> {
        Box::pin(async move { self.store().await?.list(filter, cursor, most).await })
    }

    fn delete(&self, id: SessionId) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.store().await?.delete(id).await })
    }
}
