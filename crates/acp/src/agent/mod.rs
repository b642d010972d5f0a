//! The agent's side of the protocol.
//!
//! Implement [`Agent`], which opens sessions and runs turns, and pass it to [`serve_stdio`] or [`serve`]. The methods
//! of a [`Turn`] report messages, thoughts, plans and tool calls, whichever protocol version the client speaks.

mod config;
mod display_terminal;
mod dyn_agent;
mod elicitation;
mod initialize;
mod methods;
mod open_session;
mod permission;
mod prompt_turn;
mod recording;
mod session;
mod side;
#[cfg(feature = "unstable")]
mod subagent;
mod terminal;
mod tool_call;
mod turn;
mod turn_queue;
mod updates;

pub use crate::extension::{ExtensionNotification, ExtensionRequest};
pub use crate::session_setup::SessionSetup;
pub use display_terminal::DisplayTerminal;
pub use dyn_agent::DynAgent;
pub use initialize::ClientInfo;
#[cfg(feature = "unstable-v2")]
pub use methods::CancelWork;
#[cfg(feature = "unstable")]
pub use methods::{
    ArchiveSession, AuthStatusHandler, ForkAtMessage, ForkSession, Providers, SessionStatusHandler,
    SetSessionTitle, SteerTurn,
};
pub use methods::{
    AuthContext, Authentication, CloseSession, DeleteSession, ListSessions, LoadSession,
    ResumeSession,
};
// Without the feature, these are private, so that agents cannot implement them.
#[cfg(not(feature = "unstable-v2"))]
use methods::CancelWork;
#[cfg(not(feature = "unstable"))]
use methods::{
    ArchiveSession, AuthStatusHandler, ForkAtMessage, ForkSession, Providers, SessionStatusHandler,
    SetSessionTitle, SteerTurn,
};
pub use permission::PermissionAnswer;
pub use recording::Recorder;
pub use session::{OpenedSession, Session};
#[cfg(feature = "stdio")]
pub use side::serve_stdio;
pub use side::{default_limits, serve, serve_with, start};
#[cfg(feature = "unstable")]
pub use subagent::Subagent;
pub use terminal::{ClientTerminal, TerminalCommand};
pub use tool_call::{NewToolCall, ToolCallHandle};
pub use turn::{Prompt, Turn};

use acp_wire::v1::{
    Implementation, McpCapabilities, PromptCapabilities, SessionConfigId, SessionConfigOption,
    SessionConfigOptionValue, SessionId, SessionSystemPromptCapabilities, StopReason,
};
use serde_json::value::RawValue;

use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::pending_request::UnsupportedMethod;

