//! Archived sessions, which are stored but not listed by default. Unstable; the agent must support
//! `sessionCapabilities.archive`, or `session.archive` in version 2.

use super::SessionId;

record! {
    /// The `session/archive` request: hides a session from lists. If it is open, it is closed first.
    pub struct ArchiveSessionRequest {
        /// The id of the session, which need not be open.
        required session_id: SessionId,
    }
}

record! {
    /// The response to `session/archive`.
    pub struct ArchiveSessionResponse {}
}

record! {
    /// The `session/unarchive` request: shows a session in lists again. It does not open the session.
    pub struct UnarchiveSessionRequest {
        /// The id of the session.
        required session_id: SessionId,
    }
}

record! {
    /// The response to `session/unarchive`.
    pub struct UnarchiveSessionResponse {}
}

open_enum! {
    /// Which sessions `session/list` returns. An agent rejects an unknown value.
    pub enum SessionArchiveFilter {
        /// Sessions that are not archived. This is the default.
        Exclude = "exclude",
        /// All sessions.
        Include = "include",
        /// Archived sessions.
        Only = "only",
    }
}
