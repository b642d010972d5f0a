//! Whether a session is open, and the agent's state in it. Unstable; the agent must support `session.status`.

use super::{SessionId, StateUpdate};
use crate::v1::SessionStatus;

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
        /// The agent's state in the session. Absent if unknown, which does not mean idle. An idle state here does not
        /// end a turn.
        optional state: StateUpdate,
    }
}
