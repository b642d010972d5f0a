//! Sends raw HTTP requests, including invalid ones that no ordinary client sends.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::with_timeout;

/// An HTTP/1.1 response.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    /// The headers, with names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl RawResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(each, _)| each == name);
        found.map(|(_, value)| &**value)
    }

    /// Returns the id of the connection.
    pub(crate) fn connection_id(&self) -> String {
        self.header("acp-connection-id").unwrap().to_owned()
    }
}

/// Request headers.
pub(crate) const BEARER_HEADER: (&str, &str) = ("Authorization", "Bearer a-token-for-tests");
pub(crate) const JSON_HEADER: (&str, &str) = ("Content-Type", "application/json");
pub(crate) const SSE_HEADER: (&str, &str) = ("Accept", "text/event-stream");

pub(crate) const INITIALIZE_REQUEST: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
pub(crate) const NEW_SESSION_REQUEST: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;

/// Writes the start of a request.
fn request_head(method: &str, headers: &[(&str, &str)]) -> String {
    let mut text = format!("{method} /acp HTTP/1.1\r\n");
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        text.push_str("Host: localhost\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text
}

/// Sends a request with a body and reads the whole response.
pub(crate) async fn send_request(
    to: SocketAddr,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> RawResponse {
    let mut text = request_head(method, headers);
    if !body.is_empty() || method == "POST" {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    text.push_str("Connection: close\r\n\r\n");
    text.push_str(body);
    let mut stream = TcpStream::connect(to).await.unwrap();
    // A server that answers early may stop reading.
    let _ = stream.write_all(text.as_bytes()).await;
    let mut reader = BufReader::new(stream);
    let (status, headers) = with_timeout(read_head(&mut reader)).await;
    let mut body = Vec::new();
    let _ = with_timeout(reader.read_to_end(&mut body)).await;
    RawResponse {
        status,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}

/// Reads the status line and the headers.
pub(crate) async fn read_head(reader: &mut BufReader<TcpStream>) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    reader.read_line(&mut line).await.unwrap();
    let status = line
        .split(' ')
        .nth(1)
        .unwrap_or_else(|| panic!("{line:?}"))
        .parse()
        .unwrap();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).await.unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            return (status, headers);
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
}

/// An open event stream.
pub(crate) struct RawStream(BufReader<TcpStream>);

impl RawStream {
    /// Opens a stream.
    pub(crate) async fn open(to: SocketAddr, headers: &[(&str, &str)]) -> Self {
        let text = request_head("GET", headers) + "\r\n";
        let mut stream = TcpStream::connect(to).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut reader = BufReader::new(stream);
        let (status, headers) = with_timeout(read_head(&mut reader)).await;
        assert_eq!(status, 200, "{headers:?}");
        Self(reader)
    }

    /// Returns the next line of the stream, skipping empty lines and chunk sizes. Returns `None` at the end.
    pub(crate) async fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if with_timeout(self.0.read_line(&mut line)).await.unwrap_or(0) == 0 {
                return None;
            }
            let text = line.trim_end();
            let is_size = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
            if text == "0" {
                return None;
            }
            if !text.is_empty() && !is_size {
                return Some(text.to_owned());
            }
        }
    }

    /// Returns the next message and its id.
    pub(crate) async fn read_event(&mut self) -> Option<(serde_json::Value, u64)> {
        let mut data = None;
        loop {
            let line = self.read_line().await?;
            if let Some(text) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str(text).unwrap());
            } else if let Some(id) = line.strip_prefix("id: ") {
                return Some((data.unwrap(), id.parse().unwrap()));
            }
        }
    }

    /// Returns the next message.
    pub(crate) async fn read_message(&mut self) -> serde_json::Value {
        self.read_event().await.expect("the stream has ended").0
    }
}
