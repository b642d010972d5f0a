//! The status of a session: open in memory, or only stored. Unstable: requires the agent's capability
//! `sessionCapabilities.status`, or `session.status` in version 2.

use super::SessionId;

record! {
    /// The `session/status` request: queries the status of a session, without changing it.
    pub struct SessionStatusRequest {
        /// The session to query.
        required session_id: SessionId,
    }
}

record! {
    /// The response to `session/status`. The status may already be out of date when it arrives.
    pub struct SessionStatusResponse {
        /// Whether the agent has the session in memory.
        required status: SessionStatus,
    }
}

open_enum! {
    /// Whether an agent has a session in memory. Treat an unknown value as [`Saved`](Self::Saved).
    pub enum SessionStatus {
        /// The session is in memory, whichever connection opened it.
        Open = "open",
        /// The session is not in memory, but it is stored and can be opened again.
        Saved = "saved",
    }
}