/// An agent, which opens sessions and works on prompts. Only [`new_session`](Self::new_session) and
/// [`prompt`](Self::prompt) are required.
///
/// The agent's capabilities (`agentCapabilities`) are derived from the methods of this trait. For example, the agent
/// declares `session/load` exactly when [`load_session`](Self::load_session) returns a handler.
pub trait Agent: Send + Sync + 'static {
    /// The agent's own data for one open session. It is created when the session is opened, passed to every call
    /// about the session, and dropped when the session is closed or the connection ends. Use `()` if you need none.
    type State: Send + Sync + 'static;

    /// Opens a new session (`session/new`). The paths in `setup` are absolute, and its MCP servers use transports that
    /// the agent supports. The client does not know the session's id yet, so do not send updates here but in
    /// [`session_opened`](Self::session_opened). See "Creating a Session" on the specification's page "Session Setup".
    ///
    /// # Errors
    /// The session is not opened, and the error is sent as the response. After
    /// [`jsonrpc::Error::AUTH_REQUIRED`](acp_wire::jsonrpc::Error::AUTH_REQUIRED), the client must authenticate
    /// first.
    fn new_session(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> impl Future<Output = Result<OpenedSession<Self::State>>> + Send;

    /// Runs a turn. See the specification's page "Prompt Turn".
    ///
    /// When the client cancels the turn, the future is dropped and the turn ends as cancelled. To end a cancelled turn
    /// yourself, call [`Turn::take_cancellation`]. An error is sent as the response, unless the turn was cancelled.
    fn prompt(
        &self,
        state: &Self::State,
        turn: Turn,
        prompt: Prompt,
    ) -> impl Future<Output = Result<StopReason>> + Send;

    /// Returns the agent's name and version (`agentInfo`).
    fn info(&self) -> Option<Implementation> {
        None
    }

    /// Returns the content types that the agent accepts in prompts in addition to text and resource links. Prompts with
    /// other content are rejected before they reach [`prompt`](Self::prompt).
    fn prompt_capabilities(&self) -> PromptCapabilities {
        PromptCapabilities::new()
    }

    /// Returns the MCP transports that the agent supports, in addition to stdio.
    fn mcp_capabilities(&self) -> McpCapabilities {
        McpCapabilities::new()
    }

    /// Returns `true` if the agent supports MCP servers on stdio. Version 1 requires this of every agent, while version
    /// 2 makes it a capability.
    fn supports_mcp_stdio(&self) -> bool {
        true
    }

    /// Returns `true` if the agent supports additional roots in a session (`additionalDirectories`).
    fn supports_additional_directories(&self) -> bool {
        false
    }

    /// Returns how clients may extend or replace the agent's system prompt (`systemPrompt`, unstable). The library
    /// rejects system prompts that these capabilities do not allow, and passes the others to the agent in
    /// [`SessionSetup::system_prompt`].
    #[cfg(feature = "unstable")]
    fn system_prompt_capabilities(&self) -> Option<SessionSystemPromptCapabilities> {
        None
    }

    /// Returns an id for a new session. By default, it is random and cannot be guessed. See "Session ID" on the
    /// specification's page "Session Setup".
    fn new_session_id(&self) -> SessionId {
        format!("sess_{}", uuid::Uuid::new_v4().simple()).into()
    }

    /// Follows up on opening a session, for example by announcing slash commands. Called once the client knows the
    /// session's id.
    fn session_opened(
        &self,
        state: &Self::State,
        session: Session,
    ) -> impl Future<Output = ()> + Send {
        let _ = (state, session);
        async {}
    }

    /// Sets a config option and returns all options, because setting one can change others. The library has already
    /// checked that the option exists and accepts the value.
    ///
    /// The option of category `mode` is the session's mode. Clients that support only modes show it as the mode, and
    /// set it with `session/set_mode`.
    ///
    /// # Errors
    /// The option cannot be set and is unchanged. The error is sent as the response.
    fn set_config_option(
        &self,
        state: &Self::State,
        session: &Session,
        option: &SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> impl Future<Output = Result<Vec<SessionConfigOption>>> + Send {
        let _ = (state, session, value);
        let error = Error::invalid_params(format!("config option not found: {option}"));
        async { Err(error) }
    }

    /// Returns the handler of `session/load`, or `None` if the agent does not support it.
    fn load_session(&self) -> Option<&impl LoadSession<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler of `session/resume`, or `None` if the agent does not support it.
    fn resume_session(&self) -> Option<&impl ResumeSession<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler of `session/fork`, or `None` if the agent does not support it. Unstable.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn fork_session(&self) -> Option<&impl ForkSession<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler of forks that end at a message, an extension of `session/fork` that several agents support, or
    /// `None` if the agent can only copy whole sessions. It has no effect without [`fork_session`](Self::fork_session).
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn fork_at_message(&self) -> Option<&impl ForkAtMessage<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler of `tool_call/cancel` and `terminal/cancel`, which exist only in version 2.
    #[cfg_attr(not(feature = "unstable-v2"), doc(hidden))]
    fn cancel_work(&self) -> Option<&impl CancelWork<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler of `session/list`, or `None` if the agent does not support it.
    fn list_sessions(&self) -> Option<&impl ListSessions> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler of `session/close`, or `None` if the agent does not support it.
    fn close_session(&self) -> Option<&impl CloseSession<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler of `session/delete`, or `None` if the agent does not support it.
    fn delete_session(&self) -> Option<&impl DeleteSession> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler of `session/set_title`, or `None` if the agent does not support it. Unstable.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn set_session_title(&self) -> Option<&impl SetSessionTitle<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler of `session/archive` and `session/unarchive`. Unstable.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn archive_session(&self) -> Option<&impl ArchiveSession<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler of `session/status`, or `None` if the agent does not support it. Unstable.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn session_status(&self) -> Option<&impl SessionStatusHandler> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler of `auth/status`, or `None` if the agent does not support it. Unstable.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn auth_status(&self) -> Option<&impl AuthStatusHandler> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler of `providers/list`, `providers/set` and `providers/disable`. Unstable.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn providers(&self) -> Option<&impl Providers> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler of the extension `_session/steering`, or `None` if the agent does not support it.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn steer_turn(&self) -> Option<&impl SteerTurn<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Returns the recorder, which stores each update before it is sent, or `None` to record nothing.
    fn recorder(&self) -> Option<&impl Recorder<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler of `authenticate` and `logout`, or `None` if the agent needs no authentication.
    fn authentication(&self) -> Option<&impl Authentication> {
        None::<&UnsupportedMethod>
    }

    /// Handles an extension request, which can arrive before `initialize`.
    ///
    /// # Errors
    /// The error is sent as the response. The default is "Method not found".
    fn extension_request(
        &self,
        client: &Connection,
        request: ExtensionRequest,
    ) -> impl Future<Output = Result<Box<RawValue>>> + Send {
        let _ = client;
        async move { Err(request.not_found()) }
    }

    /// Handles an extension notification. The connection handles no further message until this method returns.
    fn extension_notification(
        &self,
        client: &Connection,
        notification: ExtensionNotification,
    ) -> impl Future<Output = ()> + Send {
        let _ = (client, notification);
        async {}
    }
}
