//! Whether a session is open. Unstable; the agent must support `sessionCapabilities.status`, or `session.status` in
//! version 2.

use super::SessionId;

record! {
    /// The `session/status` request. It changes nothing.
    pub struct SessionStatusRequest {
        /// The id of the session.
        required session_id: SessionId,
    }
}

record! {
    /// The response to `session/status`. It may be out of date when it arrives.
    pub struct SessionStatusResponse {
        /// Whether the agent has the session in memory.
        required status: SessionStatus,
    }
}

open_enum! {
    /// Whether an agent has a session in memory. Treat an unknown value as [`Saved`](Self::Saved).
    pub enum SessionStatus {
        /// The session is in memory, for any connection.
        Open = "open",
        /// The session is stored and can be opened again, but is not in memory.
        Saved = "saved",
    }
}
