//! Passes a client's messages on to the servers that own its sessions.
//!
//! ```text
//!   client ──── Router ──┬── sessions that this server owns: LiveAgent
//!                        ├── sessions of another server:     Upstream
//!                        └── …
//! ```
//!
//! When the owner of a session changes, the client continues from the position up to which it has read the log. It
//! notices nothing but a pause.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use acp::jsonrpc::{self, Incoming, RequestId};
use acp::v1::SessionId;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::locate::{LocateError, SessionPlace, locate};
use super::log::ClientId;
use super::message::{notification, request, response, to_raw};
use super::moved::{MovedPrompt, MovedSession};
use super::process::SharedAgent;
use super::prompt::prompt_key;
use super::session::ClientRequestId;
use super::upstream::{Upstream, UpstreamEvent, UpstreamMessage};
use crate::node::StoreNode;
use crate::served_agent::AgentRunner;
use crate::store::{LiveSessionFilter, LiveSessionSummary, LiveStoreError, NodeId};
use crate::users::ClientUser;

/// The number of events of other servers to buffer.
const BUFFERED_EVENTS: usize = 64;

/// How long to wait before a session is looked for again.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// What the data of an error says if the server does not own the session.
pub(super) const NOT_OWNER: &str = "notOwner";

/// The number of sessions in a page of a list.
const SESSIONS_PER_PAGE: usize = 100;

/// The members of a client's params that decide where its message goes.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RouteParams {
    session_id: Option<SessionId>,
    request_id: Option<RequestId>,
    cwd: Option<String>,
    cursor: Option<String>,
}

/// Where the messages of a client go. Only with a store: without one, all sessions are on this server.
pub(super) struct Router<'a> {
    runner: &'a AgentRunner,
    node: Arc<StoreNode>,
    agent: &'a SharedAgent,
    client: ClientId,
    /// The user with a token of their own, if it is one.
    user: Option<ClientUser>,
    /// The params of the client's `initialize`.
    initialize: Value,
    /// Whether the client is another server.
    is_node: bool,
    /// The last notification that says which questions the client answers.
    answers: Option<Vec<u8>>,
    upstreams: HashMap<NodeId, Upstream>,
    /// The sessions of other servers.
    sessions: HashMap<SessionId, NodeId>,
    /// The requests of other servers that the client has not answered yet, by their ids at the client.
    questions: HashMap<i64, (NodeId, RequestId)>,
    sender: mpsc::Sender<(NodeId, UpstreamEvent)>,
    events: mpsc::Receiver<(NodeId, UpstreamEvent)>,
}

impl<'a> Router<'a> {
    pub(super) fn new(
        runner: &'a AgentRunner,
        node: Arc<StoreNode>,
        agent: &'a SharedAgent,
        client: ClientId,
        user: Option<ClientUser>,
    ) -> Self {
        let (sender, events) = mpsc::channel(BUFFERED_EVENTS);
        Self {
            runner,
            node,
            agent,
            client,
            user,
            initialize: json!({}),
            is_node: false,
            answers: None,
            upstreams: HashMap::new(),
            sessions: HashMap::new(),
            questions: HashMap::new(),
            sender,
            events,
        }
    }

    /// Returns the next event of another server.
    pub(super) async fn next_event(&mut self) -> Option<(NodeId, UpstreamEvent)> {
        self.events.recv().await
    }

    /// Passes a message of the client on. Returns `false` if it is for this server.
    pub(super) async fn route(&mut self, line: &[u8]) -> bool {
        match jsonrpc::parse(line) {
            Ok(Incoming::Request { id, method, params }) => {
                let read = read_params(params);
                self.route_request(id, &method, params, read, line).await
            }
            Ok(Incoming::Notification { method, params }) => {
                self.route_notification(&method, params, line).await
            }
            Ok(Incoming::Response { id, result }) => {
                let RequestId::Number(number) = id else {
                    return false;
                };
                let Some((node, id)) = self.questions.remove(&number) else {
                    return false;
                };
                if let Some(upstream) = self.upstreams.get(&node) {
                    let result = result.map(ToOwned::to_owned);
                    upstream.send(&response(&id, &result)).await;
                }
                true
            }
            Err(_) => false,
        }
    }

