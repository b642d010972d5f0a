//! Steering: the extension `_session/steering`, as several agents in use support it. They announce it with
//! `_meta.steering.supported` in the response to `initialize`.

use super::{ContentBlock, SessionId};

record! {
    /// The `_session/steering` request: adds a message to the running turn.
    pub struct SteerRequest {
        /// The id of the session.
        required session_id: SessionId,
        /// The message, at least one block.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required prompt: Vec<ContentBlock>,
    }
}

record! {
    /// The response to `_session/steering`.
    pub struct SteerResponse {
        /// The outcome.
        required outcome: SteeringOutcome,
        /// The reason, for programs, such as `noRunningTurn`.
        optional reason: String,
    }
}

open_enum! {
    /// The outcome of a steering request.
    pub enum SteeringOutcome {
        /// The message was added to the running turn.
        Injected = "injected",
        /// No turn was running. The message started one without a `session/prompt`.
        StartedNewTurn = "startedNewTurn",
        /// No turn was running. The message is lost unless the client sends it as a prompt.
        PromptRequired = "promptRequired",
    }
}
