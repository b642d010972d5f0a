//! How long MCP servers are waited for.

use std::time::Duration;

/// How long MCP servers are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpLimits {
    /// How long a server may take to start, and to say what it has: two minutes, since many are downloaded when
    /// they are first started. No session waits for that.
    pub start: Duration,
    /// How long the first prompt of a session waits for servers that still start: fifteen seconds. Then the turn
    /// goes on without them, and their tools come when they do.
    pub first_prompt: Duration,
    /// How long a call of a tool may take without a word of progress: five minutes. With progress it may take
    /// ten times as long.
    pub call: Duration,
    /// How long a call that could not be delivered waits for the connection to be there again: five seconds.
    pub reconnect: Duration,
    /// How long passes between the first two tries to have a server again that is gone: a second, and twice as
    /// long each further time. The first try is made at once.
    pub retry: Duration,
}

impl Default for McpLimits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(120),
            first_prompt: Duration::from_secs(15),
            call: Duration::from_secs(300),
            reconnect: Duration::from_secs(5),
            retry: Duration::from_secs(1),
        }
    }
}
