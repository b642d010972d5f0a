//! The agent's requests, one file each: the trait that a client implements, and the handling of the request.
//!
//! A request is read by the table of its version ([`acp_wire::v1::AgentRequest`], [`acp_wire::v2::AgentRequest`]),
//! which passes it to the [`MessageHandler`](acp_wire::MessageHandler) for its type. A method without a handler does
//! not compile.

mod elicitation;
mod extension;
mod read_text_file;
mod request_permission;
mod terminals;
mod write_text_file;

use std::sync::Arc;

use acp_wire::v1::{self, SessionId};
use acp_wire::{Request, jsonrpc};

use super::Client;
use super::side::ClientSide;
use crate::error::Error;
use crate::pending_request::PendingRequest;

pub use elicitation::Elicitation;
pub use read_text_file::ReadTextFile;
pub use terminals::Terminals;
pub use write_text_file::WriteTextFile;

impl<C: Client> PendingRequest<ClientSide<C>> {
    /// Returns the request and the client's state for its session. Rejects the request if this client does not have
    /// the session.
    fn require_session(self, id: &SessionId) -> Option<(Self, Arc<C::State>)> {
        let sessions = &self.side.sessions;
        if sessions.accepts_requests(id)
            && let Some(state) = sessions.client_state::<C>(id)
        {
            return Some((self, state));
        }
        self.refuse_session(id);
        None
    }

    /// Rejects the request, because the session does not exist.
    fn refuse_session(self, id: &SessionId) {
        let error = jsonrpc::Error::resource_not_found(format!("session {id}"));
        self.refuse(Error::Rpc(error));
    }
}

/// Returns `true` if the client implements this optional method of version 1.
pub(crate) fn is_offered<C: Client>(client: &C, method: &str) -> bool {
    match method {
        v1::ReadTextFileRequest::METHOD => client.read_text_file().is_some(),
        v1::WriteTextFileRequest::METHOD => client.write_text_file().is_some(),
        v1::CreateTerminalRequest::METHOD
        | v1::TerminalOutputRequest::METHOD
        | v1::WaitForTerminalExitRequest::METHOD
        | v1::KillTerminalRequest::METHOD
        | v1::ReleaseTerminalRequest::METHOD => client.terminals().is_some(),
        v1::CreateElicitationRequest::METHOD => client.elicitation().is_some(),
        _ => false,
    }
}
