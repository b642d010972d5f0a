//! The client's side of a connection, which dispatches the agent's messages to the client.

use std::sync::Arc;

use acp_wire::v1::{
    self, AgentNotification, AuthCapabilities, AuthStatusUpdateNotification,
    BooleanConfigOptionCapabilities, ClientCapabilities, ClientSessionCapabilities,
    CompactionCapabilities, ElicitationId, Extension, NoticeCapabilities, PlanCapabilities,
    ProtocolVersion, SessionConfigOptionsCapabilities, SessionId, SessionNotification,
    SubagentCapabilities,
};
use acp_wire::{Notification, v2};
use serde_json::value::RawValue;

use super::initialize::NegotiatedVersion;
use super::sessions::{ClientSessions, FinishedTurn};
use super::{Client, Elicitation, Update};
use crate::capabilities::implemented_capabilities;
use crate::connection::{Connection, Handler, NoisePolicy, Responder};
use crate::dialect;
use crate::error::CloseReason;
use crate::extension::ExtensionNotification;
use crate::pending_request::PendingRequest;
use crate::thread::ThreadHandle;

pub(crate) struct ClientSide<C> {
    pub(crate) client: Arc<C>,
    pub(crate) sessions: Arc<ClientSessions>,
    /// The negotiated version, once the agent has responded to `initialize`.
    pub(crate) negotiated_version: NegotiatedVersion,
}

/// The context of an update: the session that has changed, and its thread.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UpdateContext {
    /// The session that has changed.
    pub session_id: SessionId,
    /// The thread of the session, to which the update has already been applied.
    pub thread: ThreadHandle,
    /// Whether the update is part of a replay.
    pub is_replay: bool,
}

/// An event to deliver to the client. Nearly all events are updates, which are not boxed because each box would cost an
/// allocation.
#[allow(clippy::large_enum_variant)]
pub(crate) enum ClientEvent<S> {
    /// An update, with the client's own state for its session and the turn that it ended, if any.
    Update(UpdateContext, Arc<S>, Update, Option<FinishedTurn>),
    ElicitationCompleted(ElicitationId),
    AuthStatusChanged(AuthStatusUpdateNotification),
    Extension(Extension),
}

impl<C: Client> ClientSide<C> {
    /// Returns the client's capabilities: those that it implements, and those that every thread supports.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        let offered = v1::AgentRequest::offered_by(self);
        let mut capabilities: ClientCapabilities = implemented_capabilities(&offered);
        // Elicitation has several modes, so the client reports which ones it supports.
        capabilities.elicitation = self.client.elicitation().map(Elicitation::capabilities);
        let options =
            SessionConfigOptionsCapabilities::new().boolean(BooleanConfigOptionCapabilities::new());
        let session = ClientSessionCapabilities::new()
            .config_options(options)
            .compaction(CompactionCapabilities::new())
            .notices(NoticeCapabilities::new());
        // Agents that show their own terminals through `_meta` require this: see `thread/terminal_meta.rs`.
        let mut meta = acp_wire::Meta::new();
        meta.insert("terminal_output".to_owned(), true.into());
        capabilities
            .session(session)
            .plan(PlanCapabilities::new())
            .subagents(SubagentCapabilities::new())
            .auth(AuthCapabilities::new().terminal(self.client.supports_terminal_login()))
            .meta(meta)
    }

    fn version(&self) -> ProtocolVersion {
        // A message before the response to `initialize` can only be a mistake or a log line.
        self.negotiated_version
            .get()
            .copied()
            .unwrap_or(ProtocolVersion::V1)
    }

    /// Applies an update to its session's thread, and returns the event to deliver.
    fn apply_update(
        &self,
        conn: &Connection,
        session_id: SessionId,
        update: Update,
    ) -> Option<ClientEvent<C::State>> {
        let Some(received) = self.sessions.receive_update::<C>(&session_id, &update) else {
            conn.0.counters.count_unread_notification();
            tracing::warn!(%session_id, "ignoring an update for a session that is not open");
            return None;
        };
        Some(ClientEvent::Update(
            received.context,
            received.client_state?,
            update,
            received.finished_turn,
        ))
    }
}

impl<C: Client> Handler for ClientSide<C> {
    type Event = ClientEvent<C::State>;

    const NOISE: NoisePolicy = NoisePolicy::Skip;

    fn handle_request(
        self: &Arc<Self>,
        method: &str,
        params: Option<&RawValue>,
        responder: Responder,
    ) {
        let pending = PendingRequest::new(self, responder);
        if self.version() == ProtocolVersion::V2 {
            match v2::AgentRequest::read(method, params) {
                Ok(request) => request.handle(pending),
                Err(error) => pending.reject(error.into()),
            }
        } else {
            match v1::AgentRequest::read(method, params) {
                Ok(request) => request.handle(pending),
                Err(error) => pending.reject(error.into()),
            }
        }
    }

    fn handle_notification(
        self: &Arc<Self>,
        conn: &Connection,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<ClientEvent<C::State>> {
        let read = if method == SessionNotification::METHOD {
            let read = dialect::read_update(self.version(), params);
            read.map(|(id, update)| self.apply_update(conn, id, update))
        } else {
            // Both versions have the same notifications here.
            AgentNotification::read(method, params).map(|notification| match notification {
                AgentNotification::CompleteElicitation(complete) => {
                    Some(ClientEvent::ElicitationCompleted(complete.elicitation_id))
                }
                AgentNotification::AuthStatusUpdate(status) => {
                    Some(ClientEvent::AuthStatusChanged(status))
                }
                AgentNotification::Extension(extension) => Some(ClientEvent::Extension(extension)),
                _ => None,
            })
        };
        read.unwrap_or_else(|error| {
            conn.0.counters.count_unread_notification();
            tracing::warn!(%error, "ignoring an invalid notification");
            None
        })
    }

    fn handle_plain_notification(
        self: &Arc<Self>,
        conn: &Connection,
        method: &str,
        params: &str,
    ) -> Option<Option<ClientEvent<C::State>>> {
        // Most messages are session updates.
        if method != SessionNotification::METHOD {
            return None;
        }
        let (id, update) = if self.version() == ProtocolVersion::V2 {
            let update: v2::UpdateSessionNotification = serde_json::from_str(params).ok()?;
            (update.session_id, update.update.into())
        } else {
            let update: SessionNotification = serde_json::from_str(params).ok()?;
            (update.session_id, update.update.into())
        };
        Some(self.apply_update(conn, id, update))
    }

    async fn deliver(&self, event: ClientEvent<C::State>) {
        match event {
            ClientEvent::Update(cx, state, update, over) => {
                self.client.update(&state, &cx, &update).await;
                drop(over);
            }
            ClientEvent::ElicitationCompleted(id) => self.client.elicitation_completed(&id).await,
            #[cfg(feature = "unstable")]
            ClientEvent::AuthStatusChanged(status) => self.client.auth_status_changed(status).await,
            #[cfg(not(feature = "unstable"))]
            ClientEvent::AuthStatusChanged(_) => {}
            ClientEvent::Extension(extension) => {
                let notification = ExtensionNotification::new(extension);
                self.client.extension_notification(notification).await;
            }
        }
    }

    fn on_closed(&self, reason: &CloseReason) {
        self.sessions.close_all(reason);
    }
}
