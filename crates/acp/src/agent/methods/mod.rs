//! The requests that a client sends, one file each, with the trait that an agent implements and the handling of the
//! request.
//!
//! Each version has a table of requests ([`acp_wire::v1::ClientRequest`], [`acp_wire::v2::ClientRequest`]), which reads
//! a request and passes it to the [`MessageHandler`] for its type. The code does not compile if a handler is missing.

mod archive_session;
mod auth_status;
mod authentication;
mod cancel_work;
mod close_session;
mod delete_session;
mod extension;
mod fork_session;
mod list_sessions;
mod load_session;
mod new_session;
mod prompt;
mod providers;
mod resume_session;
mod session_status;
mod set_config_option;
mod set_session_title;
mod steer_turn;

use acp_wire::{MessageHandler, Request, jsonrpc, v1, v2};

use super::Agent;
use super::side::AgentSide;
use crate::error::Error;
use crate::pending_request::PendingRequest;

pub use archive_session::ArchiveSession;
pub use auth_status::CheckAuthStatus;
pub use authentication::{AuthContext, Authentication};
pub use cancel_work::CancelWork;
pub use close_session::CloseSession;
pub use delete_session::DeleteSession;
pub use fork_session::ForkSession;
pub use list_sessions::ListSessions;
pub use load_session::LoadSession;
pub use providers::Providers;
pub use resume_session::ResumeSession;
pub use session_status::CheckSessionStatus;
pub use set_session_title::SetSessionTitle;
pub use steer_turn::SteerTurn;

/// Returns `true` if the agent implements the optional method with this version 1 name.
pub(crate) fn is_offered<A: Agent>(agent: &A, method: &str) -> bool {
    match method {
        v1::LogoutRequest::METHOD => agent.authentication().is_some_and(|a| a.can_logout()),
        v1::LoadSessionRequest::METHOD => agent.load_session().is_some(),
        v1::ListSessionsRequest::METHOD => agent.list_sessions().is_some(),
        v1::DeleteSessionRequest::METHOD => agent.delete_session().is_some(),
        v1::ResumeSessionRequest::METHOD => agent.resume_session().is_some(),
        v1::CloseSessionRequest::METHOD => agent.close_session().is_some(),
        v1::ForkSessionRequest::METHOD => agent.fork_session().is_some(),
        v1::ArchiveSessionRequest::METHOD | v1::UnarchiveSessionRequest::METHOD => {
            agent.archive_session().is_some()
        }
        v1::SessionStatusRequest::METHOD => agent.session_status().is_some(),
        v1::AuthStatusRequest::METHOD => agent.auth_status().is_some(),
        v1::ListProvidersRequest::METHOD
        | v1::SetProviderRequest::METHOD
        | v1::DisableProviderRequest::METHOD => agent.providers().is_some(),
        v1::SetSessionTitleRequest::METHOD => agent.set_session_title().is_some(),
        _ => false,
    }
}

// `initialize` is handled before the version is known: `agent/initialize.rs`.

impl<A: Agent> MessageHandler<v1::InitializeRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, _: v1::InitializeRequest) {
        self.refuse(method_not_found(v1::InitializeRequest::METHOD));
    }
}

impl<A: Agent> MessageHandler<v2::InitializeRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, _: v2::InitializeRequest) {
        self.refuse(method_not_found(v1::InitializeRequest::METHOD));
    }
}

fn method_not_found(method: &str) -> Error {
    Error::Rpc(jsonrpc::Error::method_not_found(method))
}
