//! Defines the interface of a session store.

use std::pin::Pin;

use acp::v1::SessionId;

use super::entry::StoreEntry;
use super::error::StoreError;
use super::stored_session::{
    EntryFilter, EntryPage, HistoryEnd, SessionFilter, SessionPage, SessionProperties,
    SessionRevision, StoredSession,
};

/// The future returned by a store's operations.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A store for an agent's sessions. Once the future of a change has completed without an error, the change is durable,
/// even if the process is killed right afterwards.
pub trait SessionStore: Send + Sync + 'static {
    /// Stores a new session without any entries.
    ///
    /// # Errors
    /// A session with this id exists ([`StoreError::Exists`]), or the session cannot be stored.
    fn create(
        &self,
        id: SessionId,
        properties: SessionProperties,
    ) -> StoreFuture<'_, StoredSession>;

    /// Stores a new session with these properties and a copy of another session's history: of the current one, or of what
    /// comes before `end`. Either stores everything or changes nothing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no session `from`, [`StoreError::Conflict`] if it has changed since the revision
    /// of `end`, or [`StoreError::Exists`] if there already is a session `id`. Other errors mean that the session cannot
    /// be stored.
    fn fork(
        &self,
        from: SessionId,
        id: SessionId,
        properties: SessionProperties,
        end: Option<HistoryEnd>,
    ) -> StoreFuture<'_, StoredSession>;

    /// Returns a session in its current state.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or the session cannot be read.
    fn find(&self, id: SessionId) -> StoreFuture<'_, StoredSession>;

    /// Appends entries to the history of a session, and replaces its properties if any are given. Either stores
    /// everything or changes nothing. Returns the session's new revision.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::NotFound`], or the entries cannot be stored. On an error nothing has
    /// changed.
    fn append(
        &self,
        id: SessionId,
        expected: SessionRevision,
        entries: Vec<StoreEntry>,
        properties: Option<SessionProperties>,
    ) -> StoreFuture<'_, SessionRevision>;

    /// Reads a page of a session's entries, starting at number `from`.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::NotFound`], or the entries cannot be read.
    fn read(
        &self,
        id: SessionId,
        expected: SessionRevision,
        which: EntryFilter,
        from: u64,
    ) -> StoreFuture<'_, EntryPage>;

    /// Replaces the entries numbered `from..to` with `entries`, which must not be more than it replaces. Returns the
    /// session's new revision.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    fn fold(
        &self,
        id: SessionId,
        expected: SessionRevision,
        from: u64,
        to: u64,
        entries: Vec<StoreEntry>,
    ) -> StoreFuture<'_, SessionRevision>;

    /// Returns a page of sessions, most recently changed first. Includes only sessions that have entries and pass the
    /// filter. The page starts after `cursor`, which comes from the previous page.
    ///
    /// # Errors
    /// [`StoreError::Cursor`], or the sessions cannot be read.
    fn list(
        &self,
        filter: SessionFilter,
        cursor: Option<String>,
        most: usize,
    ) -> StoreFuture<'_, SessionPage>;

    /// Deletes a session and its history.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or the session cannot be deleted.
    fn delete(&self, id: SessionId) -> StoreFuture<'_, ()>;
}
