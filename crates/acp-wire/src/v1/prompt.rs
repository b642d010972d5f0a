//! Prompt turns. See the specification's page "Prompt Turn".

use super::{ContentBlock, SessionId};

record! {
    /// The `session/prompt` request: sends the user's message, which starts a turn.
    pub struct PromptRequest {
        /// The session to prompt.
        required session_id: SessionId,
        /// The message as a list of content blocks.
        required prompt: Vec<ContentBlock>,
    }
}

record! {
    /// The response to `session/prompt`, which ends the turn.
    pub struct PromptResponse {
        /// Why the turn ended.
        required stop_reason: StopReason,
        /// The tokens used by the turn. Unstable.
        optional usage: Usage,
    }
}

record! {
    /// The tokens used by a turn. Unstable.
    pub struct Usage {
        /// The total number of tokens.
        #[serde(deserialize_with = "crate::lenient::required")]
        required total_tokens: u64,
        /// Tokens sent to the model.
        #[serde(deserialize_with = "crate::lenient::required")]
        required input_tokens: u64,
        /// Tokens received from the model.
        #[serde(deserialize_with = "crate::lenient::required")]
        required output_tokens: u64,
        /// Tokens that the model used for thinking.
        optional thought_tokens: u64,
        /// Tokens read from a cache.
        optional cached_read_tokens: u64,
        /// Tokens written to a cache.
        optional cached_write_tokens: u64,
    }
}

open_enum! {
    /// Why a turn ended.
    pub enum StopReason {
        /// The agent finished its work.
        EndTurn = "end_turn",
        /// The model's token limit was reached.
        MaxTokens = "max_tokens",
        /// The turn reached its limit of model requests.
        MaxTurnRequests = "max_turn_requests",
        /// The agent refused to continue. The next prompt leaves out this prompt and everything that followed it.
        Refusal = "refusal",
        /// The client cancelled the turn.
        Cancelled = "cancelled",
    }
}

record! {
    /// The `session/cancel` notification: cancels the session's turn.
    pub struct CancelNotification {
        /// The session whose turn is cancelled.
        required session_id: SessionId,
    }
}
