//! What a session tells its client, in the words of the version that the client speaks.

use std::sync::atomic::Ordering;

use acp_wire::v1::{
    ContentBlock, ContentChunk, MessageId, SessionNotification, SessionUpdate, ToolCallStatus,
};
use acp_wire::v2;
use serde::Serialize;

use super::session::{AGENT, Session, THOUGHT, USER};
use super::tool_call::CANCELLED;
use crate::convert;
use crate::error::Result;
use crate::update::Update;

impl Session {
    /// Sends an update in the words of version 1; a client that speaks version 2 is sent it in its own.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn update(&self, mut update: SessionUpdate) -> Result<()> {
        let Some(recording) = self.records() else {
            self.note(&mut update);
            return self.send(update).await;
        };
        let _in_order = recording.in_order().await;
        self.note(&mut update);
        let update = Update::V1(update);
        self.record(&update).await?;
        match update {
            Update::V1(update) => self.send(update).await,
            Update::V2(update) => self.send_v2(update).await,
        }
    }

    /// Sends an update of version 1 that stands in the past as one of version 2.
    pub(super) async fn update_as(
        &self,
        recorded: impl FnOnce() -> v2::SessionUpdate,
        sent: Option<SessionUpdate>,
    ) -> Result<()> {
        let _in_order = match self.records() {
            Some(recording) => {
                let in_order = recording.in_order().await;
                self.record(&Update::V2(recorded())).await?;
                in_order
            }
            None => None,
        };
        match sent {
            Some(update) => self.send(update).await,
            None => Ok(()),
        }
    }

    async fn send(&self, update: SessionUpdate) -> Result<()> {
        if self.client().speaks_v2() {
            // What has no words there is not needed there.
            return match convert::update_to_v2(update, || self.new_message_id()) {
                Some(update) => self.send_v2(update).await,
                None => Ok(()),
            };
        }
        if self.is_muted() {
            return Ok(());
        }
        let update = SessionNotification::new(self.id(), update);
        self.connection().notify(&update).await
    }

    /// Sends an update in the words of version 2, for what version 1 has no words for.
    ///
    /// # Errors
    /// The client does not speak version 2 ([`Error::NotOffered`](crate::Error::NotOffered)), or the connection has ended.
    pub async fn update_v2(&self, update: v2::SessionUpdate) -> Result<()> {
        if !self.client().speaks_v2() {
            return Err(Self::not_offered("version 2"));
        }
        let Some(recording) = self.records() else {
            return self.send_v2(update).await;
        };
        let _in_order = recording.in_order().await;
        let update = Update::V2(update);
        self.record(&update).await?;
        match update {
            Update::V1(update) => self.send(update).await,
            Update::V2(update) => self.send_v2(update).await,
        }
    }

    pub(super) async fn send_v2(&self, update: v2::SessionUpdate) -> Result<()> {
        if self.is_muted() {
            return Ok(());
        }
        let update = v2::UpdateSessionNotification::new(self.id(), update);
        self.connection().notify(&update).await
    }

    /// Tells what the agent does, to clients that are told.
    pub(crate) async fn state_update(&self, state: v2::StateUpdate) -> Result<()> {
        self.update_v2(v2::SessionUpdate::StateUpdate(state)).await
    }

    /// The same from where one cannot wait.
    pub(crate) fn state_update_now(&self, state: v2::StateUpdate) {
        if !self.is_muted() {
            let update = v2::SessionUpdate::StateUpdate(state);
            let update = v2::UpdateSessionNotification::new(self.id(), update);
            self.connection().notify_now(update);
        }
    }

    fn is_muted(&self) -> bool {
        self.muted().load(Ordering::Acquire)
    }

    /// Keeps what later messages depend on: which message a chunk is part of, what a tool call does.
    fn note(&self, update: &mut SessionUpdate) {
        let (kind, chunk) = match update {
            SessionUpdate::UserMessageChunk(chunk) => (USER, chunk),
            SessionUpdate::AgentMessageChunk(chunk) => (AGENT, chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => (THOUGHT, chunk),
            SessionUpdate::ToolCall(call) => {
                let mut state = self.state();
                state.speaking = None;
                let finished = is_final(Some(&call.status));
                state.title(&call.tool_call_id, Some(&call.title), finished);
                return;
            }
            SessionUpdate::ToolCallUpdate(update) => {
                let finished = is_final(update.status.as_ref());
                self.state()
                    .title(&update.tool_call_id, update.title.as_ref(), finished);
                return;
            }
            _ => return,
        };
        match &chunk.message_id {
            Some(id) => self.state().speaking = Some((kind, id.clone())),
            None => chunk.message_id = Some(self.speaking(kind)),
        }
    }

    /// The message of which there are the most: written from where it lies, without a copy.
    pub(super) async fn text_chunk(&self, kind: &'static str, text: &str) -> Result<()> {
        if self.records().is_some() {
            // On the heap, so that those who record nothing carry nothing of it.
            return Box::pin(self.recorded_text(kind, text)).await;
        }
        let id = self.speaking(kind);
        self.send_text(kind, text, &id).await
    }

    async fn recorded_text(&self, kind: &'static str, text: &str) -> Result<()> {
        let _in_order = match self.records() {
            Some(recording) => recording.in_order().await,
            None => None,
        };
        let id = self.speaking(kind);
        let chunk = ContentChunk::new(ContentBlock::text(text)).message_id(id.clone());
        self.record(&Update::V1(if kind == THOUGHT {
            SessionUpdate::AgentThoughtChunk(chunk)
        } else {
            SessionUpdate::AgentMessageChunk(chunk)
        }))
        .await?;
        self.send_text(kind, text, &id).await
    }

    async fn send_text(&self, kind: &'static str, text: &str, id: &MessageId) -> Result<()> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            session_id: &'a str,
            update: Chunk<'a>,
        }
        // The same in both versions.
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Chunk<'a> {
            session_update: &'static str,
            content: Text<'a>,
            message_id: &'a str,
        }
        #[derive(Serialize)]
        struct Text<'a> {
            r#type: &'static str,
            text: &'a str,
        }
        if self.is_muted() {
            return Ok(());
        }
        let content = Text {
            r#type: "text",
            text,
        };
        let update = Chunk {
            session_update: kind,
            content,
            message_id: id.as_str(),
        };
        let params = Params {
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

fn is_final(status: Option<&ToolCallStatus>) -> bool {
    use ToolCallStatus::{Completed, Failed};
    matches!(status, Some(Completed | Failed)) || status.is_some_and(|s| s.as_str() == CANCELLED)
}
