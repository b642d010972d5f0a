//! The correct server, with two layers that can turn it into a mutant: a service in front of our endpoint that changes
//! requests, responses and events, and a proxy in front of the service that changes frames.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use acp::Transport;
use acp_remote::CloseStatus;
use acp_remote::server::{
    AgentEndpoint, ConnectionHandler, ConnectionInfo, ServeOptions, ServerConfig, serve,
};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, response};
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tower_service::Service;

use super::frames::{FrameChange, proxy};
use crate::mutants::agent::ReusedAgent;

/// A server mutant of the remote transport.
pub(crate) struct ServerMutant {
    /// The id of the check that must catch the mutant.
    pub(crate) kills: &'static str,
    /// Text that the reason given by the check must contain.
    pub(crate) why: &'static str,
    /// What is wrong with the mutant.
    pub(crate) what: &'static str,
    pub(crate) change: ServerChange,
}

/// A request received by the server.
pub(crate) struct ObservedRequest {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    /// The body as JSON. Null if it is not JSON.
    pub(crate) message: Value,
    /// The number of earlier requests with the same method and ids.
    pub(crate) earlier: usize,
}

impl ObservedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn is(&self, method: &str) -> bool {
        self.message["method"] == method
    }
}

/// Identifies a stream by the id of its connection and, for a session's stream, the session's id.
pub(crate) type StreamKey = (String, Option<String>);

/// A function that returns the streams on which to send an event, each with the data to send. Its last parameter
/// contains all open streams, in the order in which they were opened.
pub(crate) type EventRoute = fn(&StreamKey, &Value, &[StreamKey]) -> Vec<(StreamKey, String)>;

/// The change that turns the correct server into a mutant.
pub(crate) enum ServerChange {
    /// Change the headers that the endpoint receives.
    Request(fn(&ObservedRequest, &mut HeaderMap)),
    /// Respond on the endpoint's behalf with this status and an empty body.
    Instead(fn(&ObservedRequest) -> Option<u16>),
    /// Change the response. For streams and upgrades, the body is empty, and changes to it are ignored.
    Response(fn(&ObservedRequest, &mut response::Parts, &mut Vec<u8>)),
    /// Change the streams on which an event is sent, and its data.
    Event(EventRoute),
    /// Keep streams open when they should end.
    KeepStreams,
    /// Change or drop a WebSocket frame.
    Frame(FrameChange),
    /// Speak only HTTP/1.1.
    Http1,
    /// Use a separate agent for each connection.
    ForgetSessions,
}

/// A server that runs until it is dropped.
pub(crate) struct TestServer {
    pub(crate) url: String,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl TestServer {
    pub(crate) async fn start(mutant: Option<Arc<ServerMutant>>) -> Self {
        let change = mutant.as_ref().map(|mutant| &mutant.change);
        let agent = match change {
            Some(ServerChange::ForgetSessions) => None,
            _ => Some(ReusedAgent::default()),
        };
        let endpoint = AgentEndpoint::new(ServerConfig::new(), AgentHandler(agent));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut address = listener.local_addr().unwrap();
        let mut tasks = Vec::new();
        let (frame, http1) = match change {
            Some(ServerChange::Frame(change)) => (Some(*change), false),
            Some(ServerChange::Http1) => (None, true),
            _ => (None, false),
        };
        let service = MutatedService {
            endpoint,
            mutant,
            routes: Arc::default(),
            earlier: Arc::default(),
        };
        tasks.push(tokio::spawn(async move {
            serve(listener, service, ServeOptions::new()).await.unwrap();
        }));
        if frame.is_some() || http1 {
            address = start_proxy(address, frame, http1, &mut tasks).await;
        }
        Self {
            url: format!("http://127.0.0.1:{}/acp", address.port()),
            tasks,
        }
    }
}

async fn start_proxy(
    server: SocketAddr,
    frame: Option<FrameChange>,
    http1: bool,
    tasks: &mut Vec<tokio::task::JoinHandle<()>>,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tasks.push(tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            tokio::spawn(proxy(client, server, frame, http1));
        }
    }));
    address
}

/// A handler that serves one agent on all connections, or a separate agent on each.
struct AgentHandler(Option<ReusedAgent>);

impl ConnectionHandler for AgentHandler {
    async fn handle(&self, _: ConnectionInfo, transport: Transport) -> CloseStatus {
        self.0.clone().unwrap_or_default().serve(transport).await;
        CloseStatus::from(())
    }
}

#[derive(Default)]
struct Routes {
    /// The keys of the open streams, in the order in which they were opened.
    keys: Vec<StreamKey>,
    senders: HashMap<StreamKey, mpsc::UnboundedSender<Bytes>>,
}

#[derive(Clone)]
struct MutatedService {
    endpoint: AgentEndpoint<AgentHandler>,
    mutant: Option<Arc<ServerMutant>>,
    routes: Arc<Mutex<Routes>>,
    earlier: Arc<Mutex<HashMap<String, usize>>>,
}

