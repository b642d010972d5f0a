//! What an agent is doing in a session. See the specification's page "Prompt Lifecycle", "State".

use super::{BackgroundWork, StopReason};
use crate::jsonrpc;
use crate::v1::Usage;

tagged! {
    /// What an agent is doing, apart from background work. A session starts idle.
    pub enum StateUpdate by "state" {
        /// The agent is working.
        Running(RunningStateUpdate) = "running",
        /// The agent is waiting for the next prompt.
        Idle(IdleStateUpdate) = "idle",
        /// The agent is waiting for the user.
        RequiresAction(RequiresActionStateUpdate) = "requires_action",
        /// The agent's state is not known at the moment. Unstable.
        Unconfirmed(UnknownStateUpdate) = "unknown",
    }
}

record! {
    /// The state of an agent that is working.
    pub struct RunningStateUpdate {
        /// All background work. Absent if the agent does not report it. Not in the draft of August 2026.
        optional_list background: BackgroundWork,
    }
}

record! {
    /// The state of an agent that is waiting for the user, for example for a permission.
    pub struct RequiresActionStateUpdate {
        /// All background work. Absent if the agent does not report it. Not in the draft of August 2026.
        optional_list background: BackgroundWork,
    }
}

record! {
    /// The state of an agent whose state is not known at the moment.
    pub struct UnknownStateUpdate {
        /// All background work. Absent if the agent does not report it.
        optional_list background: BackgroundWork,
    }
}

record! {
    /// The state of an agent that is waiting for the next prompt.
    pub struct IdleStateUpdate {
        /// Why the agent stopped, if this update ends its work.
        optional stop_reason: StopReason,
        /// The error that stopped the agent, with [`StopReason::Error`]. Not in the draft of August 2026.
        #[cfg_attr(feature = "arbitrary", arbitrary(default))]
        optional error: jsonrpc::Error,
        /// The tokens used by the work. Unstable.
        optional usage: Usage,
        /// All background work. Absent if the agent does not report it. Not in the draft of August 2026.
        optional_list background: BackgroundWork,
    }
}
