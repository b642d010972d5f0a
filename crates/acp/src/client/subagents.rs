//! What a client may do with a subagent.

use acp_wire::v1::{CancelNotification, SessionId};

use super::session::Session;
use crate::capabilities::not_offered_by_agent;
use crate::error::Result;

impl Session {
    /// Cancels the work of one of this session's subagents (`session/cancel` of the subagent's session) while the
    /// turn goes on. That it has been cancelled the agent tells by an update.
    ///
    /// # Errors
    /// The agent does not say that this subagent can be cancelled; the end of the connection.
    pub async fn cancel_subagent(&self, id: impl Into<SessionId>) -> Result<()> {
        let id = id.into();
        let subagent = self.thread().read(|thread| {
            let subagent = thread.subagent(&id)?;
            subagent.capabilities.as_ref()?.cancel.as_ref()?;
            Some(subagent.thread.clone())
        });
        let Some(thread) = subagent else {
            let what = format!("cancelling the subagent {id}");
            return Err(not_offered_by_agent(what));
        };
        let cancel = CancelNotification::new(&id);
        self.agent().connection().notify(&cancel).await?;
        thread.change(crate::thread::Thread::cancel_turn);
        Ok(())
    }
}
