//! Something that happened in a session, in the words of the version the agent speaks.

use acp_wire::v1::{self, ContentBlock};
use acp_wire::v2;

/// Something that happened in a session, in the words of the version the agent speaks.
#[derive(Debug, Clone)]
#[non_exhaustive]
// Updates are made one by one and given on; boxing them would cost an allocation for each.
#[allow(clippy::large_enum_variant)]
pub enum Update {
    /// Of an agent that speaks version 1.
    V1(v1::SessionUpdate),
    /// Of an agent that speaks version 2.
    V2(v2::SessionUpdate),
}

impl From<v1::SessionUpdate> for Update {
    fn from(update: v1::SessionUpdate) -> Self {
        Self::V1(update)
    }
}

impl From<v2::SessionUpdate> for Update {
    fn from(update: v2::SessionUpdate) -> Self {
        Self::V2(update)
    }
}

impl Update {
    /// The text of a piece of the agent's message. Agents of version 2 may send whole messages, too,
    /// which replace what was there: the [`Thread`](crate::Thread) has what there is.
    #[must_use]
    pub fn message_text(&self) -> Option<&str> {
        self.message_content()?.as_text()
    }

    /// The text of a piece of the agent's thoughts.
    #[must_use]
    pub fn thought_text(&self) -> Option<&str> {
        match self {
            Self::V1(v1::SessionUpdate::AgentThoughtChunk(chunk)) => chunk.content.as_text(),
            Self::V2(v2::SessionUpdate::AgentThoughtChunk(chunk)) => chunk.content.as_text(),
            _ => None,
        }
    }

    /// The content of a piece of the agent's message.
    #[must_use]
    pub fn message_content(&self) -> Option<&ContentBlock> {
        match self {
            Self::V1(v1::SessionUpdate::AgentMessageChunk(chunk)) => Some(&chunk.content),
            Self::V2(v2::SessionUpdate::AgentMessageChunk(chunk)) => Some(&chunk.content),
            _ => None,
        }
    }
}
