//! Archived sessions, which are kept but not listed by default. Unstable: requires the agent's capability
//! `sessionCapabilities.archive`, or `session.archive` in version 2.

use super::SessionId;

record! {
    /// The `session/archive` request: hides a session from lists. An open session is closed first.
    pub struct ArchiveSessionRequest {
        /// The session to archive. It need not be open.
        required session_id: SessionId,
    }
}

record! {
    /// The response to `session/archive`, sent once the session is archived.
    pub struct ArchiveSessionResponse {}
}

record! {
    /// The `session/unarchive` request: shows a session in lists again, without opening it.
    pub struct UnarchiveSessionRequest {
        /// The session to unarchive.
        required session_id: SessionId,
    }
}

record! {
    /// The response to `session/unarchive`, sent once the session is listed again.
    pub struct UnarchiveSessionResponse {}
}

open_enum! {
    /// A filter for the sessions that `session/list` returns. Agents reject unknown values.
    pub enum SessionArchiveFilter {
        /// Only sessions that are not archived. This is the default.
        Exclude = "exclude",
        /// All sessions, archived or not.
        Include = "include",
        /// Archived sessions only.
        Only = "only",
    }
}
