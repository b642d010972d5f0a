//! `session/request_permission`, which requests the user's permission. See "Requesting Permission" on the
//! specification's page "Tool Calls".

use acp_wire::MessageHandler;
use acp_wire::v1::{self, RequestPermissionOutcome, RequestPermissionResponse};
use acp_wire::v2;

use crate::client::Client;
use crate::client::side::ClientSide;
use crate::client_core::ReceivedPermissionRequest;
use crate::error::Error;
use crate::pending_request::PendingRequest;

impl<C: Client> MessageHandler<v1::RequestPermissionRequest, ()> for PendingRequest<ClientSide<C>> {
    fn handle(self, request: v1::RequestPermissionRequest) {
        self.ask(request.into());
    }
}

impl<C: Client> MessageHandler<v2::RequestPermissionRequest, ()> for PendingRequest<ClientSide<C>> {
    fn handle(self, request: v2::RequestPermissionRequest) {
        self.ask(request.into());
    }
}

impl<C: Client> PendingRequest<ClientSide<C>> {
    /// Runs the client's handler until it responds or the turn is cancelled.
    fn ask(self, request: ReceivedPermissionRequest) {
        let id = request.session_id.clone();
        let Some((Self { side, responder }, state)) = self.require_session(&id) else {
            return;
        };
        let Some((request, turn)) = side.sessions.request_permission(request) else {
            return Self { side, responder }.reject_unknown_session(&id);
        };
        if let Err(error) = responder.reserve_memory(request.tool_call.weight()) {
            return Self { side, responder }.reject(error);
        }
        responder.spawn(async move {
            let outcome = tokio::select! {
                biased;
                () = turn.cancelled() => RequestPermissionOutcome::cancelled(),
                outcome = side.client.request_permission(&state, request) => match outcome {
                    Err(Error::Cancelled) => RequestPermissionOutcome::cancelled(),
                    other => other?,
                },
            };
            Ok(RequestPermissionResponse::new(outcome))
        });
    }
}
