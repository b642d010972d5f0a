//! Lists the methods of both protocol versions. Each row contains everything that depends on the method: its name, its
//! sender, its types and the required capability. Reading, dispatch, capability checks and conformance checks are
//! derived from these rows.

/// The methods of version 1.
pub(crate) mod v1 {
    pub use crate::jsonrpc::CancelRequestNotification;
    #[allow(clippy::wildcard_imports)]
    use crate::v1::*;

    method_table! {
        requests {
        /// A request that a client sends to an agent.
        ClientRequest from Client answered by AgentResponse {
            /// Initialization: negotiates the version and the capabilities.
            Initialize = "initialize", InitializeRequest => InitializeResponse;
            /// Authenticates with one of the agent's auth methods.
            Authenticate = "authenticate", AuthenticateRequest => AuthenticateResponse;
            /// Logs the client out of the agent.
            Logout = "logout", LogoutRequest => LogoutResponse, needs "auth.logout";
            /// Asks whether the client must authenticate.
            AuthStatus = "auth/status", AuthStatusRequest => AuthStatusResponse, needs "auth.status",
                unstable "part of the unstable schema of November 2026; requires the capability `auth.status`";
            /// Lists the model providers.
            ListProviders = "providers/list", ListProvidersRequest => ListProvidersResponse, needs "providers",
                unstable "part of the unstable schema of November 2026; requires the capability `providers`";
            /// Configures a model provider.
            SetProvider = "providers/set", SetProviderRequest => SetProviderResponse, needs "providers",
                unstable "part of the unstable schema of November 2026; requires the capability `providers`";
            /// Disables a model provider.
            DisableProvider = "providers/disable", DisableProviderRequest => DisableProviderResponse, needs "providers",
                unstable "part of the unstable schema of November 2026; requires the capability `providers`";
            /// Session setup: opens a new session.
            NewSession = "session/new", NewSessionRequest => NewSessionResponse;
            /// Session setup: opens an existing session with a replay.
            LoadSession = "session/load", LoadSessionRequest => LoadSessionResponse, needs_flag "loadSession";
            /// Lists sessions, one page at a time.
            ListSessions = "session/list", ListSessionsRequest => ListSessionsResponse, needs "sessionCapabilities.list";
            /// Deletes a session permanently.
            DeleteSession = "session/delete", DeleteSessionRequest => DeleteSessionResponse, needs "sessionCapabilities.delete";
            /// Opens an existing session without a replay.
            ResumeSession = "session/resume", ResumeSessionRequest => ResumeSessionResponse, needs "sessionCapabilities.resume";
            /// Closes a session and frees its resources.
            CloseSession = "session/close", CloseSessionRequest => CloseSessionResponse, needs "sessionCapabilities.close";
            /// Session modes: switches the mode.
            SetSessionMode = "session/set_mode", SetSessionModeRequest => SetSessionModeResponse;
            /// Session config options: sets an option.
            SetSessionConfigOption = "session/set_config_option", SetSessionConfigOptionRequest => SetSessionConfigOptionResponse;
            /// Session list: changes the title of a session.
            SetSessionTitle = "session/set_title", SetSessionTitleRequest => SetSessionTitleResponse, needs "sessionCapabilities.title",
                unstable "part of the unstable schema of November 2026; requires the capability `sessionCapabilities.title`";
            /// Session list: hides a session from lists, but keeps it stored.
            ArchiveSession = "session/archive", ArchiveSessionRequest => ArchiveSessionResponse, needs "sessionCapabilities.archive",
                unstable "part of the unstable schema of November 2026; requires the capability `sessionCapabilities.archive`";
            /// Session list: shows an archived session in lists again.
            UnarchiveSession = "session/unarchive", UnarchiveSessionRequest => UnarchiveSessionResponse, needs "sessionCapabilities.archive",
                unstable "part of the unstable schema of November 2026; requires the capability `sessionCapabilities.archive`";
            /// Session list: asks whether a session is open.
            SessionStatus = "session/status", SessionStatusRequest => SessionStatusResponse, needs "sessionCapabilities.status",
                unstable "part of the unstable schema of November 2026; requires the capability `sessionCapabilities.status`";
            /// Opens a new session that starts as a copy of another one.
            ForkSession = "session/fork", ForkSessionRequest => ForkSessionResponse, needs "sessionCapabilities.fork",
                unstable "not in any schema, but several agents support it; requires the capability `sessionCapabilities.fork`";
            /// Switches the session's model.
            SetSessionModel = "session/set_model", SetSessionModelRequest => SetSessionModelResponse,
                unstable "not in any schema, but several agents use it instead of a config option; available if the session setup response contains `models`";
            /// Prompt turn: sends the user's message.
            Prompt = "session/prompt", PromptRequest => PromptResponse;
        }
        /// A request that an agent sends to a client.
        AgentRequest from Agent answered by ClientResponse {
            /// Tool calls: requests the user's permission.
            RequestPermission = "session/request_permission", RequestPermissionRequest => RequestPermissionResponse;
            /// File system: writes a text file.
            WriteTextFile = "fs/write_text_file", WriteTextFileRequest => WriteTextFileResponse, needs_flag "fs.writeTextFile";
            /// File system: reads a text file.
            ReadTextFile = "fs/read_text_file", ReadTextFileRequest => ReadTextFileResponse, needs_flag "fs.readTextFile";
            /// Terminals: starts a command.
            CreateTerminal = "terminal/create", CreateTerminalRequest => CreateTerminalResponse, needs_flag "terminal";
            /// Terminals: asks for the output so far.
            TerminalOutput = "terminal/output", TerminalOutputRequest => TerminalOutputResponse, needs_flag "terminal";
            /// Terminals: kills the command and frees the terminal.
            ReleaseTerminal = "terminal/release", ReleaseTerminalRequest => ReleaseTerminalResponse, needs_flag "terminal";
            /// Terminals: waits for the command to exit.
            WaitForTerminalExit = "terminal/wait_for_exit", WaitForTerminalExitRequest => WaitForTerminalExitResponse, needs_flag "terminal";
            /// Terminals: kills the command.
            KillTerminal = "terminal/kill", KillTerminalRequest => KillTerminalResponse, needs_flag "terminal";
            /// Elicitation: requests input from the user.
            CreateElicitation = "elicitation/create", CreateElicitationRequest => CreateElicitationResponse, needs "elicitation";
        }
        }
        notifications {
        /// A notification that a client sends to an agent.
        ClientNotification from Client {
            /// Prompt turn: cancels the turn.
            Cancel = "session/cancel", CancelNotification;
        }
        /// A notification that an agent sends to a client.
        AgentNotification from Agent {
            /// Prompt turn: reports what happens in a session.
            SessionUpdate = "session/update", SessionNotification;
            /// Elicitation: reports that the user has finished on a web page.
            CompleteElicitation = "elicitation/complete", CompleteElicitationNotification;
            /// Reports a change of the authentication status.
            AuthStatusUpdate = "auth/status_update", AuthStatusUpdateNotification,
                unstable "part of the unstable schema of November 2026; sent by agents that declare `auth.status`";
        }
        /// A notification that either side sends.
        ProtocolNotification from Either {
            /// Cancels a request.
            CancelRequest = "$/cancel_request", CancelRequestNotification;
        }
        }
    }
}

