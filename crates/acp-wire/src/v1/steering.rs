//! A message for the turn that runs: the extension `_session/steering`, as several agents in use have it. Offered by
//! `_meta.steering.supported` of the answer to `initialize`.

use super::{ContentBlock, SessionId};

record! {
    /// `_session/steering`: puts a message into the turn that runs.
    pub struct SteerRequest {
        /// The session.
        required session_id: SessionId,
        /// The message; at least one block.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required prompt: Vec<ContentBlock>,
    }
}

impl crate::Request for SteerRequest {
    const METHOD: &'static str = "_session/steering";
    type Response = SteerResponse;
}

record! {
    /// The answer to `_session/steering`.
    pub struct SteerResponse {
        /// What became of the message.
        required outcome: SteeringOutcome,
        /// Why, for programs: `noRunningTurn`.
        optional reason: String,
    }
}

open_enum! {
    /// What became of a message for the turn that runs.
    pub enum SteeringOutcome {
        /// It is part of the turn.
        Injected = "injected",
        /// No turn ran, and it began one that no `session/prompt` stands for.
        StartedNewTurn = "startedNewTurn",
        /// No turn ran. The message is lost unless it is sent as a prompt.
        PromptRequired = "promptRequired",
    }
}
