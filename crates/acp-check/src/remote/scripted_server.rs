//! A server whose every response is determined by the check.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

/// The maximum size of a request body, in bytes.
const MAX_BODY_LEN: usize = 64 * 1024 * 1024;

/// A server on its own port. It accepts HTTP/1.1, and HTTP/2 with prior knowledge.
pub(crate) struct ScriptedServer {
    pub(crate) address: SocketAddr,
    requests: mpsc::UnboundedReceiver<PendingHttpRequest>,
    accepting: JoinHandle<()>,
}

/// A request waiting for its response.
pub(crate) struct PendingHttpRequest {
    pub(crate) method: Method,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) upgrade: Option<OnUpgrade>,
    pub(crate) response: oneshot::Sender<Response<ScriptedBody>>,
}

/// The body of a response, which is either complete or a stream.
pub(crate) enum ScriptedBody {
    Whole(Full<Bytes>),
    Stream(mpsc::UnboundedReceiver<Bytes>),
}

impl ScriptedServer {
    pub(crate) async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (sender, requests) = mpsc::unbounded_channel();
        let accepting = tokio::spawn(accept(listener, sender));
        Ok(Self {
            address,
            requests,
            accepting,
        })
    }

    /// Returns the next request.
    pub(crate) async fn next(&mut self) -> Option<PendingHttpRequest> {
        self.requests.recv().await
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Accepts and serves connections. Dropping the future closes them.
async fn accept(listener: TcpListener, requests: mpsc::UnboundedSender<PendingHttpRequest>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        // Pieces of an event are to leave as they are written.
        let _ = socket.set_nodelay(true);
        let requests = requests.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| pass(request, requests.clone()));
            let builder = Builder::new(TokioExecutor::new());
            let serving = builder.serve_connection_with_upgrades(TokioIo::new(socket), service);
            // What the client does with its connections is no error.
            let _ = serving.await;
        });
    }
}

/// Passes a request to the check, and returns the check's response.
async fn pass(
    mut request: Request<Incoming>,
    requests: mpsc::UnboundedSender<PendingHttpRequest>,
) -> Result<Response<ScriptedBody>, String> {
    let is_upgrade = request.headers().contains_key("upgrade");
    let upgrade = is_upgrade.then(|| hyper::upgrade::on(&mut request));
    let (head, body) = request.into_parts();
    let body = Limited::new(body, MAX_BODY_LEN).collect().await;
    let (response, responded) = oneshot::channel();
    let request = PendingHttpRequest {
        method: head.method,
        version: head.version,
        headers: head.headers,
        body: body.map_err(|e| e.to_string())?.to_bytes(),
        upgrade,
        response,
    };
    let over = |_| "the check has ended".to_owned();
    requests
        .send(request)
        .map_err(|_| "the check has ended".to_owned())?;
    responded.await.map_err(over)
}

impl ScriptedBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Full::new(bytes.into()))
    }
}

impl Body for ScriptedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body).poll_frame(cx),
            Self::Stream(bytes) => bytes.poll_recv(cx).map(|read| Some(Ok(Frame::data(read?)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Stream(_) => hyper::body::SizeHint::default(),
        }
    }
}
