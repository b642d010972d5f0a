//! The conversation with a model: messages, tool calls and their results.

use acp::v1::{ContentBlock, ImageContent};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message of a conversation. Messages are stored with the session, so later versions must be able to read them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelMessage {
    /// A prompt from the user, as content blocks.
    User(Vec<ContentBlock>),
    /// The text and tool calls from one round of the model. A round that has neither is not sent to the model again.
    Assistant {
        /// The text of the model's response. May be empty.
        text: String,
        /// The model's thoughts before the response. May be empty.
        thought: String,
        /// The tool calls, in order. Each has a result later in the conversation.
        calls: Vec<ToolRequest>,
        /// Opaque data that the provider expects back in later rounds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sealed: Option<OpaqueParts>,
    },
    /// The result of a tool call.
    ToolResult(ToolResult),
}

impl ModelMessage {
    /// Returns `true` if the round has neither text nor tool calls. Such a round is not sent to the model again.
    pub(crate) fn is_silent(&self) -> bool {
        let Self::Assistant { text, calls, .. } = self else {
            return false;
        };
        text.trim().is_empty() && calls.is_empty()
    }

    /// Creates a text-only message from the model.
    pub(crate) fn from_text(text: impl Into<String>) -> Self {
        Self::Assistant {
            text: text.into(),
            thought: String::new(),
            calls: Vec::new(),
            sealed: None,
        }
    }

    /// Creates a message from the model that contains only tool calls.
    #[cfg(test)]
    pub(crate) fn from_calls(calls: Vec<ToolRequest>) -> Self {
        Self::Assistant {
            text: String::new(),
            thought: String::new(),
            calls,
            sealed: None,
        }
    }
}

/// Data that only the model that produced it understands, such as the signatures of its thoughts. It is sent back
/// unchanged to that model, and never to another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpaqueParts {
    /// Identifies the model that produced the data and the server that hosts it.
    pub by: String,
    /// The data, as JSON that only the model understands.
    pub parts: Value,
}

impl OpaqueParts {
    /// Creates opaque data from the model's name and its JSON.
    pub fn new(by: impl Into<String>, parts: Value) -> Self {
        Self {
            by: by.into(),
            parts,
        }
    }
}

/// A tool call, as requested by the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolRequest {
    /// The model's id for the call. Clients see a different id, which is unique in the session.
    pub id: String,
    /// The name of the tool to call.
    pub tool: String,
    /// The arguments of the call, as an object. If the model wrote invalid JSON, a string with exactly what it wrote.
    pub arguments: Value,
}

impl ToolRequest {
    /// Creates a tool call with the id that the model gave it.
    pub fn new(id: impl Into<String>, tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            id: id.into(),
            tool: tool.into(),
            arguments,
        }
    }
}

/// The result of a tool call, as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// The [`ToolRequest::id`] of the call.
    pub id: String,
    /// The outcome of the call.
    pub status: ToolStatus,
    /// The tool's output, as text for the model.
    pub text: String,
    /// The tool's output, as JSON.
    pub data: Value,
    /// The images in the output, for models that accept images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageContent>,
}

/// The outcome of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolStatus {
    /// The call succeeded.
    Done,
    /// The call failed. The text says why.
    Failed,
    /// The user rejected the call, so it did not run.
    Rejected,
    /// The turn was cancelled before the call finished.
    Cancelled,
}
