//! An agent's state in a session. See "State" on the specification's page "Prompt Lifecycle".

use super::{BackgroundWork, StopReason};
use crate::jsonrpc;
use crate::v1::Usage;

tagged! {
    /// An agent's state in a session, apart from background work. A new session is idle.
    pub enum StateUpdate by "state" {
        /// The agent is working.
        Running(RunningStateUpdate) = "running",
        /// The agent is waiting for the next prompt.
        Idle(IdleStateUpdate) = "idle",
        /// The agent is waiting for the user.
        RequiresAction(RequiresActionStateUpdate) = "requires_action",
        /// The agent's state is currently unknown. Unstable.
        Unconfirmed(UnknownStateUpdate) = "unknown",
    }
}

record! {
    /// The details of the `running` state, in which the agent is working.
    pub struct RunningStateUpdate {
        /// All background work. Absent if the agent does not report it. Not in the draft of August 2026.
        optional_list background: BackgroundWork,
    }
}

record! {
    /// The details of the `requires_action` state, in which the agent is waiting for the user, for example for
    /// permission.
    pub struct RequiresActionStateUpdate {
        /// All background work. Absent if the agent does not report it. Not in the draft of August 2026.
        optional_list background: BackgroundWork,
    }
}

record! {
    /// The details of the `unknown` state, in which the agent's activity is not known.
    pub struct UnknownStateUpdate {
        /// All background work. Absent if the agent does not report it.
        optional_list background: BackgroundWork,
    }
}

record! {
    /// The details of the `idle` state, in which the agent is waiting for the next prompt.
    pub struct IdleStateUpdate {
        /// Why the agent stopped, if this update marks the end of its work.
        optional stop_reason: StopReason,
        /// The error that stopped the agent, if the stop reason is [`StopReason::Error`]. Not in the draft of August
        /// 2026.
        #[cfg_attr(feature = "arbitrary", arbitrary(default))]
        optional error: jsonrpc::Error,
        /// The tokens used by the work. Unstable.
        optional usage: Usage,
        /// All background work. Absent if the agent does not report it. Not in the draft of August 2026.
        optional_list background: BackgroundWork,
    }
}
