//! Connects a client of the remote transport to a server that sends arbitrary bytes.
//!
//! The client connects to addresses, so this check uses loopback sockets and real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp_remote::client::{ConnectOptions, HttpVersion, connect};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tungstenite::handshake::derive_accept_key;

/// The maximum time for everything that must end.
const PATIENCE: Duration = Duration::from_secs(20);

/// The maximum length of a message, in bytes.
const MAX_MESSAGE: usize = 64 * 1024;

/// The number of streams that the server answers with the input.
const MAX_STREAMS: usize = 4;

/// What the server does with the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Respond to a WebSocket upgrade with the input.
    Raw,
    /// Accept a WebSocket upgrade, and then send the input.
    Frames,
    /// Respond to `initialize`. The input is the body of every stream.
    Events,
    /// Respond to every request of streamable HTTP with the input.
    Responses,
}

/// Connects a client to a server that follows the input. The client must not panic, its transport must end when the
/// server is gone, and it must not pass on more bytes than it received, except for error responses.
///
/// The first two bits of the first byte select what the server does.
pub fn check_remote_client(data: &[u8]) {
    let Some((setup, input)) = data.split_first() else {
        return;
    };
    let script = match setup & 3 {
        0 => Script::Raw,
        1 => Script::Frames,
        2 => Script::Events,
        _ => Script::Responses,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(run(script, input));
}

async fn run(script: Script, input: &[u8]) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let body = input.to_vec();
    let streams = Arc::new(AtomicUsize::new(0));
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // The server ignores clients that go away in the middle.
            tokio::spawn(answer(stream, script, body.clone(), Arc::clone(&streams)));
        }
    });
    let scheme = match script {
        Script::Raw | Script::Frames => "ws",
        Script::Events | Script::Responses => "http",
    };
    let mut options = ConnectOptions::new()
        .http_version(HttpVersion::Http1)
        .message(MAX_MESSAGE)
        .window(8_usize * 1024)
        .reconnect_for(Duration::ZERO);
    options.connect_timeout = Duration::from_secs(5);
    let url = format!("{scheme}://{address}/acp");
    let connected = timeout(PATIENCE, connect(&url, options)).await;
    let connected = connected.expect("connecting ends");
    if let Ok(transport) = connected {
        let (mut reader, mut writer) = transport.into_split();
        let initialize =
            b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}\n";
        let prompt =
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\"}}\n";
        let sending = async {
            let _ = writer.write_all(initialize).await;
            let _ = writer.write_all(prompt).await;
            let _ = timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
            let _ = writer.shutdown().await;
        };
        let mut received = Vec::new();
        let reading = async {
            let mut limited = (&mut reader).take(16 * 1024 * 1024);
            let _ = limited.read_to_end(&mut received).await;
        };
        let both = async { tokio::join!(sending, reading) };
        assert!(
            timeout(PATIENCE, both).await.is_ok(),
            "the transport does not end"
        );
        // All streams have the same events, and two requests get errors.
        assert!(
            received.len() <= MAX_STREAMS * input.len() + 4096,
            "{} bytes of {}",
            received.len(),
            input.len()
        );
    }
    server.abort();
}

/// Reads requests from a socket, and answers each as the script says.
async fn answer(
    stream: TcpStream,
    script: Script,
    body: Vec<u8>,
    streams: Arc<AtomicUsize>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        // The client repeats a header of the input, which may not be UTF-8.
        let mut head = Vec::new();
        loop {
            let start = head.len();
            if stream.read_until(b'\n', &mut head).await? == 0 {
                return Ok(());
            }
            if head[start..].trim_ascii().is_empty() {
                break;
            }
        }
        let head = String::from_utf8_lossy(&head);
        let header = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            let mut lines = lines.filter(|(each, _)| each.eq_ignore_ascii_case(name));
            lines.next().map(|(_, value)| value.to_owned())
        };
        let length = header("content-length").and_then(|length| length.parse().ok());
        let mut request = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut request).await?;
        let is_initialize = request.windows(12).any(|part| part == b"\"initialize\"");
        let (response, body, goes_on) = match script {
            Script::Raw | Script::Responses => (String::new(), body.as_slice(), false),
            Script::Frames => {
                let key = header("sec-websocket-key").unwrap_or_default();
                let accept = derive_accept_key(key.as_bytes());
                let head = format!(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                     Sec-WebSocket-Accept: {accept}\r\nAcp-Connection-Id: c\r\n\r\n"
                );
                (head, body.as_slice(), false)
            }
            // A client opens a stream again after it has ended.
            Script::Events
                if head.starts_with("GET ")
                    && streams.fetch_add(1, Ordering::Relaxed) >= MAX_STREAMS =>
            {
                let head = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
                (head.to_owned(), [].as_slice(), true)
            }
            Script::Events if head.starts_with("GET ") => {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
                (head.to_owned(), body.as_slice(), false)
            }
            Script::Events if is_initialize => {
                let result = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#;
                let length = result.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nAcp-Connection-Id: c\r\n\
                     Content-Length: {length}\r\n\r\n"
                );
                (head, result.as_bytes(), true)
            }
            Script::Events => {
                let head = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
                (head.to_owned(), [].as_slice(), true)
            }
        };
        stream.get_mut().write_all(response.as_bytes()).await?;
        stream.get_mut().write_all(body).await?;
        if !goes_on {
            return stream.get_mut().shutdown().await;
        }
    }
}
