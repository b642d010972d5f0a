//! A client's connection to a live agent.

use std::collections::HashSet;
use std::io::Cursor;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use acp::Transport;
use acp::bridge::Bridge;
use acp::jsonrpc::{self, Incoming};
use acp::v1::SessionId;
use acp_remote::CloseStatus;
use bytes::Bytes;
use futures_util::StreamExt;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};

use super::locate::creator;
use super::log::ClientId;
use super::process::{SharedAgent, line_codec};
use super::route::Router;
use super::upstream::UpstreamEvent;
use crate::client_message::{LineDecision, decide};
use crate::served_agent::{AgentRunner, message_too_long};
use crate::store::NodeId;
use crate::users::{MessagePermission, User, not_own_session};

/// About how many bytes are written to a client at once.
const WRITE_SIZE: usize = 64 * 1024;

/// The maximum number of bytes of responses that wait for a client before its next message is handled.
const CLIENT_BUFFER: usize = 256 * 1024;

/// The lines of a client.
type ClientLines<R> = FramedRead<R, AnyDelimiterCodec>;

/// Runs a client's connection until it ends.
pub(crate) async fn serve_client(
    runner: &Arc<AgentRunner>,
    keep: Duration,
    user: Option<&Arc<User>>,
    transport: Transport,
) -> CloseStatus {
    let (from_client, to_client) = transport.into_split();
    let mut lines = FramedRead::new(from_client, line_codec(runner.max_message));
    let first = tokio::select! {
        first = lines.next() => first,
        () = runner.draining.cancelled() => {
            return CloseStatus::new(CloseStatus::GOING_AWAY, "the server is shutting down");
        }
    };
    let first = match first {
        None => return CloseStatus::normal(),
        Some(Ok(line)) => line,
        Some(Err(error)) => return read_failed(error, runner.max_message),
    };
    // What has been read goes back in front of the rest.
    let mut read = first.to_vec();
    read.push(b'\n');
    let parts = lines.into_parts();
    read.extend_from_slice(&parts.read_buf);
    let from_client = Cursor::new(read).chain(parts.io);
    if requested_version(&first) < Some(2) {
        return serve_v1_client(runner, keep, user, from_client, to_client).await;
    }
    let (near, far) = acp::transport::memory();
    let bridge = Bridge::to_v2().run(Transport::new(from_client, to_client), near);
    let (from_bridge, to_bridge) = far.into_split();
    let served = serve_v1_client(runner, keep, user, from_bridge, to_bridge);
    let (_, status) = tokio::join!(bridge, served);
    status
}

/// Returns the version that a client requests with its first message, if that is `initialize`.
fn requested_version(line: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct InitializeParams {
        protocol_version: u64,
    }
    let Ok(Incoming::Request {
        params: Some(params),
        ..
    }) = jsonrpc::parse(line)
    else {
        return None;
    };
    let params: InitializeParams = serde_json::from_str(params.get()).ok()?;
    Some(params.protocol_version)
}

async fn serve_v1_client(
    runner: &Arc<AgentRunner>,
    keep: Duration,
    user: Option<&Arc<User>>,
    from_client: impl AsyncRead + Send + Unpin,
    to_client: impl AsyncWrite + Send + Unpin,
) -> CloseStatus {
    let wake = Arc::new(Notify::new());
    let (agent, client) = match runner.live.add_client(runner, keep, &wake) {
        Ok(added) => added,
        Err(status) => return status,
    };
    if let Some(user) = user {
        agent.update(|agent| agent.set_user(client, user.to_client_user()));
    }
    let connection = LiveConnection {
        runner,
        user: user.map(|user| &**user),
        agent: &agent,
        client,
        wake: &wake,
        responded: Notify::new(),
        moved: Notify::new(),
    };
    let lines = FramedRead::new(from_client, line_codec(runner.max_message));
    let status = tokio::select! {
        biased;
        status = runner.revoked(connection.user) => status,
        status = connection.write(to_client) => status,
        status = connection.read(lines) => status,
    };
    agent.remove_client(client);
    status
}

/// A client's connection, while it is open.
struct LiveConnection<'a> {
    runner: &'a AgentRunner,
    /// The user with a token of their own, if it is one.
    user: Option<&'a User>,
    agent: &'a SharedAgent,
    client: ClientId,
    /// Notified when there is something to write.
    wake: &'a Notify,
    /// Notified when all responses that waited have been taken to be written.
    responded: Notify,
    /// Notified when the client's sessions may have moved to another server.
    moved: Notify,
}

