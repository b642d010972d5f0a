//! Prompt turn: the specification's page of that name.

use super::{ContentBlock, SessionId};

record! {
    /// `session/prompt`: the user's message.
    pub struct PromptRequest {
        /// The session.
        required session_id: SessionId,
        /// The message.
        required prompt: Vec<ContentBlock>,
    }
}

record! {
    /// The answer to `session/prompt`: the end of the turn.
    pub struct PromptResponse {
        /// Why the turn ended.
        required stop_reason: StopReason,
        /// What the turn has used. Unstable.
        optional usage: Usage,
    }
}

record! {
    /// Tokens that a turn has used. Unstable.
    pub struct Usage {
        /// All of them.
        #[serde(deserialize_with = "crate::lenient::required")]
        required total_tokens: u64,
        /// Of what was sent to the model.
        #[serde(deserialize_with = "crate::lenient::required")]
        required input_tokens: u64,
        /// Of what the model sent.
        #[serde(deserialize_with = "crate::lenient::required")]
        required output_tokens: u64,
        /// Of what the model thought.
        optional thought_tokens: u64,
        /// Read from a cache.
        optional cached_read_tokens: u64,
        /// Written to a cache.
        optional cached_write_tokens: u64,
    }
}

open_enum! {
    /// Why a turn ended.
    pub enum StopReason {
        /// The agent has finished.
        EndTurn = "end_turn",
        /// The model's limit of tokens was reached.
        MaxTokens = "max_tokens",
        /// The limit of model requests in a turn was reached.
        MaxTurnRequests = "max_turn_requests",
        /// The agent refuses; the prompt and what came after it are not part of the next one.
        Refusal = "refusal",
        /// The client cancelled.
        Cancelled = "cancelled",
    }
}

record! {
    /// `session/cancel`: ends the session's turn.
    pub struct CancelNotification {
        /// The session.
        required session_id: SessionId,
    }
}
