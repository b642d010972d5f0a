//! The test client. It allows everything and keeps files in memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use acp::client::{
    AgentConnection, Client, ClientSession, PermissionRequest, ReadTextFile, WriteTextFile,
};
use acp::v1::{
    ReadTextFileRequest, ReadTextFileResponse, RequestPermissionOutcome, WriteTextFileRequest,
    WriteTextFileResponse,
};
use acp_remote::client::{ConnectOptions, connect};

use super::with_timeout;

/// A client that allows everything.
#[derive(Clone, Default)]
pub(crate) struct TestClient {
    /// The number of permission requests that arrived.
    pub(crate) asked: Arc<AtomicUsize>,
    pub(crate) files: Arc<Mutex<HashMap<String, String>>>,
}

impl Client for TestClient {
    type State = ();

    async fn request_permission(
        &self,
        (): &(),
        request: PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(request.allow())
    }

    fn read_text_file(&self) -> Option<&impl ReadTextFile<()>> {
        Some(self)
    }

    fn write_text_file(&self) -> Option<&impl WriteTextFile<()>> {
        Some(self)
    }
}

impl ReadTextFile<()> for TestClient {
    async fn read(
        &self,
        (): &(),
        request: ReadTextFileRequest,
    ) -> acp::Result<ReadTextFileResponse> {
        let files = self.files.lock().unwrap();
        let content = files.get(&request.path).cloned().unwrap_or_default();
        Ok(ReadTextFileResponse::new(content))
    }
}

impl WriteTextFile<()> for TestClient {
    async fn write(
        &self,
        (): &(),
        request: WriteTextFileRequest,
    ) -> acp::Result<WriteTextFileResponse> {
        self.files
            .lock()
            .unwrap()
            .insert(request.path, request.content);
        Ok(WriteTextFileResponse::default())
    }
}

/// Connects a client and opens a session.
pub(crate) async fn connect_and_open(
    url: &str,
    options: ConnectOptions,
    client: TestClient,
) -> (AgentConnection, ClientSession) {
    let transport = with_timeout(connect(url, options)).await.unwrap();
    let agent = with_timeout(acp::testing::start_client(
        transport,
        client,
        acp::Options::default(),
    ))
    .await;
    let agent = agent.unwrap();
    let session = with_timeout(agent.new_session("/")).await.unwrap();
    (agent, session)
}
