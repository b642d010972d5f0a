//! A client's state for each session, created when the session is first seen and dropped when it is closed.

use std::any::Any;
use std::sync::Arc;

use acp_wire::v1::{SessionId, StopReason};

use super::Client;
use crate::thread::ThreadHandle;

/// A client's own data for one session, of type [`Client::State`].
///
/// The state is created when the session is first seen. A session can be seen before the agent has responded to the
/// request that opens it, because agents may send updates before the response. The state is passed to every call about
/// the session. It is dropped when this client closes, deletes or archives the session, when opening the session
/// failed, or when the connection ends. A running call keeps it until the call returns. A session that is loaded again
/// while it is open keeps its state, but its subagents lose theirs. Messages for a session after it was closed create a
/// new state.
///
/// `()` is a state, for clients that store nothing.
pub trait ClientState<C: ?Sized>: Send + Sync + 'static {
    /// Creates the state when the session is first seen, before any other call about the session. Must not block.
    fn new(client: &C, session: &SessionId, thread: &ThreadHandle) -> Self;

    /// Called when a turn that this client started has ended, after the thread was updated. `stop_reason` is `None` if
    /// the turn failed. This method is called even if nothing is waiting for the turn any longer, and also for each
    /// subagent of the session. When the connection ends, it is called for sessions whose own turn was running. When a
    /// session is closed, only [`closed`](Self::closed) is called. Must not block.
    fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        let _ = stop_reason;
    }

    /// Called when the session was closed or the connection has ended. Stop any work that the session has started here
    /// rather than when the state is dropped, because running calls keep the state alive, possibly for a long time.
    /// Must not block.
    fn closed(&self) {}
}

impl<C: ?Sized> ClientState<C> for () {
    fn new(_: &C, _: &SessionId, _: &ThreadHandle) -> Self {}
}

/// A factory for the states of a client's sessions. It lets the session table work without knowing the client's type.
pub(super) struct StateFactory(Box<StateFn>);

type StateFn = dyn Fn(&SessionId, &ThreadHandle) -> Option<ErasedState> + Send + Sync;

impl StateFactory {
    /// Creates a factory from a client. The factory does not keep the client alive, because the client may own the
    /// connection, which owns the factory.
    pub(super) fn for_client<C: Client>(client: &Arc<C>) -> Self {
        let client = Arc::downgrade(client);
        Self(Box::new(move |session, thread| {
            let state = C::State::new(&*client.upgrade()?, session, thread);
            Some(Arc::new(TypedState::<C>(Arc::new(state))))
        }))
    }

    /// Creates the state for a new session, or returns `None` if the client has been dropped.
    pub(super) fn create_state(
        &self,
        session: &SessionId,
        thread: &ThreadHandle,
    ) -> Option<ErasedState> {
        (self.0)(session, thread)
    }
}

/// A session state whose concrete type only the client knows.
pub(super) type ErasedState = Arc<dyn AnyState>;

pub(super) trait AnyState: Any + Send + Sync {
    fn turn_ended(&self, stop_reason: Option<&StopReason>);
    fn closed(&self);
}

struct TypedState<C: Client>(Arc<C::State>);

impl<C: Client> AnyState for TypedState<C> {
    fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        self.0.turn_ended(stop_reason);
    }

    fn closed(&self) {
        self.0.closed();
    }
}

impl dyn AnyState {
    /// Returns the state as its concrete type, or `None` if the client is not a `C`.
    pub(super) fn get<C: Client>(&self) -> Option<Arc<C::State>> {
        let state: &dyn Any = self;
        state
            .downcast_ref()
            .map(|TypedState::<C>(state)| Arc::clone(state))
    }
}
