//! `auth/status`, which asks whether authentication is required.

use acp_wire::jsonrpc;
use acp_wire::v1::{AuthState, AuthStatusRequest, AuthStatusResponse};
use acp_wire::{MessageHandler, Request};

use crate::agent::Agent;
use crate::agent::side::AgentSide;
use crate::error::{Error, Result};
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_handler};

/// A handler for `auth/status`, which asks whether authentication is required. Unstable.
///
/// The agent can report a change at any time by sending
/// [`AuthStatusUpdateNotification`](acp_wire::v1::AuthStatusUpdateNotification) with
/// [`Connection::notify`](crate::Connection::notify).
pub trait AuthStatusHandler: Send + Sync {
    /// Returns the current authentication state, without changing anything.
    ///
    /// # Errors
    /// The state cannot be determined. A need for authentication is not an error: return
    /// [`AuthState::Unauthenticated`].
    fn auth_state(&self) -> impl Future<Output = Result<AuthStatusResponse>> + Send;
}

impl AuthStatusHandler for UnsupportedMethod {
    async fn auth_state(&self) -> Result<AuthStatusResponse> {
        match *self {}
    }
}

offered_by! { auth_status: AuthStatusRequest }

impl<A: Agent> MessageHandler<AuthStatusRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, _: AuthStatusRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let check = require_handler(side.agent.auth_status(), AuthStatusRequest::METHOD)?;
            match check.auth_state().await {
                Err(Error::Rpc(error)) if error.code == jsonrpc::Error::AUTH_REQUIRED => {
                    Ok(AuthStatusResponse::new(AuthState::Unauthenticated))
                }
                answer => answer,
            }
        });
    }
}
