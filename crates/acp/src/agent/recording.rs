//! Records sessions. Each update is recorded before it is sent, and in the same order.

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

/// Records the history of sessions. It stores each update before the client gets it, whichever method sends it.
/// Together with [`LoadSession`](super::LoadSession), this ensures that nothing the user has seen is lost, even if the
/// agent is killed.
///
/// If an update of the history cannot be recorded, it is not sent: the sending call fails with [`Error::RecordFailed`].
/// Updates of a session are sent in the order in which they are recorded. A slow recorder therefore slows down sending,
/// and a `record` that itself sends in the session never returns.
///
/// Two kinds of updates are not recorded. Those that [`LoadSession::load`](super::LoadSession::load) sends are the
/// history itself. Others report only the session's current state: its config options, mode and commands, and whether
/// the agent is working. The state is sent again whenever the session is opened.
///
/// Before a session is opened again, its running turn is cancelled and ends, so the replay contains the whole turn.
///
/// `S` is the agent's [`State`](super::Agent::State).
pub trait Recorder<S = ()>: Send + Sync {
    /// Stores an update before it is sent. The update must be durable when this method returns.
    ///
    /// The update is the same whichever version the client speaks. To store it, convert it with
    /// [`into_v1`](Update::into_v1), or with [`into_v2`](Update::into_v2) if version 1 cannot express it. Messages have
    /// ids, so a client of version 2 that receives them again replaces its copies. The user's messages are recorded
    /// before [`Agent::prompt`] is called, as one `user_message_chunk` for each content block.
    ///
    /// A recorded update is not always sent: the turn can be dropped, or the connection can end, in between.
    ///
    /// # Errors
    /// The update cannot be stored, and is not sent.
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

/// A dyn-compatible version of [`Recorder`].
pub(crate) trait DynRecorder: Send + Sync {
    fn record<'a>(&'a self, session: &'a Session, update: &'a Update) -> RecordFuture<'a>;
}

impl<A: Agent> DynRecorder for AgentSide<A> {
    fn record<'a>(&'a self, session: &'a Session, update: &'a Update) -> RecordFuture<'a> {
        match self.agent.recorder() {
            Some(recorder) => Box::pin(async move {
                let state = session.require_agent_state::<A>()?;
                recorder.record(&state, session, update).await
            }),
            None => Box::pin(std::future::ready(Ok(()))),
        }
    }
}

impl<A: Agent> AgentSide<A> {
    /// Creates the recording state for one session, or returns `None` if the agent has no recorder.
    pub(crate) fn session_recording(self: &Arc<Self>) -> Option<SessionRecording> {
        self.agent.recorder()?;
        Some(SessionRecording {
            recorder: Arc::clone(self) as Arc<dyn DynRecorder>,
            order_lock: Mutex::default(),
            is_replaying: AtomicBool::new(false),
        })
    }
}

/// A session's recorder, and the lock that keeps the session's updates in order.
pub(crate) struct SessionRecording {
    recorder: Arc<dyn DynRecorder>,
    /// Held while an update is recorded and sent, so that updates are sent in the order in which they are recorded.
    order_lock: Mutex<()>,
    /// Whether the session is being replayed. A replay's updates are already recorded.
    is_replaying: AtomicBool,
}

/// The guard of the order lock, or `None` if the session is not recorded.
pub(crate) type RecordingOrderGuard<'a> = Option<MutexGuard<'a, ()>>;

impl SessionRecording {
    /// Creates the recording state for a subagent's session, with the same recorder.
    pub(super) fn new_for_subagent(&self) -> Self {
        Self {
            recorder: Arc::clone(&self.recorder),
            order_lock: Mutex::default(),
            is_replaying: AtomicBool::new(false),
        }
    }

    pub(crate) async fn lock_order(&self) -> RecordingOrderGuard<'_> {
        Some(self.order_lock.lock().await)
    }
}

impl Session {
    /// Returns the session's recording, or `None` if there is none or the session is being replayed.
    pub(super) fn recording_unless_replaying(&self) -> Option<&SessionRecording> {
        let recording = self.recording()?;
        (!recording.is_replaying.load(Ordering::Acquire)).then_some(recording)
    }

    /// Sets whether the session is being replayed. If so, updates are not recorded.
    pub(super) fn set_replaying(&self, replaying: bool) {
        if let Some(recording) = self.recording() {
            recording.is_replaying.store(replaying, Ordering::Release);
        }
    }

    /// Records an update if it is part of the history. The caller must hold the order lock.
    pub(super) async fn record(&self, update: &Update) -> Result<()> {
        let Some(recording) = self
            .recording_unless_replaying()
            .filter(|_| is_history(update))
        else {
            return Ok(());
        };
        let recorded = recording.recorder.record(self, update).await;
        recorded.map_err(|error| Error::RecordFailed {
            reason: match error {
                // The error code has no meaning for the caller.
                Error::Rpc(error) => error.message,
                error => error.to_string(),
            },
        })
    }

    /// Records the user's prompt. Until the returned guard is dropped, nothing else in this session is recorded or
    /// sent.
    pub(super) async fn record_prompt(
        &self,
        id: &MessageId,
        content: &[ContentBlock],
    ) -> Result<RecordingOrderGuard<'_>> {
        let order_guard = self.lock_order().await;
        self.record_user_message(id, content).await?;
        Ok(order_guard)
    }

    /// Acquires the order lock if the session is recorded. Until the returned guard is dropped, nothing else in this
    /// session is recorded or sent.
    pub(super) async fn lock_order(&self) -> RecordingOrderGuard<'_> {
        match self.recording_unless_replaying() {
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

/// Returns `true` if an update is part of the history. Other updates report current state, such as options, commands,
/// the mode and the agent's activity. They are sent again whenever the session is opened.
fn is_history(update: &Update) -> bool {
    !matches!(
        update,
        Update::AvailableCommandsUpdate(_)
            | Update::CurrentModeUpdate(_)
            | Update::ConfigOptionUpdate(_)
            | Update::StateUpdate(_)
    )
}
