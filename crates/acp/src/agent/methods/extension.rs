//! Extension requests, whose methods start with `_`. Extensions that the library supports have a method table and
//! handlers like any other method. All others, and those that the agent does not offer, go to
//! [`Agent::extension_request`].

use acp_wire::MessageHandler;
use acp_wire::extensions::ClientExtensionRequest;
use acp_wire::v1::Extension;

use crate::agent::Agent;
use crate::agent::side::AgentSide;
use crate::extension::ExtensionRequest;
use crate::pending_request::PendingRequest;

impl<A: Agent> MessageHandler<Extension, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, extension: Extension) {
        let method = &extension.method;
        let offered = ClientExtensionRequest::offered_by(&*self.side);
        if offered.iter().any(|row| row.name == *method) {
            return match ClientExtensionRequest::read(method, extension.params.as_deref()) {
                Ok(request) => request.handle(self),
                Err(error) => self.reject(error.into()),
            };
        }
        let Self { side, responder } = self;
        let conn = responder.connection().clone();
        let request = ExtensionRequest::new(extension);
        responder.spawn(async move { side.agent.extension_request(&conn, request).await });
    }
}
