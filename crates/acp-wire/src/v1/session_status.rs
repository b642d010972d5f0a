//! Whether an agent has a session in memory. Unstable: for agents that have `sessionCapabilities.status`, in version 2
//! `session.status`.

use super::SessionId;

record! {
    /// `session/status`: changes nothing.
    pub struct SessionStatusRequest {
        /// The session.
        required session_id: SessionId,
    }
}

record! {
    /// The answer to `session/status`. It may be out of date when it arrives.
    pub struct SessionStatusResponse {
        /// Whether the agent has it in memory.
        required status: SessionStatus,
    }
}

open_enum! {
    /// Whether an agent has a session in memory. What is not known is to be taken for [`Saved`](Self::Saved).
    pub enum SessionStatus {
        /// It has, for whichever connection.
        Open = "open",
        /// It has not, but knows the session and can open it again.
        Saved = "saved",
    }
}
