//! Session setup: the specification's page "Session Setup".

use super::{AvailableCommand, Cost, McpServer, SessionConfigOption, SessionId, SystemPrompt};

record! {
    /// The `session/new` request.
    pub struct NewSessionRequest {
        /// The working directory, as an absolute path.
        required cwd: String,
        /// Further roots, as absolute paths.
        list additional_directories: String,
        /// The MCP servers to connect to.
        list mcp_servers: McpServer,
        /// The client's own instructions for the model. Unstable; the agent must support `session.systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

record! {
    /// The response to `session/new`.
    pub struct NewSessionResponse {
        /// The id of the new session.
        required session_id: SessionId,
        /// The session's config options.
        list config_options: SessionConfigOption,
        /// The session's slash commands. Not in the draft of August 2026.
        list available_commands: AvailableCommand,
    }
}

record! {
    /// The `session/resume` request: opens an existing session.
    pub struct ResumeSessionRequest {
        /// The id of the session.
        required session_id: SessionId,
        /// The working directory, as an absolute path.
        required cwd: String,
        /// Further roots, as absolute paths.
        list additional_directories: String,
        /// The MCP servers to connect to.
        list mcp_servers: McpServer,
        /// Where the replay of the conversation starts. The agent replays it before it responds. Absent for no replay.
        optional replay_from: ReplayFrom,
        /// The client's own instructions for the model. Unstable; the agent must support `session.systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

tagged! {
    /// Where a replay starts, inclusive.
    pub enum ReplayFrom by "type" {
        /// At the start of the conversation.
        Start(ReplayFromStart) = "start",
    }
}

record! {
    /// The start of the conversation.
    pub struct ReplayFromStart {}
}

impl ReplayFrom {
    /// Returns the start of the conversation.
    #[must_use]
    pub fn start() -> Self {
        Self::Start(ReplayFromStart::new())
    }
}

record! {
    /// The response to `session/resume`.
    pub struct ResumeSessionResponse {
        /// The session's config options.
        list config_options: SessionConfigOption,
        /// The session's slash commands. Not in the draft of August 2026.
        list available_commands: AvailableCommand,
    }
}

record! {
    /// The `session/fork` request: opens a new session that starts as a copy of another one. Unstable; the agent must
    /// support `session.fork`.
    pub struct ForkSessionRequest {
        /// The id of the session to copy.
        required session_id: SessionId,
        /// The working directory, as an absolute path.
        required cwd: String,
        /// Further roots, as absolute paths.
        list additional_directories: String,
        /// The MCP servers to connect to.
        list mcp_servers: McpServer,
        /// The client's own instructions for the model. Unstable; the agent must support `session.systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

record! {
    /// The response to `session/fork`.
    pub struct ForkSessionResponse {
        /// The id of the new session.
        required session_id: SessionId,
        /// The session's config options.
        list config_options: SessionConfigOption,
        /// The session's slash commands. Not in the draft of August 2026.
        list available_commands: AvailableCommand,
    }
}

record! {
    /// An update of a session's title and time of change. Absent fields are unchanged; `null` clears a field.
    pub patch SessionInfoUpdate {
        /// The title to show to the user.
        clearable title: String,
        /// The time of the last change (RFC 3339).
        clearable updated_at: String,
    }
}

record! {
    /// The context usage, and the cost of the session.
    pub struct UsageUpdate {
        /// The tokens in the context now.
        #[serde(deserialize_with = "crate::lenient::required")]
        required used: u64,
        /// The size of the context window, in tokens.
        #[serde(deserialize_with = "crate::lenient::required")]
        required size: u64,
        /// The cost of the session so far. Unchanged if absent.
        clearable cost: Cost,
    }
}
