//! Serves WebSocket connections. Handles the upgrade, and runs each connection over one or more sockets.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::access::Refusal;
use super::body::ResponseBody;
use super::config::ServerConfig;
use super::handler::{ConnectionHandler, ConnectionInfo};
use super::registry::{Registry, ServedConnection, UNKNOWN_CONNECTION, increment};
use super::responses::text_response;
use crate::CloseStatus;
use crate::header;
use crate::pipe::{OutOfWindow, Retention, pipe_transport};
use crate::websocket::{Link, LinkEnd, LinkOptions, LinkRole, SocketPipes, accept_key};

/// The time limit for an upgrade after the response has been sent.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a handler may keep running after its client is gone.
const LINGER_TIME: Duration = Duration::from_secs(30);

const KEY_HEADER: &str = "sec-websocket-key";
const ACCEPT_HEADER: &str = "sec-websocket-accept";
const VERSION_HEADER: &str = "sec-websocket-version";

/// A WebSocket connection that a later request can resume.
pub(super) struct WebSocketConnection {
    takeovers: mpsc::Sender<Takeover>,
    resumes: bool,
    wire: Arc<SocketPipes>,
}

impl WebSocketConnection {
    /// Returns the number of message bytes received and the number sent.
    pub(super) fn transferred(&self) -> (u64, u64) {
        (
            self.wire.incoming.received(),
            self.wire.outgoing.written_position(),
        )
    }
}

/// A client's request to continue its connection over a new socket.
struct Takeover {
    /// The position up to which the client has received messages.
    received: u64,
    /// The channel for telling the client how far the server has received messages. Used once the previous socket has
    /// been abandoned.
    answer: oneshot::Sender<Result<u64, OutOfWindow>>,
    /// The channel on which the new socket arrives after the upgrade.
    socket: oneshot::Receiver<Upgraded>,
}

/// Returns `true` if a request asks for a WebSocket, over HTTP/1.1 or HTTP/2.
pub(super) fn is_upgrade<B>(request: &Request<B>) -> bool {
    if request.method() == Method::CONNECT {
        let protocol = request.extensions().get::<hyper::ext::Protocol>();
        return protocol.is_some_and(|protocol| protocol.as_str() == "websocket");
    }
    request.method() == Method::GET && has_token(request.headers(), UPGRADE.as_str(), "websocket")
}

fn has_token(headers: &HeaderMap, name: &str, word: &str) -> bool {
    headers.get_all(name).into_iter().any(|value| {
        let value = value.to_str().unwrap_or_default();
        value
            .split(',')
            .any(|each| each.trim().eq_ignore_ascii_case(word))
    })
}

/// Checks a client's handshake, and returns the response.
fn handshake_response<B>(request: &Request<B>) -> Result<Response<ResponseBody>, Refusal> {
    let headers = request.headers();
    if headers
        .get(VERSION_HEADER)
        .is_none_or(|version| version != "13")
    {
        let reason = "only WebSocket version 13 is supported";
        return Err(Refusal::new(StatusCode::UPGRADE_REQUIRED, reason));
    }
    if request.version() == Version::HTTP_2 {
        return Ok(text_response(StatusCode::OK, ""));
    }
    let key = headers
        .get(KEY_HEADER)
        .filter(|_| has_token(headers, CONNECTION.as_str(), "upgrade"));
    let accept = key.and_then(|key| HeaderValue::from_str(&accept_key(key.as_bytes())).ok());
    let Some(accept) = accept else {
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "the WebSocket handshake is incomplete",
        ));
    };
    let mut response = text_response(StatusCode::SWITCHING_PROTOCOLS, "");
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(ACCEPT_HEADER, accept);
    Ok(response)
}

