//! What is done with what an agent sends.

use std::sync::Arc;

use acp_wire::jsonrpc;
use acp_wire::v1::{
    AgentNotification, AgentRequest, ClientCapabilities, ElicitationId, Extension,
    FileSystemCapabilities, RequestPermissionOutcome, RequestPermissionResponse,
    SessionNotification,
};
use serde_json::value::RawValue;

use super::sessions::Sessions;
use super::{
    Client, Elicitation, PermissionRequest, ReadTextFile, Terminals, Update, UpdateContext,
    WriteTextFile,
};
use crate::connection::{Connection, Handler, NoisePolicy, Responder};
use crate::error::Error;

pub(crate) struct ClientSide<C> {
    pub(crate) client: Arc<C>,
    pub(crate) sessions: Arc<Sessions>,
}

/// What is to be delivered to the client. Nearly all of them are updates, so that boxing them to even
/// out the sizes would cost an allocation for each.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Event {
    Update(UpdateContext, Update),
    ElicitationCompleted(ElicitationId),
    Extension(Extension),
}

impl<C: Client> ClientSide<C> {
    /// What the client can do is what it gives.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        let fs = FileSystemCapabilities::new()
            .read_text_file(self.client.read_text_file().is_some())
            .write_text_file(self.client.write_text_file().is_some());
        let mut capabilities = ClientCapabilities::new()
            .fs(fs)
            .terminal(self.client.terminals().is_some());
        // The thread and this library understand every kind of config option there is.
        let boolean = acp_wire::v1::BooleanConfigOptionCapabilities::new();
        let options = acp_wire::v1::SessionConfigOptionsCapabilities::new().boolean(boolean);
        capabilities = capabilities
            .session(acp_wire::v1::ClientSessionCapabilities::new().config_options(options));
        if let Some(elicitation) = self.client.elicitation() {
            capabilities = capabilities.elicitation(elicitation.capabilities());
        }
        capabilities
    }

    fn permission(
        self: &Arc<Self>,
        request: acp_wire::v1::RequestPermissionRequest,
        responder: Responder,
    ) {
        let found = self.sessions.receive(&request.session_id, |state| {
            state
                .thread
                .change(|thread| thread.permission_requested(&request.tool_call));
            (state.thread.clone(), state.turn.clone())
        });
        let (thread, turn) = found.unwrap_or_default();
        let side = Arc::clone(self);
        responder.spawn(async move {
            let request = PermissionRequest::received(request, thread);
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
}

/// Starts an optional request of a session, or refuses it.
macro_rules! offer {
    ($side:ident, $responder:ident, $method:ident, $request:ident, $offer:ident, $call:ident) => {{
        $side.sessions.receive(&$request.session_id, |_| ());
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

impl<C: Client> Handler for ClientSide<C> {
    type Event = Event;

    const NOISE: NoisePolicy = NoisePolicy::Skip;

    fn request(self: &Arc<Self>, method: &str, params: Option<&RawValue>, responder: Responder) {
        match AgentRequest::read(method, params) {
            Ok(AgentRequest::RequestPermission(r)) => self.permission(r, responder),
            Ok(AgentRequest::ReadTextFile(r)) => {
                offer!(self, responder, method, r, read_text_file, read_text_file);
            }
            Ok(AgentRequest::WriteTextFile(r)) => {
                offer!(self, responder, method, r, write_text_file, write_text_file);
            }
            Ok(AgentRequest::CreateTerminal(r)) => {
                offer!(self, responder, method, r, terminals, create)
            }
            Ok(AgentRequest::TerminalOutput(r)) => {
                offer!(self, responder, method, r, terminals, output)
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
            Ok(AgentRequest::Extension(Extension { method, params })) => {
                let side = Arc::clone(self);
                responder
                    .spawn(async move { side.client.extension_request(&method, params).await });
            }
            Ok(other) => {
                let error = jsonrpc::Error::method_not_found(other.method());
                responder.spawn(async move { Err::<(), _>(Error::Rpc(error)) });
            }
            Err(error) => responder.spawn(async move { Err::<(), _>(error.into()) }),
        }
    }

    fn notification(
        self: &Arc<Self>,
        conn: &Connection,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<Event> {
        match AgentNotification::read(method, params) {
            Ok(AgentNotification::SessionUpdate(SessionNotification {
                session_id,
                update,
                ..
            })) => {
                let cx = self.sessions.receive(&session_id, |state| {
                    state.thread.change(|thread| thread.apply(&update));
                    UpdateContext {
                        session_id: session_id.clone(),
                        thread: state.thread.clone(),
                        replay: state.replaying,
                    }
                });
                if cx.is_none() {
                    conn.0.counters.unread();
                    tracing::warn!(%session_id, "an update for a session that nobody opened");
                }
                Some(Event::Update(cx?, Update::V1(update)))
            }
            Ok(AgentNotification::CompleteElicitation(complete)) => {
                Some(Event::ElicitationCompleted(complete.elicitation_id))
            }
            Ok(AgentNotification::Extension(extension)) => Some(Event::Extension(extension)),
            Ok(_) => None,
            Err(error) => {
                conn.0.counters.unread();
                tracing::warn!(%error, "a notification is passed over");
                None
            }
        }
    }

    async fn deliver(&self, event: Event) {
        match event {
            Event::Update(cx, update) => self.client.update(&cx, &update).await,
            Event::ElicitationCompleted(id) => self.client.elicitation_completed(&id).await,
            Event::Extension(Extension { method, params }) => {
                self.client.extension_notification(&method, params).await;
            }
        }
    }

    fn closed(&self) {
        self.sessions.closed();
    }
}
