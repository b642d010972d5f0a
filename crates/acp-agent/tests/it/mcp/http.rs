//! Serves the test MCP server over HTTP on the loopback interface, using Streamable HTTP or server-sent events.
//! Implements only as much of HTTP as the tests need. The server can be stopped and restarted, forget its sessions, and
//! require a key.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use acp::v1::{HttpHeader, McpServer, McpServerHttp, McpServerSse};
use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, WriteHalf, split,
};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::server::McpTestTools;

/// An HTTP server controlled by tests.
pub(crate) struct McpHttpServer {
    address: SocketAddr,
    pub(crate) all: Arc<McpHttpState>,
    /// The task that accepts connections. The server runs until this task is aborted.
    task: JoinHandle<()>,
}

/// The state that all connections share.
#[derive(Default)]
pub(crate) struct McpHttpState {
    /// The keys that were sent with requests.
    pub(crate) keys: Mutex<Vec<String>>,
    /// The MCP sessions by id. Each one is a separate server.
    sessions: Mutex<HashMap<String, Arc<McpHttpSession>>>,
    /// The number of sessions so far.
    pub(crate) begun: Mutex<usize>,
    is_odd: bool,
    challenge: Option<&'static str>,
}

/// An MCP session over HTTP.
struct McpHttpSession {
    to: tokio::sync::Mutex<WriteHalf<DuplexStream>>,
    /// The requests waiting for a response, by id.
    waiting: Mutex<HashMap<String, oneshot::Sender<String>>>,
    /// All other messages from the server.
    said: tokio::sync::Mutex<mpsc::UnboundedReceiver<String>>,
}

impl McpHttpSession {
    fn start() -> Arc<Self> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            let (read, write) = split(theirs);
            let running =
                McpTestTools::new("usual").serve(AsyncRwTransport::new_server(read, write));
            if let Ok(running) = running.await {
                let _ = running.waiting().await;
            }
        });
        let (read, write) = split(ours);
        let (say, said) = mpsc::unbounded_channel();
        let served = Arc::new(Self {
            to: write.into(),
            waiting: Mutex::default(),
            said: said.into(),
        });
        let waits = Arc::downgrade(&served);
        tokio::spawn(async move {
            let mut lines = BufReader::new(read).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).unwrap();
                let id = message.get("id").map(ToString::to_string);
                let answers = id.filter(|_| message.get("method").is_none());
                let waiting = answers.and_then(|id| {
                    let served = waits.upgrade()?;
                    served.waiting.lock().unwrap().remove(&id)
                });
                // A client that no longer listens does not need the message.
                let _ = match waiting {
                    Some(waiting) => waiting.send(line).is_ok(),
                    None => say.send(line).is_ok(),
                };
            }
        });
        served
    }

    async fn send_message(&self, message: &str) {
        let line = format!("{message}\n");
        let mut to = self.to.lock().await;
        to.write_all(line.as_bytes()).await.unwrap();
    }

    /// Sends all messages from the server as events, for as long as the client listens.
    async fn stream_messages(&self, write: &mut OwnedWriteHalf) {
        let mut said = self.said.lock().await;
        while let Some(line) = said.recv().await {
            if send_event(write, &format!("event: message\ndata: {line}\n\n"))
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

impl McpHttpServer {
    pub(crate) async fn start() -> Self {
        Self::start_with_state(McpHttpState::default()).await
    }

    pub(crate) async fn start_with_state(all: McpHttpState) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let all = Arc::new(all);
        let task = tokio::spawn(accept_connections(listener, Arc::clone(&all)));
        Self { address, all, task }
    }

    /// Stops the server, with all connections and sessions.
    pub(crate) async fn stop(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
        self.forget_sessions();
    }

    pub(crate) async fn restart(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.task = tokio::spawn(accept_connections(listener, Arc::clone(&self.all)));
    }

    /// Forgets all sessions of the server.
    pub(crate) fn forget_sessions(&self) {
        self.all.sessions.lock().unwrap().clear();
    }

    pub(crate) fn streamable_config(&self, name: &str) -> McpServer {
        self.streamable_config_with_headers(name, key_headers())
    }

    pub(crate) fn streamable_config_with_headers(
        &self,
        name: &str,
        headers: Vec<HttpHeader>,
    ) -> McpServer {
        let url = format!("http://{}/mcp", self.address);
        McpServer::Http(McpServerHttp::new(name, url, headers))
    }

    pub(crate) fn sse_config(&self, name: &str) -> McpServer {
        self.sse_config_with_headers(name, key_headers())
    }

    pub(crate) fn sse_config_with_headers(
        &self,
        name: &str,
        headers: Vec<HttpHeader>,
    ) -> McpServer {
        let url = format!("http://{}/sse", self.address);
        McpServer::Sse(McpServerSse::new(name, url, headers))
    }
}

impl Drop for McpHttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn key_headers() -> Vec<HttpHeader> {
    vec![HttpHeader::new("Authorization", "Bearer open sesame")]
}

async fn accept_connections(listener: TcpListener, all: Arc<McpHttpState>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve_connection(stream, Arc::clone(&all)));
    }
}

impl McpHttpState {
    /// Makes the server respond to an unknown session with 400 instead of 404, as some servers do.
    pub(crate) fn with_nonstandard_status(mut self, is_odd: bool) -> Self {
        self.is_odd = is_odd;
        self
    }

