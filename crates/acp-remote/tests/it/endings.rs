//! Tests that both sides learn why a connection ended, and that lost connections are reported.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp::CloseReason;
use acp_remote::CloseStatus;
use acp_remote::client::{ConnectError, ConnectOptions, ConnectionStatus, HttpVersion, connect};
use acp_remote::server::{ConnectionInfo, ServeOptions, ServerConfig, ServerLimits};

use crate::common::proxy::{ConnectionFault, CuttingProxy};
use crate::common::server::{server_url, test_token};
use crate::common::{TestAgent, TestClient, TestServer, connect_and_open, with_timeout};

const TRANSPORTS: [(&str, HttpVersion); 3] = [
    ("ws", HttpVersion::Auto),
    ("http", HttpVersion::Http2),
    ("http", HttpVersion::Http1),
];

fn connect_options(version: HttpVersion) -> ConnectOptions {
    ConnectOptions::new()
        .token(test_token())
        .http_version(version)
}

/// Returns the text of a close reason.
fn close_reason_text(reason: &CloseReason) -> String {
    match reason {
        CloseReason::Transport(error) => error.to_string(),
        other => other.to_string(),
    }
}

#[tokio::test]
async fn loss_without_the_extension_is_reported() {
    for (scheme, version) in TRANSPORTS {
        // A server that numbers events keeps the last ones. Here, hardly any.
        let limits = ServerLimits::new().window(4096_usize);
        let config = ServerConfig::new()
            .token(test_token())
            .grace(Duration::ZERO)
            .limits(limits);
        let server = TestServer::start_with(config, ServeOptions::new()).await;
        // Enough to open a session, and too little for the turn.
        let proxy = CuttingProxy::start(server.address, || ConnectionFault {
            cut_after: 30_000,
            ..ConnectionFault::NONE
        })
        .await;
        let (agent, session) = connect_and_open(
            &server_url(scheme, proxy.address),
            connect_options(version),
            TestClient::default(),
        )
        .await;
        let failed = with_timeout(session.prompt("stream 10000 100"))
            .await
            .unwrap_err();
        assert!(
            matches!(failed, acp::Error::Closed(_)),
            "{scheme} {version:?}: {failed}"
        );
        let told = close_reason_text(&with_timeout(agent.closed()).await);
        assert!(
            told.starts_with("connection lost: ") && told.contains("messages may be missing"),
            "{scheme} {version:?}: {told}"
        );
    }
}

#[tokio::test]
async fn restarted_server_is_reported_as_a_loss() {
    for (scheme, version) in TRANSPORTS {
        let first = TestServer::start().await;
        // The second connection and all later ones reach a server that was just started.
        let second = TestServer::start().await;
        let addresses = Arc::new(Mutex::new(first.address));
        let proxy = SwitchingProxy::start(Arc::clone(&addresses)).await;
        let (agent, session) = connect_and_open(
            &server_url(scheme, proxy.address),
            connect_options(version),
            TestClient::default(),
        )
        .await;
        *addresses.lock().unwrap() = second.address;
        proxy.cut();
        let failed = with_timeout(session.prompt("hi")).await.unwrap_err();
        assert!(
            matches!(failed, acp::Error::Closed(_)),
            "{scheme}: {failed}"
        );
        let told = close_reason_text(&with_timeout(agent.closed()).await);
        assert!(told.contains("404"), "{scheme} {version:?}: {told}");
    }
}

/// A proxy whose server can be replaced while it runs.
struct SwitchingProxy {
    address: std::net::SocketAddr,
    cut: tokio::sync::watch::Sender<u32>,
}

