//! `session/set_title`, which changes the title of a session.

use acp_wire::v1::{
    SessionId, SessionInfoUpdate, SessionUpdate, SetSessionTitleRequest, SetSessionTitleResponse,
};
use acp_wire::{MessageHandler, Request};

use crate::agent::Agent;
use crate::agent::session::Session;
use crate::agent::side::AgentSide;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_handler};

/// A handler for `session/set_title`, which changes the title of a session. Unstable.
///
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait SetSessionTitle<S = ()>: Send + Sync {
    /// Stores a new title for a session and returns the stored title, which may be trimmed or truncated. `state` is the
    /// session's state if the session is open. From then on, the agent must not replace the title with a generated one.
    ///
    /// If the session is open, the library sends the update that shows the title in the thread.
    ///
    /// # Errors
    /// The session does not exist
    /// ([`jsonrpc::Error::RESOURCE_NOT_FOUND`](acp_wire::jsonrpc::Error::RESOURCE_NOT_FOUND)), or the title is not
    /// accepted ([`Error::invalid_params`](crate::Error::invalid_params)).
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

offered_by! { set_session_title: SetSessionTitleRequest }

impl<A: Agent> MessageHandler<SetSessionTitleRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: SetSessionTitleRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let offer = side.agent.set_session_title();
            let titles = require_handler(offer, SetSessionTitleRequest::METHOD)?;
            let id = &request.session_id;
            let session = side.session(id).ok();
            let state = session.as_ref().and_then(Session::agent_state::<A>);
            let title = titles
                .set_title(state.as_deref(), id, &request.title)
                .await?;
            if let Some(session) = session {
                let update = SessionInfoUpdate::new().title(title.clone());
                session
                    .send_update(SessionUpdate::SessionInfoUpdate(Box::new(update)))
                    .await?;
            }
            Ok(SetSessionTitleResponse::new(title))
        });
    }
}
