//! Tests of endpoints inside other servers, and of agents on plain sockets.

use acp_remote::client::ConnectOptions;
use acp_remote::server::{
    ConnectionInfo, PeerAddress, ServeOptions, ServerConfig, TransportKind, router, serve,
};
use tokio::net::TcpListener;

use crate::common::server::{server_url, test_token};
use crate::common::{TestAgent, TestClient, connect_and_open, with_timeout};

#[tokio::test]
async fn axum_router_serves_agents_next_to_other_routes() {
    let (seen, mut infos) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |info: ConnectionInfo, transport: acp::Transport| {
        seen.send(info).unwrap();
        async move {
            let _ = acp::agent::serve(transport, TestAgent::default()).await;
        }
    };
    let agents = router(
        ServerConfig::new().path("/agents/one").token(test_token()),
        handler,
    );
    let app = agents.route("/health", axum::routing::get(async || "fine"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, app, ServeOptions::new()));
    for (scheme, kind) in [
        ("ws", TransportKind::WebSocket),
        ("http", TransportKind::Http),
    ] {
        let url = server_url(scheme, address).replace("/acp", "/agents/one?token=secret&x=1");
        let (_, session) = connect_and_open(
            &url,
            ConnectOptions::new().token(test_token()),
            TestClient::default(),
        )
        .await;
        with_timeout(session.prompt("ask 1")).await.unwrap();
        let info = infos.recv().await.unwrap();
        assert_eq!(info.kind, kind);
        assert_eq!(info.uri, "/agents/one?x=1");
        assert!(info.peer.is_some_and(|peer| peer.ip().is_loopback()));
        assert!(!format!("{info:?}").contains("a-token-for-tests"));
        assert!(info.headers.contains_key("user-agent"));
    }
    let _ = PeerAddress(address);
}

#[tokio::test]
async fn agent_on_a_plain_socket_is_reachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (reader, writer) = stream.into_split();
        let transport = acp::Transport::new(reader, writer);
        let _ = acp::agent::serve(transport, TestAgent::default()).await;
    });
    let url = format!("tcp://{address}");
    let (_, session) = connect_and_open(&url, ConnectOptions::new(), TestClient::default()).await;
    with_timeout(session.prompt("ask 1")).await.unwrap();
}
