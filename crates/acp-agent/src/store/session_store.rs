//! What every store does.

use std::pin::Pin;

use acp::v1::SessionId;

use super::entry::StoreEntry;
use super::error::StoreError;
use super::stored_session::{
    EntryFilter, EntryPage, SessionFilter, SessionPage, SessionProperties, SessionRevision,
    StoredSession,
};

/// What a store does, when it is done.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Keeps sessions. What has returned without an error is kept, though the process be killed the moment after.
pub trait SessionStore: Send + Sync + 'static {
    /// Keeps a new session.
    ///
    /// # Errors
    /// There is one of this id, or it cannot be kept.
    fn create(
        &self,
        id: SessionId,
        properties: SessionProperties,
    ) -> StoreFuture<'_, StoredSession>;

    /// Keeps a new session that begins as a copy of another: with its log as it is at this moment, and with
    /// these properties. All of it or nothing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no session `from`, there is one with the new id, or it cannot be kept.
    fn fork(
        &self,
        from: SessionId,
        id: SessionId,
        properties: SessionProperties,
    ) -> StoreFuture<'_, StoredSession>;

    /// A session as it is now.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or it cannot be read.
    fn find(&self, id: SessionId) -> StoreFuture<'_, StoredSession>;

    /// Adds entries at the end of a session's log, and replaces its properties if there are any, all of it or
    /// nothing. Gives the version that the session has then.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::NotFound`], or it cannot be kept. Nothing has changed then.
    fn append(
        &self,
        id: SessionId,
        expected: SessionRevision,
        entries: Vec<StoreEntry>,
        properties: Option<SessionProperties>,
    ) -> StoreFuture<'_, SessionRevision>;

    /// Some of a session's entries, those with the lowest numbers from `from` on: as many as make a page.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::NotFound`], or they cannot be read.
    fn read(
        &self,
        id: SessionId,
        expected: SessionRevision,
        which: EntryFilter,
        from: u64,
    ) -> StoreFuture<'_, EntryPage>;

    /// Puts `entries` in the place of those with the numbers from `from` to before `to`; there must be no
    /// more of them than there are numbers. Gives the version that the session has then.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn fold(
        &self,
        id: SessionId,
        expected: SessionRevision,
        from: u64,
        to: u64,
        entries: Vec<StoreEntry>,
    ) -> StoreFuture<'_, SessionRevision>;

    /// A page of the sessions in which anything was said, the one that changed last first: those that pass the filter, and
    /// are behind `cursor`, which the page before gave.
    ///
    /// # Errors
    /// [`StoreError::Cursor`], or they cannot be read.
    fn list(
        &self,
        filter: SessionFilter,
        cursor: Option<String>,
        most: usize,
    ) -> StoreFuture<'_, SessionPage>;

    /// Deletes a session.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or it cannot be deleted.
    fn delete(&self, id: SessionId) -> StoreFuture<'_, ()>;
}
