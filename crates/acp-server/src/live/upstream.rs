//! A client's connection to another server, which owns some of its sessions.
//!
//! The other server treats the connection as one of the client itself: it has the client's name, and the client's
//! requests keep their ids. It also tells how far the client has read each log, so that the client can continue on
//! another server if this one stops.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::time::Duration;

use acp::Transport;
use acp::jsonrpc::{self, Incoming, RequestId};
use acp::v1::SessionId;
use acp_remote::client::{ConnectOptions, connect};
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::codec::FramedRead;
use tokio_util::task::AbortOnDropHandle;

use super::message::{LiveLine, with_line_feed};
use super::moved::{MovedPrompt, MovedSession};
use super::process::line_codec;
use super::route::NOT_OWNER;
use super::session::POSITION;
use crate::node::StoreNode;
use crate::store::{NodeId, NodeInfo};
use crate::users::ClientUser;

/// The number of messages to buffer between the connection and the client's task.
const BUFFERED_MESSAGES: usize = 64;

/// The maximum length of a message from another server, in bytes.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;

/// What happens on a connection to another server.
pub(super) enum UpstreamEvent {
    /// A message, without its line feed.
    Line(Vec<u8>),
    /// The connection has ended.
    Ended,
}

/// Something for the client, which is sent when its position is known.
pub(super) enum UpstreamMessage {
    Line(LiveLine),
    /// A request, which gets an id of this server.
    Request {
        id: RequestId,
        method: String,
        params: Option<Box<RawValue>>,
    },
    /// The other server has cancelled its request.
    Cancelled(RequestId),
    /// The response to a request of the client.
    Response(RequestId, LiveLine),
    /// The other server does not own the session that the client wants to open with this message.
    NotOwner(RequestId, Vec<u8>),
    /// The response to a request that this server has sent: it could not continue with a session.
    Failed(SessionId, jsonrpc::Error),
}

/// A request of the client that the other server has not answered yet.
struct UpstreamRequest {
    session: SessionId,
    kind: UpstreamRequestKind,
}

enum UpstreamRequestKind {
    /// It opens the session. The message is sent again if the other server does not own the session any more.
    Open(Vec<u8>),
    Prompt(MovedPrompt),
    Other,
}

/// A connection to another server.
pub(super) struct Upstream {
    to: mpsc::Sender<Vec<u8>>,
    requests: HashMap<RequestId, UpstreamRequest>,
    /// The ids of requests that this server sends in the name of the client begin with this. It is random, so that the
    /// client has no such ids.
    own_prefix: String,
    /// The sessions that were continued from a position, by the id of the request.
    continued: HashMap<RequestId, SessionId>,
    next_request: u64,
    /// What has been received since the last position.
    received: Vec<UpstreamMessage>,
    /// How far the client has read the logs of its sessions.
    positions: HashMap<SessionId, u64>,
    /// Whether the client itself is told its positions.
    shows_positions: bool,
    _tasks: [AbortOnDropHandle<()>; 2],
}

/// What is left of a connection that has ended.
pub(super) struct UpstreamRest {
    /// The sessions that must be continued on another server.
    pub(super) sessions: Vec<MovedSession>,
    /// Requests that open a session and have not been answered, and of which the client has seen something.
    pub(super) opening: HashMap<SessionId, RequestId>,
    /// Messages to send again: those that open a session of which the client has seen nothing.
    pub(super) unseen: Vec<Vec<u8>>,
    /// All other requests that have not been answered.
    pub(super) requests: Vec<RequestId>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct UpstreamParams {
    session_id: Option<SessionId>,
    position: Option<u64>,
    request_id: Option<RequestId>,
}

impl Upstream {
    /// Connects to a server in the name of a client and its user. The client has sent these params with `initialize`.
    pub(super) async fn connect(
        node: &StoreNode,
        agent: &str,
        owner: &NodeInfo,
        initialize: &Value,
        user: Option<&ClientUser>,
        events: mpsc::Sender<(NodeId, UpstreamEvent)>,
    ) -> Result<Self, String> {
        let address = owner.address.as_deref().ok_or_else(|| {
            "another server owns the session, and does not say how it is reached".to_owned()
        })?;
        let address = match address.contains("://") {
            true => format!("{}/acp/{agent}", address.trim_end_matches('/')),
            false => address.to_owned(),
        };
        let lease = node.options.lease;
        let options = ConnectOptions::default()
            .token(node.options.token.clone())
            .connect_timeout(lease)
            .reconnect_for(Some(Duration::ZERO))
            .heartbeat(lease / 3)
            .dead_after(lease);
        let transport = connect(&address, options)
            .await
            .map_err(|error| error.to_string())?;
        Ok(Self::new(
            owner.id.clone(),
            transport,
            initialize,
            user,
            events,
        ))
    }

