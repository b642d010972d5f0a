//! Where sessions are kept, so that they outlive the process.
//!
//! A session is its [`SessionProperties`] and a log of [`StoreEntry`]s: what the client was shown, and what the model
//! was told, in the order in which it happened. [`SqliteStore`] keeps them in a directory, [`MemoryStore`]
//! for as long as it lives itself. Whoever outgrows one machine writes a [`SessionStore`] of their own.
//!
//! There are no locks. Each change names the [`SessionRevision`] of the session that it is made upon, and is refused
//! with [`StoreError::Conflict`] when there is a newer one, because another process has gone on with the
//! session. So nothing stays locked when a process is killed.

pub(crate) mod entry;
pub(crate) mod error;
pub(crate) mod fold;
mod memory;
pub(crate) mod session_store;
mod sqlite;
pub(crate) mod stored_session;

pub use crate::permission::subject::AlwaysSubject;
pub use entry::{StoreEntry, StoreEntryKind};
pub use error::StoreError;
pub use memory::MemoryStore;
pub use session_store::{SessionStore, StoreFuture};
pub use sqlite::{SqliteOpening, SqliteStore};
pub use stored_session::{
    AlwaysAnswer, ClientPrompt, EntryFilter, EntryPage, SessionFilter, SessionPage,
    SessionProperties, SessionRevision, StoredSession,
};
