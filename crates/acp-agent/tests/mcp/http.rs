//! The server behind HTTP on loopback: streamable, and as server-sent events. As little of HTTP as that takes.

use std::sync::{Arc, Mutex};

use acp::v1::{HttpHeader, McpServer, McpServerHttp, McpServerSse};
use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf,
    split,
};
use tokio::net::{TcpListener, TcpStream};

use super::server::Tools;

type Lines = BufReader<ReadHalf<DuplexStream>>;

/// One client's server.
struct Served {
    to: tokio::sync::Mutex<WriteHalf<DuplexStream>>,
    from: tokio::sync::Mutex<Lines>,
}

/// Where it is.
pub(crate) struct Http {
    address: String,
    /// The keys that came with requests.
    pub(crate) keys: Arc<Mutex<Vec<String>>>,
}

impl Http {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            let (read, write) = split(theirs);
            let running = Tools::new("usual").serve(AsyncRwTransport::new_server(read, write));
            let _ = running.await.unwrap().waiting().await;
        });
        let (read, write) = split(ours);
        let served = Arc::new(Served {
            to: write.into(),
            from: BufReader::new(read).into(),
        });
        let keys = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&keys);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&served), Arc::clone(&seen)));
            }
        });
        Self { address, keys }
    }

    pub(crate) fn streamable(&self, name: &str) -> McpServer {
        McpServer::Http(McpServerHttp::new(
            name,
            format!("{}/mcp", self.address),
            key(),
        ))
    }

    pub(crate) fn sse(&self, name: &str) -> McpServer {
        McpServer::Sse(McpServerSse::new(
            name,
            format!("{}/sse", self.address),
            key(),
        ))
    }
}

fn key() -> Vec<HttpHeader> {
    vec![HttpHeader::new("Authorization", "Bearer open sesame")]
}

async fn answer(stream: TcpStream, served: Arc<Served>, keys: Arc<Mutex<Vec<String>>>) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let mut request = String::new();
        if read.read_line(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
        let mut length = 0;
        loop {
            let mut header = String::new();
            read.read_line(&mut header).await.unwrap();
            let Some((name, value)) = header.trim().split_once(':') else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap(),
                "authorization" => keys.lock().unwrap().push(value.trim().to_owned()),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        read.read_exact(&mut body).await.unwrap();
        let body = String::from_utf8(body).unwrap();
        let mut words = request.split(' ');
        match (words.next().unwrap(), words.next().unwrap()) {
            ("GET", "/sse") => {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
                write.write_all(head.as_bytes()).await.unwrap();
                write
                    .write_all(b"event: endpoint\ndata: /post?session=1\n\n")
                    .await
                    .unwrap();
                let mut from = served.from.lock().await;
                while let Some(line) = next(&mut from).await {
                    let event = format!("event: message\ndata: {line}\n\n");
                    if write.write_all(event.as_bytes()).await.is_err() {
                        return;
                    }
                }
                return;
            }
            ("POST", "/post?session=1") => {
                tell(&served, &body).await;
                respond(&mut write, "202 Accepted", "Accepted").await;
            }
            ("POST", "/mcp") => {
                tell(&served, &body).await;
                let request: Value = serde_json::from_str(&body).unwrap();
                if request.get("method").is_none() || request.get("id").is_none() {
                    respond(&mut write, "202 Accepted", "").await;
                    continue;
                }
                let mut from = served.from.lock().await;
                while let Some(line) = next(&mut from).await {
                    let answer: Value = serde_json::from_str(&line).unwrap();
                    if answer.get("id") == request.get("id") && answer.get("method").is_none() {
                        respond(
                            &mut write,
                            "200 OK\r\nContent-Type: application/json",
                            &line,
                        )
                        .await;
                        break;
                    }
                }
            }
            _ => respond(&mut write, "405 Method Not Allowed", "").await,
        }
    }
}

async fn tell(served: &Served, message: &str) {
    let line = format!("{message}\n");
    served
        .to
        .lock()
        .await
        .write_all(line.as_bytes())
        .await
        .unwrap();
}

async fn next(from: &mut Lines) -> Option<String> {
    let mut line = String::new();
    let read = from.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim().to_owned())
}

async fn respond(write: &mut (impl AsyncWriteExt + Unpin), head: &str, body: &str) {
    let response = format!(
        "HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // Whoever does not listen any more does not need it.
    let _ = write.write_all(response.as_bytes()).await;
}