    fn new(
        id: NodeId,
        transport: Transport,
        initialize: &Value,
        user: Option<&ClientUser>,
        events: mpsc::Sender<(NodeId, UpstreamEvent)>,
    ) -> Self {
        let (reader, writer) = transport.into_split();
        let (to, lines) = mpsc::channel(BUFFERED_MESSAGES);
        let mut upstream = Self {
            to,
            requests: HashMap::new(),
            own_prefix: format!("acp-serve-{:032x}-", fastrand::u128(..)),
            continued: HashMap::new(),
            next_request: 0,
            received: Vec::new(),
            positions: HashMap::new(),
            shows_positions: initialize["_meta"]["live"]["linePositions"] == true,
            _tasks: [
                AbortOnDropHandle::new(tokio::spawn(read(reader, id, events))),
                AbortOnDropHandle::new(tokio::spawn(write(writer, lines))),
            ],
        };
        let mut params = initialize.clone();
        params["protocolVersion"] = json!(1);
        params["_meta"]["live"] = json!({
            "positions": true,
            "linePositions": upstream.shows_positions,
            "isNode": true,
            "user": user,
        });
        let id = upstream.own_request_id();
        let mut line = Vec::new();
        if jsonrpc::write_request(&mut line, &id, "initialize", &params).is_ok() {
            // The channel is empty, so there is room.
            let _ = upstream.to.try_send(line);
        }
        upstream
    }

    fn own_request_id(&mut self) -> RequestId {
        self.next_request += 1;
        RequestId::String(format!("{}{}", self.own_prefix, self.next_request))
    }

    /// Sends a message of the client. If the connection has ended, this is reported as an event.
    pub(super) async fn send(&self, line: &[u8]) {
        let mut line = line.to_vec();
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        let _ = self.to.send(line).await;
    }

    /// Sends a request that opens a session.
    pub(super) async fn open(&mut self, id: RequestId, session: SessionId, line: &[u8]) {
        self.requests.insert(
            id,
            UpstreamRequest {
                session,
                kind: UpstreamRequestKind::Open(line.to_vec()),
            },
        );
        self.send(line).await;
    }

    /// Sends a prompt.
    pub(super) async fn prompt(&mut self, session: SessionId, prompt: MovedPrompt) {
        let mut line = Vec::new();
        let written =
            jsonrpc::write_request(&mut line, &prompt.request, "session/prompt", &prompt.params);
        if written.is_err() {
            return;
        }
        self.requests.insert(
            prompt.request.clone(),
            UpstreamRequest {
                session,
                kind: UpstreamRequestKind::Prompt(prompt),
            },
        );
        self.send(&line).await;
    }

    /// Sends any other request.
    pub(super) async fn request(&mut self, id: RequestId, session: SessionId, line: &[u8]) {
        self.requests.insert(
            id,
            UpstreamRequest {
                session,
                kind: UpstreamRequestKind::Other,
            },
        );
        self.send(line).await;
    }

    /// Returns `true` if the other server has not answered this request yet.
    pub(super) fn has_request(&self, id: &RequestId) -> bool {
        self.requests.contains_key(id)
    }

    /// Continues with a session from the client's position. If the client waits for a session to be opened, the response
    /// is for its request.
    pub(super) async fn continue_session(
        &mut self,
        session: &SessionId,
        position: u64,
        own_prompts: &[String],
        opening: Option<RequestId>,
    ) {
        self.positions.insert(session.clone(), position);
        let id = opening.clone().unwrap_or_else(|| self.own_request_id());
        let params = json!({
            "sessionId": session,
            "_meta": { "live": { "from": position, "ownPrompts": own_prompts } },
        });
        let mut line = Vec::new();
        if jsonrpc::write_request(&mut line, &id, "session/resume", &params).is_err() {
            return;
        }
        match opening {
            Some(id) => self.open(id, session.clone(), &line).await,
            None => {
                self.continued.insert(id, session.clone());
                self.send(&line).await;
            }
        }
    }