    /// Makes the server respond with this challenge to requests without a key.
    pub(crate) fn with_auth_challenge(mut self, challenge: &'static str) -> Self {
        self.challenge = Some(challenge);
        self
    }

    fn create_session(&self) -> (String, Arc<McpHttpSession>) {
        let mut begun = self.begun.lock().unwrap();
        *begun += 1;
        let (id, served) = (format!("s{begun}"), McpHttpSession::start());
        let mut sessions = self.sessions.lock().unwrap();
        sessions.insert(id.clone(), Arc::clone(&served));
        (id, served)
    }

    fn session(&self, id: &str) -> Option<Arc<McpHttpSession>> {
        self.sessions.lock().unwrap().get(id).map(Arc::clone)
    }
}

/// The parts of an HTTP request that the server uses.
#[derive(Default)]
struct McpHttpRequest {
    method: String,
    path: String,
    session: Option<String>,
    key: Option<String>,
    body: String,
}

async fn read_request(read: &mut (impl AsyncBufReadExt + Unpin)) -> Option<McpHttpRequest> {
    let mut request = String::new();
    if read.read_line(&mut request).await.unwrap_or(0) == 0 {
        return None;
    }
    let mut words = request.split(' ').map(str::to_owned);
    let mut asked = McpHttpRequest {
        method: words.next()?,
        path: words.next()?,
        ..McpHttpRequest::default()
    };
    let mut length = 0;
    loop {
        let mut header = String::new();
        read.read_line(&mut header).await.ok()?;
        let Some((name, value)) = header.trim().split_once(':') else {
            break;
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => asked.key = Some(value.to_owned()),
            "mcp-session-id" => asked.session = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    read.read_exact(&mut body).await.ok()?;
    asked.body = String::from_utf8(body).unwrap();
    Some(asked)
}

async fn serve_connection(stream: TcpStream, all: Arc<McpHttpState>) {
    let (from, mut write) = stream.into_split();
    let mut from = BufReader::new(from);
    while let Some(asked) = read_request(&mut from).await {
        if let (Some(challenge), None) = (all.challenge, &asked.key) {
            let head = format!("401 Unauthorized\r\n{challenge}");
            respond(&mut write, head.trim(), "").await;
            continue;
        }
        all.keys.lock().unwrap().extend(asked.key);
        match (asked.method.as_str(), asked.path.split_once("?session=")) {
            ("GET", None) if asked.path == "/sse" => {
                let (id, served) = all.create_session();
                send_event_stream_head(&mut write).await;
                let _ = send_event(
                    &mut write,
                    &format!("event: endpoint\ndata: /post?session={id}\n\n"),
                )
                .await;
                return served.stream_messages(&mut write).await;
            }
            ("POST", Some(("/post", id))) => match all.session(id) {
                Some(served) => {
                    served.send_message(&asked.body).await;
                    respond(&mut write, "202 Accepted", "Accepted").await;
                }
                None => respond(&mut write, "404 Not Found", "").await,
            },
            ("POST", None) if asked.body.contains("\"cut\"") => {
                return send_event_stream_head(&mut write).await;
            }
            (method, None) if asked.path == "/mcp" => {
                let found = match asked.session {
                    Some(id) => all.session(&id).map(|served| (id, served)),
                    None => Some(all.create_session()),
                };
                match (found, method) {
                    (None, _) if all.is_odd => {
                        let head = "400 Bad Request\r\nContent-Type: application/json";
                        let error = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#;
                        respond(&mut write, head, error).await;
                    }
                    (None, _) => respond(&mut write, "404 Not Found", "").await,
                    (Some((_, served)), "GET") => {
                        send_event_stream_head(&mut write).await;
                        return served.stream_messages(&mut write).await;
                    }
                    (Some((id, served)), "POST") => {
                        handle_post(&mut write, &id, &served, &asked.body).await
                    }
                    _ => respond(&mut write, "405 Method Not Allowed", "").await,
                }
            }
            _ => respond(&mut write, "405 Method Not Allowed", "").await,
        }
    }
}

async fn handle_post(write: &mut OwnedWriteHalf, id: &str, served: &McpHttpSession, body: &str) {
    let message: Value = serde_json::from_str(body).unwrap();
    let request = message.get("method").and(message.get("id"));
    let Some(request) = request else {
        served.send_message(body).await;
        return respond(write, "202 Accepted", "").await;
    };
    let (answer, answered) = oneshot::channel();
    let waiting = request.to_string();
    served.waiting.lock().unwrap().insert(waiting, answer);
    served.send_message(body).await;
    if let Ok(line) = answered.await {
        let head = format!("200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: {id}");
        respond(write, &head, &line).await;
    }
}

/// Starts an event stream. A stream without its final chunk counts as cut off.
async fn send_event_stream_head(write: &mut OwnedWriteHalf) {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let _ = write.write_all(head.as_bytes()).await;
}

async fn send_event(write: &mut OwnedWriteHalf, text: &str) -> std::io::Result<()> {
    let chunk = format!("{:x}\r\n{text}\r\n", text.len());
    write.write_all(chunk.as_bytes()).await
}

async fn respond(write: &mut OwnedWriteHalf, head: &str, body: &str) {
    let response = format!(
        "HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // A client that no longer listens does not need the message.
    let _ = write.write_all(response.as_bytes()).await;
}
