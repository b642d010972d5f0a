//! `fs/read_text_file`: File system, "Reading Files".

use acp_wire::v1::{ReadTextFileRequest, ReadTextFileResponse};
use acp_wire::{MessageHandler, Request};

use crate::client::Client;
use crate::client::side::ClientSide;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_offer};

/// A handler for `fs/read_text_file`: File system, "Reading Files". Version 1 only.
pub trait ReadTextFile<S>: Send + Sync {
    /// Reads a file as the user sees it, including unsaved changes. `line` counts from 1, `limit` is in lines.
    ///
    /// # Errors
    /// The file does not exist
    /// ([`jsonrpc::Error::RESOURCE_NOT_FOUND`](acp_wire::jsonrpc::Error::RESOURCE_NOT_FOUND)), or it must not or
    /// cannot be read.
    fn read(
        &self,
        state: &S,
        request: ReadTextFileRequest,
    ) -> impl Future<Output = Result<ReadTextFileResponse>> + Send;
}

impl<S: Sync> ReadTextFile<S> for UnsupportedMethod {
    async fn read(&self, _: &S, _: ReadTextFileRequest) -> Result<ReadTextFileResponse> {
        match *self {}
    }
}

offered_by! { read_text_file: ReadTextFileRequest }

impl<C: Client> MessageHandler<ReadTextFileRequest, ()> for PendingRequest<ClientSide<C>> {
    fn handle(self, request: ReadTextFileRequest) {
        let Some((Self { side, responder }, state)) = self.require_session(&request.session_id)
        else {
            return;
        };
        responder.spawn_text(async move {
            let files = require_offer(side.client.read_text_file(), ReadTextFileRequest::METHOD)?;
            files.read(&state, request).await
        });
    }
}
