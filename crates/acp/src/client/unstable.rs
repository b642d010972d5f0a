//! Client requests that are not part of the protocol yet (feature `unstable`). See
//! `docs/decisions/0017-unstable-methods.md`.

use acp_wire::v1::{self, CancelNotification, MessageId, SessionId, SteerRequest, SteerResponse};
use acp_wire::{Request, v2};
use serde_json::json;

use super::agent::AgentConnection;
use super::session::{ClientSession, PromptContent};
use crate::capabilities::agent_capability_error;
use crate::error::Result;
use crate::fork_point;
use crate::session_setup::SessionSetup;

impl AgentConnection {
    /// Returns whether authentication is required, and the agent's accounts (`auth/status`).
    ///
    /// # Errors
    /// The agent does not support the method, the agent returned an error, or the connection has ended.
    pub async fn auth_status(&self) -> Result<v1::AuthStatusResponse> {
        self.require_method(v1::AuthStatusRequest::METHOD)?;
        let request = v1::AuthStatusRequest::new();
        self.connection().request(&request).await
    }

    /// Returns the agent's model providers and their URLs (`providers/list`).
    ///
    /// # Errors
    /// The agent does not support the method, the agent returned an error, or the connection has ended.
    pub async fn list_providers(&self) -> Result<Vec<v1::ProviderInfo>> {
        self.require_method(v1::ListProvidersRequest::METHOD)?;
        let request = v1::ListProvidersRequest::new();
        Ok(self.connection().request(&request).await?.providers)
    }

    /// Sets the URL and the headers for a provider (`providers/set`), replacing all its previous settings. The headers,
    /// including any API keys, are sent to the agent.
    ///
    /// # Errors
    /// The agent does not support the method, the agent returned an error, or the connection has ended.
    pub async fn set_provider(&self, request: &v1::SetProviderRequest) -> Result<()> {
        self.require_method(v1::SetProviderRequest::METHOD)?;
        self.connection().request(request).await.map(drop)
    }

    /// Disables a provider (`providers/disable`). The agent then no longer calls its models.
    ///
    /// # Errors
    /// The agent does not support the method, the provider is required, or the connection has ended.
    pub async fn disable_provider(&self, provider: impl Into<v1::ProviderId>) -> Result<()> {
        self.require_method(v1::DisableProviderRequest::METHOD)?;
        let request = v1::DisableProviderRequest::new(provider);
        self.connection().request(&request).await.map(drop)
    }

    /// Opens a new session that starts as a copy of an existing one (`session/fork`).
    ///
    /// # Errors
    /// The agent does not support the method, the agent returned an error, or the connection has ended.
    pub async fn fork_session(
        &self,
        id: impl Into<SessionId>,
        setup: impl Into<SessionSetup>,
    ) -> Result<ClientSession> {
        let id = id.into();
        self.require_method(v1::ForkSessionRequest::METHOD)?;
        let setup = self.prepare_setup(setup.into())?;
        if self.speaks_v2() {
            return self.open(&setup.fork_v2(&id), None).await;
        }
        self.open(&setup.fork_v1(&id), None).await
    }

    /// Returns `true` if the agent can fork a session at a message. See [`fork_session_at`](Self::fork_session_at).
    #[must_use]
    pub fn supports_fork_at_message(&self) -> bool {
        let capabilities = self.capabilities();
        capabilities.session_capabilities.fork.is_some()
            && fork_point::is_declared(capabilities.meta.as_ref())
    }

    /// Opens a new session that starts as a copy of an existing one up to `last`, a message of the agent (`session/fork`
    /// with an extension that several agents support; see [`supports_fork_at_message`](Self::supports_fork_at_message)).
    /// What the user said after that message, and what followed, is not in the copy. To take back a turn, name the last
    /// message of the agent before it.
    ///
    /// # Errors
    /// The agent does not support the extension; the session has no such message, or a turn is running in it; the agent
    /// returned another error; or the connection has ended.
    pub async fn fork_session_at(
        &self,
        id: impl Into<SessionId>,
        last: impl Into<MessageId>,
        setup: impl Into<SessionSetup>,
    ) -> Result<ClientSession> {
        if !self.supports_fork_at_message() {
            return Err(agent_capability_error("session/fork at a message"));
        }
        let mut setup = setup.into();
        fork_point::insert_message(setup.meta.get_or_insert_default(), &last.into());
        self.fork_session(id, setup).await
    }

