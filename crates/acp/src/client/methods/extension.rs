//! Extension requests, whose methods start with `_`.

use acp_wire::MessageHandler;
use acp_wire::v1::Extension;

use crate::client::Client;
use crate::client::side::ClientSide;
use crate::extension::ExtensionRequest;
use crate::pending_request::PendingRequest;

impl<C: Client> MessageHandler<Extension, ()> for PendingRequest<ClientSide<C>> {
    fn handle(self, extension: Extension) {
        let Self { side, responder } = self;
        let request = ExtensionRequest::new(extension);
        responder.spawn(async move { side.client.extension_request(request).await });
    }
}
