//! Authentication: `authenticate` and `logout`, in version 2 `auth/login` and `auth/logout`.

use std::sync::Arc;

use acp_wire::jsonrpc::RequestId;
use acp_wire::v1::{
    self, AuthMethod, AuthMethodId, CompleteElicitationNotification, CreateElicitationRequest,
    ElicitationAction, ElicitationId, ElicitationMode, ElicitationScope,
};
use acp_wire::{MessageHandler, Request, v2};

use crate::agent::initialize::ClientInfo;
use crate::agent::side::AgentSide;
use crate::agent::{Agent, elicitation};
use crate::connection::{Connection, Responder};
use crate::error::{Error, Result};
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_offer};

/// The request that is being worked on, for what an agent may want to ask meanwhile: a key, or that the
/// person logs in on a web page.
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

    /// The client.
    #[must_use]
    pub fn client(&self) -> &ClientInfo {
        &self.client
    }

    /// The connection, for messages this type has no method for.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.conn
    }

    /// Asks the person for input (`elicitation/create`), in the scope of this request.
    ///
    /// # Errors
    /// The client does not offer this mode ([`Error::Unsupported`]), its
    /// error, or the end of the connection.
    pub async fn elicit(
        &self,
        message: impl Into<String>,
        mode: ElicitationMode,
    ) -> Result<ElicitationAction> {
        elicitation::check(&self.client, &mode)?;
        let scope = ElicitationScope::Request {
            request_id: self.request.clone(),
        };
        let request = CreateElicitationRequest::new(message, mode, scope);
        Ok(self.conn.request(&request).await?.action)
    }

    /// Tells that what was asked on a web page has been done there (`elicitation/complete`).
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn elicitation_completed(&self, id: impl Into<ElicitationId>) -> Result<()> {
        self.conn
            .notify(&CompleteElicitationNotification::new(id))
            .await
    }
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

impl<A: Agent> MessageHandler<v1::LogoutRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, _: v1::LogoutRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let authentication = side.agent.authentication().filter(|a| a.can_logout());
            require_offer(authentication, v1::LogoutRequest::METHOD)?
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
            // In version 2 whoever authenticates also ends it.
            let authentication = side.agent.authentication();
            require_offer(authentication, v2::LogoutAuthRequest::METHOD)?
                .logout()
                .await?;
            Ok(v2::LogoutAuthResponse::new())
        });
    }
}

impl<A: Agent> AgentSide<A> {
    async fn authenticate(&self, cx: &AuthContext, method: &AuthMethodId) -> Result<()> {
        let offer = self.agent.authentication();
        let authentication = require_offer(offer, v1::AuthenticateRequest::METHOD)?;
        let known = authentication
            .methods()
            .into_iter()
            .find(|known| known.id_and_name().is_some_and(|(id, _)| id == *method));
        match known {
            None => Err(Error::invalid_params(format!(
                "there is no authentication method {method}"
            ))),
            Some(AuthMethod::Terminal(_)) => Err(Error::invalid_params(format!(
                "{method} is done by running the agent in a terminal"
            ))),
            Some(_) => authentication.authenticate(cx, method).await,
        }
    }
}
