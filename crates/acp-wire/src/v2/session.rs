//! Session setup. See the specification's page "Session Setup".

use super::{AvailableCommand, Cost, McpServer, SessionConfigOption, SessionId, SystemPrompt};

record! {
    /// The `session/new` request: opens a new session.
    pub struct NewSessionRequest {
        /// The working directory, as an absolute path.
        required cwd: String,
        /// Additional roots, as absolute paths.
        list additional_directories: String,
        /// The MCP servers to connect to.
        list mcp_servers: McpServer,
        /// The client's instructions for the model. Unstable: requires the agent's capability `session.systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

record! {
    /// The response to `session/new`, with the session's id and settings.
    pub struct NewSessionResponse {
        /// The new session's id, chosen by the agent.
        required session_id: SessionId,
        /// All config options of the session, with their current values.
        list config_options: SessionConfigOption,
        /// The session's slash commands. Not in the draft of August 2026.
        list available_commands: AvailableCommand,
    }
}

record! {
    /// The `session/resume` request: opens an existing session.
    pub struct ResumeSessionRequest {
        /// The session to open.
        required session_id: SessionId,
        /// The working directory, as an absolute path.
        required cwd: String,
        /// Additional roots, as absolute paths.
        list additional_directories: String,
        /// The MCP servers to connect to.
        list mcp_servers: McpServer,
        /// Where to start the replay, which the agent sends before its response. If absent, nothing is replayed.
        optional replay_from: ReplayFrom,
        /// The client's instructions for the model. Unstable: requires the agent's capability `session.systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

tagged! {
    /// Where to start a replay, inclusive.
    pub enum ReplayFrom by "type" {
        /// The replay starts at the beginning of the conversation.
        Start(ReplayFromStart) = "start",
    }
}

record! {
    /// The empty content of [`ReplayFrom::Start`].
    pub struct ReplayFromStart {}
}

impl ReplayFrom {
    /// Requests a replay from the start of the conversation.
    #[must_use]
    pub fn start() -> Self {
        Self::Start(ReplayFromStart::new())
    }
}

record! {
    /// The response to `session/resume`, with the session's settings.
    pub struct ResumeSessionResponse {
        /// All config options of the session, with their current values.
        list config_options: SessionConfigOption,
        /// The session's slash commands. Not in the draft of August 2026.
        list available_commands: AvailableCommand,
    }
}

record! {
    /// The `session/fork` request: opens a new session that starts as a copy of another one. Unstable; the agent must
    /// support `session.fork`.
    pub struct ForkSessionRequest {
        /// The session to copy.
        required session_id: SessionId,
        /// The working directory, as an absolute path.
        required cwd: String,
        /// Additional roots, as absolute paths.
        list additional_directories: String,
        /// The MCP servers to connect to.
        list mcp_servers: McpServer,
        /// The client's instructions for the model. Unstable: requires the agent's capability `session.systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

record! {
    /// The response to `session/fork`, with the new session's id and settings.
    pub struct ForkSessionResponse {
        /// The new session's id, chosen by the agent.
        required session_id: SessionId,
        /// All config options of the session, with their current values.
        list config_options: SessionConfigOption,
        /// The session's slash commands. Not in the draft of August 2026.
        list available_commands: AvailableCommand,
    }
}

record! {
    /// An update to a session's title and the time of its last change. Absent fields are unchanged, and `null` clears a
    /// field.
    pub patch SessionInfoUpdate {
        /// The title to show to the user.
        clearable title: String,
        /// When the session last changed (RFC 3339).
        clearable updated_at: String,
    }
}

record! {
    /// An update to the context window usage and the session's cost.
    pub struct UsageUpdate {
        /// The number of tokens in the context window.
        #[serde(deserialize_with = "crate::lenient::required")]
        required used: u64,
        /// The size of the context window, in tokens.
        #[serde(deserialize_with = "crate::lenient::required")]
        required size: u64,
        /// The cost of the session so far. If absent, it is unchanged.
        clearable cost: Cost,
    }
}
