//! `elicitation/create`: asking the person for input, by a form or on a web page.

use acp_wire::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationCapabilities, ElicitationScope,
};
use acp_wire::{Handle, Request};

use crate::client::Client;
use crate::client::side::ClientSide;
use crate::error::Result;
use crate::pending_request::{NotOffered, PendingRequest, offered};

/// `elicitation/create`: asking the person for input, by a form or on a web page.
pub trait Elicitation: Send + Sync {
    /// Which kinds it can show.
    fn capabilities(&self) -> ElicitationCapabilities;

    /// Asks the person. The future is dropped when the agent cancels the request. What a subagent asks is asked in the
    /// session that it works for.
    ///
    /// # Errors
    /// They cannot be asked. That they say no is no error:
    /// [`ElicitationAction::Decline`](acp_wire::v1::ElicitationAction::Decline).
    fn create(
        &self,
        request: CreateElicitationRequest,
    ) -> impl Future<Output = Result<CreateElicitationResponse>> + Send;
}

impl Elicitation for NotOffered {
    fn capabilities(&self) -> ElicitationCapabilities {
        match *self {}
    }
    async fn create(&self, _: CreateElicitationRequest) -> Result<CreateElicitationResponse> {
        match *self {}
    }
}

impl<C: Client> Handle<CreateElicitationRequest, ()> for PendingRequest<ClientSide<C>> {
    fn handle(self, mut request: CreateElicitationRequest) {
        let Self { side, responder } = self;
        if let ElicitationScope::Session { session_id, .. } = &mut request.scope {
            *session_id = side.sessions.opened_for(session_id);
        }
        responder.spawn(async move {
            let offer = side.client.elicitation();
            let elicitation = offered(offer, CreateElicitationRequest::METHOD)?;
            elicitation.create(request).await
        });
    }
}