impl SwitchingProxy {
    async fn start(server: Arc<Mutex<std::net::SocketAddr>>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cut = tokio::sync::watch::Sender::new(0);
        let cuts = cut.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let to = *server.lock().unwrap();
                let mut cut = cuts.subscribe();
                tokio::spawn(async move {
                    let mut server = tokio::net::TcpStream::connect(to).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self { address, cut }
    }

    fn cut(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }
}

#[tokio::test]
async fn client_gets_the_close_reason_of_the_server() {
    for (scheme, version) in TRANSPORTS {
        let handler = |_: ConnectionInfo, transport: acp::Transport| async move {
            let (agent, driver) =
                acp::agent::start(transport, TestAgent::default(), acp::Options::new());
            let driving = tokio::spawn(driver);
            // The agent fails after a while: here, when it has got a session.
            tokio::time::sleep(Duration::from_millis(500)).await;
            agent.close();
            let _ = driving.await;
            CloseStatus::failed("the agent exited with status 3")
        };
        let config = ServerConfig::new().token(test_token());
        let server = TestServer::start_with_handler(
            config,
            ServeOptions::new(),
            TestAgent::default(),
            handler,
        )
        .await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let statuses = Arc::clone(&seen);
        let options = connect_options(version)
            .on_status(move |status| statuses.lock().unwrap().push(status.clone()));
        let (agent, _session) =
            connect_and_open(&server.url(scheme), options, TestClient::default()).await;
        let told = close_reason_text(&with_timeout(agent.closed()).await);
        assert!(
            told.contains("the agent exited with status 3"),
            "{scheme} {version:?}: {told}"
        );
        let seen = seen.lock().unwrap();
        let expected = CloseStatus::failed("the agent exited with status 3");
        assert!(
            seen.contains(&ConnectionStatus::Closed(expected)),
            "{scheme} {version:?}: {seen:?}"
        );
    }
}

#[tokio::test]
async fn server_shutdown_closes_connections_cleanly() {
    for (scheme, version) in TRANSPORTS {
        let server = TestServer::start().await;
        let (agent, session) = connect_and_open(
            &server.url(scheme),
            connect_options(version),
            TestClient::default(),
        )
        .await;
        with_timeout(session.prompt("hi")).await.unwrap();
        with_timeout(server.endpoint.shut_down()).await;
        let reason = with_timeout(agent.closed()).await;
        assert!(
            matches!(reason, CloseReason::Peer),
            "{scheme} {version:?}: {reason}"
        );
        let refused = connect(&server.url("ws"), connect_options(HttpVersion::Auto))
            .await
            .unwrap_err();
        assert!(refused.to_string().contains("503"), "{refused}");
    }
}

#[tokio::test]
async fn closing_client_ends_its_agent_at_once() {
    for (scheme, version) in TRANSPORTS {
        let (ended, mut endings) = tokio::sync::mpsc::unbounded_channel();
        let handler = move |_: ConnectionInfo, transport: acp::Transport| {
            let ended = ended.clone();
            async move {
                let _ = acp::agent::serve(transport, TestAgent::default()).await;
                ended.send(()).unwrap();
            }
        };
        let config = ServerConfig::new().token(test_token());
        let server = TestServer::start_with_handler(
            config,
            ServeOptions::new(),
            TestAgent::default(),
            handler,
        )
        .await;
        let (agent, _session) = connect_and_open(
            &server.url(scheme),
            connect_options(version),
            TestClient::default(),
        )
        .await;
        agent.close();
        let closing = tokio::time::Instant::now();
        with_timeout(agent.closed()).await;
        with_timeout(endings.recv()).await.unwrap();
        // Well below the time that is given to peers that do not answer.
        assert!(
            closing.elapsed() < Duration::from_millis(1500),
            "{scheme} {:?}",
            closing.elapsed()
        );
        with_timeout(async {
            while server.endpoint.stats().open_connections > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn rejection_explains_what_to_do() {
    let server = TestServer::start().await;
    let refused = connect(&server.url("ws"), ConnectOptions::new())
        .await
        .unwrap_err();
    assert!(
        matches!(refused, ConnectError::Unauthorized { .. }),
        "{refused}"
    );
    let transport = connect(&server.url("http"), ConnectOptions::new())
        .await
        .unwrap();
    let client = acp::testing::start_client(transport, TestClient::default(), acp::Options::new());
    let failed = with_timeout(client).await.unwrap_err().to_string();
    assert!(failed.contains("401"), "{failed}");
    let nobody = connect("ws://127.0.0.1:1/acp", ConnectOptions::new())
        .await
        .unwrap_err();
    assert!(
        matches!(nobody, ConnectError::Unreachable { .. }),
        "{nobody}"
    );
    for url in [
        "",
        "ftp://a",
        "ws://",
        "http://u:p@localhost",
        "tcp://localhost",
    ] {
        let invalid = connect(url, ConnectOptions::new()).await.unwrap_err();
        assert!(
            matches!(invalid, ConnectError::InvalidUrl { .. }),
            "{url}: {invalid}"
        );
    }
    let tls = TestServer::start_tls().await;
    let untrusted = connect(&tls.url("wss"), connect_options(HttpVersion::Auto))
        .await
        .unwrap_err();
    assert!(matches!(untrusted, ConnectError::Tls { .. }), "{untrusted}");
}
