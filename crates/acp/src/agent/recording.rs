//! Recording sessions: each update is recorded before it is sent, in the same order.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acp_wire::v1::{ContentBlock, MessageId};
use tokio::sync::{Mutex, MutexGuard};

use super::Agent;
use super::session::Session;
use super::side::AgentSide;
use crate::error::{Error, Result};
use crate::pending_request::UnsupportedMethod;
use crate::update::{MessageChunk, Update};

/// Stores the history of sessions. Everything that a client is sent is recorded first, whichever way the agent sends
/// it. With [`LoadSession`](super::LoadSession), nothing that was shown is lost, even if the agent is killed.
///
/// An agent that has a recorder sends nothing of a session's history that could not be recorded: the sending call
/// fails with [`Error::RecordFailed`]. Updates of a session are sent in the order in which they are recorded. So a
/// slow recorder slows down sending, and a `record` that itself sends in this session never returns.
///
/// Not recorded are the updates that [`LoadSession::load`](super::LoadSession::load) sends, which are the history
/// itself, and the current state of the session: its config options, mode and commands, and whether the agent is
/// working. The state is sent again whenever the session is opened.
///
/// Before a session is opened again, its running turn is cancelled and has ended, so the replay contains all of it.
///
/// `S` is the agent's [`State`](super::Agent::State).
pub trait Recorder<S = ()>: Send + Sync {
    /// Stores an update that is about to be sent. When this returns, the update must be durable.
    ///
    /// The update is the same whichever version the client speaks. To store it, write it as
    /// [`into_v1`](Update::into_v1) returns it, or as [`into_v2`](Update::into_v2) if version 1 cannot express it.
    /// Messages have ids, so that a client of version 2 that gets them again replaces what it has. The user's
    /// messages are recorded, too, before [`Agent::prompt`] is called: as `user_message_chunk`, one for each content
    /// block.
    ///
    /// A recorded update is not always sent: the turn may be dropped in between, or the connection may end.
    ///
    /// # Errors
    /// The update cannot be stored. It is then not sent.
    fn record(
        &self,
        state: &S,
        session: &Session,
        update: &Update,
    ) -> impl Future<Output = Result<()>> + Send;
}

impl<S: Sync> Recorder<S> for UnsupportedMethod {
    async fn record(&self, _: &S, _: &Session, _: &Update) -> Result<()> {
        match *self {}
    }
}

type RecordFuture<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// A [`Recorder`] as a trait object.
pub(crate) trait DynRecorder: Send + Sync {
    fn record<'a>(&'a self, session: &'a Session, update: &'a Update) -> RecordFuture<'a>;
}

impl<A: Agent> DynRecorder for AgentSide<A> {
    fn record<'a>(&'a self, session: &'a Session, update: &'a Update) -> RecordFuture<'a> {
        match self.agent.recorder() {
            Some(recorder) => Box::pin(async move {
                let state = session.require_state::<A>()?;
                recorder.record(&state, session, update).await
            }),
            None => Box::pin(std::future::ready(Ok(()))),
        }
    }
}

impl<A: Agent> AgentSide<A> {
    /// Returns how the sessions of this agent are recorded, if they are.
    pub(crate) fn session_recording(self: &Arc<Self>) -> Option<SessionRecording> {
        self.agent.recorder()?;
        Some(SessionRecording {
            recorder: Arc::clone(self) as Arc<dyn DynRecorder>,
            order_lock: Mutex::default(),
            replaying: AtomicBool::new(false),
        })
    }
}

/// The recording of a session.
pub(crate) struct SessionRecording {
    recorder: Arc<dyn DynRecorder>,
    /// Held from before an update is recorded until it is sent, so that both orders are the same with several
    /// senders.
    order_lock: Mutex<()>,
    /// Whether updates are a replay, which is recorded already.
    replaying: AtomicBool,
}

/// The right to record and send next.
pub(crate) type RecordingOrderGuard<'a> = Option<MutexGuard<'a, ()>>;

impl SessionRecording {
    /// Returns the recording of a subagent's session: the same recorder, under its own id.
    pub(super) fn for_subagent(&self) -> Self {
        Self {
            recorder: Arc::clone(&self.recorder),
            order_lock: Mutex::default(),
            replaying: AtomicBool::new(false),
        }
    }

    pub(crate) async fn lock_order(&self) -> RecordingOrderGuard<'_> {
        Some(self.order_lock.lock().await)
    }
}

impl Session {
    /// Returns the recording, unless the session has none or is being replayed.
    pub(super) fn active_recording(&self) -> Option<&SessionRecording> {
        let recording = self.recording()?;
        (!recording.replaying.load(Ordering::Acquire)).then_some(recording)
    }

    /// Sets whether updates are a replay.
    pub(super) fn set_replaying(&self, replaying: bool) {
        if let Some(recording) = self.recording() {
            recording.replaying.store(replaying, Ordering::Release);
        }
    }

    /// Records an update that is part of the history. The caller must hold the order lock.
    pub(super) async fn record(&self, update: &Update) -> Result<()> {
        let Some(recording) = self.active_recording().filter(|_| is_history(update)) else {
            return Ok(());
        };
        let recorded = recording.recorder.record(self, update).await;
        recorded.map_err(|error| Error::RecordFailed {
            reason: match error {
                // The code of the error means nothing to the caller.
                Error::Rpc(error) => error.message,
                error => error.to_string(),
            },
        })
    }

    /// Records the user's message. Nothing else of the session is recorded or sent until the result is dropped.
    pub(super) async fn record_prompt(
        &self,
        id: &MessageId,
        content: &[ContentBlock],
    ) -> Result<RecordingOrderGuard<'_>> {
        let in_order = self.lock_order().await;
        self.record_user_message(id, content).await?;
        Ok(in_order)
    }

    /// Locks the order: nothing else of the session is recorded or sent until the result is dropped. A session that
    /// is not recorded has no lock.
    pub(super) async fn lock_order(&self) -> RecordingOrderGuard<'_> {
        match self.active_recording() {
            Some(recording) => recording.lock_order().await,
            None => None,
        }
    }

    /// Records the user's message. The caller must hold the order lock.
    pub(super) async fn record_user_message(
        &self,
        id: &MessageId,
        content: &[ContentBlock],
    ) -> Result<()> {
        for block in content {
            let chunk = MessageChunk::new(block.clone()).message_id(id.clone());
            self.record(&Update::UserMessageChunk(chunk)).await?;
        }
        Ok(())
    }
}

/// Returns `true` if an update is part of the history. The others are the current state: options, mode, commands and
/// whether the agent is working. They are sent again whenever the session is opened.
fn is_history(update: &Update) -> bool {
    !matches!(
        update,
        Update::AvailableCommandsUpdate(_)
            | Update::CurrentModeUpdate(_)
            | Update::ConfigOptionUpdate(_)
            | Update::StateUpdate(_)
    )
}
