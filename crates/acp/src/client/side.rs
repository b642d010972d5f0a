//! The client's side of a connection: handling of the agent's messages.

use std::sync::Arc;

use acp_wire::v1::{
    self, AgentNotification, AuthCapabilities, AuthStatusUpdateNotification,
    BooleanConfigOptionCapabilities, ClientCapabilities, ClientSessionCapabilities,
    CompactionCapabilities, ElicitationId, Extension, NoticeCapabilities, PlanCapabilities,
    ProtocolVersion, SessionConfigOptionsCapabilities, SessionId, SessionNotification,
    SubagentCapabilities,
};
use acp_wire::{Notification, ReadError, v2};
use serde_json::value::RawValue;

use super::initialize::NegotiatedVersion;
use super::sessions::ClientSessions;
use super::turn::FinishedTurn;
use super::{Client, Elicitation, Update};
use crate::capabilities::offered_capabilities;
use crate::connection::{Connection, Handler, NoisePolicy, Responder};
use crate::error::CloseReason;
use crate::extension::ExtensionNotification;
use crate::pending_request::PendingRequest;
use crate::thread::ThreadHandle;

pub(crate) struct ClientSide<C> {
    pub(crate) client: Arc<C>,
    pub(crate) sessions: Arc<ClientSessions>,
    /// The negotiated version, set by the response to `initialize`.
    pub(crate) negotiated_version: NegotiatedVersion,
}

/// The context of an update: its session and thread.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UpdateContext {
    /// The id of the session.
    pub session_id: SessionId,
    /// The session's thread, which already shows the update.
    pub thread: ThreadHandle,
    /// Whether the update is part of a replay.
    pub is_replay: bool,
}

/// An event to deliver to the client. Nearly all events are updates, so boxing them to even out the sizes would cost
/// one allocation each.
#[allow(clippy::large_enum_variant)]
pub(crate) enum ClientEvent<S> {
    /// An update, the client's own state for its session, and the turn that the update ends.
    Update(UpdateContext, Arc<S>, Update, Option<FinishedTurn>),
    ElicitationCompleted(ElicitationId),
    AuthStatusChanged(AuthStatusUpdateNotification),
    Extension(Extension),
}

impl<C: Client> ClientSide<C> {
    /// Returns the client's capabilities: those that the client implements, and those that every thread supports.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        let offered = v1::AgentRequest::offered_by(self);
        let mut capabilities: ClientCapabilities = offered_capabilities(&offered);
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
            .auth(AuthCapabilities::new().terminal(self.client.terminal_login()))
            .meta(meta)
    }

    fn version(&self) -> ProtocolVersion {
        // A message that arrives before the response to `initialize` can only be a mistake or a log line.
        self.negotiated_version
            .get()
            .copied()
            .unwrap_or(ProtocolVersion::V1)
    }

    /// Applies an update to its thread, and returns the event to deliver.
    fn apply_update(
        &self,
        conn: &Connection,
        session_id: SessionId,
        update: Update,
    ) -> Option<ClientEvent<C::State>> {
        let found = self.sessions.receive_update(&session_id, &update, |state| {
            let cx = UpdateContext {
                session_id: session_id.clone(),
                thread: state.thread.clone(),
                is_replay: state.is_replaying,
            };
            let over = match &update {
                Update::StateUpdate(agent) => state.agent_state(agent),
                _ => None,
            };
            (cx, state.client_state::<C>(), over)
        });
        if found.is_none() {
            conn.0.counters.count_unread();
            tracing::warn!(%session_id, "ignoring an update for a session that is not open");
        }
        let (cx, state, over) = found?;
        Some(ClientEvent::Update(cx, state?, update, over))
    }

    fn apply_update_v1(
        &self,
        conn: &Connection,
        notification: SessionNotification,
    ) -> Option<ClientEvent<C::State>> {
        let SessionNotification {
            session_id, update, ..
        } = notification;
        self.apply_update(conn, session_id, update.into())
    }

    fn apply_update_v2(
        &self,
        conn: &Connection,
        notification: v2::UpdateSessionNotification,
    ) -> Option<ClientEvent<C::State>> {
        let v2::UpdateSessionNotification {
            session_id, update, ..
        } = notification;
        self.apply_update(conn, session_id, update.into())
    }

    fn skip_notification(conn: &Connection, error: &ReadError) {
        conn.0.counters.count_unread();
        tracing::warn!(%error, "ignoring an invalid notification");
    }
}

impl<C: Client> Handler for ClientSide<C> {
    type Event = ClientEvent<C::State>;

    const NOISE: NoisePolicy = NoisePolicy::Skip;

    fn request(self: &Arc<Self>, method: &str, params: Option<&RawValue>, responder: Responder) {
        let pending = PendingRequest::new(self, responder);
        if self.version() == ProtocolVersion::V2 {
            match v2::AgentRequest::read(method, params) {
                Ok(request) => request.handle(pending),
                Err(error) => pending.refuse(error.into()),
            }
        } else {
            match v1::AgentRequest::read(method, params) {
                Ok(request) => request.handle(pending),
                Err(error) => pending.refuse(error.into()),
            }
        }
    }

    fn notification(
        self: &Arc<Self>,
        conn: &Connection,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<ClientEvent<C::State>> {
        if self.version() == ProtocolVersion::V2 {
            return match v2::AgentNotification::read(method, params) {
                Ok(v2::AgentNotification::SessionUpdate(update)) => {
                    self.apply_update_v2(conn, update)
                }
                Ok(v2::AgentNotification::CompleteElicitation(complete)) => {
                    Some(ClientEvent::ElicitationCompleted(complete.elicitation_id))
                }
                Ok(v2::AgentNotification::AuthStatusUpdate(status)) => {
                    Some(ClientEvent::AuthStatusChanged(status))
                }
                Ok(v2::AgentNotification::Extension(extension)) => {
                    Some(ClientEvent::Extension(extension))
                }
                Ok(_) => None,
                Err(error) => {
                    Self::skip_notification(conn, &error);
                    None
                }
            };
        }
        match AgentNotification::read(method, params) {
            Ok(AgentNotification::SessionUpdate(update)) => self.apply_update_v1(conn, update),
            Ok(AgentNotification::CompleteElicitation(complete)) => {
                Some(ClientEvent::ElicitationCompleted(complete.elicitation_id))
            }
            Ok(AgentNotification::AuthStatusUpdate(status)) => {
                Some(ClientEvent::AuthStatusChanged(status))
            }
            Ok(AgentNotification::Extension(extension)) => Some(ClientEvent::Extension(extension)),
            Ok(_) => None,
            Err(error) => {
                Self::skip_notification(conn, &error);
                None
            }
        }
    }

    fn plain_notification(
        self: &Arc<Self>,
        conn: &Connection,
        method: &str,
        params: &str,
    ) -> Option<Option<ClientEvent<C::State>>> {
        // Most messages are session updates.
        if method != SessionNotification::METHOD {
            return None;
        }
        Some(if self.version() == ProtocolVersion::V2 {
            self.apply_update_v2(conn, serde_json::from_str(params).ok()?)
        } else {
            self.apply_update_v1(conn, serde_json::from_str(params).ok()?)
        })
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

    fn closed(&self, reason: &CloseReason) {
        self.sessions.close_all(reason);
    }
}