    /// Handles a message of the other server. Returns what to send to the client: everything that was received before a
    /// position.
    pub(super) fn receive(&mut self, line: Vec<u8>) -> Vec<UpstreamMessage> {
        if let Some(("session/update", _)) = jsonrpc::parse_plain_notification(&line) {
            self.received
                .push(UpstreamMessage::Line(with_line_feed(&line)));
            return Vec::new();
        }
        let message = match jsonrpc::parse(&line) {
            Ok(Incoming::Notification { method, params }) => {
                let read: UpstreamParams = params
                    .and_then(|params| serde_json::from_str(params.get()).ok())
                    .unwrap_or_default();
                match (&*method, read.request_id) {
                    (POSITION, _) => {
                        let has_session = read.session_id.is_some();
                        let mut messages = self.flush(read.session_id, read.position);
                        if self.shows_positions && has_session {
                            messages.push(UpstreamMessage::Line(with_line_feed(&line)));
                        }
                        return messages;
                    }
                    ("$/cancel_request", Some(id)) => UpstreamMessage::Cancelled(id),
                    _ => UpstreamMessage::Line(with_line_feed(&line)),
                }
            }
            Ok(Incoming::Request { id, method, params }) => UpstreamMessage::Request {
                id,
                method: method.to_string(),
                params: params.map(ToOwned::to_owned),
            },
            Ok(Incoming::Response { id, result }) => {
                let is_own =
                    matches!(&id, RequestId::String(id) if id.starts_with(&self.own_prefix));
                match (is_own, result) {
                    (false, Err(error)) if is_not_owner(&error) => {
                        match self.requests.get(&id).map(|request| &request.kind) {
                            Some(UpstreamRequestKind::Open(opening)) => {
                                UpstreamMessage::NotOwner(id, opening.clone())
                            }
                            _ => UpstreamMessage::Response(id, with_line_feed(&line)),
                        }
                    }
                    (false, _) => UpstreamMessage::Response(id, with_line_feed(&line)),
                    (true, Err(error)) => match self.continued.remove(&id) {
                        Some(session) => UpstreamMessage::Failed(session, error),
                        None => return Vec::new(),
                    },
                    (true, Ok(_)) => {
                        self.continued.remove(&id);
                        return Vec::new();
                    }
                }
            }
            Err(error) => {
                tracing::debug!(%error, "ignoring an invalid message of another server");
                return Vec::new();
            }
        };
        self.received.push(message);
        Vec::new()
    }

    fn flush(&mut self, session: Option<SessionId>, position: Option<u64>) -> Vec<UpstreamMessage> {
        if let (Some(session), Some(position)) = (session, position) {
            self.positions.insert(session, position);
        }
        for message in &self.received {
            if let UpstreamMessage::Response(id, _) | UpstreamMessage::NotOwner(id, _) = message {
                self.requests.remove(id);
            }
        }
        std::mem::take(&mut self.received)
    }

    /// Takes what must be done elsewhere, after the connection has ended. What was received without a position is
    /// dropped: it is received again.
    pub(super) fn into_rest(self, sessions: Vec<SessionId>) -> UpstreamRest {
        let mut rest = UpstreamRest {
            sessions: Vec::new(),
            opening: HashMap::new(),
            unseen: Vec::new(),
            requests: Vec::new(),
        };
        let mut unseen = HashSet::new();
        let mut prompts: HashMap<SessionId, Vec<MovedPrompt>> = HashMap::new();
        for (id, request) in self.requests {
            let session = request.session;
            match request.kind {
                UpstreamRequestKind::Open(_) if self.positions.contains_key(&session) => {
                    rest.opening.insert(session, id);
                }
                UpstreamRequestKind::Open(line) => {
                    unseen.insert(session);
                    rest.unseen.push(line);
                }
                UpstreamRequestKind::Prompt(prompt) => {
                    prompts.entry(session).or_default().push(prompt);
                }
                UpstreamRequestKind::Other => rest.requests.push(id),
            }
        }
        for id in sessions {
            if unseen.contains(&id) {
                continue;
            }
            rest.sessions.push(MovedSession {
                position: self.positions.get(&id).copied().unwrap_or_default(),
                prompts: prompts.remove(&id).unwrap_or_default(),
                id,
            });
        }
        let unknown = prompts.into_values().flatten();
        rest.requests.extend(unknown.map(|prompt| prompt.request));
        rest
    }
}

fn is_not_owner(error: &jsonrpc::Error) -> bool {
    let data = error.data.as_ref();
    data.is_some_and(|data| data["live"] == NOT_OWNER)
}

async fn read(
    reader: impl AsyncRead + Send,
    id: NodeId,
    events: mpsc::Sender<(NodeId, UpstreamEvent)>,
) {
    let mut lines = pin!(FramedRead::new(reader, line_codec(MAX_MESSAGE)));
    while let Some(Ok(line)) = lines.next().await {
        let event = UpstreamEvent::Line(line.to_vec());
        if events.send((id.clone(), event)).await.is_err() {
            return;
        }
    }
    let _ = events.send((id, UpstreamEvent::Ended)).await;
}

async fn write(writer: impl AsyncWrite + Send, mut lines: mpsc::Receiver<Vec<u8>>) {
    let mut writer = pin!(writer);
    while let Some(line) = lines.recv().await {
        if writer.write_all(&line).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}
