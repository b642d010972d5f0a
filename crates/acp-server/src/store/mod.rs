//! Where live sessions are stored, so that they survive the server, and several servers can share them.
//!
//! `docs/decisions/0026-stores-and-leases.md` explains the design. What is where:
//!
//! | file | subject |
//! |---|---|
//! | `live_store.rs` | what a store does: the trait [`LiveStore`] |
//! | `record.rs` | what it stores: sessions, lines, prompts |
//! | `error.rs` | its errors |
//! | `sqlite.rs` | a store in a file, for the servers of one machine |
//! | `postgres/` | a store in a PostgreSQL database, for the servers of several machines |
//! | `copy.rs` | copies sessions from one store to another |
//! | `contract.rs` | what every store must do, as tests |

#[cfg(test)]
mod contract;
mod copy;
mod error;
mod live_store;
mod postgres;
mod record;
mod sqlite;

pub(crate) use record::MAX_ENDED_PROMPTS;

pub use copy::{CopiedSessions, copy_sessions};
pub use error::LiveStoreError;
pub use live_store::{LiveStore, LiveStoreFuture, SessionClaim};
pub use postgres::PostgresLiveStore;
pub use record::{
    FencingToken, LiveSessionChange, LiveSessionFilter, LiveSessionKey, LiveSessionPage,
    LiveSessionSummary, LogPage, LoggedLine, NodeId, NodeInfo, PromptRecord, PromptState,
    SessionHead, StoreSummary, StoredLiveSession,
};
pub use sqlite::SqliteLiveStore;
