//! Messages of an extension that the peers share, as types of the official SDK.

use agent_client_protocol::{JsonRpcNotification, JsonRpcRequest, JsonRpcResponse};
use serde::{Deserialize, Serialize};

/// A request of the extension: a question to the peer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_interop/ask", response = QuestionResponse)]
pub struct QuestionRequest {
    /// The question, as text.
    pub question: String,
}

/// The response to a [`QuestionRequest`].
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcResponse)]
pub struct QuestionResponse {
    /// The answer, as text.
    pub answer: String,
}

/// A notification of the extension: a text for the peer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcNotification)]
#[notification(method = "_interop/told")]
pub struct QuestionNotification {
    /// The text of the notification.
    pub what: String,
}
