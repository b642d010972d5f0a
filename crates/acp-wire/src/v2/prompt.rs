//! Prompt lifecycle: the specification's page of that name.

use super::{ContentBlock, MessageId, SessionId};

record! {
    /// `session/prompt`: the user's message.
    pub struct PromptRequest {
        /// The session.
        required session_id: SessionId,
        /// The message; at least one block.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required prompt: Vec<ContentBlock>,
    }
}

record! {
    /// The answer to `session/prompt`: the message has become part of the conversation. What comes of
    /// it, and when it is done, is told by updates.
    pub struct PromptResponse {
        /// The message, which an update tells again. Empty when the agent gives none, as in the
        /// draft of August 2026.
        tolerant message_id: MessageId,
    }
}

open_enum! {
    /// Why an agent stopped working.
    pub enum StopReason {
        /// It has finished.
        EndTurn = "end_turn",
        /// The model's limit of tokens was reached.
        MaxTokens = "max_tokens",
        /// The limit of model requests was reached.
        MaxTurnRequests = "max_turn_requests",
        /// The agent refuses; the prompt and what came after it are not part of the next one.
        Refusal = "refusal",
        /// The client cancelled.
        Cancelled = "cancelled",
        /// Something failed. Not in the draft of August 2026.
        Error = "error",
    }
}