    /// Archives a session (`session/archive`), which hides it from lists without deleting it. The agent closes the
    /// session if it is open.
    ///
    /// # Errors
    /// The agent does not support the method, the agent returned an error, or the connection has ended.
    pub async fn archive_session(&self, id: &SessionId) -> Result<()> {
        self.require_method(v1::ArchiveSessionRequest::METHOD)?;
        let request = v1::ArchiveSessionRequest::new(id);
        self.connection().request(&request).await?;
        self.0.sessions.remove(id);
        Ok(())
    }

    /// Unarchives a session (`session/unarchive`), which shows it in lists again without opening it.
    ///
    /// # Errors
    /// The agent does not support the method, the agent returned an error, or the connection has ended.
    pub async fn unarchive_session(&self, id: &SessionId) -> Result<()> {
        self.require_method(v1::UnarchiveSessionRequest::METHOD)?;
        let request = v1::UnarchiveSessionRequest::new(id);
        self.connection().request(&request).await.map(drop)
    }

    /// Returns whether the agent has a session in memory and, in version 2, what it is doing in the session
    /// (`session/status`). A session in memory is not necessarily open on this connection.
    ///
    /// # Errors
    /// The agent does not support the method, the session does not exist, or the connection has ended.
    pub async fn session_status(&self, id: &SessionId) -> Result<v2::SessionStatusResponse> {
        self.require_method(v1::SessionStatusRequest::METHOD)?;
        if self.speaks_v2() {
            let request = v2::SessionStatusRequest::new(id);
            return self.connection().request(&request).await;
        }
        let request = v1::SessionStatusRequest::new(id);
        let answer = self.connection().request(&request).await?;
        let mut status = v2::SessionStatusResponse::new(answer.status);
        status.meta = answer.meta;
        Ok(status)
    }

    /// Sets the title of a session, whether or not it is open (`session/set_title`). Returns the stored title, which
    /// the agent may have trimmed or truncated.
    ///
    /// # Errors
    /// The agent does not support the method, the agent returned an error, or the connection has ended.
    pub async fn set_session_title(
        &self,
        id: &SessionId,
        title: impl Into<String>,
    ) -> Result<String> {
        self.require_method(v1::SetSessionTitleRequest::METHOD)?;
        let request = v1::SetSessionTitleRequest::new(id, title);
        Ok(self.connection().request(&request).await?.title)
    }

    /// Returns `true` if the agent accepts messages while a turn is running. See [`ClientSession::steer`].
    #[must_use]
    pub fn supports_steering(&self) -> bool {
        self.require_extension(SteerRequest::METHOD).is_ok()
    }
}

impl ClientSession {
    /// Sends a message to the running turn (`_session/steering`, an extension that several agents support; see
    /// [`AgentConnection::supports_steering`]). Unless the outcome is
    /// [`SteeringOutcome::PromptRequired`](acp_wire::v1::SteeringOutcome::PromptRequired), the agent has accepted the
    /// message, so it must not be sent again. In version 1, the thread shows the message only if the agent sends it
    /// back as an update.
    ///
    /// # Errors
    /// The agent does not support the extension or does not accept the content
    /// ([`Error::Unsupported`](crate::Error::Unsupported)); the agent returned an error; or the connection has ended.
    pub async fn steer(&self, prompt: impl Into<PromptContent>) -> Result<SteerResponse> {
        let prompt = prompt.into();
        self.agent().require_extension(SteerRequest::METHOD)?;
        self.check_content(&prompt.content)?;
        let mut request = SteerRequest::new(self.id(), prompt.content);
        let mut meta = prompt.meta.unwrap_or_default();
        // Without this, the agent might start a turn whose end nobody is notified of.
        let idle = json!({ "idleBehavior": "promptRequired" });
        meta.entry("steering").or_insert(idle);
        request.meta = Some(meta);
        self.agent().connection().request(&request).await
    }

    /// Cancels one of this session's subagents without ending the turn (`session/cancel` for the subagent's session).
    /// The agent reports the cancellation with an update.
    ///
    /// # Errors
    /// The agent does not declare that the subagent can be cancelled, or the connection has ended.
    pub async fn cancel_subagent(&self, id: impl Into<SessionId>) -> Result<()> {
        let id = id.into();
        let subagent = self.thread().read(|thread| {
            let subagent = thread.subagent(&id)?;
            subagent.capabilities.as_ref()?.cancel.as_ref()?;
            Some(subagent.thread.clone())
        });
        let Some(thread) = subagent else {
            let what = format!("cancelling the subagent {id}");
            return Err(agent_capability_error(what));
        };
        let cancel = CancelNotification::new(&id);
        self.agent().connection().notify(&cancel).await?;
        thread.change(crate::thread::Thread::cancel_turn);
        Ok(())
    }
}
