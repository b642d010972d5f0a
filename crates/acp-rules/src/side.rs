//! The two sides of a conversation: client and agent.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A side of a conversation, such as the sender of a message, the side that broke a rule, or the side under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The client, whose messages go to the agent's stdin.
    Client,
    /// The agent, whose messages come from its stdout.
    Agent,
}

impl Side {
    /// Returns the agent for the client, and the client for the agent.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Agent,
            Self::Agent => Self::Client,
        }
    }

    /// Returns the side's name, `client` or `agent`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Agent => "agent",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
