//! Time limits for MCP servers.

use std::time::Duration;

/// The time limits that apply to each MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpLimits {
    /// The time limit for starting a server and listing its tools and prompts. The default is two minutes, because many
    /// servers are downloaded when they first start. Opening a session does not wait for this.
    pub start: Duration,
    /// How long the first prompt of a session waits for servers that are still starting. The default is 15 seconds.
    /// After that, the turn continues without these servers, and their tools are added once they have started.
    pub first_prompt: Duration,
    /// The time limit for a tool call without progress reports. The default is five minutes. A call with progress
    /// reports may take ten times as long.
    pub call: Duration,
    /// How long a call that could not be delivered waits for the server to reconnect. The default is five seconds.
    pub reconnect: Duration,
    /// The wait before the second attempt to reconnect to a lost server. The default is one second. The first attempt
    /// is made at once, and the wait doubles with each attempt after the second.
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
