//! Authentication: `authenticate` and `logout` (in version 2, `auth/login` and `auth/logout`).

use std::sync::Arc;

use acp_wire::jsonrpc::RequestId;
use acp_wire::v1::{
    self, AuthMethod, AuthMethodId, CompleteElicitationNotification, CreateElicitationRequest,
    ElicitationAction, ElicitationId, ElicitationMode, ElicitationScope,
};
use acp_wire::{MessageHandler, MethodOffer, Request, v2};

use crate::agent::initialize::ClientInfo;
use crate::agent::side::AgentSide;
use crate::agent::{Agent, elicitation};
use crate::connection::{Connection, Responder};
use crate::error::{Error, Result};
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_handler};

/// The context of an authentication in progress. The agent can use it to request input from the user, such as an API
/// key or a login on a web page.
#[derive(Debug, Clone)]
pub struct AuthContext {
    conn: Connection,
    client: Arc<ClientInfo>,
    request: RequestId,
}

impl AuthContext {
    pub(crate) fn new(responder: &Responder, client: Arc<ClientInfo>) -> Self {
        Self {
            conn: responder.connection().clone(),
            client,
            request: responder.id().unwrap_or(RequestId::Null),
        }
    }

    /// Returns the client of the connection.
    #[must_use]
    pub fn client(&self) -> &ClientInfo {
        &self.client
    }

    /// Returns the connection, for sending messages that this type has no method for.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.conn
    }

    /// Requests input from the user (`elicitation/create`) as part of this authentication.
    ///
    /// # Errors
    /// The client does not support the mode ([`Error::Unsupported`]), the client returned an error, or the connection
    /// has ended.
    pub async fn elicit(
        &self,
        message: impl Into<String>,
        mode: ElicitationMode,
    ) -> Result<ElicitationAction> {
        elicitation::check_mode_support(&self.client, &mode)?;
        let scope = ElicitationScope::Request {
            request_id: self.request.clone(),
        };
        let request = CreateElicitationRequest::new(message, mode, scope);
        Ok(self.conn.request(&request).await?.action)
    }

    /// Reports that the user has completed an elicitation on a web page (`elicitation/complete`).
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn complete_elicitation(&self, id: impl Into<ElicitationId>) -> Result<()> {
        self.conn
            .notify(&CompleteElicitationNotification::new(id))
            .await
    }
}

/// A handler for `authenticate` and `logout` (in version 2, `auth/login` and `auth/logout`). See "Authentication" on
/// the specification's page "Initialization".
pub trait Authentication: Send + Sync {
    /// Returns the auth methods to offer. Those of type `terminal` are sent only to clients that can run the agent in a
    /// terminal.
    fn methods(&self) -> Vec<AuthMethod>;

    /// Authenticates with one of the [`methods`](Self::methods) of type `agent`. The agent can request input from the
    /// user with [`AuthContext::elicit`].
    ///
    /// # Errors
    /// The authentication failed.
    fn authenticate(
        &self,
        cx: &AuthContext,
        method: &AuthMethodId,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Returns `true` if the agent supports `logout`, which version 2 requires.
    fn can_logout(&self) -> bool {
        false
    }

    /// Logs the client out.
    ///
    /// # Errors
    /// The logout failed.
    fn logout(&self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }
}

impl Authentication for UnsupportedMethod {
    fn methods(&self) -> Vec<AuthMethod> {
        match *self {}
    }
    async fn authenticate(&self, _: &AuthContext, _: &AuthMethodId) -> Result<()> {
        match *self {}
    }
}

impl<A: Agent> MessageHandler<v1::AuthenticateRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v1::AuthenticateRequest) {
        let cx = AuthContext::new(&self.responder, self.side.client_info());
        let side = self.side;
        self.responder.spawn(async move {
            side.authenticate(&cx, &request.method_id).await?;
            Ok(v1::AuthenticateResponse::new())
        });
    }
}

impl<A: Agent> MessageHandler<v2::LoginAuthRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v2::LoginAuthRequest) {
        let cx = AuthContext::new(&self.responder, self.side.client_info());
        let side = self.side;
        self.responder.spawn(async move {
            side.authenticate(&cx, &request.method_id).await?;
            Ok(v2::LoginAuthResponse::new())
        });
    }
}

impl<A: Agent> MethodOffer<v1::LogoutRequest> for AgentSide<A> {
    fn is_offered(&self) -> bool {
        let authentication = self.agent.authentication();
        authentication.is_some_and(Authentication::can_logout)
    }
}

impl<A: Agent> MessageHandler<v1::LogoutRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, _: v1::LogoutRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let authentication = side.agent.authentication().filter(|a| a.can_logout());
            require_handler(authentication, v1::LogoutRequest::METHOD)?
                .logout()
                .await?;
            Ok(v1::LogoutResponse::new())
        });
    }
}

impl<A: Agent> MessageHandler<v2::LogoutAuthRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, _: v2::LogoutAuthRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            // In version 2, an agent that supports authentication also supports logout.
            let authentication = side.agent.authentication();
            require_handler(authentication, v2::LogoutAuthRequest::METHOD)?
                .logout()
                .await?;
            Ok(v2::LogoutAuthResponse::new())
        });
    }
}

impl<A: Agent> AgentSide<A> {
    async fn authenticate(&self, cx: &AuthContext, method: &AuthMethodId) -> Result<()> {
        let offer = self.agent.authentication();
        let authentication = require_handler(offer, v1::AuthenticateRequest::METHOD)?;
        let known = authentication
            .methods()
            .into_iter()
            .find(|known| known.id_and_name().is_some_and(|(id, _)| id == *method));
        match known {
            None => Err(Error::invalid_params(format!(
                "auth method not found: {method}"
            ))),
            Some(AuthMethod::Terminal(_)) => Err(Error::invalid_params(format!(
                "the auth method {method} works only if the client runs the agent in a terminal"
            ))),
            Some(_) => authentication.authenticate(cx, method).await,
        }
    }
}
