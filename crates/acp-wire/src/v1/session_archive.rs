//! Archived sessions: kept, and hidden from lists unless they are asked for. Unstable: for agents that have
//! `sessionCapabilities.archive`, in version 2 `session.archive`.

use super::SessionId;

record! {
    /// `session/archive`: hides a session from lists. If it is open, it is closed first.
    pub struct ArchiveSessionRequest {
        /// The session, which need not be open.
        required session_id: SessionId,
    }
}

record! {
    /// The answer to `session/archive`.
    pub struct ArchiveSessionResponse {}
}

record! {
    /// `session/unarchive`: shows a session in lists again. It is not opened by this.
    pub struct UnarchiveSessionRequest {
        /// The session.
        required session_id: SessionId,
    }
}

record! {
    /// The answer to `session/unarchive`.
    pub struct UnarchiveSessionResponse {}
}

open_enum! {
    /// Which sessions `session/list` gives. An agent refuses a value that it does not know.
    pub enum SessionArchiveFilter {
        /// Those that are not archived: as if nothing were said.
        Exclude = "exclude",
        /// Both.
        Include = "include",
        /// Those that are archived.
        Only = "only",
    }
}
