//! What an agent may offer beyond prompts. Each is one method or a few that belong together.
//!
//! An error that one of them gives is the answer to the request.

use acp_wire::v1::{
    AuthMethod, AuthMethodId, ListSessionsRequest, ListSessionsResponse, SessionId, TerminalId,
    ToolCallId,
};

use super::authentication::AuthContext;
use super::session::{Session, SessionOpened};
use crate::error::Result;
use crate::session_setup::SessionSetup;
use crate::update::Update;

/// `session/load`: opens an old session and replays it. Session setup, "Loading Sessions"; in version 2
/// `session/resume` with `replayFrom`.
pub trait LoadSession: Send + Sync {
    /// Sends every message and tool call of the session's past through `session`, then returns.
    ///
    /// # Errors
    /// There is no such session, or it cannot be opened. The client then has no session of this id, or
    /// the one that was open before.
    fn load_session(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> impl Future<Output = Result<SessionOpened>> + Send;
}

/// `session/resume`: opens an old session without replaying it.
pub trait ResumeSession: Send + Sync {
    /// Opens the session.
    ///
    /// # Errors
    /// As [`LoadSession::load_session`].
    fn resume_session(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> impl Future<Output = Result<SessionOpened>> + Send;
}

/// `session/fork`: a new session that begins as a copy of another. Unstable.
pub trait ForkSession: Send + Sync {
    /// Copies the session `from`; `session` is the new one.
    ///
    /// # Errors
    /// There is no session `from`, or it cannot be copied.
    fn fork_session(
        &self,
        from: &SessionId,
        session: &Session,
        setup: SessionSetup,
    ) -> impl Future<Output = Result<SessionOpened>> + Send;
}

/// `tool_call/cancel` and `terminal/cancel`: ends one piece of work while the turn goes on. Version 2, and
/// newer than its draft of August 2026.
///
/// Which tool calls and terminals can be cancelled the agent tells in their `capabilities`, by
/// [`Session::update_v2`]. That it has been cancelled is told by an update of it.
pub trait CancelWork: Send + Sync {
    /// Begins to cancel a tool call. An id that is unknown, or whose call has ended, is an error:
    /// [`Error::invalid_params`](crate::Error::invalid_params).
    fn cancel_tool_call(
        &self,
        session: &Session,
        tool_call: &ToolCallId,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Begins to end what runs in a terminal. An id that is unknown, or whose command has ended, is an
    /// error: [`Error::invalid_params`](crate::Error::invalid_params).
    fn cancel_terminal(
        &self,
        session: &Session,
        terminal: &TerminalId,
    ) -> impl Future<Output = Result<()>> + Send;
}

/// `session/list`: the sessions there are.
pub trait ListSessions: Send + Sync {
    /// A page of them: those of `request.cwd` if it is given, from where `request.cursor` points. The
    /// agent decides how many make a page, and names the cursor of the next.
    ///
    /// # Errors
    /// The cursor is none that this agent gave, or the sessions cannot be read.
    fn list_sessions(
        &self,
        request: ListSessionsRequest,
    ) -> impl Future<Output = Result<ListSessionsResponse>> + Send;
}

/// `session/close`: frees what a session holds.
pub trait CloseSession: Send + Sync {
    /// Frees it. Its turn has been cancelled and has ended, and the library has forgotten it.
    ///
    /// # Errors
    /// What it holds cannot be freed. It is closed all the same.
    fn close_session(&self, session: &SessionId) -> impl Future<Output = Result<()>> + Send;
}

/// `session/delete`: deletes a session for good.
pub trait DeleteSession: Send + Sync {
    /// Deletes it. If it was open, its turn has been cancelled and has ended.
    ///
    /// # Errors
    /// It cannot be deleted. One that there is not, or not any more, is no error: what is asked for is so already.
    fn delete_session(&self, session: &SessionId) -> impl Future<Output = Result<()>> + Send;
}

/// Keeps the past of sessions: what a client has been shown is recorded before it was sent, whichever way
/// the agent sent it. With [`LoadSession`] nothing that was shown is lost, though the agent be killed.
///
/// An agent that has one sends nothing of a session's past that could not be recorded: the call that was to
/// send it fails with [`Error::Unrecorded`](crate::Error::Unrecorded). The order in which a session's updates
/// are recorded is the order in which they are sent. So whoever records slowly sends slowly, and a `record`
/// that itself sends in this session waits for ever.
///
/// Not recorded are what [`LoadSession::load_session`] sends, which is the past itself, and how the session
/// stands: its config options, mode and commands, and what the agent does just now. That is told anew
/// whenever the session is opened.
///
/// A turn that runs in a session is cancelled, and its end waited for, before the session is opened once
/// more: what is replayed then has all of it.
pub trait Recorder: Send + Sync {
    /// Keeps an update that is going to be sent. When this returns, it must be where it will not be lost.
    ///
    /// It is in the words of version 1, and of version 2 where version 1 has none, whichever the client
    /// speaks; terminals of the agent's are in those of version 2. The messages have their ids, so that a
    /// client of version 2 that is shown them once more replaces what it has. What the person says is
    /// recorded, too, before [`Agent::prompt`](super::Agent::prompt) is called: as `user_message_chunk`, one
    /// for each content block.
    ///
    /// An update that was recorded is not necessarily sent: the turn may be dropped in between, or the
    /// connection end.
    ///
    /// # Errors
    /// It cannot be kept. It is not sent then.
    fn record(&self, session: &Session, update: &Update)
    -> impl Future<Output = Result<()>> + Send;
}

/// `authenticate` and `logout`; in version 2 `auth/login` and `auth/logout`. Initialization,
/// "Authentication".
pub trait Authentication: Send + Sync {
    /// How one can authenticate. Methods of type `terminal` are named to clients that can run the
    /// agent's program in a terminal.
    fn methods(&self) -> Vec<AuthMethod>;

