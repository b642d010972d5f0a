//! `session/set_title`: gives a session another title.

use acp_wire::v1::{
    SessionId, SessionInfoUpdate, SessionUpdate, SetSessionTitleRequest, SetSessionTitleResponse,
};
use acp_wire::{MessageHandler, Request};

use crate::agent::Agent;
use crate::agent::session::Session;
use crate::agent::side::AgentSide;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_offer};

/// `session/set_title`: gives a session another title. Unstable.
///
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait SetSessionTitle<S = ()>: Send + Sync {
    /// Keeps the title of a session, which has a state if it is open, and gives it as it is kept: it may have been trimmed or
    /// shortened. A title that the agent would make up by itself must not replace it.
    ///
    /// The client's view of an open session shows it without more: the library tells of it.
    ///
    /// # Errors
    /// There is no such session
    /// ([`jsonrpc::Error::RESOURCE_NOT_FOUND`](acp_wire::jsonrpc::Error::RESOURCE_NOT_FOUND)), or the title cannot be
    /// taken ([`Error::invalid_params`](crate::Error::invalid_params)).
    fn set_title(
        &self,
        state: Option<&S>,
        session: &SessionId,
        title: &str,
    ) -> impl Future<Output = Result<String>> + Send;
}

impl<S: Sync> SetSessionTitle<S> for UnsupportedMethod {
    async fn set_title(&self, _: Option<&S>, _: &SessionId, _: &str) -> Result<String> {
        match *self {}
    }
}

impl<A: Agent> MessageHandler<SetSessionTitleRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: SetSessionTitleRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let offer = side.agent.set_session_title();
            let titles = require_offer(offer, SetSessionTitleRequest::METHOD)?;
            let id = &request.session_id;
            let session = side.session(id).ok();
            let state = session.as_ref().and_then(Session::state_of::<A>);
            let title = titles
                .set_title(state.as_deref(), id, &request.title)
                .await?;
            if let Some(session) = session {
                let update = SessionInfoUpdate::new().title(title.clone());
                session
                    .update(SessionUpdate::SessionInfoUpdate(Box::new(update)))
                    .await?;
            }
            Ok(SetSessionTitleResponse::new(title))
        });
    }
}
