//! `fs/read_text_file`, which reads a text file. See "Reading Files" on the specification's page "File System".

use acp_wire::v1::{ReadTextFileRequest, ReadTextFileResponse};
use acp_wire::{MessageHandler, Request};

use crate::client::Client;
use crate::client::side::ClientSide;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_handler};

/// A handler for `fs/read_text_file`, which reads a text file. Version 1 only. See "Reading Files" on the
/// specification's page "File System".
pub trait ReadTextFile<S>: Send + Sync {
    /// Reads a file as the user sees it, including unsaved changes. `line` counts from 1, and `limit` is a number of
    /// lines.
    ///
    /// # Errors
    /// The file does not exist ([`jsonrpc::Error::RESOURCE_NOT_FOUND`](acp_wire::jsonrpc::Error::RESOURCE_NOT_FOUND)),
    /// or the agent may not read it, or reading fails.
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
            let files = require_handler(side.client.read_text_file(), ReadTextFileRequest::METHOD)?;
            files.read(&state, request).await
        });
    }
}
