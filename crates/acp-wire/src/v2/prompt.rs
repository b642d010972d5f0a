//! Prompts and the agent's work on them. See the specification's page "Prompt Lifecycle".

use super::{ContentBlock, MessageId, SessionId};

record! {
    /// The `session/prompt` request: sends the user's message.
    pub struct PromptRequest {
        /// The session that the message is for.
        required session_id: SessionId,
        /// The content of the message, at least one block.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required prompt: Vec<ContentBlock>,
    }
}

record! {
    /// The response to `session/prompt`, which confirms that the message is now part of the conversation. Updates
    /// report the results and the end of the work.
    pub struct PromptResponse {
        /// The id of the message, which is repeated in the update that reports the message. Empty if the agent does not
        /// send one, as in the draft of August 2026.
        tolerant message_id: MessageId,
    }
}

open_enum! {
    /// Why an agent stopped working.
    pub enum StopReason {
        /// The agent finished its work.
        EndTurn = "end_turn",
        /// The model's token limit was reached.
        MaxTokens = "max_tokens",
        /// The agent reached its limit of model requests.
        MaxTurnRequests = "max_turn_requests",
        /// The agent refused to continue. This prompt and everything after it are left out of the next prompt.
        Refusal = "refusal",
        /// The client cancelled the work.
        Cancelled = "cancelled",
        /// The work failed. Not in the draft of August 2026.
        Error = "error",
    }
}
