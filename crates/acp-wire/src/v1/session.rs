//! Session setup: the specification's page of that name, and what came after it (`session/list`,
//! `session/resume`, `session/close`, `session/delete`, `session_info_update`, `usage_update`).

use super::{
    McpServer, SessionArchiveFilter, SessionConfigOption, SessionModeState, SessionModelState,
    SystemPrompt,
};

string_id! {
    /// Names a session.
    pub struct SessionId;
    /// Names a message, whose chunks carry it.
    pub struct MessageId;
}

impl Default for MessageId {
    /// The empty id: that of a message whose agent gives none.
    fn default() -> Self {
        "".into()
    }
}

record! {
    /// `session/new`.
    pub struct NewSessionRequest {
        /// The working directory, an absolute path.
        required cwd: String,
        /// MCP servers to connect to.
        required_list mcp_servers: McpServer,
        /// Further roots, absolute paths.
        list additional_directories: String,
        /// The client's own instructions for the model. Unstable: for agents that have `systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

record! {
    /// The answer to `session/new`.
    pub struct NewSessionResponse {
        /// The new session.
        required session_id: SessionId,
        /// Its modes.
        optional modes: SessionModeState,
        /// Its config options.
        optional_list config_options: SessionConfigOption,
        /// Its models. Unstable: of agents that have no config option for them.
        optional models: SessionModelState,
    }
}

record! {
    /// `session/load`: the session's conversation is replayed before the answer.
    pub struct LoadSessionRequest {
        /// The session.
        required session_id: SessionId,
        /// The working directory, an absolute path.
        required cwd: String,
        /// MCP servers to connect to.
        required_list mcp_servers: McpServer,
        /// Further roots, absolute paths.
        list additional_directories: String,
        /// The client's own instructions for the model. Unstable: for agents that have `systemPrompt`.
        strict system_prompt: SystemPrompt,
    }
}

record! {
    /// The answer to `session/load`.
    pub struct LoadSessionResponse {
        /// The session's modes.
        optional modes: SessionModeState,
        /// The session's config options.
        optional_list config_options: SessionConfigOption,
        /// The session's models. Unstable: of agents that have no config option for them.
        optional models: SessionModelState,
    }
}

record! {
    /// `session/resume`: as `session/load`, without the replay.
    pub struct ResumeSessionRequest {
        /// The session.
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
    /// The answer to `session/resume`.
    pub struct ResumeSessionResponse {
        /// The session's modes.
        optional modes: SessionModeState,
        /// The session's config options.
        optional_list config_options: SessionConfigOption,
        /// The session's models. Unstable: of agents that have no config option for them.
        optional models: SessionModelState,
    }
}

record! {
    /// `session/fork`: a new session that begins as a copy of another. Unstable: for agents that have
    /// `sessionCapabilities.fork`.
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
        /// Its modes.
        optional modes: SessionModeState,
        /// Its config options.
        optional_list config_options: SessionConfigOption,
        /// Its models. Unstable: of agents that have no config option for them.
        optional models: SessionModelState,
    }
}

record! {
    /// `session/list`.
    pub struct ListSessionsRequest {
        /// Only sessions with this working directory.
        optional cwd: String,
        /// Where the page before ended.
        optional cursor: String,
        /// Whether archived sessions are among them. Unstable: for agents that have `sessionCapabilities.archive`.
        strict archived: SessionArchiveFilter,
    }
}

record! {
    /// The answer to `session/list`: a page.
    pub struct ListSessionsResponse {
        /// The sessions of this page.
        required_list sessions: SessionInfo,
        /// To be given for the next page; absent on the last.
        optional next_cursor: String,
    }
}

record! {
    /// A session in a list.
    pub struct SessionInfo {
        /// The session.
        required session_id: SessionId,
        /// Its working directory.
        required cwd: String,
        /// Its further roots.
        list additional_directories: String,
        /// The title that is shown to the user.
        optional title: String,
        /// When it last changed (ISO 8601).
        optional updated_at: String,
        /// Whether it is archived. Unstable: agents that have `sessionCapabilities.archive` say so of each.
        optional archived: bool,
    }
}

record! {
    /// `session/delete`.
    pub struct DeleteSessionRequest {
        /// The session.
        required session_id: SessionId,
    }
}

record! {
    /// The answer to `session/delete`.
    pub struct DeleteSessionResponse {}
}

record! {
    /// `session/set_title`. Unstable: for agents that have `sessionCapabilities.title`.
    pub struct SetSessionTitleRequest {
        /// The session, which need not be open.
        required session_id: SessionId,
        /// Its new title, for users.
        required title: String,
    }
}

record! {
    /// The answer to `session/set_title`.
    pub struct SetSessionTitleResponse {
        /// The title that is kept: the agent may have trimmed or shortened it.
        required title: String,
    }
}

record! {
    /// `session/close`: cancels what runs and frees what the session holds.
    pub struct CloseSessionRequest {
        /// The session.
        required session_id: SessionId,
    }
}

record! {
    /// The answer to `session/close`.
    pub struct CloseSessionResponse {}
}

record! {
    /// What a session is called and when it changed. What is absent stays as it is, `null` clears.
    pub struct SessionInfoUpdate {
        /// The title that is shown to the user.
        clearable title: String,
        /// When it last changed (ISO 8601).
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
        /// What the session has cost so far.
        optional cost: Cost,
    }
}

record! {
    /// An amount of money.
    pub struct Cost {
        /// How much.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::finite))]
        required amount: f64,
        /// Of what (ISO 4217, such as `USD`).
        required currency: String,
    }
}
