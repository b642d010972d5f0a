//! What is done with what an agent sends.

use std::sync::Arc;

use acp_wire::v1::{
    self, AgentNotification, AgentRequest, AuthCapabilities, BooleanConfigOptionCapabilities,
    ClientCapabilities, ClientSessionCapabilities, CompactionCapabilities, ElicitationId,
    Extension, FileSystemCapabilities, NoticeCapabilities, PlanCapabilities, ProtocolVersion,
    RequestPermissionOutcome, RequestPermissionResponse, SessionConfigOptionsCapabilities,
    SessionId, SessionNotification,
};
use acp_wire::{Notification, ReadError, jsonrpc, v2};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::initialize::Spoken;
use super::sessions::{Sessions, State};
use super::turn::Over;
use super::{
    Client, Elicitation, PermissionRequest, ReadTextFile, Terminals, Update, UpdateContext,
    WriteTextFile,
};
use crate::connection::{Connection, Handler, NoisePolicy, Responder};
use crate::error::{CloseReason, Error};
use crate::thread::ThreadToolCall;

pub(crate) struct ClientSide<C> {
    pub(crate) client: Arc<C>,
    pub(crate) sessions: Arc<Sessions>,
    /// Set as soon as it is known.
    pub(crate) spoken: Spoken,
}

/// What is to be delivered to the client. Nearly all of them are updates, so that boxing them to even
/// out the sizes would cost an allocation for each.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Event {
    /// An update, and the turn that is over with it.
    Update(UpdateContext, Update, Option<Over>),
    ElicitationCompleted(ElicitationId),
    Extension(Extension),
}

/// Starts an optional request of a session, or refuses it.
macro_rules! offer {
    ($side:ident, $responder:ident, $method:ident, $request:ident, $offer:ident, $call:ident) => {{
        if !$side.sessions.serves(&$request.session_id) {
            return unknown_session(&$request.session_id, $responder);
        }
        start!($side, $responder, $method, $request, $offer, $call);
    }};
}

macro_rules! start {
    ($side:ident, $responder:ident, $method:ident, $request:ident, $offer:ident, $call:ident) => {{
        let side = Arc::clone($side);
        let method = $method.to_owned();
        $responder.spawn(async move {
            match side.client.$offer() {
                Some(offer) => offer.$call($request).await,
                None => Err(Error::Rpc(jsonrpc::Error::method_not_found(&method))),
            }
        })
    }};
}

