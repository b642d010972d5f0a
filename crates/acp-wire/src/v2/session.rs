//! Session setup: the specification's page of that name.

use super::{AvailableCommand, Cost, McpServer, SessionConfigOption, SessionId, SystemPrompt};

record! {
    /// `session/new`.
    pub struct NewSessionRequest {
        /// The working directory, an absolute path.
        required cwd: String,
        /// Further roots, absolute paths.
        list additional_directories: String,
        /// MCP servers to connect to.
        list mcp_servers: McpServer,
        /// The client's own instructions for the model. Unstable: for agents that have `systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

record! {
    /// The answer to `session/new`.
    pub struct NewSessionResponse {
        /// The new session.
        required session_id: SessionId,
        /// Its config options.
        list config_options: SessionConfigOption,
        /// Its slash commands. Not in the draft of August 2026.
        list available_commands: AvailableCommand,
    }
}

record! {
    /// `session/resume`: an old session.
    pub struct ResumeSessionRequest {
        /// The session.
        required session_id: SessionId,
        /// The working directory, an absolute path.
        required cwd: String,
        /// Further roots, absolute paths.
        list additional_directories: String,
        /// MCP servers to connect to.
        list mcp_servers: McpServer,
        /// From where on the conversation is replayed before the answer; absent for not at all.
        optional replay_from: ReplayFrom,
        /// The client's own instructions for the model. Unstable: for agents that have `systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

tagged! {
    /// Where a replay begins; what is there is part of it.
    pub enum ReplayFrom by "type" {
        /// At the beginning of the conversation.
        Start(ReplayFromStart) = "start",
    }
}

record! {
    /// The beginning of the conversation.
    pub struct ReplayFromStart {}
}

impl ReplayFrom {
    /// At the beginning of the conversation.
    #[must_use]
    pub fn start() -> Self {
        Self::Start(ReplayFromStart::new())
    }
}

record! {
    /// The answer to `session/resume`.
    pub struct ResumeSessionResponse {
        /// The session's config options.
        list config_options: SessionConfigOption,
        /// The session's slash commands. Not in the draft of August 2026.
        list available_commands: AvailableCommand,
    }
}

record! {
    /// `session/fork`: a new session that begins as a copy of another. Unstable.
    pub struct ForkSessionRequest {
        /// The session to copy.
        required session_id: SessionId,
        /// The working directory, an absolute path.
        required cwd: String,
        /// Further roots, absolute paths.
        list additional_directories: String,
        /// MCP servers to connect to.
        list mcp_servers: McpServer,
        /// The client's own instructions for the model. Unstable: for agents that have `systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

record! {
    /// The answer to `session/fork`.
    pub struct ForkSessionResponse {
        /// The new session.
        required session_id: SessionId,
        /// Its config options.
        list config_options: SessionConfigOption,
        /// Its slash commands. Not in the draft of August 2026.
        list available_commands: AvailableCommand,
    }
}

record! {
    /// What a session is called and when it changed. What is absent stays as it is, `null` clears.
    pub patch SessionInfoUpdate {
        /// The title that is shown to the user.
        clearable title: String,
        /// When it last changed (RFC 3339).
        clearable updated_at: String,
    }
}

record! {
    /// How full the model's context is, and what the session has cost.
    pub struct UsageUpdate {
        /// Tokens in the context now.
        #[serde(deserialize_with = "crate::lenient::required")]
        required used: u64,
        /// Tokens that fit into it.
        #[serde(deserialize_with = "crate::lenient::required")]
        required size: u64,
        /// What the session has cost so far; absent stays as it is.
        clearable cost: Cost,
    }
}
