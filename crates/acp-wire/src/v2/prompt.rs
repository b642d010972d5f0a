//! Prompts and the agent's work on them. See the specification's page "Prompt Lifecycle".

use super::{ContentBlock, MessageId, SessionId};

record! {
    /// The `session/prompt` request: sends the user's message.
    pub struct PromptRequest {
        /// The session to prompt.
        required session_id: SessionId,
        /// The content of the message, which must have at least one block.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required prompt: Vec<ContentBlock>,
    }
}

record! {
    /// The response to `session/prompt`, sent once the message is part of the conversation. Updates report the results
    /// and the end of the work.
    pub struct PromptResponse {
        /// The message's id. The update that reports the message has the same id. Empty if the agent sends none, as in
        /// the draft of August 2026.
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
        /// The agent refused to continue. The next prompt leaves out this prompt and everything that followed it.
        Refusal = "refusal",
        /// The client cancelled the work.
        Cancelled = "cancelled",
        /// The work failed. Not in the draft of August 2026.
        Error = "error",
    }
}