/// Responds to a WebSocket upgrade request by creating or resuming a connection.
pub(super) async fn upgrade<H: ConnectionHandler, B>(
    config: &ServerConfig,
    registry: &Arc<Registry>,
    handler: &Arc<H>,
    info: ConnectionInfo,
    mut request: Request<B>,
) -> Response<ResponseBody> {
    let mut response = match handshake_response(&request) {
        Ok(response) => response,
        Err(refused) => return refused.into(),
    };
    let upgraded = hyper::upgrade::on(&mut request);
    let headers = request.headers();
    let id = headers.get(header::CONNECTION_ID);
    if let (Some(id), Some(position)) = (id, headers.get(header::LAST_EVENT_ID)) {
        let position = position.to_str().ok().and_then(|text| text.parse().ok());
        let Some(position) = position else {
            return text_response(StatusCode::BAD_REQUEST, "Acp-Last-Event-Id is not a number");
        };
        return resume(registry, id, position, upgraded, response).await;
    }
    let terms = config.resume_terms(headers);
    let resumes = terms.is_some();
    let window = terms.map_or(config.limits.window, |(_, window)| window);
    let (takeovers, receiver) = mpsc::channel(1);
    let wire = Arc::new(SocketPipes::new(window, LinkRole::Server));
    let connection = Arc::new(WebSocketConnection {
        takeovers,
        resumes,
        wire: Arc::clone(&wire),
    });
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&info.id) {
        headers.insert(header::CONNECTION_ID, id);
    }
    if let Some((terms, _)) = terms {
        headers.insert(header::RESUME, terms.header_value());
    }
    let added = registry.add(
        info.clone(),
        ServedConnection::WebSocket(connection),
        config.limits.connections,
    );
    if !added {
        return text_response(StatusCode::SERVICE_UNAVAILABLE, "too many connections");
    }
    let life = ServerConnectionTask {
        options: LinkOptions {
            role: LinkRole::Server,
            resumes,
            max_message: config.limits.message,
            heartbeat: config.heartbeat,
            dead_after: config.dead_after,
        },
        grace: config.grace,
        wire,
        registry: Arc::clone(registry),
        info,
    };
    registry
        .tasks
        .spawn(life.run(Arc::clone(handler), upgraded, receiver));
    response
}

/// Resumes a connection on a new socket.
async fn resume(
    registry: &Arc<Registry>,
    id: &HeaderValue,
    received: u64,
    upgraded: OnUpgrade,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    let unknown = || text_response(StatusCode::NOT_FOUND, UNKNOWN_CONNECTION);
    let connection = id.to_str().ok().and_then(|id| registry.get(id));
    let Some(ServedConnection::WebSocket(connection)) = connection else {
        return unknown();
    };
    if !connection.resumes {
        return text_response(
            StatusCode::BAD_REQUEST,
            "this connection was opened without Acp-Resume",
        );
    }
    let (answer, answered) = oneshot::channel();
    let (socket, sockets) = oneshot::channel();
    let takeover = Takeover {
        received,
        answer,
        socket: sockets,
    };
    if connection.takeovers.send(takeover).await.is_err() {
        return unknown();
    }
    match answered.await {
        Ok(Ok(position)) => {
            let headers = response.headers_mut();
            headers.insert(header::CONNECTION_ID, id.clone());
            headers.insert(header::LAST_EVENT_ID, position.into());
            registry.tasks.spawn(async move {
                if let Ok(Ok(upgraded)) = timeout(UPGRADE_TIMEOUT, upgraded).await {
                    // This fails if the connection has ended.
                    let _ = socket.send(upgraded);
                }
            });
            increment(&registry.counters.resumed);
            response
        }
        Ok(Err(OutOfWindow::Dropped)) => text_response(
            StatusCode::GONE,
            "the messages after this position are no longer stored",
        ),
        Ok(Err(OutOfWindow::Future)) => text_response(
            StatusCode::BAD_REQUEST,
            "this position is beyond the data sent so far",
        ),
        Err(_) => unknown(),
    }
}

