//! Tests of the client's own MCP servers, which the agent gets with every session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{NoopClient, PIPE_CAPACITY, TestPeer, with_timeout};
use acp::client::SessionSetup;
use acp::v1::{McpServer, McpServerHttp, McpServerStdio};
use acp::{Client, Error, Limits};
use serde_json::{Value, json};

/// A client with a fixed list of MCP servers.
struct McpServersClient(Vec<McpServer>);

impl Client for McpServersClient {
    type State = ();

    fn mcp_servers(&self) -> Vec<McpServer> {
        self.0.clone()
    }
}

fn stdio_server(name: &str, command: &str) -> McpServer {
    McpServer::Stdio(McpServerStdio::new(
        name,
        command,
        Vec::<String>::new(),
        Vec::new(),
    ))
}

fn setup_with_servers(servers: Vec<McpServer>) -> SessionSetup {
    SessionSetup::new("/work").mcp_servers(servers)
}

/// Returns the name and command of each server in a request.
fn server_lines(params: &Value) -> Vec<(&str, &str)> {
    let servers = params["mcpServers"].as_array().expect("there are servers");
    servers
        .iter()
        .map(|server| {
            (
                server["name"].as_str().unwrap(),
                server["command"].as_str().unwrap(),
            )
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn client_servers_follow_the_sessions_servers() {
    let own = vec![
        stdio_server("editor", "/bin/editor"),
        stdio_server("more", "/bin/more"),
    ];
    let capabilities = json!({"loadSession": true, "sessionCapabilities": {"resume": {}}});
    let (conn, mut peer) = TestPeer::connect_to_client_with(
        McpServersClient(own),
        Limits::default(),
        PIPE_CAPACITY,
        capabilities,
    )
    .await;
    let with_own = [
        ("files", "/bin/files"),
        ("editor", "/bin/editor"),
        ("more", "/bin/more"),
    ];
    let asked = || setup_with_servers(vec![stdio_server("files", "/bin/files")]);

    let opening = tokio::spawn({
        let conn = conn.clone();
        async move { conn.new_session(asked()).await }
    });
    let (id, params) = peer.expect_request("session/new").await;
    assert_eq!(server_lines(&params), with_own);
    peer.answer(&id, json!({"sessionId": "s"})).await;
    with_timeout("the session opens", opening)
        .await
        .unwrap()
        .unwrap();

    let loading = tokio::spawn({
        let conn = conn.clone();
        async move { conn.load_session("s", asked()).await }
    });
    let (id, params) = peer.expect_request("session/load").await;
    assert_eq!(server_lines(&params), with_own);
    peer.answer(&id, json!({})).await;
    with_timeout("the session is loaded", loading)
        .await
        .unwrap()
        .unwrap();

    let resuming = tokio::spawn({
        let conn = conn.clone();
        async move { conn.resume_session("s", asked()).await }
    });
    let (id, params) = peer.expect_request("session/resume").await;
    assert_eq!(server_lines(&params), with_own);
    peer.answer(&id, json!({})).await;
    with_timeout("the session is resumed", resuming)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_with_a_duplicate_name_is_left_out() {
    let own = vec![
        stdio_server("files", "/bin/own-files"),
        stdio_server("editor", "/bin/editor"),
        stdio_server("editor", "/bin/other-editor"),
    ];
    let (conn, mut peer) = TestPeer::connect_to_client(McpServersClient(own)).await;
    let opening = tokio::spawn(async move {
        conn.new_session(setup_with_servers(vec![stdio_server(
            "files",
            "/bin/files",
        )]))
        .await
    });
    let (id, params) = peer.expect_request("session/new").await;
    assert_eq!(
        server_lines(&params),
        [("files", "/bin/files"), ("editor", "/bin/editor")]
    );
    peer.answer(&id, json!({"sessionId": "s"})).await;
    with_timeout("the session opens", opening)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_without_mcp_servers_adds_none() {
    let (conn, mut peer) = TestPeer::connect_to_client(NoopClient).await;
    let opening = tokio::spawn(async move { conn.new_session("/work").await });
    let (id, params) = peer.expect_request("session/new").await;
    assert_eq!(params["mcpServers"], json!([]));
    peer.answer(&id, json!({"sessionId": "s"})).await;
    with_timeout("the session opens", opening)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn mcp_servers_is_called_for_each_session() {
    /// A client whose MCP server has a different name each time it is requested.
    struct RenamingServerClient(Arc<AtomicUsize>);
    impl Client for RenamingServerClient {
        type State = ();

        fn mcp_servers(&self) -> Vec<McpServer> {
            let count = self.0.fetch_add(1, Ordering::Relaxed);
            vec![stdio_server(&format!("server {count}"), "/bin/server")]
        }
    }
    let (conn, mut peer) = TestPeer::connect_to_client(RenamingServerClient(Arc::default())).await;
    for name in ["server 0", "server 1"] {
        let opening = tokio::spawn({
            let conn = conn.clone();
            async move { conn.new_session("/work").await }
        });
        let (id, params) = peer.expect_request("session/new").await;
        assert_eq!(server_lines(&params), [(name, "/bin/server")]);
        peer.answer(&id, json!({"sessionId": name})).await;
        with_timeout("the session opens", opening)
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn servers_with_unsupported_transports_are_left_out() {
    let web = McpServerHttp::new("web", "https://mcp.example.org", Vec::new());
    let own = vec![
        McpServer::Http(web.clone()),
        stdio_server("editor", "/bin/editor"),
    ];
    let (conn, mut peer) = TestPeer::connect_to_client(McpServersClient(own)).await;
    // An unsupported server of the session is an error that names it. An unsupported server of the client is left out.
    let error = conn.new_session(setup_with_servers(vec![McpServer::Http(web)]));
    let error = error.await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    peer.expect_silence().await;

    let opening = tokio::spawn(async move { conn.new_session("/work").await });
    let (id, params) = peer.expect_request("session/new").await;
    assert_eq!(server_lines(&params), [("editor", "/bin/editor")]);
    peer.answer(&id, json!({"sessionId": "s"})).await;
    with_timeout("the session opens", opening)
        .await
        .unwrap()
        .unwrap();
}
