//! The status of a session: whether it is open, and what the agent is doing in it. Unstable: requires the agent's
//! capability `session.status`.

use super::{SessionId, StateUpdate};
use crate::v1::SessionStatus;

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
        /// The agent's state in the session. If absent, the state is unknown rather than idle. An idle state here does
        /// not end a turn.
        optional state: StateUpdate,
    }
}
