//! The method table of version 1.

#[allow(clippy::wildcard_imports)]
use super::*;
use crate::jsonrpc::CancelRequestNotification;

method_table! {
    requests {
    /// A request that a client sends to an agent.
    ClientRequest from Client answered by AgentResponse {
        /// Initialization: versions and capabilities.
        Initialize = "initialize", InitializeRequest => InitializeResponse;
        /// Authenticates with one of the methods the agent named.
        Authenticate = "authenticate", AuthenticateRequest => AuthenticateResponse;
        /// Ends the authentication.
        Logout = "logout", LogoutRequest => LogoutResponse;
        /// Session setup: a new session.
        NewSession = "session/new", NewSessionRequest => NewSessionResponse;
        /// Session setup: an old session, replayed.
        LoadSession = "session/load", LoadSessionRequest => LoadSessionResponse;
        /// The sessions there are, by page.
        ListSessions = "session/list", ListSessionsRequest => ListSessionsResponse;
        /// Deletes a session for good.
        DeleteSession = "session/delete", DeleteSessionRequest => DeleteSessionResponse;
        /// An old session, not replayed.
        ResumeSession = "session/resume", ResumeSessionRequest => ResumeSessionResponse;
        /// Frees what a session holds.
        CloseSession = "session/close", CloseSessionRequest => CloseSessionResponse;
        /// Session modes: sets the mode.
        SetSessionMode = "session/set_mode", SetSessionModeRequest => SetSessionModeResponse;
        /// Session config options: sets an option.
        SetSessionConfigOption = "session/set_config_option", SetSessionConfigOptionRequest => SetSessionConfigOptionResponse;
        /// A new session that begins as a copy of another.
        ForkSession = "session/fork", ForkSessionRequest => ForkSessionResponse,
            [unstable "agents in use have it; told by `sessionCapabilities.fork`"];
        /// Sets the model.
        SetSessionModel = "session/set_model", SetSessionModelRequest => SetSessionModelResponse,
            [unstable "agents in use have it instead of a config option; told by `models` in session setup"];
        /// Prompt turn: the user's message.
        Prompt = "session/prompt", PromptRequest => PromptResponse;
    }
    /// A request that an agent sends to a client.
    AgentRequest from Agent answered by ClientResponse {
        /// Tool calls: asks the user's permission.
        RequestPermission = "session/request_permission", RequestPermissionRequest => RequestPermissionResponse;
        /// File system: writes a text file.
        WriteTextFile = "fs/write_text_file", WriteTextFileRequest => WriteTextFileResponse;
        /// File system: reads a text file.
        ReadTextFile = "fs/read_text_file", ReadTextFileRequest => ReadTextFileResponse;
        /// Terminals: starts a command.
        CreateTerminal = "terminal/create", CreateTerminalRequest => CreateTerminalResponse;
        /// Terminals: what it has printed.
        TerminalOutput = "terminal/output", TerminalOutputRequest => TerminalOutputResponse;
        /// Terminals: ends it and frees it.
        ReleaseTerminal = "terminal/release", ReleaseTerminalRequest => ReleaseTerminalResponse;
        /// Terminals: waits for its end.
        WaitForTerminalExit = "terminal/wait_for_exit", WaitForTerminalExitRequest => WaitForTerminalExitResponse;
        /// Terminals: ends the command.
        KillTerminal = "terminal/kill", KillTerminalRequest => KillTerminalResponse;
        /// Elicitation: asks the user for input.
        CreateElicitation = "elicitation/create", CreateElicitationRequest => CreateElicitationResponse;
    }
    }
    notifications {
    /// A notification that a client sends to an agent.
    ClientNotification from Client {
        /// Prompt turn: cancels it.
        Cancel = "session/cancel", CancelNotification;
    }
    /// A notification that an agent sends to a client.
    AgentNotification from Agent {
        /// Prompt turn: what happens in a session.
        SessionUpdate = "session/update", SessionNotification;
        /// Elicitation: a URL elicitation has been completed.
        CompleteElicitation = "elicitation/complete", CompleteElicitationNotification;
    }
    /// A notification that either side sends.
    ProtocolNotification from Either {
        /// Cancels a request.
        CancelRequest = "$/cancel_request", CancelRequestNotification;
    }
    }
}
