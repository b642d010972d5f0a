//! The correct client of the remote transport, with a proxy that can turn it into a mutant.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use acp_remote::client::{ConnectOptions, connect};
use acp_remote::server::{ServeOptions, serve};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tower_service::Service;

use super::frames::{FrameChange, proxy};
use super::server::TestBody;
use crate::mutants::client::start_minimal_client;

/// A client mutant of the remote transport.
pub(crate) struct ClientMutant {
    /// The id of the check that must catch the mutant.
    pub(crate) kills: &'static str,
    /// Text that the reason given by the check must contain.
    pub(crate) why: &'static str,
    /// What is wrong with the mutant.
    pub(crate) what: &'static str,
    pub(crate) change: ClientChange,
}

/// The change that turns the correct client into a mutant.
#[derive(Clone, Copy)]
pub(crate) enum ClientChange {
    /// Change the headers of requests.
    Headers(fn(&Message, &mut HeaderMap)),
    /// Do not send matching requests, but let the client continue as if they had been accepted.
    Withhold(fn(&Message) -> bool),
    /// Stop reading a stream at the matching bytes.
    StopReading(fn(&[u8]) -> bool),
    /// Do not notice the end of a stream.
    KeepStreams,
    /// Treat a rejected request as accepted.
    IgnoreStatus,
    /// Speak only HTTP/1.1.
    Http1,
    /// Change WebSocket frames in both directions.
    Frame(FrameChange),
    /// Do not connect to the matching URLs.
    Refuse(fn(&str) -> bool),
}

/// A request that the client is about to send.
pub(crate) struct Message {
    pub(crate) method: Method,
    pub(crate) message: Value,
    pub(crate) is_about_session: bool,
}

impl Message {
    pub(crate) fn is(&self, method: &str) -> bool {
        self.message["method"] == method
    }
}

/// Starts the client, which opens a session, sends a prompt, and ends the connection.
pub(crate) fn start(url: String) {
    tokio::spawn(async move {
        // Whatever the server makes impossible, ends it.
        if let Ok(transport) = connect(&url, ConnectOptions::new()).await {
            start_minimal_client(transport);
        }
    });
}

/// Returns a function that starts the client with this change.
pub(crate) fn mutated(change: ClientChange) -> impl Fn(String) + Send + Sync + 'static {
    move |url| {
        if let ClientChange::Refuse(refuses) = change
            && refuses(&url)
        {
            return;
        }
        tokio::spawn(async move {
            let uri: Uri = url.parse().unwrap();
            let server: SocketAddr = uri.authority().unwrap().as_str().parse().unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            start(format!("{}://{address}/acp", uri.scheme_str().unwrap()));
            if uri.scheme_str() == Some("ws") {
                let (client, _) = listener.accept().await.unwrap();
                let frame = match change {
                    ClientChange::Frame(change) => Some(change),
                    _ => None,
                };
                proxy(client, server, frame, false).await;
            } else {
                let service = Proxy { server, change };
                serve(listener, service, ServeOptions::new()).await.unwrap();
            }
        });
    }
}

#[derive(Clone)]
struct Proxy {
    server: SocketAddr,
    change: ClientChange,
}

impl Proxy {
    async fn pass(self, request: Request<Incoming>) -> Response<TestBody> {
        let (mut parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let message = Message {
            method: parts.method.clone(),
            message: serde_json::from_slice(&body).unwrap_or_default(),
            is_about_session: parts.headers.contains_key("acp-session-id"),
        };
        match self.change {
            ClientChange::Headers(change) => change(&message, &mut parts.headers),
            ClientChange::Withhold(withholds) if withholds(&message) => {
                if message.method == Method::GET {
                    return open_stream(|sender| async move { sender.closed().await });
                }
                let mut response = Response::new(TestBody::Whole(Full::default()));
                *response.status_mut() = StatusCode::ACCEPTED;
                return response;
            }
            _ => {}
        }
        let request = Request::from_parts(parts, Full::new(body));
        let Some(response) = self.send(request).await else {
            let mut response = Response::new(TestBody::Whole(Full::default()));
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            return response;
        };
        let (mut parts, body) = response.into_parts();
        if message.method == Method::GET && parts.status == StatusCode::OK {
            let change = self.change;
            let streamed = open_stream(move |sender| pump(change, body, sender));
            return Response::from_parts(parts, streamed.into_body());
        }
        let is_rejected = parts.status == StatusCode::BAD_REQUEST;
        if is_rejected && matches!(self.change, ClientChange::IgnoreStatus) {
            parts.status = StatusCode::ACCEPTED;
        }
        let body = body.collect().await.map(|body| body.to_bytes());
        let body = Full::new(body.unwrap_or_default());
        Response::from_parts(parts, TestBody::Whole(body))
    }

    async fn send(&self, mut request: Request<Full<Bytes>>) -> Option<Response<Incoming>> {
        let socket = TcpStream::connect(self.server).await.ok()?;
        if matches!(self.change, ClientChange::Http1) {
            *request.uri_mut() = "/acp".parse().unwrap();
            *request.version_mut() = http::Version::HTTP_11;
            let host = self.server.to_string().parse().unwrap();
            request.headers_mut().insert("host", host);
            let handshake = hyper::client::conn::http1::handshake(TokioIo::new(socket));
            let (mut sender, driver) = handshake.await.ok()?;
            tokio::spawn(driver);
            return sender.send_request(request).await.ok();
        }
        let uri = format!("http://{}/acp", self.server);
        *request.uri_mut() = uri.parse().unwrap();
        let executor = TokioExecutor::new();
        let handshake = hyper::client::conn::http2::handshake(executor, TokioIo::new(socket));
        let (mut sender, driver) = handshake.await.ok()?;
        tokio::spawn(driver);
        sender.send_request(request).await.ok()
    }
}

/// Returns a response whose body is a stream filled by `write`.
fn open_stream<F>(write: impl FnOnce(mpsc::UnboundedSender<Bytes>) -> F) -> Response<TestBody>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, receiver) = mpsc::unbounded_channel();
    let _ = sender.send(Bytes::from_static(b": open\n\n"));
    tokio::spawn(write(sender));
    let mut response = Response::new(TestBody::Stream(receiver));
    let kind = http::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert("content-type", kind);
    response
}

/// Passes on the bytes of a stream.
async fn pump(change: ClientChange, mut body: Incoming, sender: mpsc::UnboundedSender<Bytes>) {
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = sender.closed() => return,
        };
        let Some(Ok(frame)) = frame else {
            break;
        };
        let data = frame.into_data().unwrap();
        if let ClientChange::StopReading(stops) = change
            && stops(&data)
        {
            sender.closed().await;
            return;
        }
        if sender.send(data).is_err() {
            return;
        }
    }
    if matches!(change, ClientChange::KeepStreams) {
        sender.closed().await;
    }
}

impl Service<Request<Incoming>> for Proxy {
    type Response = Response<TestBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let proxy = self.clone();
        Box::pin(async move { Ok(proxy.pass(request).await) })
    }
}

/// Returns a target for the client started by this function.
pub(crate) fn target(
    start: impl Fn(String) + Send + Sync + 'static,
) -> Arc<dyn acp_check::RemoteClientTarget> {
    Arc::new(start)
}
