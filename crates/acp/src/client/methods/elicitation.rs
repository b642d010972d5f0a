//! `elicitation/create`, which requests input from the user with a form or on a web page.

use acp_wire::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationCapabilities, ElicitationScope,
};
use acp_wire::{MessageHandler, Request};

use crate::client::Client;
use crate::client::side::ClientSide;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_handler};

/// A handler for `elicitation/create`, which requests input from the user with a form or on a web page.
pub trait Elicitation<S>: Send + Sync {
    /// Returns the elicitation modes that the client supports.
    fn capabilities(&self) -> ElicitationCapabilities;

    /// Requests input from the user. The future is dropped when the agent cancels the request. `state` is the state of
    /// the request's session, if this client has the session. A subagent's request counts as its root session's.
    ///
    /// # Errors
    /// The user cannot be asked. A user who declines is not an error: return
    /// [`ElicitationAction::Decline`](acp_wire::v1::ElicitationAction::Decline).
    fn create(
        &self,
        state: Option<&S>,
        request: CreateElicitationRequest,
    ) -> impl Future<Output = Result<CreateElicitationResponse>> + Send;
}

impl<S: Sync> Elicitation<S> for UnsupportedMethod {
    fn capabilities(&self) -> ElicitationCapabilities {
        match *self {}
    }
    async fn create(
        &self,
        _: Option<&S>,
        _: CreateElicitationRequest,
    ) -> Result<CreateElicitationResponse> {
        match *self {}
    }
}

offered_by! { elicitation: CreateElicitationRequest }

impl<C: Client> MessageHandler<CreateElicitationRequest, ()> for PendingRequest<ClientSide<C>> {
    fn handle(self, mut request: CreateElicitationRequest) {
        let Self { side, responder } = self;
        let mut state = None;
        if let ElicitationScope::Session { session_id, .. } = &mut request.scope {
            *session_id = side.sessions.root_session(session_id);
            state = side.sessions.client_state::<C>(session_id);
        }
        responder.spawn(async move {
            let offer = side.client.elicitation();
            let elicitation = require_handler(offer, CreateElicitationRequest::METHOD)?;
            elicitation.create(state.as_deref(), request).await
        });
    }
}
