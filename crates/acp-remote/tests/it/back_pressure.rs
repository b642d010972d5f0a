//! A client that does not read makes its own agent wait, and nobody else. Memory stays bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp::client::{Client, Update, UpdateContext};
use acp_remote::client::{ConnectOptions, HttpVersion, connect};
use tokio::sync::Semaphore;

use crate::common::raw::{BEARER, INITIALIZE, JSON, NEW_SESSION, RawStream, SSE, request};
use crate::common::server::token;
use crate::common::{Server, TestClient, open, soon};

/// How many bytes each message of the agent has, and how much may be on its way: two windows, the buffers of both
/// libraries and those of the sockets.
const MESSAGE: usize = 10_000;
const MOST_ON_THE_WAY: usize = 16 * 1024 * 1024;

/// Waits until the agent makes no progress, and returns how much it has sent.
async fn stalled(sent: &AtomicUsize) -> usize {
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

/// A client that does not handle updates while the gate is closed.
#[derive(Clone)]
struct SlowClient(Arc<Semaphore>);

impl Client for SlowClient {
    type State = ();

    async fn update(&self, (): &(), _: &UpdateContext, _: &Update) {
        let _ = self.0.acquire().await.unwrap();
    }
}

#[tokio::test]
async fn an_agent_waits_for_its_slow_client_and_nobody_else_does() {
    for (scheme, version) in [
        ("ws", HttpVersion::Auto),
        ("ws", HttpVersion::Http2),
        ("http", HttpVersion::Http2),
        ("http", HttpVersion::Http1),
    ] {
        let server = Server::start().await;
        let options = ConnectOptions::new().token(token()).http_version(version);
        let transport = connect(&server.url(scheme), options.clone()).await.unwrap();
        let gate = Arc::new(Semaphore::new(0));
        let slow = SlowClient(Arc::clone(&gate));
        let agent = acp::testing::start_client(transport, slow, acp::Options::default());
        let session = soon(soon(agent).await.unwrap().new_session("/"))
            .await
            .unwrap();
        let messages = 2 * MOST_ON_THE_WAY / MESSAGE;
        let prompt = tokio::spawn({
            let session = session.clone();
            async move { session.prompt(format!("stream {messages} {MESSAGE}")).await }
        });
        let sent = soon(stalled(&server.agent.sent)).await;
        assert!(
            sent * MESSAGE < MOST_ON_THE_WAY,
            "{scheme} {version:?}: {sent}"
        );
        // Another client of the same server is served.
        let (_, other) = open(&server.url(scheme), options, TestClient::default()).await;
        soon(other.prompt("stream 1000 1000")).await.unwrap();
        // The first one goes on where it was.
        gate.add_permits(1);
        soon(prompt).await.unwrap().unwrap();
        let shown = session
            .thread()
            .read(|thread| format!("{:?}", thread.items()).len());
        assert!(shown >= messages * MESSAGE, "{shown}");
    }
}

#[tokio::test]
async fn a_stream_that_nobody_reads_makes_the_agent_wait() {
    let server = Server::start().await;
    let to = server.address;
    let opened = request(to, "POST", &[BEARER, JSON], INITIALIZE).await;
    let id = opened.connection();
    let mut stream = RawStream::open(to, &[BEARER, SSE, ("Acp-Connection-Id", &id)]).await;
    let headers = [BEARER, JSON, ("Acp-Connection-Id", &*id)];
    request(to, "POST", &headers, NEW_SESSION).await;
    let session = stream.message().await["result"]["sessionId"]
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
        request(to, "POST", &headers, &prompt.to_string())
            .await
            .status,
        202
    );
    let sent = soon(stalled(&server.agent.sent)).await;
    assert!(sent * MESSAGE < 6 * 1024 * 1024, "{sent}");
    assert!(sent * MESSAGE > 3 * 1024 * 1024, "{sent}");
    // Once it is read, the agent goes on.
    let headers = [
        BEARER,
        SSE,
        ("Acp-Connection-Id", &*id),
        ("Acp-Session-Id", &*session),
    ];
    let mut stream = RawStream::open(to, &headers).await;
    for number in 0..2000 {
        let message = stream.message().await;
        let text = message["params"]["update"]["content"]["text"]
            .as_str()
            .unwrap();
        assert!(text.starts_with(&format!("[{number}]")));
    }
}

#[tokio::test]
async fn a_message_of_many_megabytes_passes_in_both_directions() {
    let server = Server::start().await;
    for scheme in ["ws", "http"] {
        let options = ConnectOptions::new().token(token());
        let (_, session) = open(&server.url(scheme), options, TestClient::default()).await;
        let long = "z".repeat(5_000_000);
        soon(session.prompt(long)).await.unwrap();
        soon(session.prompt("large 5000000")).await.unwrap();
        let shown = session
            .thread()
            .read(|thread| format!("{:?}", thread.items()).len());
        assert!(shown > 15_000_000, "{scheme}: {shown}");
    }
}
