//! Tests that an agent may send requests only for sessions that the client is opening or has opened.

use std::sync::{Arc, Mutex};

use acp::agent::default_limits;
use acp::client::{AgentConnection, Client, ClientState, ReadTextFile};
use acp::v1::{ReadTextFileRequest, ReadTextFileResponse, SessionId};
use acp::{Result, ThreadHandle};
use serde_json::json;

use crate::common::{PIPE_CAPACITY, TestPeer, with_timeout};

/// A client that lets agents read files, and records which sessions exist.
#[derive(Clone, Default)]
struct ReadAheadClient(Arc<Mutex<Vec<String>>>);

impl ReadAheadClient {
    fn events(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// A session state that records when it is created and dropped.
struct ReadAheadSession(ReadAheadClient, SessionId);

impl ClientState<ReadAheadClient> for ReadAheadSession {
    fn new(client: &ReadAheadClient, session: &SessionId, _: &ThreadHandle) -> Self {
        client.0.lock().unwrap().push(format!("seen {session}"));
        Self(client.clone(), session.clone())
    }
}

impl Drop for ReadAheadSession {
    fn drop(&mut self) {
        let Self(client, session) = self;
        client.0.lock().unwrap().push(format!("closed {session}"));
    }
}

impl Client for ReadAheadClient {
    type State = ReadAheadSession;

    fn read_text_file(&self) -> Option<&impl ReadTextFile<ReadAheadSession>> {
        Some(self)
    }
}

impl ReadTextFile<ReadAheadSession> for ReadAheadClient {
    async fn read(
        &self,
        _: &ReadAheadSession,
        _: ReadTextFileRequest,
    ) -> Result<ReadTextFileResponse> {
        Ok(ReadTextFileResponse::new("text"))
    }
}

async fn start_client() -> (ReadAheadClient, AgentConnection, TestPeer) {
    let lends = ReadAheadClient::default();
    let capabilities = json!({"loadSession": true, "sessionCapabilities": {"resume": {}}});
    let (conn, peer) = TestPeer::connect_to_client_with(
        lends.clone(),
        default_limits(),
        PIPE_CAPACITY,
        capabilities,
    )
    .await;
    (lends, conn, peer)
}

/// Returns `true` if the agent may read a file in the session.
async fn is_read_allowed(peer: &mut TestPeer, session: &str) -> bool {
    let id = format!("read in {session}");
    let params = json!({"sessionId": session, "path": "/file"});
    peer.send_request(id.clone(), "fs/read_text_file", params)
        .await;
    let answer = with_timeout("an answer", peer.next_message()).await;
    assert_eq!(answer["id"], id, "{answer}");
    match answer["error"]["message"].as_str() {
        None => true,
        Some(message) => {
            assert!(message.contains(&format!("session {session}")), "{answer}");
            false
        }
    }
}

#[tokio::test]
async fn agents_may_send_requests_for_a_session_being_opened() {
    let (_, conn, mut peer) = start_client().await;
    assert!(!is_read_allowed(&mut peer, "new").await);
    let opening = tokio::spawn({
        let conn = conn.clone();
        async move { conn.new_session("/work").await }
    });
    let (id, _) = peer.expect_request("session/new").await;
    assert!(is_read_allowed(&mut peer, "new").await);
    assert!(!is_read_allowed(&mut peer, "other").await);
    peer.answer(&id, json!({"sessionId": "new"})).await;
    let session = with_timeout("it is opened", opening)
        .await
        .unwrap()
        .unwrap();
    assert!(is_read_allowed(&mut peer, "new").await);
    assert!(!is_read_allowed(&mut peer, "other").await);
    // A message for a session does not make it one of the client's sessions.
    peer.send_text("other", "x").await;
    assert!(!is_read_allowed(&mut peer, "other").await);
    drop(session);
}

#[tokio::test]
async fn provisional_sessions_are_removed() {
    let (lends, conn, mut peer) = start_client().await;
    let opening = |conn: &AgentConnection| {
        let conn = conn.clone();
        tokio::spawn(async move { conn.new_session("/work").await })
    };
    let first = opening(&conn);
    let (id, _) = peer.expect_request("session/new").await;
    assert!(is_read_allowed(&mut peer, "ahead").await);
    peer.answer(&id, json!({"sessionId": "named"})).await;
    with_timeout("it is opened", first).await.unwrap().unwrap();
    assert_eq!(lends.events(), ["seen ahead", "seen named", "closed ahead"]);
    assert!(!is_read_allowed(&mut peer, "ahead").await);
    assert!(is_read_allowed(&mut peer, "named").await);
    // The same if the request fails.
    let second = opening(&conn);
    let (id, _) = peer.expect_request("session/new").await;
    assert!(is_read_allowed(&mut peer, "again").await);
    peer.send_error(&id, -32603).await;
    with_timeout("it is refused", second)
        .await
        .unwrap()
        .unwrap_err();
    assert!(!is_read_allowed(&mut peer, "again").await);
}

#[tokio::test]
async fn an_existing_session_accepts_requests_while_it_is_opened() {
    for method in ["session/load", "session/resume"] {
        let (_, conn, mut peer) = start_client().await;
        let opening = tokio::spawn({
            let conn = conn.clone();
            async move {
                match method {
                    "session/load" => conn.load_session("old", "/work").await,
                    _ => conn.resume_session("old", "/work").await,
                }
            }
        });
        let (id, _) = peer.expect_request(method).await;
        assert!(is_read_allowed(&mut peer, "old").await, "{method}");
        assert!(!is_read_allowed(&mut peer, "other").await, "{method}");
        peer.send_error(&id, -32603).await;
        with_timeout("it is refused", opening)
            .await
            .unwrap()
            .unwrap_err();
        assert!(!is_read_allowed(&mut peer, "old").await, "{method}");
    }
}
