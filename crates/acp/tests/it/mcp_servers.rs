//! The client's own MCP servers, which are passed to the agent with every session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{NoopClient, PIPE, TestPeer, soon};
use acp::client::SessionSetup;
use acp::v1::{McpServer, McpServerHttp, McpServerStdio};
use acp::{Client, Error, Limits};
use serde_json::{Value, json};

/// A client with these MCP servers.
struct McpServersClient(Vec<McpServer>);

impl Client for McpServersClient {
    type State = ();

    fn mcp_servers(&self) -> Vec<McpServer> {
        self.0.clone()
    }
}

fn stdio(name: &str, command: &str) -> McpServer {
    McpServer::Stdio(McpServerStdio::new(
        name,
        command,
        Vec::<String>::new(),
        Vec::new(),
    ))
}

fn setup(servers: Vec<McpServer>) -> SessionSetup {
    SessionSetup::new("/work").mcp_servers(servers)
}

/// Returns the name and command of each server in a request.
fn servers(params: &Value) -> Vec<(&str, &str)> {
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
    let own = vec![stdio("editor", "/bin/editor"), stdio("more", "/bin/more")];
    let capabilities = json!({"loadSession": true, "sessionCapabilities": {"resume": {}}});
    let (conn, mut peer) =
        TestPeer::of_client_with(McpServersClient(own), Limits::default(), PIPE, capabilities)
            .await;
    let with_own = [
        ("files", "/bin/files"),
        ("editor", "/bin/editor"),
        ("more", "/bin/more"),
    ];
    let asked = || setup(vec![stdio("files", "/bin/files")]);

    let opening = tokio::spawn({
        let conn = conn.clone();
        async move { conn.new_session(asked()).await }
    });
    let (id, params) = peer.request("session/new").await;
    assert_eq!(servers(&params), with_own);
    peer.answer(&id, json!({"sessionId": "s"})).await;
    soon("the session opens", opening).await.unwrap().unwrap();

    let loading = tokio::spawn({
        let conn = conn.clone();
        async move { conn.load_session("s", asked()).await }
    });
    let (id, params) = peer.request("session/load").await;
    assert_eq!(servers(&params), with_own);
    peer.answer(&id, json!({})).await;
    soon("the session is loaded", loading)
        .await
        .unwrap()
        .unwrap();

    let resuming = tokio::spawn({
        let conn = conn.clone();
        async move { conn.resume_session("s", asked()).await }
    });
    let (id, params) = peer.request("session/resume").await;
    assert_eq!(servers(&params), with_own);
    peer.answer(&id, json!({})).await;
    soon("the session is resumed", resuming)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_with_a_duplicate_name_is_left_out() {
    let own = vec![
        stdio("files", "/bin/own-files"),
        stdio("editor", "/bin/editor"),
        stdio("editor", "/bin/other-editor"),
    ];
    let (conn, mut peer) = TestPeer::of_client(McpServersClient(own)).await;
    let opening = tokio::spawn(async move {
        conn.new_session(setup(vec![stdio("files", "/bin/files")]))
            .await
    });
    let (id, params) = peer.request("session/new").await;
    assert_eq!(
        servers(&params),
        [("files", "/bin/files"), ("editor", "/bin/editor")]
    );
    peer.answer(&id, json!({"sessionId": "s"})).await;
    soon("the session opens", opening).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_without_any_adds_nothing() {
    let (conn, mut peer) = TestPeer::of_client(NoopClient).await;
    let opening = tokio::spawn(async move { conn.new_session("/work").await });
    let (id, params) = peer.request("session/new").await;
    assert_eq!(params["mcpServers"], json!([]));
    peer.answer(&id, json!({"sessionId": "s"})).await;
    soon("the session opens", opening).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn mcp_servers_is_called_for_each_session() {
    /// A client whose server has another name each time.
    struct RenamingServerClient(Arc<AtomicUsize>);
    impl Client for RenamingServerClient {
        type State = ();

        fn mcp_servers(&self) -> Vec<McpServer> {
            let count = self.0.fetch_add(1, Ordering::Relaxed);
            vec![stdio(&format!("server {count}"), "/bin/server")]
        }
    }
    let (conn, mut peer) = TestPeer::of_client(RenamingServerClient(Arc::default())).await;
    for name in ["server 0", "server 1"] {
        let opening = tokio::spawn({
            let conn = conn.clone();
            async move { conn.new_session("/work").await }
        });
        let (id, params) = peer.request("session/new").await;
        assert_eq!(servers(&params), [(name, "/bin/server")]);
        peer.answer(&id, json!({"sessionId": name})).await;
        soon("the session opens", opening).await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn servers_with_unsupported_transports_are_left_out() {
    let web = McpServerHttp::new("web", "https://mcp.example.org", Vec::new());
    let own = vec![McpServer::Http(web.clone()), stdio("editor", "/bin/editor")];
    let (conn, mut peer) = TestPeer::of_client(McpServersClient(own)).await;
    // An unsupported server of the session is an error that names it. An unsupported server of the client is left out.
    let error = conn.new_session(setup(vec![McpServer::Http(web)]));
    let error = error.await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    peer.silence().await;

    let opening = tokio::spawn(async move { conn.new_session("/work").await });
    let (id, params) = peer.request("session/new").await;
    assert_eq!(servers(&params), [("editor", "/bin/editor")]);
    peer.answer(&id, json!({"sessionId": "s"})).await;
    soon("the session opens", opening).await.unwrap().unwrap();
}
