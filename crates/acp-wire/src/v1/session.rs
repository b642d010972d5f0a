//! Session setup, and the session methods and updates that were added later: `session/list`, `session/resume`,
//! `session/close`, `session/delete`, `session_info_update` and `usage_update`. See the specification's page "Session
//! Setup".

use super::{
    McpServer, SessionArchiveFilter, SessionConfigOption, SessionModeState, SessionModelState,
    SystemPrompt,
};

string_id! {
    /// The id of a session, chosen by the agent.
    pub struct SessionId;
    /// The id of a message in a session. All chunks of a message have the same id.
    pub struct MessageId;
}

impl Default for MessageId {
    /// Returns the empty id, for messages from agents that do not send message ids.
    fn default() -> Self {
        "".into()
    }
}

record! {
    /// The `session/new` request: opens a new session.
    pub struct NewSessionRequest {
        /// The working directory, as an absolute path.
        required cwd: String,
        /// The MCP servers to connect to.
        required_list mcp_servers: McpServer,
        /// Additional roots, as absolute paths.
        list additional_directories: String,
        /// The client's instructions for the model. Unstable: requires the agent's capability
        /// `sessionCapabilities.systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

record! {
    /// The response to `session/new`, with the session's id and settings.
    pub struct NewSessionResponse {
        /// The new session's id, chosen by the agent.
        required session_id: SessionId,
        /// The session's modes, if the agent has any.
        optional modes: SessionModeState,
        /// All config options of the session, with their current values.
        optional_list config_options: SessionConfigOption,
        /// The session's models, if the agent offers a choice. Unstable: sent by agents that have no config option for
        /// the model.
        optional models: SessionModelState,
    }
}

record! {
    /// The `session/load` request. The agent replays the conversation before it responds.
    pub struct LoadSessionRequest {
        /// The session to open.
        required session_id: SessionId,
        /// The working directory, as an absolute path.
        required cwd: String,
        /// The MCP servers to connect to.
        required_list mcp_servers: McpServer,
        /// Additional roots, as absolute paths.
        list additional_directories: String,
        /// The client's instructions for the model. Unstable: requires the agent's capability
        /// `sessionCapabilities.systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

record! {
    /// The response to `session/load`, with the session's settings.
    pub struct LoadSessionResponse {
        /// The session's modes, if the agent has any.
        optional modes: SessionModeState,
        /// All config options of the session, with their current values.
        optional_list config_options: SessionConfigOption,
        /// The session's models, if the agent offers a choice. Unstable: sent by agents that have no config option for
        /// the model.
        optional models: SessionModelState,
    }
}

record! {
    /// The `session/resume` request: like `session/load`, but without a replay.
    pub struct ResumeSessionRequest {
        /// The session to open.
        required session_id: SessionId,
        /// The working directory, as an absolute path.
        required cwd: String,
        /// Additional roots, as absolute paths.
        list additional_directories: String,
        /// The MCP servers to connect to.
        list mcp_servers: McpServer,
        /// The client's instructions for the model. Unstable: requires the agent's capability
        /// `sessionCapabilities.systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

record! {
    /// The response to `session/resume`, with the session's settings.
    pub struct ResumeSessionResponse {
        /// The session's modes, if the agent has any.
        optional modes: SessionModeState,
        /// All config options of the session, with their current values.
        optional_list config_options: SessionConfigOption,
        /// The session's models, if the agent offers a choice. Unstable: sent by agents that have no config option for
        /// the model.
        optional models: SessionModelState,
    }
}

record! {
    /// The `session/fork` request: opens a new session that starts as a copy of another one. Unstable; the agent must
    /// support `sessionCapabilities.fork`.
    pub struct ForkSessionRequest {
        /// The session to copy.
        required session_id: SessionId,
        /// The working directory, as an absolute path.
        required cwd: String,
        /// Additional roots, as absolute paths.
        list additional_directories: String,
        /// The MCP servers to connect to.
        list mcp_servers: McpServer,
        /// The client's instructions for the model. Unstable: requires the agent's capability
        /// `sessionCapabilities.systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

record! {
    /// The response to `session/fork`, with the new session's id and settings.
    pub struct ForkSessionResponse {
        /// The new session's id, chosen by the agent.
        required session_id: SessionId,
        /// The session's modes, if the agent has any.
        optional modes: SessionModeState,
        /// All config options of the session, with their current values.
        optional_list config_options: SessionConfigOption,
        /// The session's models, if the agent offers a choice. Unstable: sent by agents that have no config option for
        /// the model.
        optional models: SessionModelState,
    }
}

record! {
    /// The `session/list` request: lists sessions, one page at a time.
    pub struct ListSessionsRequest {
        /// The working directory to filter by. If absent, all sessions are listed.
        optional cwd: String,
        /// The `next_cursor` of the previous page. Absent for the first page.
        optional cursor: String,
        /// Whether to list archived sessions. Unstable: requires the agent's capability `sessionCapabilities.archive`.
        strict archived: SessionArchiveFilter,
    }
}

record! {
    /// The response to `session/list`, with one page of sessions.
    pub struct ListSessionsResponse {
        /// The sessions on this page.
        required_list sessions: SessionInfo,
        /// The cursor of the next page. Absent on the last page.
        optional next_cursor: String,
    }
}

record! {
    /// A session as listed by `session/list`.
    pub struct SessionInfo {
        /// The id used to open the session.
        required session_id: SessionId,
        /// The session's working directory, as an absolute path.
        required cwd: String,
        /// Additional roots, as absolute paths.
        list additional_directories: String,
        /// The title to show to the user.
        optional title: String,
        /// When the session last changed (ISO 8601).
        optional updated_at: String,
        /// Whether the session is archived. Unstable: agents with the capability `sessionCapabilities.archive` send it
        /// for every session.
        optional archived: bool,
    }
}

record! {
    /// The `session/delete` request: deletes a session permanently.
    pub struct DeleteSessionRequest {
        /// The session to delete.
        required session_id: SessionId,
    }
}

record! {
    /// The response to `session/delete`, sent once the session is deleted.
    pub struct DeleteSessionResponse {}
}

record! {
    /// The `session/set_title` request: changes the title of a session. Unstable: requires the agent's capability
    /// `sessionCapabilities.title`.
    pub struct SetSessionTitleRequest {
        /// The session to rename. It need not be open.
        required session_id: SessionId,
        /// The new title to show to the user.
        required title: String,
    }
}

record! {
    /// The response to `session/set_title`, with the stored title.
    pub struct SetSessionTitleResponse {
        /// The stored title. The agent may have trimmed or truncated it.
        required title: String,
    }
}

record! {
    /// The `session/close` request: cancels running work and frees the session's resources.
    pub struct CloseSessionRequest {
        /// The session to close.
        required session_id: SessionId,
    }
}

record! {
    /// The response to `session/close`, sent once the session is closed.
    pub struct CloseSessionResponse {}
}

record! {
    /// An update to a session's title and the time of its last change. Absent fields are unchanged, and `null` clears a
    /// field.
    pub struct SessionInfoUpdate {
        /// The title to show to the user.
        clearable title: String,
        /// When the session last changed (ISO 8601).
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
        /// The cost of the session so far.
        optional cost: Cost,
    }
}

record! {
    /// An amount of money.
    pub struct Cost {
        /// The amount, in units of `currency`.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::finite))]
        required amount: f64,
        /// The ISO 4217 code of the currency, such as `USD`.
        required currency: String,
    }
}
