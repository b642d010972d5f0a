//! What an agent may offer beyond prompts. Each is one method or a few that belong together.

use acp_wire::v1::{
    AuthMethod, AuthMethodId, ListSessionsRequest, ListSessionsResponse, SessionId, TerminalId,
    ToolCallId,
};

use super::authentication::AuthContext;
use super::session::{Session, SessionOpened};
use crate::error::Result;
use crate::session_setup::SessionSetup;

/// `session/load`: opens an old session and replays it.
pub trait LoadSession: Send + Sync {
    /// Sends every message and tool call of the session's past through `session`, then returns.
    fn load_session(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> impl Future<Output = Result<SessionOpened>> + Send;
}

/// `session/resume`: opens an old session without replaying it.
pub trait ResumeSession: Send + Sync {
    /// Opens the session.
    fn resume_session(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> impl Future<Output = Result<SessionOpened>> + Send;
}

/// `session/fork`: a new session that begins as a copy of another. Unstable.
pub trait ForkSession: Send + Sync {
    /// Copies the session `from`; `session` is the new one.
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
    /// A page of them.
    fn list_sessions(
        &self,
        request: ListSessionsRequest,
    ) -> impl Future<Output = Result<ListSessionsResponse>> + Send;
}

/// `session/close`: frees what a session holds.
pub trait CloseSession: Send + Sync {
    /// Its turn has been cancelled and has ended.
    fn close_session(&self, session: &SessionId) -> impl Future<Output = Result<()>> + Send;
}

/// `session/delete`: deletes a session for good.
pub trait DeleteSession: Send + Sync {
    /// Deletes it.
    fn delete_session(&self, session: &SessionId) -> impl Future<Output = Result<()>> + Send;
}

/// `authenticate` and `logout`; in version 2 `auth/login` and `auth/logout`.
pub trait Authentication: Send + Sync {
    /// How one can authenticate. Methods of type `terminal` are named to clients that can run the
    /// agent's program in a terminal.
    fn methods(&self) -> Vec<AuthMethod>;

    /// Authenticates by one of [`methods`](Self::methods), which is of type `agent`. What the agent
    /// needs to know of the person it may ask by [`AuthContext::elicit`].
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

impl Authentication for NotOffered {
    fn methods(&self) -> Vec<AuthMethod> {
        match *self {}
    }
    async fn authenticate(&self, _: &AuthContext, _: &AuthMethodId) -> Result<()> {
        match *self {}
    }
}
