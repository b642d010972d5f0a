//! The requests of an agent, a file each: what a client offers to answer it, and how it is answered.
//!
//! A request is read by the table of its version ([`acp_wire::v1::AgentRequest`], [`acp_wire::v2::AgentRequest`]),
//! which hands it to the [`MessageHandler`](acp_wire::MessageHandler) for its type. A method that this library does not answer does not
//! compile.

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
use super::sessions::ClientSessionEntry;
use super::side::ClientSide;
use crate::error::Error;
use crate::pending_request::PendingRequest;

pub use elicitation::Elicitation;
pub use read_text_file::ReadTextFile;
pub use request_permission::PermissionRequest;
pub use terminals::Terminals;
pub use write_text_file::WriteTextFile;

impl<C: Client> PendingRequest<ClientSide<C>> {
    /// The request, and what the client keeps of its session, if it is one that this client has. Otherwise it is refused.
    fn require_session(self, id: &SessionId) -> Option<(Self, Arc<C::State>)> {
        let sessions = &self.side.sessions;
        let state = |entry: &mut ClientSessionEntry| entry.client_state::<C>();
        let state = sessions
            .accepts_requests(id)
            .then(|| sessions.with_session(id, state));
        if let Some(state) = state.flatten().flatten() {
            return Some((self, state));
        }
        self.refuse_session(id);
        None
    }

    /// Answers that there is no such session.
    fn refuse_session(self, id: &SessionId) {
        let error = jsonrpc::Error::resource_not_found(format!("session {id}"));
        self.refuse(Error::Rpc(error));
    }
}

/// Whether the client offers a method of version 1 that not every client has.
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
