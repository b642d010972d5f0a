//! What the peers have in common: messages of an extension, in the official SDK's words.

use agent_client_protocol::{JsonRpcNotification, JsonRpcRequest, JsonRpcResponse};
use serde::{Deserialize, Serialize};

/// A request of an extension.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_interop/ask", response = QuestionResponse)]
pub struct QuestionRequest {
    /// What is asked.
    pub question: String,
}

/// Its answer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcResponse)]
pub struct QuestionResponse {
    /// The answer.
    pub answer: String,
}

/// A notification of an extension.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcNotification)]
#[notification(method = "_interop/told")]
pub struct QuestionNotification {
    /// What is told.
    pub what: String,
}
