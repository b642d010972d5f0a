//! Subagents: sessions that an agent starts for part of its work, shown in the parent session. Unstable.

use std::ops::Deref;

use acp_wire::v1::{SessionId, StopReason, SubagentUpdate};
use acp_wire::v2::{IdleStateUpdate, RunningStateUpdate, StateUpdate};

use super::session::Session;
use super::turn::Turn;
use crate::error::Result;
use crate::update::Update;

/// A running subagent, which is a [`Turn`] in its own session. Clients show the turn's messages, tool calls and
/// questions as the subagent's. The subagent is cancelled along with the turn that started it.
///
/// A client cannot act on the subagent's session directly: it cannot send it a prompt, cancel it separately, or open it
/// again.
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
    /// Starts a subagent of this session (`subagent_update`), with a title for the user. If the id is that of an
    /// earlier subagent of this session, that subagent continues. Otherwise, the id must be new.
    ///
    /// # Errors
    /// The client does not support subagents ([`Error::Unsupported`](crate::Error::Unsupported)), or the connection
    /// has ended.
    pub async fn start_subagent(
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
            turn: Turn::new(
                self.session().new_subagent_session(id),
                self.token().clone(),
            ),
        };
        let running = StateUpdate::Running(RunningStateUpdate::new());
        let announced = subagent.new_update().title(title).state(running.clone());
        subagent.update_subagent(announced).await?;
        subagent.send_state(running).await?;
        Ok(subagent)
    }
}

impl Subagent {
    /// Creates an empty update to fill in and pass to [`update_subagent`](Self::update_subagent).
    #[must_use]
    pub fn new_update(&self) -> SubagentUpdate {
        SubagentUpdate::new(self.id())
    }

    /// Sends an update of the subagent in its parent session.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn update_subagent(&self, update: SubagentUpdate) -> Result<()> {
        let update = Update::SubagentUpdate(update.into());
        self.parent.send_update(update).await
    }

    /// Reports that the subagent has finished, with the stop reason.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn end(self, stop_reason: StopReason) -> Result<()> {
        let idle = IdleStateUpdate::new().stop_reason(stop_reason.as_str());
        let idle = StateUpdate::Idle(idle);
        self.send_state(idle.clone()).await?;
        self.update_subagent(self.new_update().state(idle)).await
    }

    /// Reports the subagent's state in its own session. Does nothing in version 1.
    async fn send_state(&self, state: StateUpdate) -> Result<()> {
        if self.client().is_v2() {
            return self.send_state_update(state).await;
        }
        Ok(())
    }
}
