//! Whether an agent has a session in memory, and what it does in it. Unstable: for agents that have `session.status`.

use super::{SessionId, StateUpdate};
use crate::v1::SessionStatus;

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
        /// What the agent does in it. Absent where the agent does not say, which is not to be read as idle. That it is
        /// idle is no end of a turn.
        optional state: StateUpdate,
    }
}
