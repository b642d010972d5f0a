//! The state of an agent: the specification's page "Prompt Lifecycle", "State".

use super::{BackgroundWork, StopReason};
use crate::jsonrpc;
use crate::v1::Usage;

tagged! {
    /// The agent's state in the foreground. A session starts idle.
    pub enum StateUpdate by "state" {
        /// The agent is working.
        Running(RunningStateUpdate) = "running",
        /// The agent waits for the next prompt.
        Idle(IdleStateUpdate) = "idle",
        /// The agent waits for the user.
        RequiresAction(RequiresActionStateUpdate) = "requires_action",
        /// The state is not known at the moment. Unstable.
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
    /// The state of an agent that waits for the user, for example for permission.
    pub struct RequiresActionStateUpdate {
        /// As in [`RunningStateUpdate`].
        optional_list background: BackgroundWork,
    }
}

record! {
    /// The state when it is not known at the moment.
    pub struct UnknownStateUpdate {
        /// All background work.
        optional_list background: BackgroundWork,
    }
}

record! {
    /// The state of an agent that waits for the next prompt.
    pub struct IdleStateUpdate {
        /// Why the agent stopped, if this update ends its work.
        optional stop_reason: StopReason,
        /// The error, together with [`StopReason::Error`]. Not in the draft of August 2026.
        #[cfg_attr(feature = "arbitrary", arbitrary(default))]
        optional error: jsonrpc::Error,
        /// The tokens used by the work. Unstable.
        optional usage: Usage,
        /// As in [`RunningStateUpdate`].
        optional_list background: BackgroundWork,
    }
}
