//! Requests of extensions, whose methods start with `_`.

use acp_wire::v1::{Extension, SteerRequest};
use acp_wire::{MessageHandler, Request, read_params};

use crate::agent::Agent;
use crate::agent::side::AgentSide;
use crate::extension::ExtensionRequest;
use crate::pending_request::PendingRequest;

impl<A: Agent> MessageHandler<Extension, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, extension: Extension) {
        let method = &extension.method;
        if *method == SteerRequest::METHOD && self.side.agent.steer_turn().is_some() {
            return match read_params::<SteerRequest>(method, extension.params.as_deref()) {
                Ok(request) => self.handle(request),
                Err(error) => self.refuse(error.into()),
            };
        }
        let Self { side, responder } = self;
        let conn = responder.connection().clone();
        let request = ExtensionRequest::new(extension);
        responder.spawn(async move { side.agent.extension_request(&conn, request).await });
    }
}