    async fn route_request(
        &mut self,
        id: RequestId,
        method: &str,
        params: Option<&RawValue>,
        read: RouteParams,
        line: &[u8],
    ) -> bool {
        if method == "initialize" {
            let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
            self.initialize = params.filter(Value::is_object).unwrap_or_else(|| json!({}));
            // Users cannot speak for other servers.
            self.is_node =
                self.user.is_none() && self.initialize["_meta"]["live"]["isNode"] == true;
            return false;
        }
        // Another server has found out that this one owns the session, so its clients are not passed on again.
        if self.is_node {
            if let (Some(session), "session/load" | "session/resume") = (&read.session_id, method) {
                return self.reject_if_elsewhere(id, session).await;
            }
            return false;
        }
        if method == "session/list" {
            let sessions = self.list_sessions(&read).await;
            self.respond(id, sessions);
            return true;
        }
        let Some(session) = read.session_id else {
            return false;
        };
        let opens = matches!(method, "session/load" | "session/resume");
        if opens || method == "session/delete" {
            match self.find(&session).await {
                Ok(SessionPlace::Here | SessionPlace::Unknown) => {
                    self.sessions.remove(&session);
                    return false;
                }
                Ok(SessionPlace::At(owner)) => {
                    self.sessions.insert(session.clone(), owner.id);
                }
                Err(reason) => {
                    self.respond(id, Err(jsonrpc::Error::internal(reason)));
                    return true;
                }
            }
        }
        let Some(upstream) = self.upstream_of(&session) else {
            return false;
        };
        match (method, opens) {
            ("session/prompt", _) => {
                let prompt = MovedPrompt::new(id, prompt_key(params), params);
                upstream.prompt(session, prompt).await;
            }
            (_, true) => upstream.open(id, session, line).await,
            _ => upstream.request(id, session, line).await,
        }
        true
    }

    /// Rejects a request of another server if this one does not own the session any more. The other server then looks for
    /// the owner again.
    async fn reject_if_elsewhere(&self, id: RequestId, session: &SessionId) -> bool {
        let located = locate(self.runner, self.agent, session).await;
        if matches!(located, Ok(SessionPlace::Here)) {
            return false;
        }
        let what = format!("live session {session}");
        let mut error = jsonrpc::Error::resource_not_found(what);
        error.data = Some(json!({ "live": NOT_OWNER }));
        self.respond(id, Err(error));
        true
    }

    async fn route_notification(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        line: &[u8],
    ) -> bool {
        if method == "_live/answers" {
            self.answers = Some(line.to_vec());
            for upstream in self.upstreams.values() {
                upstream.send(line).await;
            }
            return false;
        }
        let read = read_params(params);
        let upstream = match (read.session_id, read.request_id) {
            (Some(session), _) => self.upstream_of(&session),
            (None, Some(id)) => {
                let mut upstreams = self.upstreams.values_mut();
                upstreams.find(|upstream| upstream.has_request(&id))
            }
            (None, None) => None,
        };
        let Some(upstream) = upstream else {
            return false;
        };
        upstream.send(line).await;
        true
    }

    fn upstream_of(&mut self, session: &SessionId) -> Option<&mut Upstream> {
        let node = self.sessions.get(session)?;
        self.upstreams.get_mut(node)
    }

    /// Finds a session, and connects to its owner. Waits until there is one that can be reached, if it takes no longer than
    /// it takes to notice that the last one has stopped.
    async fn find(&mut self, session: &SessionId) -> Result<SessionPlace, String> {
        let lease = self.node.options.lease;
        let deadline = Instant::now() + lease * 3 + Duration::from_secs(5);
        loop {
            let found = timeout_at(deadline, locate(self.runner, self.agent, session)).await;
            let reason = match found {
                Ok(Ok(SessionPlace::At(owner))) => {
                    if self.upstreams.contains_key(&owner.id) {
                        return Ok(SessionPlace::At(owner));
                    }
                    let (node, sender) = (Arc::clone(&self.node), self.sender.clone());
                    let name = &self.runner.agent.name;
                    let (initialize, user) = (&self.initialize, self.user.as_ref());
                    let connected =
                        Upstream::connect(&node, name, &owner, initialize, user, sender);
                    match connected.await {
                        Ok(upstream) => {
                            if let Some(answers) = &self.answers {
                                upstream.send(answers).await;
                            }
                            self.upstreams.insert(owner.id.clone(), upstream);
                            return Ok(SessionPlace::At(owner));
                        }
                        Err(reason) if owner.address.is_none() => return Err(reason),
                        Err(reason) => format!("cannot reach the session's server: {reason}"),
                    }
                }
                Ok(Ok(place)) => return Ok(place),
                Ok(Err(LocateError::Store(error @ LiveStoreError::Unavailable(_)))) => {
                    error.to_string()
                }
                Ok(Err(error)) => return Err(error.to_string()),
                Err(_) => "cannot find the session's server in time".to_owned(),
            };
            if Instant::now() >= deadline {
                return Err(reason);
            }
            sleep(RETRY_DELAY).await;
        }
    }

