//! Tests of `auth/status` and `auth/status_update` in both versions.

use std::sync::atomic::{AtomicBool, Ordering};

use acp::agent::{
    Agent, AuthContext, AuthStatusHandler, Authentication, OpenedSession, Prompt, Session,
    SessionSetup, Turn,
};
use acp::client::Client;
use acp::testing::connect_with;
use acp::v1::{
    AuthAccount, AuthMethod, AuthMethodAgent, AuthMethodId, AuthState, AuthStatusResponse,
    AuthStatusUpdateNotification, StopReason,
};
use acp::{Error, Options, Result, jsonrpc};
use tokio::sync::mpsc;

use crate::common::with_timeout;

/// An agent that requires authentication.
#[derive(Default)]
struct AuthStatusAgent {
    is_open: AtomicBool,
}

impl Agent for AuthStatusAgent {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        Err(jsonrpc::Error::auth_required().into())
    }

    async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> Result<StopReason> {
        Ok(StopReason::EndTurn)
    }

    fn auth_status(&self) -> Option<&impl AuthStatusHandler> {
        Some(self)
    }
    fn authentication(&self) -> Option<&impl Authentication> {
        Some(self)
    }
}

impl AuthStatusHandler for AuthStatusAgent {
    async fn auth_state(&self) -> Result<AuthStatusResponse> {
        if !self.is_open.load(Ordering::SeqCst) {
            // Consistent with its other methods.
            return Err(jsonrpc::Error::auth_required().into());
        }
        let account = AuthAccount::new("Garden Plus").email("ada@garden.example");
        Ok(AuthStatusResponse::new(AuthState::Authenticated).accounts([account]))
    }
}

impl Authentication for AuthStatusAgent {
    fn methods(&self) -> Vec<AuthMethod> {
        vec![AuthMethod::Agent(AuthMethodAgent::new("key", "Key"))]
    }

    async fn authenticate(&self, cx: &AuthContext, _: &AuthMethodId) -> Result<()> {
        self.is_open.store(true, Ordering::SeqCst);
        let status = self.auth_state().await?;
        let update = AuthStatusUpdateNotification::from(status);
        cx.connection().notify(&update).await
    }
}

/// A client that forwards authentication status changes to the test.
struct AuthStatusClient(mpsc::UnboundedSender<AuthStatusUpdateNotification>);

impl Client for AuthStatusClient {
    type State = ();

    async fn auth_status_changed(&self, status: AuthStatusUpdateNotification) {
        let _ = self.0.send(status);
    }
}

#[tokio::test(start_paused = true)]
async fn auth_status_is_returned_and_changes_are_reported() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let (told, mut hears) = mpsc::unbounded_channel();
        let (agent, _serving) =
            connect_with(AuthStatusAgent::default(), AuthStatusClient(told), options).await;
        assert!(agent.capabilities().auth.status.is_some());
        let status = agent.auth_status().await.unwrap();
        assert_eq!(status.state, AuthState::Unauthenticated);
        assert!(status.accounts.is_empty());

        agent.authenticate("key").await.unwrap();
        let update = with_timeout("it is told", hears.recv()).await.unwrap();
        assert_eq!(update.state, AuthState::Authenticated);
        assert_eq!(update.accounts.len(), 1);
        assert_eq!(
            update.accounts[0].email.as_deref(),
            Some("ada@garden.example")
        );
        // The identity must not be logged.
        assert!(!format!("{update:?}").contains("ada"), "{update:?}");
        let status = agent.auth_status().await.unwrap();
        assert_eq!(status.state, AuthState::Authenticated);
    }
}

#[tokio::test(start_paused = true)]
async fn unsupported_methods_are_not_sent() {
    let (agent, _serving) =
        acp::testing::connect(crate::common::idle_agent(), acp::testing::NoopClient).await;
    let error = agent.auth_status().await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
    assert!(error.to_string().contains("auth.status"), "{error}");
}