impl<C: Client> ClientSide<C> {
    /// What the client can do is what it gives; what the thread understands, every client does.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        let fs = FileSystemCapabilities::new()
            .read_text_file(self.client.read_text_file().is_some())
            .write_text_file(self.client.write_text_file().is_some());
        let options =
            SessionConfigOptionsCapabilities::new().boolean(BooleanConfigOptionCapabilities::new());
        let session = ClientSessionCapabilities::new()
            .config_options(options)
            .compaction(CompactionCapabilities::new())
            .notices(NoticeCapabilities::new());
        let mut capabilities = ClientCapabilities::new()
            .fs(fs)
            .terminal(self.client.terminals().is_some())
            .session(session)
            .plan(PlanCapabilities::new())
            .auth(AuthCapabilities::new().terminal(self.client.terminal_login()));
        if let Some(elicitation) = self.client.elicitation() {
            capabilities = capabilities.elicitation(elicitation.capabilities());
        }
        // Agents that show terminals of their own through `_meta` ask for this: see
        // `thread/terminal_meta.rs`.
        let mut meta = acp_wire::Meta::new();
        meta.insert("terminal_output".to_owned(), true.into());
        capabilities.meta(meta)
    }

    fn version(&self) -> ProtocolVersion {
        // What comes ahead of the answer to `initialize` can only be a mistake, or a log line.
        self.spoken.get().copied().unwrap_or(ProtocolVersion::V1)
    }

    fn permission(self: &Arc<Self>, request: v1::RequestPermissionRequest, responder: Responder) {
        if !self.sessions.serves(&request.session_id) {
            return unknown_session(&request.session_id, responder);
        }
        let found = self.sessions.receive(&request.session_id, |state| {
            let tool_call = state
                .thread
                .change(|thread| thread.permission_requested(&request.tool_call));
            (tool_call, state.thread.clone(), state.turn.clone())
        });
        let Some((tool_call, thread, turn)) = found else {
            return unknown_session(&request.session_id, responder);
        };
        if let Err(error) = responder.takes(tool_call.weight()) {
            return responder.spawn(async move { Err::<(), _>(error) });
        }
        let request = PermissionRequest::received(request, tool_call, thread);
        self.ask(request, turn, responder);
    }

    fn permission_v2(
        self: &Arc<Self>,
        request: v2::RequestPermissionRequest,
        responder: Responder,
    ) {
        use v2::RequestPermissionSubject::{Command, ToolCall};
        if !self.sessions.serves(&request.session_id) {
            return unknown_session(&request.session_id, responder);
        }
        let found = self.sessions.receive(&request.session_id, |state| {
            let tool_call = match &request.subject {
                Some(ToolCall(subject)) => Some(
                    state
                        .thread
                        .change(|thread| thread.permission_requested_v2(&subject.tool_call)),
                ),
                Some(Command(subject)) => subject
                    .tool_call_id
                    .as_ref()
                    .and_then(|id| state.thread.read(|thread| thread.tool_call(id).cloned())),
                _ => None,
            };
            (tool_call, state.thread.clone(), state.turn.clone())
        });
        let Some((tool_call, thread, turn)) = found else {
            return unknown_session(&request.session_id, responder);
        };
        if let Err(error) = responder.takes(tool_call.as_ref().map_or(0, ThreadToolCall::weight)) {
            return responder.spawn(async move { Err::<(), _>(error) });
        }
        let request = PermissionRequest::received_v2(request, tool_call, thread);
        self.ask(request, turn, responder);
    }

    /// Has the client answer, unless the turn is cancelled first.
    fn ask(
        self: &Arc<Self>,
        request: PermissionRequest,
        turn: CancellationToken,
        responder: Responder,
    ) {
        let side = Arc::clone(self);
        responder.spawn(async move {
            let outcome = tokio::select! {
                biased;
                () = turn.cancelled() => RequestPermissionOutcome::cancelled(),
                outcome = side.client.request_permission(request) => match outcome {
                    Err(Error::Cancelled) => RequestPermissionOutcome::cancelled(),
                    other => other?,
                },
            };
            Ok(RequestPermissionResponse::new(outcome))
        });
    }

    fn extension(self: &Arc<Self>, Extension { method, params }: Extension, responder: Responder) {
        let side = Arc::clone(self);
        responder.spawn(async move { side.client.extension_request(&method, params).await });
    }

    /// Folds an update, and makes of it what is to be delivered.
    fn updated(
        &self,
        conn: &Connection,
        session_id: SessionId,
        update: Update,
        ends: impl FnOnce(&mut State) -> Option<Over>,
    ) -> Option<Event> {
        let found = self.sessions.receive(&session_id, |state| {
            state.thread.change(|thread| thread.apply(&update));
            let cx = UpdateContext {
                session_id: session_id.clone(),
                thread: state.thread.clone(),
                replay: state.replaying,
            };
            (cx, ends(state))
        });
        if found.is_none() {
            conn.0.counters.unread();
            tracing::warn!(%session_id, "an update for a session that nobody opened");
        }
        let (cx, over) = found?;
        Some(Event::Update(cx, update, over))
    }

    fn updated_v1(&self, conn: &Connection, notification: SessionNotification) -> Option<Event> {
        let SessionNotification {
            session_id, update, ..
        } = notification;
        self.updated(conn, session_id, Update::V1(update), |_| None)
    }

    fn updated_v2(
        &self,
        conn: &Connection,
        notification: v2::UpdateSessionNotification,
    ) -> Option<Event> {
        let v2::UpdateSessionNotification {
            session_id, update, ..
        } = notification;
        let state = match &update {
            v2::SessionUpdate::StateUpdate(state) => Some(state.clone()),
            _ => None,
        };
        let ends = |session: &mut State| session.agent_state(&state?);
        self.updated(conn, session_id, Update::V2(update), ends)
    }

    fn request_v1(
        self: &Arc<Self>,
        method: &str,
        request: Result<AgentRequest, ReadError>,
        responder: Responder,
    ) {
        match request {
            Ok(AgentRequest::RequestPermission(r)) => self.permission(r, responder),
            Ok(AgentRequest::ReadTextFile(r)) => {
                if !self.sessions.serves(&r.session_id) {
                    return unknown_session(&r.session_id, responder);
                }
                let (side, method) = (Arc::clone(self), method.to_owned());
                responder.spawn_text(async move {
                    match side.client.read_text_file() {
                        Some(offer) => offer.read_text_file(r).await,
                        None => Err(Error::Rpc(jsonrpc::Error::method_not_found(&method))),
                    }
                });
            }
            Ok(AgentRequest::WriteTextFile(r)) => {
                offer!(self, responder, method, r, write_text_file, write_text_file);
            }
            Ok(AgentRequest::CreateTerminal(r)) => {
                offer!(self, responder, method, r, terminals, create)
            }
            Ok(AgentRequest::TerminalOutput(r)) => {
                if !self.sessions.serves(&r.session_id) {
                    return unknown_session(&r.session_id, responder);
                }
                let (side, method) = (Arc::clone(self), method.to_owned());
                let work = async move {
                    match side.client.terminals() {
                        Some(offer) => offer.output(r).await,
                        None => Err(Error::Rpc(jsonrpc::Error::method_not_found(&method))),
                    }
                };
                responder.spawn_weighed(work, |response| response.output.len());
            }
            Ok(AgentRequest::WaitForTerminalExit(r)) => {
                offer!(self, responder, method, r, terminals, wait_for_exit);
            }
            Ok(AgentRequest::KillTerminal(r)) => {
                offer!(self, responder, method, r, terminals, kill)
            }
            Ok(AgentRequest::ReleaseTerminal(r)) => {
                offer!(self, responder, method, r, terminals, release)
            }
            Ok(AgentRequest::CreateElicitation(r)) => {
                start!(self, responder, method, r, elicitation, create)
            }
            Ok(AgentRequest::Extension(extension)) => self.extension(extension, responder),
            Ok(other) => refuse(other.method(), responder),
            Err(error) => responder.spawn(async move { Err::<(), _>(error.into()) }),
        }
    }

    fn request_v2(
        self: &Arc<Self>,
        method: &str,
        request: Result<v2::AgentRequest, ReadError>,
        responder: Responder,
    ) {
        match request {
            Ok(v2::AgentRequest::RequestPermission(r)) => self.permission_v2(r, responder),
            Ok(v2::AgentRequest::CreateElicitation(r)) => {
                start!(self, responder, method, r, elicitation, create)
            }
            Ok(v2::AgentRequest::Extension(extension)) => self.extension(extension, responder),
            Ok(other) => refuse(other.method(), responder),
            Err(error) => responder.spawn(async move { Err::<(), _>(error.into()) }),
        }
    }

    fn unread(conn: &Connection, error: &ReadError) {
        conn.0.counters.unread();
        tracing::warn!(%error, "a notification is passed over");
    }
}