    /// Handles an event of another server. Returns the reason if the client must be disconnected.
    pub(super) async fn handle_event(
        &mut self,
        node: NodeId,
        event: UpstreamEvent,
    ) -> Result<(), String> {
        match event {
            UpstreamEvent::Line(line) => {
                let messages = match self.upstreams.get_mut(&node) {
                    Some(upstream) => upstream.receive(line),
                    None => Vec::new(),
                };
                for message in messages {
                    if let UpstreamMessage::NotOwner(_, line) = message {
                        sleep(RETRY_DELAY).await;
                        self.route_again(&line).await;
                    } else {
                        self.send_to_client(&node, message)?;
                    }
                }
                Ok(())
            }
            UpstreamEvent::Ended => self.upstream_ended(&node).await,
        }
    }

    /// Passes on a message of the client again, which another server could not handle.
    async fn route_again(&mut self, line: &[u8]) {
        if !self.route(line).await {
            let client = self.client;
            self.agent
                .update(|agent| agent.handle_client_line(client, line));
        }
    }

    fn send_to_client(&mut self, node: &NodeId, message: UpstreamMessage) -> Result<(), String> {
        let line = match message {
            UpstreamMessage::Line(line) | UpstreamMessage::Response(_, line) => line,
            UpstreamMessage::Request { id, method, params } => {
                let number = self.agent.lock().next_request_id(self.client);
                let Some(number) = number else {
                    return Ok(());
                };
                self.questions.insert(number, (node.clone(), id));
                request(number, &method, params.as_deref())
            }
            UpstreamMessage::Cancelled(id) => {
                let of_request = (node.clone(), id);
                let mut questions = self.questions.iter();
                let Some((&number, _)) = questions.find(|(_, question)| **question == of_request)
                else {
                    return Ok(());
                };
                self.questions.remove(&number);
                notification("$/cancel_request", &json!({ "requestId": number }))
            }
            // Handled by the caller.
            UpstreamMessage::NotOwner(..) => return Ok(()),
            UpstreamMessage::Failed(session, error) => {
                return Err(format!(
                    "cannot continue with session {session}: {}; load it again",
                    error.message
                ));
            }
        };
        self.agent.lock().send_to_client(self.client, &line);
        Ok(())
    }

    /// Continues with the sessions of a server that has stopped.
    async fn upstream_ended(&mut self, node: &NodeId) -> Result<(), String> {
        let Some(upstream) = self.upstreams.remove(node) else {
            return Ok(());
        };
        tracing::info!(%node, "the connection to another server has ended");
        let asked = self.questions.iter();
        let asked: Vec<i64> = asked
            .filter(|(_, (of, _))| of == node)
            .map(|(number, _)| *number)
            .collect();
        for number in asked {
            self.questions.remove(&number);
            let line = notification("$/cancel_request", &json!({ "requestId": number }));
            self.agent.lock().send_to_client(self.client, &line);
        }
        let sessions = self.sessions.iter();
        let sessions: Vec<SessionId> = sessions
            .filter(|(_, of)| *of == node)
            .map(|(session, _)| session.clone())
            .collect();
        let mut rest = upstream.into_rest(sessions);
        for id in rest.requests {
            let mut error = jsonrpc::Error::internal(
                "the session's server has stopped; send the request again",
            );
            error.data = Some(json!({ "live": "ownerStopped" }));
            self.respond(id, Err(error));
        }
        for line in rest.unseen {
            self.route_again(&line).await;
        }
        for session in rest.sessions {
            let opening = rest.opening.remove(&session.id);
            self.continue_session(session, opening).await?;
        }
        Ok(())
    }

    /// Continues with sessions that this server does not own any more.
    pub(super) async fn continue_moved(&mut self) -> Result<(), String> {
        let moved = self.agent.lock().take_moved(self.client);
        for session in moved {
            self.continue_session(session, None).await?;
        }
        Ok(())
    }

