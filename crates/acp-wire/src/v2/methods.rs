//! The method table of version 2.

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
        Login = "auth/login", LoginAuthRequest => LoginAuthResponse;
        /// Ends the authentication.
        Logout = "auth/logout", LogoutAuthRequest => LogoutAuthResponse;
        /// Session setup: a new session.
        NewSession = "session/new", NewSessionRequest => NewSessionResponse;
        /// Session setup: an old session, replayed or not.
        ResumeSession = "session/resume", ResumeSessionRequest => ResumeSessionResponse;
        /// The sessions there are, by page.
        ListSessions = "session/list", ListSessionsRequest => ListSessionsResponse, [shared];
        /// Deletes a session for good.
        DeleteSession = "session/delete", DeleteSessionRequest => DeleteSessionResponse, [shared];
        /// Frees what a session holds.
        CloseSession = "session/close", CloseSessionRequest => CloseSessionResponse, [shared];
        /// A new session that begins as a copy of another.
        ForkSession = "session/fork", ForkSessionRequest => ForkSessionResponse,
            [unstable "agents in use have it; told by `session.fork`"];
        /// Session config options: sets an option.
        SetSessionConfigOption = "session/set_config_option", SetSessionConfigOptionRequest => SetSessionConfigOptionResponse;
        /// Prompt lifecycle: the user's message. The answer says that it has been taken.
        Prompt = "session/prompt", PromptRequest => PromptResponse;
        /// Tool calls: cancels one.
        CancelToolCall = "tool_call/cancel", CancelToolCallRequest => CancelToolCallResponse,
            [unstable "newer than the draft of August 2026; told by `capabilities.cancel` of the tool call"];
        /// Tool calls: ends what runs in a terminal of the agent's.
        CancelTerminal = "terminal/cancel", CancelTerminalRequest => CancelTerminalResponse,
            [unstable "newer than the draft of August 2026; told by `capabilities.cancel` of the terminal"];
    }
    /// A request that an agent sends to a client.
    AgentRequest from Agent answered by ClientResponse {
        /// Tool calls: asks the user's permission.
        RequestPermission = "session/request_permission", RequestPermissionRequest => RequestPermissionResponse;
        /// Elicitation: asks the user for input.
        CreateElicitation = "elicitation/create", CreateElicitationRequest => CreateElicitationResponse, [shared];
    }
    }
    notifications {
    /// A notification that a client sends to an agent.
    ClientNotification from Client {
        /// Prompt lifecycle: cancels what the session works on.
        Cancel = "session/cancel", CancelNotification, [shared];
    }
    /// A notification that an agent sends to a client.
    AgentNotification from Agent {
        /// Prompt lifecycle: what happens in a session.
        SessionUpdate = "session/update", UpdateSessionNotification;
        /// Elicitation: a URL elicitation has been completed.
        CompleteElicitation = "elicitation/complete", CompleteElicitationNotification, [shared];
    }
    /// A notification that either side sends.
    ProtocolNotification from Either {
        /// Cancels a request.
        CancelRequest = "$/cancel_request", CancelRequestNotification, [shared];
    }
    }
}
