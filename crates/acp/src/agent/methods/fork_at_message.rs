//! Forks that end at a message, which are requested with an extension of `session/fork` ([`crate::fork_point`]).

use acp_wire::v1::{MessageId, SessionId};

use crate::agent::session::{OpenedSession, Session};
use crate::error::Result;
use crate::pending_request::UnsupportedMethod;
use crate::session_setup::SessionSetup;

/// A handler for forks that end at a message: an extension of `session/fork` that several agents support and that a
/// client uses to take back turns. The agent declares it as `agentCapabilities._meta.jetbrains.air.fork`. Unstable.
///
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait ForkAtMessage<S = ()>: Send + Sync {
    /// Opens `session` as a copy of the session `from` that contains everything up to the message `last`, and nothing from
    /// the user's next prompt on. The session `from` does not change.
    ///
    /// This is not called while [`Agent::prompt`](super::super::Agent::prompt) is running in the session `from` on this
    /// connection.
    ///
    /// # Errors
    /// The session `from` does not exist or has no such message, or it cannot be copied.
    fn fork_at(
        &self,
        from: &SessionId,
        last: &MessageId,
        session: &Session,
        setup: SessionSetup,
    ) -> impl Future<Output = Result<OpenedSession<S>>> + Send;
}

impl<S> ForkAtMessage<S> for UnsupportedMethod {
    async fn fork_at(
        &self,
        _: &SessionId,
        _: &MessageId,
        _: &Session,
        _: SessionSetup,
    ) -> Result<OpenedSession<S>> {
        match *self {}
    }
}
