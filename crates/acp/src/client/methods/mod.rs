//! Handles the requests that an agent sends. Each request has its own file, with the trait that a client implements and
//! the code that handles the request.
//!
//! Each version has a table of requests ([`acp_wire::v1::AgentRequest`], [`acp_wire::v2::AgentRequest`]), which reads a
//! request and passes it to the [`MessageHandler`](acp_wire::MessageHandler) for its type. The code does not compile if
//! a handler is missing, or if a method requires a capability and is not `offered_by!` a part of the client.

/// Declares which part of the client handles the given requests. A client that has this part offers these methods.
macro_rules! offered_by {
    ($part:ident: $($request:ty),+ $(,)?) => { $(
        impl<C: crate::client::Client> acp_wire::MethodOffer<$request> for crate::client::side::ClientSide<C> {
            fn is_offered(&self) -> bool {
                self.client.$part().is_some()
            }
        }
    )+ };
}

mod elicitation;
mod extension;
mod read_text_file;
mod request_permission;
mod terminals;
mod write_text_file;

use std::sync::Arc;

use acp_wire::jsonrpc;
use acp_wire::v1::SessionId;

use super::Client;
use super::side::ClientSide;
use crate::error::Error;
use crate::pending_request::PendingRequest;

pub use elicitation::Elicitation;
pub use read_text_file::ReadTextFile;
pub use terminals::Terminals;
pub use write_text_file::WriteTextFile;

impl<C: Client> PendingRequest<ClientSide<C>> {
    /// Returns the request and the client's state for its session. If this client does not have the session, responds
    /// with an error and returns `None`.
    fn require_session(self, id: &SessionId) -> Option<(Self, Arc<C::State>)> {
        let sessions = &self.side.sessions;
        if sessions.accepts_requests(id)
            && let Some(state) = sessions.client_state::<C>(id)
        {
            return Some((self, state));
        }
        self.reject_unknown_session(id);
        None
    }

    /// Responds with an error saying that the session does not exist.
    fn reject_unknown_session(self, id: &SessionId) {
        let error = jsonrpc::Error::resource_not_found(format!("session {id}"));
        self.reject(Error::Rpc(error));
    }
}
