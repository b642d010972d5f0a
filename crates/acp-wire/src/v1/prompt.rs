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