fn refuse(method: &str, responder: Responder) {
    let error = jsonrpc::Error::method_not_found(method);
    responder.spawn(async move { Err::<(), _>(Error::Rpc(error)) });
}

fn unknown_session(session: &SessionId, responder: Responder) {
    let error = jsonrpc::Error::resource_not_found(format!("session {session}"));
    responder.spawn(async move { Err::<(), _>(Error::Rpc(error)) });
}

impl<C: Client> Handler for ClientSide<C> {
    type Event = Event;

    const NOISE: NoisePolicy = NoisePolicy::Skip;

    fn request(self: &Arc<Self>, method: &str, params: Option<&RawValue>, responder: Responder) {
        if self.version() == ProtocolVersion::V2 {
            self.request_v2(method, v2::AgentRequest::read(method, params), responder);
        } else {
            self.request_v1(method, AgentRequest::read(method, params), responder);
        }
    }

    fn notification(
        self: &Arc<Self>,
        conn: &Connection,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<Event> {
        if self.version() == ProtocolVersion::V2 {
            return match v2::AgentNotification::read(method, params) {
                Ok(v2::AgentNotification::SessionUpdate(update)) => self.updated_v2(conn, update),
                Ok(v2::AgentNotification::CompleteElicitation(complete)) => {
                    Some(Event::ElicitationCompleted(complete.elicitation_id))
                }
                Ok(v2::AgentNotification::Extension(extension)) => {
                    Some(Event::Extension(extension))
                }
                Ok(_) => None,
                Err(error) => {
                    Self::unread(conn, &error);
                    None
                }
            };
        }
        match AgentNotification::read(method, params) {
            Ok(AgentNotification::SessionUpdate(update)) => self.updated_v1(conn, update),
            Ok(AgentNotification::CompleteElicitation(complete)) => {
                Some(Event::ElicitationCompleted(complete.elicitation_id))
            }
            Ok(AgentNotification::Extension(extension)) => Some(Event::Extension(extension)),
            Ok(_) => None,
            Err(error) => {
                Self::unread(conn, &error);
                None
            }
        }
    }

    fn plain_notification(
        self: &Arc<Self>,
        conn: &Connection,
        method: &str,
        params: &str,
    ) -> Option<Option<Event>> {
        // Of all messages these are the most.
        if method != SessionNotification::METHOD {
            return None;
        }
        Some(if self.version() == ProtocolVersion::V2 {
            self.updated_v2(conn, serde_json::from_str(params).ok()?)
        } else {
            self.updated_v1(conn, serde_json::from_str(params).ok()?)
        })
    }

    async fn deliver(&self, event: Event) {
        match event {
            Event::Update(cx, update, over) => {
                self.client.update(&cx, &update).await;
                drop(over);
            }
            Event::ElicitationCompleted(id) => self.client.elicitation_completed(&id).await,
            Event::Extension(Extension { method, params }) => {
                self.client.extension_notification(&method, params).await;
            }
        }
    }

    fn closed(&self, reason: &CloseReason) {
        self.sessions.closed(reason);
    }
}