/// The task that runs a connection, from its first socket to its last.
struct ServerConnectionTask {
    options: LinkOptions,
    grace: Duration,
    wire: Arc<SocketPipes>,
    registry: Arc<Registry>,
    info: ConnectionInfo,
}

impl ServerConnectionTask {
    /// Runs the handler and the sockets until they have all ended.
    async fn run<H: ConnectionHandler>(
        self,
        handler: Arc<H>,
        first: OnUpgrade,
        takeovers: mpsc::Receiver<Takeover>,
    ) {
        let wire = &self.wire;
        if self.options.resumes {
            wire.outgoing.set_retention(Retention::UntilAcknowledged);
        }
        let transport = pipe_transport(Arc::clone(&wire.incoming), Arc::clone(&wire.outgoing));
        let handling = handler.handle(self.info.clone(), transport);
        let moving = self.move_messages_over_sockets(first, takeovers);
        tokio::pin!(handling, moving);
        let draining = async {
            self.registry.draining.cancelled().await;
            wire.incoming.finish(None);
            std::future::pending::<()>().await;
        };
        tokio::pin!(draining);
        tokio::select! {
            status = &mut handling => {
                let is_draining = self.registry.draining.is_cancelled() && status.is_normal();
                wire.close(if is_draining { going_away_status() } else { status });
                tokio::select! {
                    () = &mut moving => {}
                    () = self.registry.killed.cancelled() => {}
                }
            }
            () = &mut moving => {
                // The client will not come back.
                self.registry.remove(&self.info.id);
                wire.incoming.finish(None);
                wire.outgoing.close();
                tokio::select! {
                    _ = timeout(LINGER_TIME, &mut handling) => {}
                    () = self.registry.killed.cancelled() => {}
                }
            }
            () = self.registry.killed.cancelled() => {
                wire.close(going_away_status());
                let _ = timeout(Duration::from_secs(1), &mut moving).await;
            }
            () = &mut draining => {}
        }
        self.registry.remove(&self.info.id);
        tracing::debug!(id = self.info.id, "connection ended");
    }

    /// Moves messages over one socket after another, until the connection has ended.
    async fn move_messages_over_sockets(
        &self,
        first: OnUpgrade,
        mut takeovers: mpsc::Receiver<Takeover>,
    ) {
        let Ok(Ok(upgraded)) = timeout(UPGRADE_TIMEOUT, first).await else {
            return;
        };
        let mut socket = Some(upgraded);
        loop {
            if let Some(upgraded) = socket.take() {
                let link = Link::new(&self.wire, &self.options);
                let end = tokio::select! {
                    biased;
                    takeover = takeovers.recv() => {
                        socket = self.take_over(takeover).await;
                        continue;
                    }
                    end = link.run(TokioIo::new(upgraded)) => end,
                };
                tracing::debug!(id = self.info.id, ?end, "socket ended");
                match end {
                    LinkEnd::Cut(_) if self.options.resumes => {}
                    _ => return,
                }
            } else {
                match timeout(self.grace, takeovers.recv()).await {
                    Ok(takeover) => socket = self.take_over(takeover).await,
                    Err(_) => {
                        increment(&self.registry.counters.abandoned);
                        return;
                    }
                }
            }
        }
    }

    /// Responds to a client that reconnects, and waits for its new socket.
    async fn take_over(&self, takeover: Option<Takeover>) -> Option<Upgraded> {
        let takeover = takeover?;
        let answer = self.wire.outgoing.rewind(takeover.received);
        let is_possible = answer.is_ok();
        let answer = answer.map(|()| self.wire.incoming.received());
        let _ = takeover.answer.send(answer);
        if !is_possible {
            return None;
        }
        timeout(UPGRADE_TIMEOUT, takeover.socket).await.ok()?.ok()
    }
}

fn going_away_status() -> CloseStatus {
    CloseStatus::new(CloseStatus::GOING_AWAY, "the server is shutting down")
}
