//! `elicitation/create`: asking the person for input, by a form or on a web page.

use acp_wire::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationCapabilities, ElicitationScope,
};
use acp_wire::{MessageHandler, Request};

use crate::client::Client;
use crate::client::sessions::ClientSessionEntry;
use crate::client::side::ClientSide;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_offer};

/// `elicitation/create`: asking the person for input, by a form or on a web page.
pub trait Elicitation<S>: Send + Sync {
    /// Which kinds it can show.
    fn capabilities(&self) -> ElicitationCapabilities;

    /// Asks the person. The future is dropped when the agent cancels the request. `state` is that of the session that it
    /// is asked in, if it is asked in one that this client has. What a subagent asks is asked in the session that it works
    /// for.
    ///
    /// # Errors
    /// They cannot be asked. That they say no is no error:
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

impl<C: Client> MessageHandler<CreateElicitationRequest, ()> for PendingRequest<ClientSide<C>> {
    fn handle(self, mut request: CreateElicitationRequest) {
        let Self { side, responder } = self;
        let mut state = None;
        if let ElicitationScope::Session { session_id, .. } = &mut request.scope {
            *session_id = side.sessions.root_session(session_id);
            let of = |entry: &mut ClientSessionEntry| entry.client_state::<C>();
            state = side.sessions.with_session(session_id, of).flatten();
        }
        responder.spawn(async move {
            let offer = side.client.elicitation();
            let elicitation = require_offer(offer, CreateElicitationRequest::METHOD)?;
            elicitation.create(state.as_deref(), request).await
        });
    }
}