    /// Authenticates by one of [`methods`](Self::methods), which is of type `agent`. What the agent
    /// needs to know of the person it may ask by [`AuthContext::elicit`].
    ///
    /// # Errors
    /// The person could not be authenticated.
    fn authenticate(
        &self,
        cx: &AuthContext,
        method: &AuthMethodId,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Whether there is `logout`. In version 2 there always is.
    fn can_logout(&self) -> bool {
        false
    }

    /// Ends the authentication.
    ///
    /// # Errors
    /// It could not be ended.
    fn logout(&self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }
}

/// Stands for what an agent does not offer. There is no value of it.
pub(crate) enum NotOffered {}

impl LoadSession for NotOffered {
    async fn load_session(&self, _: &Session, _: SessionSetup) -> Result<SessionOpened> {
        match *self {}
    }
}

impl ResumeSession for NotOffered {
    async fn resume_session(&self, _: &Session, _: SessionSetup) -> Result<SessionOpened> {
        match *self {}
    }
}

impl ForkSession for NotOffered {
    async fn fork_session(
        &self,
        _: &SessionId,
        _: &Session,
        _: SessionSetup,
    ) -> Result<SessionOpened> {
        match *self {}
    }
}

impl CancelWork for NotOffered {
    async fn cancel_tool_call(&self, _: &Session, _: &ToolCallId) -> Result<()> {
        match *self {}
    }
    async fn cancel_terminal(&self, _: &Session, _: &TerminalId) -> Result<()> {
        match *self {}
    }
}

impl ListSessions for NotOffered {
    async fn list_sessions(&self, _: ListSessionsRequest) -> Result<ListSessionsResponse> {
        match *self {}
    }
}

impl CloseSession for NotOffered {
    async fn close_session(&self, _: &SessionId) -> Result<()> {
        match *self {}
    }
}

impl DeleteSession for NotOffered {
    async fn delete_session(&self, _: &SessionId) -> Result<()> {
        match *self {}
    }
}

impl Recorder for NotOffered {
    async fn record(&self, _: &Session, _: &Update) -> Result<()> {
        match *self {}
    }
}

impl Authentication for NotOffered {
    fn methods(&self) -> Vec<AuthMethod> {
        match *self {}
    }
    async fn authenticate(&self, _: &AuthContext, _: &AuthMethodId) -> Result<()> {
        match *self {}
    }
}
