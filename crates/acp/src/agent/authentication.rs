//! Authentication: the specification's page of that name.

use std::sync::Arc;

use acp_wire::jsonrpc::RequestId;
use acp_wire::v1::{
    CompleteElicitationNotification, CreateElicitationRequest, ElicitationAction, ElicitationId,
    ElicitationMode, ElicitationScope,
};

use super::elicitation;
use super::initialize::ClientInfo;
use crate::connection::{Connection, Responder};
use crate::error::Result;

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
    /// The client does not offer this mode ([`Error::NotOffered`](crate::Error::NotOffered)), its
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
