//! The endpoint inside other servers, and plain sockets.

use acp_remote::client::ConnectOptions;
use acp_remote::server::{
    ConnectionInfo, PeerAddress, ServeOptions, ServerConfig, TransportKind, router, serve,
};
use tokio::net::TcpListener;

use crate::common::server::{token, url};
use crate::common::{TestAgent, TestClient, open, soon};

#[tokio::test]
async fn a_router_of_axum_serves_agents_beside_other_routes() {
    let (seen, mut infos) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |info: ConnectionInfo, transport: acp::Transport| {
        seen.send(info).unwrap();
        async move {
            let _ = acp::agent::serve(transport, TestAgent::default()).await;
        }
    };
    let agents = router(
        ServerConfig::new().path("/agents/one").token(token()),
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
        let url = url(scheme, address).replace("/acp", "/agents/one?token=secret&x=1");
        let (_, session) = open(
            &url,
            ConnectOptions::new().token(token()),
            TestClient::default(),
        )
        .await;
        soon(session.prompt("ask 1")).await.unwrap();
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
async fn an_agent_on_a_plain_socket_is_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (reader, writer) = stream.into_split();
        let transport = acp::Transport::new(reader, writer);
        let _ = acp::agent::serve(transport, TestAgent::default()).await;
    });
    let url = format!("tcp://{address}");
    let (_, session) = open(&url, ConnectOptions::new(), TestClient::default()).await;
    soon(session.prompt("ask 1")).await.unwrap();
}