/// The body of a response, which is either complete or a stream.
pub(crate) enum TestBody {
    Whole(Full<Bytes>),
    Stream(mpsc::UnboundedReceiver<Bytes>),
}

impl Body for TestBody {
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
}

impl MutatedService {
    async fn answer(mut self, request: Request<Incoming>) -> Response<TestBody> {
        let (mut parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let mut seen = ObservedRequest {
            method: parts.method.clone(),
            headers: parts.headers.clone(),
            message: serde_json::from_slice(&body).unwrap_or_default(),
            earlier: 0,
        };
        let (connection, session) = (
            seen.header("acp-connection-id").map(str::to_owned),
            seen.header("acp-session-id").map(str::to_owned),
        );
        let key = format!("{} {connection:?} {session:?}", seen.method);
        {
            let mut earlier = self.earlier.lock().unwrap();
            let count = earlier.entry(key).or_default();
            seen.earlier = std::mem::replace(count, *count + 1);
        }
        let mutant = self.mutant.clone();
        let change = mutant.as_ref().map(|mutant| &mutant.change);
        match change {
            Some(ServerChange::Request(change)) => change(&seen, &mut parts.headers),
            Some(ServerChange::Instead(instead)) => {
                if let Some(status) = instead(&seen) {
                    let mut response = Response::new(TestBody::Whole(Full::default()));
                    *response.status_mut() = StatusCode::from_u16(status).unwrap();
                    return response;
                }
            }
            _ => {}
        }
        let request = Request::from_parts(parts, Full::new(body));
        let response = self.endpoint.call(request).await.unwrap();
        let (mut parts, body) = response.into_parts();
        let kind = parts.headers.get("content-type");
        let is_stream = kind.is_some_and(|kind| kind == "text/event-stream");
        if is_stream || parts.status == StatusCode::SWITCHING_PROTOCOLS {
            if let Some(ServerChange::Response(change)) = change {
                change(&seen, &mut parts, &mut Vec::new());
            }
            let body = if is_stream {
                let key = (connection.unwrap(), session);
                self.pump(key, body)
            } else {
                TestBody::Whole(Full::default())
            };
            return Response::from_parts(parts, body);
        }
        let mut body = body.collect().await.unwrap().to_bytes().to_vec();
        if let Some(ServerChange::Response(change)) = change {
            change(&seen, &mut parts, &mut body);
            parts.headers.remove("content-length");
        }
        Response::from_parts(parts, TestBody::Whole(Full::new(body.into())))
    }

    /// Passes on each event of a stream, using the streams that the mutant selects.
    fn pump<B>(&self, key: StreamKey, mut body: B) -> TestBody
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: std::fmt::Debug + Send,
    {
        let (sender, receiver) = mpsc::unbounded_channel();
        let routes = Arc::clone(&self.routes);
        let mut all = routes.lock().unwrap();
        all.keys.retain(|each| *each != key);
        all.keys.push(key.clone());
        all.senders.insert(key.clone(), sender.clone());
        drop(all);
        let mutant = self.mutant.clone();
        tokio::spawn(async move {
            let change = mutant.as_ref().map(|mutant| &mutant.change);
            let mut buf = Vec::new();
            loop {
                let frame = tokio::select! {
                    frame = body.frame() => frame,
                    () = sender.closed() => break,
                };
                let Some(Ok(frame)) = frame else {
                    break;
                };
                buf.extend_from_slice(frame.data_ref().unwrap());
                while let Some(end) = buf.windows(2).position(|two| two == b"\n\n") {
                    let event: Vec<u8> = buf.drain(..end + 2).collect();
                    route(&key, &event, change, &routes.lock().unwrap());
                }
            }
            if matches!(change, Some(ServerChange::KeepStreams)) {
                sender.closed().await;
            }
            let mut routes = routes.lock().unwrap();
            let is_same = |each: &mpsc::UnboundedSender<Bytes>| each.same_channel(&sender);
            if routes.senders.get(&key).is_some_and(is_same) {
                routes.senders.remove(&key);
                routes.keys.retain(|each| *each != key);
            }
        });
        TestBody::Stream(receiver)
    }
}

fn route(key: &StreamKey, event: &[u8], change: Option<&ServerChange>, routes: &Routes) {
    let send = |key: &StreamKey, bytes: Vec<u8>| {
        if let Some(sender) = routes.senders.get(key) {
            let _ = sender.send(bytes.into());
        }
    };
    let text = std::str::from_utf8(event).unwrap();
    let data = text.lines().find_map(|line| line.strip_prefix("data: "));
    match (data, change) {
        (Some(data), Some(ServerChange::Event(change))) => {
            let message = serde_json::from_str(data).unwrap();
            for (to, data) in change(key, &message, &routes.keys) {
                send(&to, format!("data: {data}\n\n").into_bytes());
            }
        }
        _ => send(key, event.to_vec()),
    }
}

impl Service<Request<Incoming>> for MutatedService {
    type Response = Response<TestBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}
