//! A conversation: what was said, what was called, and what came of it.

use acp::v1::{ContentBlock, ImageContent};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A part of a conversation. Sessions are kept with it: what is written today is read by later versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelMessage {
    /// The person's prompt.
    User(Vec<ContentBlock>),
    /// What the model said and called in one round. A round in which it did neither is not told again.
    Assistant {
        /// What it said.
        text: String,
        /// What it thought.
        thought: String,
        /// The tools it called, in order. Each has a result further on.
        calls: Vec<ToolRequest>,
        /// What its provider wants to see again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sealed: Option<OpaqueParts>,
    },
    /// What came of a tool call.
    ToolResult(ToolResult),
}

impl ModelMessage {
    /// Whether it is a round in which nothing was said and nothing called: there is nothing in it to be told.
    pub(crate) fn is_silent(&self) -> bool {
        let Self::Assistant { text, calls, .. } = self else {
            return false;
        };
        text.trim().is_empty() && calls.is_empty()
    }

    /// What a model said without calling anything.
    pub(crate) fn said(text: impl Into<String>) -> Self {
        Self::Assistant {
            text: text.into(),
            thought: String::new(),
            calls: Vec::new(),
            sealed: None,
        }
    }

    /// What a model called without saying anything.
    #[cfg(test)]
    pub(crate) fn calling(calls: Vec<ToolRequest>) -> Self {
        Self::Assistant {
            text: String::new(),
            thought: String::new(),
            calls,
            sealed: None,
        }
    }
}

/// What only the model that gave it has a use for: signatures of its thoughts, say. It is given back to
/// that model as it came, and to no other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpaqueParts {
    /// Which model gave it, and where.
    pub by: String,
    /// What it gave.
    pub parts: Value,
}

impl OpaqueParts {
    /// What that model gave.
    pub fn new(by: impl Into<String>, parts: Value) -> Self {
        Self {
            by: by.into(),
            parts,
        }
    }
}

/// A tool call, as a model makes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolRequest {
    /// The model's own name for it. Clients see another id, which is unique in the session.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The tool's arguments, an object. Where a model wrote no JSON it is a string: what it wrote.
    pub arguments: Value,
}

impl ToolRequest {
    /// A tool call.
    pub fn new(id: impl Into<String>, tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            id: id.into(),
            tool: tool.into(),
            arguments,
        }
    }
}

/// What came of a tool call, as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// [`ToolRequest::id`] of the call.
    pub id: String,
    /// How it ended.
    pub status: ToolStatus,
    /// What the tool gave back, as text for the model.
    pub text: String,
    /// The same as data.
    pub data: Value,
    /// Images that belong to it, for models that see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageContent>,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolStatus {
    /// It did what it should.
    Done,
    /// It failed, and the text says why.
    Failed,
    /// The person did not allow it, so nothing was done.
    Rejected,
    /// The turn was cancelled before it was done.
    Cancelled,
}