impl LiveConnection<'_> {
    /// Handles the client's messages until it closes the connection.
    async fn read(&self, mut lines: ClientLines<impl AsyncRead + Unpin>) -> CloseStatus {
        let node = self.runner.node().map(Arc::clone);
        let mut router = node.map(|node| {
            let user = self.user.map(User::to_client_user);
            Router::new(self.runner, node, self.agent, self.client, user)
        });
        let mut own_sessions = HashSet::new();
        loop {
            let next = match &mut router {
                None => NextInput::Line(lines.next().await),
                Some(router) => tokio::select! {
                    line = lines.next() => NextInput::Line(line),
                    Some((node, event)) = router.next_event() => NextInput::Event(node, event),
                    () = self.moved.notified() => NextInput::Moved,
                },
            };
            let line = match (next, &mut router) {
                (NextInput::Line(None), _) => return CloseStatus::normal(),
                (NextInput::Line(Some(Ok(line))), _) => line,
                (NextInput::Line(Some(Err(error))), _) => {
                    return read_failed(error, self.runner.max_message);
                }
                (next, Some(router)) => {
                    if let Err(reason) = handle_elsewhere(router, next).await {
                        return CloseStatus::new(CloseStatus::TRY_AGAIN_LATER, reason);
                    }
                    self.wait_for_own_room().await;
                    continue;
                }
                (_, None) => continue,
            };
            if !self.is_permitted(&line, &mut own_sessions).await {
                self.wait_for_own_room().await;
                continue;
            }
            match decide(&line, self.runner.roots()) {
                LineDecision::Drop => {}
                LineDecision::Reject(reply) => {
                    self.runner.counters.messages_rejected.increment();
                    self.agent.lock().send_to_client(self.client, &reply);
                }
                LineDecision::Forward(_) => {
                    if let Some(router) = &mut router
                        && router.route(&line).await
                    {
                        self.wait_for_own_room().await;
                        continue;
                    }
                    self.agent
                        .update(|agent| agent.handle_client_line(self.client, &line));
                }
            }
            self.agent.wait_for_room().await;
            self.wait_for_own_room().await;
        }
    }

    /// Returns `true` if the user may send a message. Otherwise, the client gets an error. `own_sessions` are those that
    /// the user is known to have created.
    async fn is_permitted(&self, line: &[u8], own_sessions: &mut HashSet<SessionId>) -> bool {
        let Some(user) = self.user else {
            return true;
        };
        let response = match user.permission(line) {
            MessagePermission::Allowed => return true,
            MessagePermission::OfOwnSession(session) => {
                if own_sessions.contains(&session) {
                    return true;
                }
                let creator = creator(self.runner, self.agent, &session).await;
                if creator.as_deref() == Some(&**user.name()) {
                    own_sessions.insert(session);
                    return true;
                }
                not_own_session(line, &session)
            }
            MessagePermission::Denied(response) => response,
        };
        self.runner.counters.messages_rejected.increment();
        let mut agent = self.agent.lock();
        agent.audit_denied(self.client, line);
        if let Some(response) = response {
            agent.send_to_client(self.client, &response);
        }
        false
    }

    /// Waits until the client has been sent its responses.
    async fn wait_for_own_room(&self) {
        loop {
            let mut responded = pin!(self.responded.notified());
            responded.as_mut().enable();
            if self.agent.lock().client_backlog(self.client) <= CLIENT_BUFFER {
                return;
            }
            responded.await;
        }
    }

    /// Writes to the client until the agent ends, or the client no longer reads.
    async fn write(&self, mut to_client: impl AsyncWrite + Unpin) -> CloseStatus {
        loop {
            let output = self
                .agent
                .lock()
                .take_client_output(self.client, WRITE_SIZE);
            if !output.bytes.is_empty() {
                self.responded.notify_waiters();
                let written = async {
                    to_client.write_all(&output.bytes).await?;
                    to_client.flush().await
                };
                if written.await.is_err() {
                    return CloseStatus::normal();
                }
            }
            if output.has_moved {
                self.moved.notify_one();
            }
            if let Some(status) = output.close {
                return status;
            }
            if output.bytes.is_empty() {
                self.wake.notified().await;
            }
        }
    }
}

/// What a connection handles next.
enum NextInput {
    Line(Option<Result<Bytes, AnyDelimiterCodecError>>),
    /// Something happened on the connection to another server.
    Event(NodeId, UpstreamEvent),
    /// Sessions may have moved to another server.
    Moved,
}

/// Handles what happens to sessions of other servers. Returns the reason if the client must be disconnected.
async fn handle_elsewhere(router: &mut Router<'_>, next: NextInput) -> Result<(), String> {
    match next {
        NextInput::Event(node, event) => router.handle_event(node, event).await,
        NextInput::Moved => router.continue_moved().await,
        NextInput::Line(_) => Ok(()),
    }
}

fn read_failed(error: AnyDelimiterCodecError, max_message: usize) -> CloseStatus {
    match error {
        AnyDelimiterCodecError::MaxChunkLengthExceeded => message_too_long(max_message),
        AnyDelimiterCodecError::Io(error) => {
            CloseStatus::failed(format!("connection failed: {error}"))
        }
    }
}
