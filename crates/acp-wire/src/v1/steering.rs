//! Steering with the extension `_session/steering`. Several agents support it and announce it with
//! `_meta.steering.supported` in the response to `initialize`.

use super::{ContentBlock, SessionId};

record! {
    /// The `_session/steering` request: adds a message to the running turn.
    pub struct SteerRequest {
        /// The session with the running turn.
        required session_id: SessionId,
        /// The content of the message, which must have at least one block.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required prompt: Vec<ContentBlock>,
    }
}

record! {
    /// The response to `_session/steering`, with the outcome.
    pub struct SteerResponse {
        /// What the agent did with the message.
        required outcome: SteeringOutcome,
        /// A machine-readable reason for the outcome, such as `noRunningTurn`.
        optional reason: String,
    }
}

open_enum! {
    /// What an agent did with a steering message.
    pub enum SteeringOutcome {
        /// The message was added to the running turn.
        Injected = "injected",
        /// No turn was running, so the message started one without a `session/prompt`.
        StartedNewTurn = "startedNewTurn",
        /// No turn was running, so the message is lost unless the client sends it as a prompt.
        PromptRequired = "promptRequired",
    }
}
