//! Sends session updates in the client's protocol version.

use std::sync::atomic::Ordering;

use acp_wire::v1::{ContentBlock, MessageId, SessionNotification, SessionUpdate};
use acp_wire::v2::{self, ToolCallStatus};
use serde::Serialize;

use super::session::{AGENT_CHUNK, Session, THOUGHT_CHUNK, USER_CHUNK};
use crate::error::Result;
use crate::update::{MessageChunk, Update};

/// An update in the form of the negotiated version, or nothing if that version needs no update.
enum WireUpdate {
    V1(SessionUpdate),
    V2(v2::SessionUpdate),
    None,
}

impl Session {
    /// Sends an update of either version, converted to the negotiated one.
    ///
    /// # Errors
    /// The client speaks version 1, which cannot express the update
    /// ([`Error::Unsupported`](crate::Error::Unsupported)), or the connection has ended.
    pub async fn send_update(&self, update: impl Into<Update>) -> Result<()> {
        let mut update = update.into();
        let Some(recording) = self.recording_unless_replaying() else {
            self.track_update(&mut update);
            return self.send(self.to_wire_update(update)?).await;
        };
        let _in_order = recording.lock_order().await;
        self.track_update(&mut update);
        let message = self.to_wire_update(update.clone())?;
        self.record(&update).await?;
        self.send(message).await
    }

    /// Records the update `recorded` and sends the update `sent`, if any.
    pub(super) async fn record_and_send(
        &self,
        recorded: impl FnOnce() -> Update,
        sent: Option<Update>,
    ) -> Result<()> {
        let _guard = match self.recording_unless_replaying() {
            Some(recording) => {
                let guard = recording.lock_order().await;
                self.record(&recorded()).await?;
                guard
            }
            None => None,
        };
        match sent {
            Some(update) => self.send(self.to_wire_update(update)?).await,
            None => Ok(()),
        }
    }

    fn to_wire_update(&self, update: Update) -> Result<WireUpdate> {
        if self.client().is_v2() {
            return Ok(update.into_v2().map_or(WireUpdate::None, WireUpdate::V2));
        }
        let message = update.into_v1().map(WireUpdate::V1);
        message.ok_or_else(|| Self::client_capability_error("version 2"))
    }

    async fn send(&self, message: WireUpdate) -> Result<()> {
        if self.is_muted() {
            return Ok(());
        }
        match message {
            WireUpdate::V1(update) => {
                let update = SessionNotification::new(self.id(), update);
                self.connection().notify(&update).await
            }
            WireUpdate::V2(update) => {
                let update = v2::UpdateSessionNotification::new(self.id(), update);
                self.connection().notify(&update).await
            }
            WireUpdate::None => Ok(()),
        }
    }

    /// Sends a user message that has already been recorded.
    pub(super) async fn send_recorded_user_message(&self, message: v2::Message) -> Result<()> {
        self.send(self.to_wire_update(Update::UserMessage(message))?)
            .await
    }

    /// Reports the agent's state to version 2 clients.
    pub(crate) async fn send_state_update(&self, state: v2::StateUpdate) -> Result<()> {
        self.send_update(Update::StateUpdate(state)).await
    }

    /// Reports the agent's state to version 2 clients, without waiting for capacity.
    pub(crate) fn send_state_update_now(&self, state: v2::StateUpdate) {
        if !self.is_muted() {
            let update = v2::SessionUpdate::StateUpdate(state);
            let update = v2::UpdateSessionNotification::new(self.id(), update);
            self.connection().notify_now(update);
        }
    }

    fn is_muted(&self) -> bool {
        self.muted().load(Ordering::Acquire)
    }

    /// Tracks the state that later updates depend on: the current message, and the titles of tool calls.
    fn track_update(&self, update: &mut Update) {
        let (kind, chunk) = match update {
            Update::UserMessageChunk(chunk) => (USER_CHUNK, chunk),
            Update::AgentMessageChunk(chunk) => (AGENT_CHUNK, chunk),
            Update::AgentThoughtChunk(chunk) => (THOUGHT_CHUNK, chunk),
            Update::ToolCallUpdate(update) => {
                let mut state = self.lock_state();
                if update.is_new {
                    state.current_message = None;
                }
                let title = update.title.as_ref().and_then(Option::as_ref);
                let status = update.status.as_ref().and_then(Option::as_ref);
                state.update_title(&update.tool_call_id, title, status.is_some_and(is_final));
                return;
            }
            _ => return,
        };
        match &chunk.message_id {
            Some(_) if chunk.is_found_by_id => {}
            Some(id) => self.lock_state().current_message = Some((kind, id.clone())),
            None => chunk.message_id = Some(self.chunk_message_id(kind)),
        }
    }

    /// Sends a chunk of text. As this is the most frequent message, its text is serialized without copying it first.
    pub(super) async fn send_text_chunk(&self, kind: &'static str, text: &str) -> Result<()> {
        if self.recording_unless_replaying().is_some() {
            // Box it, so that the future stays small for agents without a recorder.
            return Box::pin(self.record_and_send_text(kind, text)).await;
        }
        let id = self.chunk_message_id(kind);
        self.send_text(kind, text, &id).await
    }

    async fn record_and_send_text(&self, kind: &'static str, text: &str) -> Result<()> {
        let _in_order = match self.recording_unless_replaying() {
            Some(recording) => recording.lock_order().await,
            None => None,
        };
        let id = self.chunk_message_id(kind);
        let chunk = MessageChunk::new(ContentBlock::text(text)).message_id(id.clone());
        self.record(&if kind == THOUGHT_CHUNK {
            Update::AgentThoughtChunk(chunk)
        } else {
            Update::AgentMessageChunk(chunk)
        })
        .await?;
        self.send_text(kind, text, &id).await
    }

    async fn send_text(&self, kind: &'static str, text: &str, id: &MessageId) -> Result<()> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct ChunkNotification<'a> {
            session_id: &'a str,
            update: OutgoingChunk<'a>,
        }
        // A chunk of text, which both versions write in the same way.
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct OutgoingChunk<'a> {
            session_update: &'static str,
            content: OutgoingText<'a>,
            message_id: &'a str,
        }
        #[derive(Serialize)]
        struct OutgoingText<'a> {
            r#type: &'static str,
            text: &'a str,
        }
        if self.is_muted() {
            return Ok(());
        }
        let content = OutgoingText {
            r#type: "text",
            text,
        };
        let update = OutgoingChunk {
            session_update: kind,
            content,
            message_id: id.as_str(),
        };
        let params = ChunkNotification {
            session_id: self.id().as_str(),
            update,
        };
        self.connection()
            .notify_raw(
                <SessionNotification as acp_wire::Notification>::METHOD,
                &params,
            )
            .await
    }
}

fn is_final(status: &ToolCallStatus) -> bool {
    use ToolCallStatus::{Cancelled, Completed, Failed};
    matches!(status, Completed | Failed | Cancelled)
}