    /// Continues with a session on its new owner, which can be this server.
    async fn continue_session(
        &mut self,
        moved: MovedSession,
        opening: Option<RequestId>,
    ) -> Result<(), String> {
        let id = moved.id;
        self.sessions.remove(&id);
        // Whatever turn was running there does not go on. Those who watch it must not wait for its end.
        let error = jsonrpc::Error::internal("the session's server has stopped");
        let params = json!({ "sessionId": id, "stopReason": null, "error": error });
        let line = notification("_live/turn_ended", &params);
        self.agent.lock().send_to_client(self.client, &line);
        let own_prompts: Vec<String> = moved.prompts.iter().map(|p| p.key.clone()).collect();
        match self.find(&id).await {
            Ok(SessionPlace::At(owner)) => {
                self.sessions.insert(id.clone(), owner.id);
                let Some(upstream) = self.upstream_of(&id) else {
                    return Ok(());
                };
                upstream
                    .continue_session(&id, moved.position, &own_prompts, opening)
                    .await;
                for prompt in moved.prompts {
                    upstream.prompt(id.clone(), prompt).await;
                }
                Ok(())
            }
            Ok(SessionPlace::Here) => {
                self.continue_here(&id, moved.position, own_prompts, moved.prompts, opening)
            }
            Ok(SessionPlace::Unknown) => Err(format!("session {id} no longer exists")),
            Err(reason) => Err(format!("cannot continue with session {id}: {reason}")),
        }
    }

    fn continue_here(
        &mut self,
        id: &SessionId,
        position: u64,
        own_prompts: Vec<String>,
        prompts: Vec<MovedPrompt>,
        opening: Option<RequestId>,
    ) -> Result<(), String> {
        let client = self.client;
        self.agent.update(|agent| {
            let opening = opening.map(|id| ClientRequestId { client, id });
            agent
                .continue_session(client, opening.as_ref(), id, position, own_prompts)
                .map_err(|error| error.message)?;
            for prompt in prompts {
                let request = ClientRequestId {
                    client,
                    id: prompt.request,
                };
                if let Err(error) = agent.prompt(&request, true, id, Some(&prompt.params)) {
                    agent.respond(&request, &Err(error));
                }
            }
            Ok(())
        })
    }

    fn respond(&self, id: RequestId, result: Result<Value, jsonrpc::Error>) {
        let request = ClientRequestId {
            client: self.client,
            id,
        };
        let result = result.map(|result| to_raw(&result));
        self.agent.lock().respond(&request, &result);
    }

    /// Returns the sessions of all servers.
    async fn list_sessions(&self, read: &RouteParams) -> Result<Value, jsonrpc::Error> {
        let name = self.runner.agent.name.clone();
        let user = self.user.as_ref().filter(|user| user.own_sessions);
        let filter = LiveSessionFilter {
            cwd: read.cwd.clone(),
            creator: user.map(|user| user.name.to_string()),
        };
        let cursor = read.cursor.clone();
        let listed = self
            .node
            .store
            .list(name, filter, cursor, SESSIONS_PER_PAGE);
        let page = listed.await.map_err(|error| match error {
            LiveStoreError::InvalidCursor => jsonrpc::Error::invalid_params("invalid cursor"),
            error => jsonrpc::Error::internal(error.to_string()),
        })?;
        let sessions: Vec<Value> = page.sessions.iter().map(session_info).collect();
        let mut result = json!({ "sessions": sessions });
        if let Some(next) = page.next {
            result["nextCursor"] = next.into();
        }
        Ok(result)
    }
}

fn session_info(session: &LiveSessionSummary) -> Value {
    let updated_at = jiff::Timestamp::from_millisecond(session.updated_at);
    let mut info = json!({
        "sessionId": session.key.session,
        "cwd": session.cwd.as_deref().unwrap_or("/"),
    });
    if let Some(title) = &session.title {
        info["title"] = title.as_str().into();
    }
    if let Ok(updated_at) = updated_at {
        info["updatedAt"] = updated_at.to_string().into();
    }
    info
}

fn read_params(params: Option<&RawValue>) -> RouteParams {
    params
        .and_then(|params| serde_json::from_str(params.get()).ok())
        .unwrap_or_default()
}
