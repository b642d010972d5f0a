//! Tests that a client that stops reading blocks only its own agent, and that memory use stays bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp::client::{Client, Update, UpdateContext};
use acp_remote::client::{ConnectOptions, HttpVersion, connect};
use tokio::sync::Semaphore;

use crate::common::raw::{
    BEARER_HEADER, INITIALIZE_REQUEST, JSON_HEADER, NEW_SESSION_REQUEST, RawStream, SSE_HEADER,
    send_request,
};
use crate::common::server::test_token;
use crate::common::{TestClient, TestServer, connect_and_open, with_timeout};

/// The size of each message from the agent, and the maximum number of bytes in transit: two windows, the buffers of
/// both libraries, and the socket buffers.
const MESSAGE_BYTES: usize = 10_000;
const MAX_IN_TRANSIT_BYTES: usize = 16 * 1024 * 1024;

/// Waits until the agent stops making progress, and returns how much it has sent.
async fn wait_until_stalled(sent: &AtomicUsize) -> usize {
    let mut before = usize::MAX;
    loop {
        // This waits for nothing to happen, which has no event.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = sent.load(Ordering::Relaxed);
        if now == before && now > 0 {
            return now;
        }
        before = now;
    }
}

/// A client whose update handler waits until the semaphore has a permit.
#[derive(Clone)]
struct SlowClient(Arc<Semaphore>);

impl Client for SlowClient {
    type State = ();

    async fn update(&self, (): &(), _: &UpdateContext, _: &Update) {
        let _ = self.0.acquire().await.unwrap();
    }
}

#[tokio::test]
async fn slow_client_delays_only_its_own_agent() {
    for (scheme, version) in [
        ("ws", HttpVersion::Auto),
        ("ws", HttpVersion::Http2),
        ("http", HttpVersion::Http2),
        ("http", HttpVersion::Http1),
    ] {
        let server = TestServer::start().await;
        let options = ConnectOptions::new()
            .token(test_token())
            .http_version(version);
        let transport = connect(&server.url(scheme), options.clone()).await.unwrap();
        let gate = Arc::new(Semaphore::new(0));
        let slow = SlowClient(Arc::clone(&gate));
        let agent = acp::testing::start_client(transport, slow, acp::Options::default());
        let session = with_timeout(with_timeout(agent).await.unwrap().new_session("/"))
            .await
            .unwrap();
        let messages = 2 * MAX_IN_TRANSIT_BYTES / MESSAGE_BYTES;
        let prompt = tokio::spawn({
            let session = session.clone();
            async move {
                session
                    .prompt(format!("stream {messages} {MESSAGE_BYTES}"))
                    .await
            }
        });
        let sent = with_timeout(wait_until_stalled(&server.agent.sent)).await;
        assert!(
            sent * MESSAGE_BYTES < MAX_IN_TRANSIT_BYTES,
            "{scheme} {version:?}: {sent}"
        );
        // Another client of the same server is served.
        let (_, other) =
            connect_and_open(&server.url(scheme), options, TestClient::default()).await;
        with_timeout(other.prompt("stream 1000 1000"))
            .await
            .unwrap();
        // The first one goes on where it was.
        gate.add_permits(1);
        with_timeout(prompt).await.unwrap().unwrap();
        let shown = session
            .thread()
            .read(|thread| format!("{:?}", thread.items()).len());
        assert!(shown >= messages * MESSAGE_BYTES, "{shown}");
    }
}

#[tokio::test]
async fn unread_stream_blocks_the_agent() {
    let server = TestServer::start().await;
    let to = server.address;
    let opened = send_request(
        to,
        "POST",
        &[BEARER_HEADER, JSON_HEADER],
        INITIALIZE_REQUEST,
    )
    .await;
    let id = opened.connection_id();
    let mut stream =
        RawStream::open(to, &[BEARER_HEADER, SSE_HEADER, ("Acp-Connection-Id", &id)]).await;
    let headers = [BEARER_HEADER, JSON_HEADER, ("Acp-Connection-Id", &*id)];
    send_request(to, "POST", &headers, NEW_SESSION_REQUEST).await;
    let session = stream.read_message().await["result"]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    // The session's stream is never opened.
    let prompt = serde_json::json!({
        "jsonrpc": "2.0", "id": 2, "method": "session/prompt",
        "params": {"sessionId": session, "prompt": [{"type": "text", "text": "stream 10000 10000"}]},
    });
    let headers = [
        headers[0],
        headers[1],
        headers[2],
        ("Acp-Session-Id", &*session),
    ];
    assert_eq!(
        send_request(to, "POST", &headers, &prompt.to_string())
            .await
            .status,
        202
    );
    let sent = with_timeout(wait_until_stalled(&server.agent.sent)).await;
    assert!(sent * MESSAGE_BYTES < 6 * 1024 * 1024, "{sent}");
    assert!(sent * MESSAGE_BYTES > 3 * 1024 * 1024, "{sent}");
    // Once it is read, the agent goes on.
    let headers = [
        BEARER_HEADER,
        SSE_HEADER,
        ("Acp-Connection-Id", &*id),
        ("Acp-Session-Id", &*session),
    ];
    let mut stream = RawStream::open(to, &headers).await;
    for number in 0..2000 {
        let message = stream.read_message().await;
        let text = message["params"]["update"]["content"]["text"]
            .as_str()
            .unwrap();
        assert!(text.starts_with(&format!("[{number}]")));
    }
}

#[tokio::test]
async fn multi_megabyte_messages_pass_in_both_directions() {
    let server = TestServer::start().await;
    for scheme in ["ws", "http"] {
        let options = ConnectOptions::new().token(test_token());
        let (_, session) =
            connect_and_open(&server.url(scheme), options, TestClient::default()).await;
        let long = "z".repeat(5_000_000);
        with_timeout(session.prompt(long)).await.unwrap();
        with_timeout(session.prompt("large 5000000")).await.unwrap();
        let shown = session
            .thread()
            .read(|thread| format!("{:?}", thread.items()).len());
        assert!(shown > 15_000_000, "{scheme}: {shown}");
    }
}
