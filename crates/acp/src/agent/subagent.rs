//! Subagents: sessions that an agent makes for parts of its work, and that the client shows in the session they are
//! for. Unstable.

use std::ops::Deref;

use acp_wire::v1::{SessionId, StopReason, SubagentUpdate};
use acp_wire::v2::{IdleStateUpdate, RunningStateUpdate, StateUpdate};

use super::session::Session;
use super::turn::Turn;
use crate::error::Result;
use crate::update::Update;

/// A subagent at work. It is a [`Turn`] of its own session: what is said in it, done in it and asked in it is the
/// subagent's, and shown as such. It is cancelled when the turn is that it works for.
///
/// A client may do nothing with it by itself: it is neither prompted, nor cancelled alone, nor opened again.
#[derive(Debug, Clone)]
pub struct Subagent {
    parent: Session,
    turn: Turn,
}

impl Deref for Subagent {
    type Target = Turn;
    fn deref(&self) -> &Turn {
        &self.turn
    }
}

impl Turn {
    /// Begins a subagent (`subagent_update`): its session, and what it is for, for people. The id must be no other
    /// session's, unless it is that of an earlier subagent of this session, which works again then.
    ///
    /// # Errors
    /// The client shows no subagents ([`Error::Unsupported`](crate::Error::Unsupported)), or the connection has ended.
    pub async fn subagent(
        &self,
        id: impl Into<SessionId>,
        title: impl Into<String>,
    ) -> Result<Subagent> {
        if self.client().capabilities().subagents.is_none() {
            return Err(Session::client_capability_error("subagents"));
        }
        let id = id.into();
        let subagent = Subagent {
            parent: self.session().clone(),
            turn: Turn::new(self.session().child(id), self.token().clone()),
        };
        let running = StateUpdate::Running(RunningStateUpdate::new());
        let announced = subagent.new_update().title(title).state(running.clone());
        subagent.update_subagent(announced).await?;
        subagent.send_state(running).await?;
        Ok(subagent)
    }
}

impl Subagent {
    /// An update of what its parent says of it, to be filled in.
    #[must_use]
    pub fn new_update(&self) -> SubagentUpdate {
        SubagentUpdate::new(self.id())
    }

    /// Reports a change made from [`new_update`](Self::new_update).
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn update_subagent(&self, update: SubagentUpdate) -> Result<()> {
        let update = Update::SubagentUpdate(update.into());
        self.parent.update(update).await
    }

    /// Its work has ended.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn end(self, stop_reason: StopReason) -> Result<()> {
        let idle = IdleStateUpdate::new().stop_reason(stop_reason.as_str());
        let idle = StateUpdate::Idle(idle);
        self.send_state(idle.clone()).await?;
        self.update_subagent(self.new_update().state(idle)).await
    }

    /// Tells in its own session what it does: a part of version 2.
    async fn send_state(&self, state: StateUpdate) -> Result<()> {
        if self.client().is_v2() {
            return self.state_update(state).await;
        }
        Ok(())
    }
}
