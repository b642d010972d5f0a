//! The agent's side: what answers prompts.
//!
//! Implement [`Agent`] and hand it to [`serve_stdio`] or [`serve`]. It opens sessions and runs turns. What is said,
//! thought, planned and done in a [`Turn`] is reported through its methods, whichever version of the protocol the client
//! speaks.

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
    ArchiveSession, CheckAuthStatus, CheckSessionStatus, ForkSession, Providers, SetSessionTitle,
    SteerTurn,
};
pub use methods::{
    AuthContext, Authentication, CloseSession, DeleteSession, ListSessions, LoadSession,
    ResumeSession,
};
// Nobody else can name these then, and so nobody can offer them.
#[cfg(not(feature = "unstable-v2"))]
use methods::CancelWork;
#[cfg(not(feature = "unstable"))]
use methods::{
    ArchiveSession, CheckAuthStatus, CheckSessionStatus, ForkSession, Providers, SetSessionTitle,
    SteerTurn,
};
pub use permission::PermissionAnswer;
pub use recording::Recorder;
pub use session::{OpenedSession, Session};
#[cfg(feature = "stdio")]
pub use side::serve_stdio;
pub use side::{limits, serve, serve_with, start};
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

/// An agent. [`new_session`](Self::new_session) and [`prompt`](Self::prompt) are all it must have.
///
/// What an agent can do (`agentCapabilities`) is taken from what it gives here, so the two cannot
/// disagree: clients are told of `session/load` exactly when [`load_session`](Self::load_session)
/// gives something.
pub trait Agent: Send + Sync + 'static {
    /// The agent's own data for one open session. It is made when the session is opened, handed to every call about the
    /// session, and dropped when the session is closed or the connection ends. `()` if there is none.
    type State: Send + Sync + 'static;

    /// Opens a new session (`session/new`): Session setup, "Creating a Session". The paths of `setup` have
    /// been checked to be absolute, and its MCP servers to be of a kind that is offered. The client does not know the
    /// session's id yet, so send updates from [`session_opened`](Self::session_opened) instead.
    ///
    /// # Errors
    /// There will be no session; the error is the answer. With
    /// [`jsonrpc::Error::AUTH_REQUIRED`](acp_wire::jsonrpc::Error::AUTH_REQUIRED) the client is to
    /// authenticate first.
    fn new_session(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> impl Future<Output = Result<OpenedSession<Self::State>>> + Send;

    /// Runs a turn: the specification's page Prompt Turn.
    ///
    /// When the client cancels, the future is dropped and the turn ends as cancelled; an agent that
    /// wants to end its turns itself calls [`Turn::take_cancellation`]. An error ends the turn with
    /// an error answer, after a cancellation as cancelled.
    fn prompt(
        &self,
        state: &Self::State,
        turn: Turn,
        prompt: Prompt,
    ) -> impl Future<Output = Result<StopReason>> + Send;

    /// Who the agent is (`agentInfo`).
    fn info(&self) -> Option<Implementation> {
        None
    }

    /// Which content it takes in prompts, beside text and resource links. Prompts with other content
    /// are refused before they reach [`prompt`](Self::prompt).
    fn prompt_capabilities(&self) -> PromptCapabilities {
        PromptCapabilities::new()
    }

    /// Which MCP servers it connects to, beside those on stdio.
    fn mcp_capabilities(&self) -> McpCapabilities {
        McpCapabilities::new()
    }

    /// Whether it connects to MCP servers on stdio. Every agent of version 1 is taken to; one of version 2
    /// says so.
    fn mcp_stdio(&self) -> bool {
        true
    }

    /// Whether it takes further roots for a session (`additionalDirectories`).
    fn additional_directories(&self) -> bool {
        false
    }

    /// Whether it takes a client's own instructions for a session (`systemPrompt`, unstable), and whether they may replace
    /// its own. Those that it cannot apply are refused before they reach it; the others are in
    /// [`SessionSetup::system_prompt`].
    #[cfg(feature = "unstable")]
    fn system_prompt_capabilities(&self) -> Option<SessionSystemPromptCapabilities> {
        None
    }

    /// The id for a new session: Session setup, "Session ID". A random one by default, which nobody can
    /// guess.
    fn new_session_id(&self) -> SessionId {
        format!("sess_{}", uuid::Uuid::new_v4().simple()).into()
    }

    /// A session has been opened, and the client knows it: the place to announce slash commands.
    fn session_opened(
        &self,
        state: &Self::State,
        session: Session,
    ) -> impl Future<Output = ()> + Send {
        let _ = (state, session);
        async {}
    }

    /// Sets a config option, and gives all of them as they are then: one may change others. The
    /// option and the value have been checked against those the session has.
    ///
    /// The option of category `mode` is the session's mode: clients that know only modes see it as
    /// such, and set it by `session/set_mode`.
    ///
    /// # Errors
    /// It cannot be set, and is as it was; the error is the answer.
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

    /// `session/load`.
    fn load_session(&self) -> Option<&impl LoadSession<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// `session/resume`.
    fn resume_session(&self) -> Option<&impl ResumeSession<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// `session/fork`, unstable.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn fork_session(&self) -> Option<&impl ForkSession<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// `tool_call/cancel` and `terminal/cancel`, of version 2.
    #[cfg_attr(not(feature = "unstable-v2"), doc(hidden))]
    fn cancel_work(&self) -> Option<&impl CancelWork<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// `session/list`.
    fn list_sessions(&self) -> Option<&impl ListSessions> {
        None::<&UnsupportedMethod>
    }

    /// `session/close`.
    fn close_session(&self) -> Option<&impl CloseSession<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// `session/delete`.
    fn delete_session(&self) -> Option<&impl DeleteSession> {
        None::<&UnsupportedMethod>
    }

    /// `session/set_title`, unstable.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn set_session_title(&self) -> Option<&impl SetSessionTitle<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// `session/archive` and `session/unarchive`, unstable.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn archive_session(&self) -> Option<&impl ArchiveSession<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// `session/status`, unstable.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn session_status(&self) -> Option<&impl CheckSessionStatus> {
        None::<&UnsupportedMethod>
    }

    /// `auth/status`, unstable.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn auth_status(&self) -> Option<&impl CheckAuthStatus> {
        None::<&UnsupportedMethod>
    }

    /// `providers/list`, `providers/set` and `providers/disable`, unstable.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn providers(&self) -> Option<&impl Providers> {
        None::<&UnsupportedMethod>
    }

    /// `_session/steering`, an extension.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    fn steer_turn(&self) -> Option<&impl SteerTurn<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Stores each update before it is sent.
    fn recorder(&self) -> Option<&impl Recorder<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// `authenticate` and `logout`.
    fn authentication(&self) -> Option<&impl Authentication> {
        None::<&UnsupportedMethod>
    }

    /// A request of an extension: [`ExtensionRequest`]. One may come before `initialize`.
    ///
    /// # Errors
    /// The error is the answer; -32601 where the method is not known.
    fn extension_request(
        &self,
        client: &Connection,
        request: ExtensionRequest,
    ) -> impl Future<Output = Result<Box<RawValue>>> + Send {
        let _ = client;
        async move { Err(request.not_found()) }
    }

    /// A notification of an extension. The next message is looked at when this returns.
    fn extension_notification(
        &self,
        client: &Connection,
        notification: ExtensionNotification,
    ) -> impl Future<Output = ()> + Send {
        let _ = (client, notification);
        async {}
    }
}
