//! Sends individual HTTP requests, giving checks control over every detail.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{COOKIE, HOST, HeaderMap, SET_COOKIE};
use hyper::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::sync::mpsc;

use super::server_target::{ALPN_HTTP_1, ALPN_HTTP_2, RemoteServer};
use super::sse::{ServerEvent, StreamEventReader};

/// The maximum size of a stream, in bytes. A stream that reaches this size is treated as ended.
const MAX_STREAM_LEN: usize = 64 * 1024 * 1024;

/// The maximum size of a body that is not a stream, in bytes.
const MAX_BODY_LEN: usize = 16 * 1024 * 1024;

/// An HTTP request to send.
#[derive(Debug, Clone)]
pub(crate) struct RawHttpRequest {
    pub(crate) method: Method,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

/// A response whose body has not been read yet.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    /// Keeps the connection open while the body is being read.
    _sender: Option<http1::SendRequest<Full<Bytes>>>,
}

/// A client that sends requests to a server: all over one HTTP/2 connection, or each over a separate HTTP/1.1
/// connection. It stores cookies, as the draft requires of clients.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient {
    server: Arc<RemoteServer>,
    uses_http2: bool,
    connection: Option<http2::SendRequest<Full<Bytes>>>,
    cookies: BTreeMap<String, String>,
}

impl RawHttpRequest {
    pub(crate) fn new(method: Method) -> Self {
        Self {
            method,
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// Creates a POST request with a JSON body.
    pub(crate) fn post(body: impl Into<Bytes>) -> Self {
        let mut request = Self::new(Method::POST).header("Content-Type", "application/json");
        request.body = body.into();
        request
    }

    /// Creates a GET request that opens a stream.
    pub(crate) fn get() -> Self {
        Self::new(Method::GET).header("Accept", "text/event-stream")
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(each, _)| *each != name);
        self
    }

    pub(crate) fn connection(self, id: &str) -> Self {
        self.header("Acp-Connection-Id", id)
    }

    pub(crate) fn session(self, id: &str) -> Self {
        self.header("Acp-Session-Id", id)
    }
}

impl HttpClient {
    pub(crate) fn new(server: Arc<RemoteServer>, uses_http2: bool) -> Self {
        Self {
            server,
            uses_http2,
            connection: None,
            cookies: BTreeMap::new(),
        }
    }

    /// Sends a request, and returns the response once its headers have arrived.
    pub(crate) async fn send(&mut self, request: &RawHttpRequest) -> Result<HttpResponse, String> {
        let (response, sender) = if self.uses_http2 {
            (self.send_http2(request).await?, None)
        } else {
            let (response, sender) = self.send_http1(request).await?;
            (response, Some(sender))
        };
        let (head, body) = response.into_parts();
        for cookie in head.headers.get_all(SET_COOKIE) {
            let pair = cookie.to_str().unwrap_or_default().split(';').next();
            if let Some((name, value)) = pair.and_then(|pair| pair.split_once('=')) {
                let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
                self.cookies.insert(name, value);
            }
        }
        Ok(HttpResponse {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            _sender: sender,
        })
    }

    fn build(&self, request: &RawHttpRequest, uri: &str) -> Result<Request<Full<Bytes>>, String> {
        let mut built = Request::builder().method(&request.method).uri(uri);
        for (name, value) in &request.headers {
            built = built.header(*name, value);
        }
        if let Some((name, value)) = self.server.token_header() {
            built = built.header(name, value);
        }
        if !self.cookies.is_empty() {
            let pairs: Vec<String> = self
                .cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            built = built.header(COOKIE, pairs.join("; "));
        }
        if !self.uses_http2 {
            built = built.header(HOST, self.server.authority());
        }
        let built = built.body(Full::new(request.body.clone()));
        built.map_err(|e| format!("cannot create the request: {e}"))
    }

    async fn send_http1(
        &self,
        request: &RawHttpRequest,
    ) -> Result<(hyper::Response<Incoming>, http1::SendRequest<Full<Bytes>>), String> {
        let request = self.build(request, self.server.path_and_query())?;
        let (socket, _) = self.server.dial(&[ALPN_HTTP_1]).await?;
        let (mut sender, driver) = http1::handshake(TokioIo::new(socket))
            .await
            .map_err(|e| e.to_string())?;
        tokio::spawn(driver);
        let response = sender.send_request(request).await;
        Ok((response.map_err(|e| describe(&e))?, sender))
    }

    async fn send_http2(
        &mut self,
        request: &RawHttpRequest,
    ) -> Result<hyper::Response<Incoming>, String> {
        let uri = format!(
            "{}://{}{}",
            self.server.scheme(),
            self.server.authority(),
            self.server.path_and_query()
        );
        let request = self.build(request, &uri)?;
        if let Some(sender) = &self.connection
            && sender.is_closed()
        {
            self.connection = None;
        }
        let sender = match &mut self.connection {
            Some(sender) => sender,
            None => self.connection.insert(connect_http2(&self.server).await?),
        };
        let response = sender.clone().send_request(request).await;
        response.map_err(|e| describe(&e))
    }
}

/// Opens an HTTP/2 connection. With TLS, HTTP/2 is negotiated. Otherwise, it is started with prior knowledge.
async fn connect_http2(server: &RemoteServer) -> Result<http2::SendRequest<Full<Bytes>>, String> {
    let (socket, is_http2) = server.dial(&[ALPN_HTTP_2]).await?;
    if server.is_tls() && !is_http2 {
        return Err("TLS did not negotiate HTTP/2".to_owned());
    }
    let (sender, driver) = http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
        .await
        .map_err(|e| describe(&e))?;
    tokio::spawn(driver);
    Ok(sender)
}

/// Describes an error together with its causes, because hyper's own messages are short.
fn describe(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

impl HttpResponse {
    /// Returns a header's value, or an empty string if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }

    /// Returns the media type of the body, without parameters.
    pub(crate) fn content_type(&self) -> String {
        let kind = self.header("content-type");
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().to_ascii_lowercase()
    }

    /// Reads the whole body.
    pub(crate) async fn read_body(self) -> Result<Vec<u8>, String> {
        let mut body = self.body;
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| describe(&e))?;
            if let Some(data) = frame.data_ref() {
                bytes.extend_from_slice(data);
            }
            if bytes.len() > MAX_BODY_LEN {
                return Err(format!("the body is longer than {MAX_BODY_LEN} bytes"));
            }
        }
        Ok(bytes)
    }

    /// Reads the body as a stream, until the end or until the receiver is dropped. Sends `None` at the end.
    pub(crate) async fn read_events<K: Copy>(
        self,
        key: K,
        events: mpsc::UnboundedSender<(K, Option<ServerEvent>)>,
    ) {
        let mut body = self.body;
        let mut reader = StreamEventReader::default();
        let mut length = 0;
        while length < MAX_STREAM_LEN {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = events.closed() => return,
            };
            let Some(Ok(frame)) = frame else {
                break;
            };
            let Some(data) = frame.data_ref() else {
                continue;
            };
            length += data.len();
            for event in reader.read(data) {
                if events.send((key, Some(event))).is_err() {
                    return;
                }
            }
        }
        let _ = events.send((key, None));
    }
}