/// The methods of version 2.
pub(crate) mod v2 {
    #[allow(clippy::wildcard_imports)]
    use crate::v2::*;

    method_table! {
        requests {
        /// A request that a client sends to an agent.
        ClientRequest from Client answered by AgentResponse {
            /// Initialization: negotiates the version and the capabilities.
            Initialize = "initialize", InitializeRequest => InitializeResponse;
            /// Authenticates with one of the agent's auth methods.
            Login = "auth/login", LoginAuthRequest => LoginAuthResponse;
            /// Logs the client out of the agent.
            Logout = "auth/logout", LogoutAuthRequest => LogoutAuthResponse;
            /// Asks whether the client must authenticate.
            AuthStatus = "auth/status", AuthStatusRequest => AuthStatusResponse, shared, needs "auth.status",
                unstable "part of the unstable schema of November 2026; requires the capability `auth.status`";
            /// Lists the model providers.
            ListProviders = "providers/list", ListProvidersRequest => ListProvidersResponse, shared, needs "providers",
                unstable "part of the unstable schema of November 2026; requires the capability `providers`";
            /// Configures a model provider.
            SetProvider = "providers/set", SetProviderRequest => SetProviderResponse, shared, needs "providers",
                unstable "part of the unstable schema of November 2026; requires the capability `providers`";
            /// Disables a model provider.
            DisableProvider = "providers/disable", DisableProviderRequest => DisableProviderResponse, shared, needs "providers",
                unstable "part of the unstable schema of November 2026; requires the capability `providers`";
            /// Session setup: opens a new session.
            NewSession = "session/new", NewSessionRequest => NewSessionResponse, needs "session";
            /// Session setup: opens an existing session, with or without a replay.
            ResumeSession = "session/resume", ResumeSessionRequest => ResumeSessionResponse, needs "session";
            /// Lists sessions, one page at a time.
            ListSessions = "session/list", ListSessionsRequest => ListSessionsResponse, shared, needs "session";
            /// Deletes a session permanently.
            DeleteSession = "session/delete", DeleteSessionRequest => DeleteSessionResponse, shared, needs "session.delete";
            /// Closes a session and frees its resources.
            CloseSession = "session/close", CloseSessionRequest => CloseSessionResponse, shared, needs "session";
            /// Session list: changes the title of a session.
            SetSessionTitle = "session/set_title", SetSessionTitleRequest => SetSessionTitleResponse, shared, needs "session.title",
                unstable "part of the unstable schema of November 2026; requires the capability `session.title`";
            /// Session list: hides a session from lists, but keeps it stored.
            ArchiveSession = "session/archive", ArchiveSessionRequest => ArchiveSessionResponse, shared, needs "session.archive",
                unstable "part of the unstable schema of November 2026; requires the capability `session.archive`";
            /// Session list: shows an archived session in lists again.
            UnarchiveSession = "session/unarchive", UnarchiveSessionRequest => UnarchiveSessionResponse, shared, needs "session.archive",
                unstable "part of the unstable schema of November 2026; requires the capability `session.archive`";
            /// Session list: asks whether a session is open.
            SessionStatus = "session/status", SessionStatusRequest => SessionStatusResponse, needs "session.status",
                unstable "part of the unstable schema of November 2026; requires the capability `session.status`";
            /// Opens a new session that starts as a copy of another one.
            ForkSession = "session/fork", ForkSessionRequest => ForkSessionResponse, needs "session.fork",
                unstable "not in any schema, but several agents support it; requires the capability `session.fork`";
            /// Session config options: sets an option.
            SetSessionConfigOption = "session/set_config_option", SetSessionConfigOptionRequest => SetSessionConfigOptionResponse, needs "session";
            /// Prompt lifecycle: sends the user's message. The response confirms that it was accepted.
            Prompt = "session/prompt", PromptRequest => PromptResponse, needs "session";
            /// Tool calls: cancels a tool call.
            CancelToolCall = "tool_call/cancel", CancelToolCallRequest => CancelToolCallResponse,
                unstable "added after the draft of August 2026; allowed only if the tool call has `capabilities.cancel`";
            /// Tool calls: terminates the command in a display terminal.
            CancelTerminal = "terminal/cancel", CancelTerminalRequest => CancelTerminalResponse,
                unstable "added after the draft of August 2026; allowed only if the terminal has `capabilities.cancel`";
        }
        /// A request that an agent sends to a client.
        AgentRequest from Agent answered by ClientResponse {
            /// Tool calls: requests the user's permission.
            RequestPermission = "session/request_permission", RequestPermissionRequest => RequestPermissionResponse;
            /// Elicitation: requests input from the user.
            CreateElicitation = "elicitation/create", CreateElicitationRequest => CreateElicitationResponse, shared, needs "elicitation";
        }
        }
        notifications {
        /// A notification that a client sends to an agent.
        ClientNotification from Client {
            /// Prompt lifecycle: cancels the work in a session.
            Cancel = "session/cancel", CancelNotification, shared;
        }
        /// A notification that an agent sends to a client.
        AgentNotification from Agent {
            /// Prompt lifecycle: reports what happens in a session.
            SessionUpdate = "session/update", UpdateSessionNotification;
            /// Elicitation: reports that the user has finished on a web page.
            CompleteElicitation = "elicitation/complete", CompleteElicitationNotification, shared;
            /// Reports a change of the authentication status.
            AuthStatusUpdate = "auth/status_update", AuthStatusUpdateNotification, shared,
                unstable "part of the unstable schema of November 2026; sent by agents that declare `auth.status`";
        }
        /// A notification that either side sends.
        ProtocolNotification from Either {
            /// Cancels a request.
            CancelRequest = "$/cancel_request", CancelRequestNotification, shared;
        }
        }
    }
}

/// The extensions that the library supports, in both versions. Their method names start with `_`. A side announces them
/// in `_meta` of `initialize`, and the paths of their capabilities are relative to that object.
pub mod extensions {
    use crate::v1::{SteerRequest, SteerResponse};

    method_table! {
        requests {
        /// An extension request that a client sends to an agent.
        ClientExtensionRequest from Client answered by AgentExtensionResponse {
            /// Prompt turn: adds a message to the running turn.
            Steer = "_session/steering", SteerRequest => SteerResponse, needs_flag "steering.supported";
        }
        }
        notifications {}
    }
}
