//! The client core, which tracks the state of a client's sessions without I/O or an executor. The live client uses it,
//! as do programs that follow a connection from outside ([`Observer`]).
//!
//! [`SessionTable`] contains the sessions. Its owner locks it. Only the session's [`Thread`](crate::Thread) knows
//! whether a turn is running. All of this code works on typed messages of either version. See
//! `docs/decisions/0018-the-client-core.md`.

mod observer;
mod permission;
mod session_opening;
mod session_table;
mod subagents;

pub use observer::{ObservedChange, ObservedEvent, Observer};
pub use permission::PermissionRequest;
pub(crate) use permission::ReceivedPermissionRequest;
pub(crate) use session_opening::{OpenSessionResult, SessionAnnouncement};
pub(crate) use session_table::{
    MAX_UNOPENED_SESSIONS, ReplayBackup, SessionEntry, SessionTable, UnopenedReason,
};
