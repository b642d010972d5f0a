//! Session stores, which keep sessions after they are closed.
//!
//! A session is stored as its [`SessionProperties`] and its history: a list of [`StoreEntry`]s that contains everything
//! sent to the client and to the model, in order. [`SqliteStore`] stores sessions in a directory, [`PostgresStore`] in a
//! database that several machines share, and [`MemoryStore`] in memory. [`LazyStore`] opens another store when it is first
//! used. A service can also implement [`SessionStore`] itself.
//!
//! There are no locks. Each change names the [`SessionRevision`] on which it is based. If another process has changed
//! the session since then, the store rejects the change with [`StoreError::Conflict`]. So nothing remains locked if a
//! process is killed.

pub(crate) mod entry;
pub(crate) mod error;
pub(crate) mod fold;
mod lazy;
mod list_cursor;
mod memory;
mod postgres;
pub(crate) mod session_store;
mod sqlite;
pub(crate) mod stored_session;

pub use crate::permission::subject::AlwaysSubject;
pub use entry::{StoreEntry, StoreEntryKind};
pub use error::StoreError;
pub use lazy::LazyStore;
pub use memory::MemoryStore;
pub use postgres::{PostgresStore, PostgresStoreSummary};
pub use session_store::{SessionStore, StoreFuture};
pub use sqlite::SqliteStore;
pub use stored_session::{
    AlwaysAnswer, ClientInstructions, EntryFilter, EntryPage, HistoryEnd, SessionFilter,
    SessionPage, SessionProperties, SessionRevision, StoredSession,
};
