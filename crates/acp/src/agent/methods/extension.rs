//! Methods of extensions, whose names begin with `_`.

use acp_wire::Handle;
use acp_wire::v1::Extension;

use crate::agent::Agent;
use crate::agent::side::AgentSide;
use crate::pending_request::PendingRequest;

impl<A: Agent> Handle<Extension, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, Extension { method, params }: Extension) {
        let Self { side, responder } = self;
        let conn = responder.connection().clone();
        responder.spawn(async move { side.agent.extension_request(&conn, &method, params).await });
    }
}
