//! Handles the requests that a client sends. Each request has its own file, with the trait that an agent implements and
//! the code that handles the request.
//!
//! Each version has a table of requests ([`acp_wire::v1::ClientRequest`], [`acp_wire::v2::ClientRequest`]), which reads
//! a request and passes it to the [`MessageHandler`] for its type. The code does not compile if a handler is missing, or
//! if a method requires a capability and is not `offered_by!` a part of the agent.

/// Declares which part of the agent handles the given requests. An agent that has this part offers these methods.
macro_rules! offered_by {
    ($part:ident: $($request:ty),+ $(,)?) => { $(
        impl<A: crate::agent::Agent> acp_wire::MethodOffer<$request> for crate::agent::side::AgentSide<A> {
            fn is_offered(&self) -> bool {
                self.agent.$part().is_some()
            }
        }
    )+ };
}

mod archive_session;
mod auth_status;
mod authentication;
mod cancel_work;
mod close_session;
mod delete_session;
mod extension;
mod fork_at_message;
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
pub use auth_status::AuthStatusHandler;
pub use authentication::{AuthContext, Authentication};
pub use cancel_work::CancelWork;
pub use close_session::CloseSession;
pub use delete_session::DeleteSession;
pub use fork_at_message::ForkAtMessage;
pub use fork_session::ForkSession;
pub use list_sessions::ListSessions;
pub use load_session::LoadSession;
pub use providers::Providers;
pub use resume_session::ResumeSession;
pub use session_status::SessionStatusHandler;
pub use set_session_title::SetSessionTitle;
pub use steer_turn::SteerTurn;

// `initialize` is handled before the version is known: `agent/initialize.rs`.

impl<A: Agent> MessageHandler<v1::InitializeRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, _: v1::InitializeRequest) {
        self.reject(method_not_found(v1::InitializeRequest::METHOD));
    }
}

impl<A: Agent> MessageHandler<v2::InitializeRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, _: v2::InitializeRequest) {
        self.reject(method_not_found(v1::InitializeRequest::METHOD));
    }
}

fn method_not_found(method: &str) -> Error {
    Error::Rpc(jsonrpc::Error::method_not_found(method))
}
