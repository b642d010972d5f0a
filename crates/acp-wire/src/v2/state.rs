//! Whether an agent works: prompt lifecycle, "State".

use super::{BackgroundWork, StopReason};
use crate::jsonrpc;
use crate::v1::Usage;

tagged! {
    /// What the agent does in the foreground. A session begins idle.
    pub enum StateUpdate by "state" {
        /// It works.
        Running(RunningStateUpdate) = "running",
        /// It waits for the next prompt.
        Idle(IdleStateUpdate) = "idle",
        /// It waits for the user.
        RequiresAction(RequiresActionStateUpdate) = "requires_action",
        /// Whether it works cannot be told just now. Unstable.
        Unconfirmed(UnknownStateUpdate) = "unknown",
    }
}

record! {
    /// The agent works.
    pub struct RunningStateUpdate {
        /// What goes on beside, all of it; absent when the agent does not say. Not in the draft of
        /// August 2026.
        optional_list background: BackgroundWork,
    }
}

record! {
    /// The agent waits for the user: for a permission, for example.
    pub struct RequiresActionStateUpdate {
        /// As in [`RunningStateUpdate`].
        optional_list background: BackgroundWork,
    }
}

record! {
    /// Whether it works cannot be told just now.
    pub struct UnknownStateUpdate {
        /// What goes on beside the conversation, all of it.
        optional_list background: BackgroundWork,
    }
}

record! {
    /// The agent waits for the next prompt.
    pub struct IdleStateUpdate {
        /// Why it stopped, if that is what this tells.
        optional stop_reason: StopReason,
        /// What failed, beside [`StopReason::Error`]. Not in the draft of August 2026.
        #[cfg_attr(feature = "arbitrary", arbitrary(default))]
        optional error: jsonrpc::Error,
        /// What the work has used. Unstable.
        optional usage: Usage,
        /// As in [`RunningStateUpdate`].
        optional_list background: BackgroundWork,
    }
}
