//! `fs/write_text_file`, which writes a text file. See "Writing Files" on the specification's page "File System".

use acp_wire::v1::{WriteTextFileRequest, WriteTextFileResponse};
use acp_wire::{MessageHandler, Request};

use crate::client::Client;
use crate::client::side::ClientSide;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_handler};

/// A handler for `fs/write_text_file`, which writes a text file. Version 1 only. See "Writing Files" on the
/// specification's page "File System".
pub trait WriteTextFile<S>: Send + Sync {
    /// Writes a file, creating it if it does not exist.
    ///
    /// # Errors
    /// The agent may not write the file, or writing fails.
    fn write(
        &self,
        state: &S,
        request: WriteTextFileRequest,
    ) -> impl Future<Output = Result<WriteTextFileResponse>> + Send;
}

impl<S: Sync> WriteTextFile<S> for UnsupportedMethod {
    async fn write(&self, _: &S, _: WriteTextFileRequest) -> Result<WriteTextFileResponse> {
        match *self {}
    }
}

offered_by! { write_text_file: WriteTextFileRequest }

impl<C: Client> MessageHandler<WriteTextFileRequest, ()> for PendingRequest<ClientSide<C>> {
    fn handle(self, request: WriteTextFileRequest) {
        let Some((Self { side, responder }, state)) = self.require_session(&request.session_id)
        else {
            return;
        };
        responder.spawn(async move {
            let files =
                require_handler(side.client.write_text_file(), WriteTextFileRequest::METHOD)?;
            files.write(&state, request).await
        });
    }
}
