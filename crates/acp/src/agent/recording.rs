//! What is recorded of a session, and when: before the client is told, in the order in which it is told.

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

/// Keeps the past of sessions: what a client has been shown is recorded before it was sent, whichever way
/// the agent sent it. With [`LoadSession`](super::LoadSession) nothing that was shown is lost, though the agent be killed.
///
/// An agent that has one sends nothing of a session's past that could not be recorded: the call that was to
/// send it fails with [`Error::RecordFailed`]. The order in which a session's updates
/// are recorded is the order in which they are sent. So whoever records slowly sends slowly, and a `record`
/// that itself sends in this session waits for ever.
///
/// Not recorded are what [`LoadSession::load`](super::LoadSession::load) sends, which is the past itself, and how the session
/// stands: its config options, mode and commands, and what the agent does just now. That is told anew
/// whenever the session is opened.
///
/// A turn that runs in a session is cancelled, and its end waited for, before the session is opened once
/// more: what is replayed then has all of it.
///
/// `S` is the agent's [`State`](super::Agent::State).
pub trait Recorder<S = ()>: Send + Sync {
    /// Keeps an update that is going to be sent. When this returns, it must be where it will not be lost.
    ///
    /// It is the same whichever version the client speaks. To keep it, write it as
    /// [`into_v1`](Update::into_v1) gives it, or [`into_v2`](Update::into_v2) where version 1 has no words for it.
    /// The messages have their ids, so that a client of version 2 that is shown them once more replaces what it
    /// has. What the person says is recorded, too, before [`Agent::prompt`] is called: as `user_message_chunk`,
    /// one for each content block.
    ///
    /// An update that was recorded is not necessarily sent: the turn may be dropped in between, or the
    /// connection end.
    ///
    /// # Errors
    /// It cannot be kept. It is not sent then.
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

/// The [`Recorder`] of an agent whose type nobody here knows.
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
    /// How the sessions of this agent are recorded, if they are.
    pub(crate) fn session_recording(self: &Arc<Self>) -> Option<SessionRecording> {
        self.agent.recorder()?;
        Some(SessionRecording {
            recorder: Arc::clone(self) as Arc<dyn DynRecorder>,
            order_lock: Mutex::default(),
            replaying: AtomicBool::new(false),
        })
    }
}

/// That a session is recorded.
pub(crate) struct SessionRecording {
    recorder: Arc<dyn DynRecorder>,
    /// Held from before an update is recorded until it is sent: with two senders in one session, both
    /// orders are the same.
    order_lock: Mutex<()>,
    /// What is sent is the past, and recorded already.
    replaying: AtomicBool,
}

/// The right to be the next that is recorded and sent.
pub(crate) type RecordingOrderGuard<'a> = Option<MutexGuard<'a, ()>>;

impl SessionRecording {
    /// How a subagent's session is recorded: by the same recorder, under its own id.
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
    /// How it is recorded: not at all by most agents, and not while it is replayed.
    pub(super) fn active_recording(&self) -> Option<&SessionRecording> {
        let recording = self.recording()?;
        (!recording.replaying.load(Ordering::Acquire)).then_some(recording)
    }

    /// What is sent from here on is a replay, or is not any more.
    pub(super) fn set_replaying(&self, replaying: bool) {
        if let Some(recording) = self.recording() {
            recording.replaying.store(replaying, Ordering::Release);
        }
    }

    /// Records an update, if it is of what is recorded. To be called by whoever has the order.
    pub(super) async fn record(&self, update: &Update) -> Result<()> {
        let Some(recording) = self.active_recording().filter(|_| is_history(update)) else {
            return Ok(());
        };
        let recorded = recording.recorder.record(self, update).await;
        recorded.map_err(|error| Error::RecordFailed {
            reason: match error {
                // Its code is of no use to anyone here.
                Error::Rpc(error) => error.message,
                error => error.to_string(),
            },
        })
    }

    /// Records what the person says. Until what this gives is dropped nothing else of the session is
    /// recorded or sent.
    pub(super) async fn record_prompt(
        &self,
        id: &MessageId,
        content: &[ContentBlock],
    ) -> Result<RecordingOrderGuard<'_>> {
        let in_order = self.lock_order().await;
        self.record_user_message(id, content).await?;
        Ok(in_order)
    }

    /// Until what this gives is dropped nothing else of the session is recorded or sent. Nothing is in order in a session
    /// that is not recorded.
    pub(super) async fn lock_order(&self) -> RecordingOrderGuard<'_> {
        match self.active_recording() {
            Some(recording) => recording.lock_order().await,
            None => None,
        }
    }

    /// Records what the person says. To be called by whoever has the order.
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

/// Whether an update is of the session's past. What else there is, is how the session stands: its options,
/// modes and commands, and what the agent does just now. That is told anew whenever it is opened.
fn is_history(update: &Update) -> bool {
    !matches!(
        update,
        Update::AvailableCommandsUpdate(_)
            | Update::CurrentModeUpdate(_)
            | Update::ConfigOptionUpdate(_)
            | Update::StateUpdate(_)
    )
}
