//! The client's state for each session. It is created when the session is first seen, and dropped when the session is
//! closed.

use std::any::Any;
use std::sync::Arc;

use acp_wire::v1::{SessionId, StopReason};

use super::Client;
use crate::thread::ThreadHandle;

/// A client's own data for one session, of type [`Client::State`].
///
/// The state is created when the session is first seen. This may be before the agent has responded to the request
/// that opens it, or for a session that only the agent has named, because agents may send updates before that
/// response. It is passed to every call about the session. It is dropped when this client closes, deletes or archives
/// the session, when opening it failed, or when the connection ends; a running call keeps it until it returns. A
/// session that is loaded again while it is open keeps its state, but its subagents lose theirs. Messages for a
/// session after it was closed create a new state.
///
/// `()` is a state, for clients that store nothing.
pub trait ClientState<C: ?Sized>: Send + Sync + 'static {
    /// Creates the state when the session is first seen, before the client is called for the session. Must not block.
    fn new(client: &C, session: &SessionId, thread: &ThreadHandle) -> Self;

    /// Called when a turn that this client started has ended and the thread shows its end. `stop_reason` is `None` if
    /// the turn failed. Also called if nobody waits for the turn any longer, and for each subagent of the session. When
    /// the connection ends, this is called for sessions whose own turn was running. When a session is closed, only
    /// [`closed`](Self::closed) is called. Must not block.
    fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        let _ = stop_reason;
    }

    /// Called when the session was closed or the connection has ended. Stop here what the session has started, and not
    /// when the state is dropped: calls that are still running keep the state, possibly for a long time. Must not
    /// block.
    fn closed(&self) {}
}

impl<C: ?Sized> ClientState<C> for () {
    fn new(_: &C, _: &SessionId, _: &ThreadHandle) -> Self {}
}

/// A factory for the states of a client's sessions. With it, the session table does not have to know the client's type.
pub(super) struct StateFactory(Box<StateFn>);

type StateFn = dyn Fn(&SessionId, &ThreadHandle) -> Option<ErasedState> + Send + Sync;

impl StateFactory {
    /// Creates the factory for this client. It does not keep the client alive, because the client may own the
    /// connection, which owns the factory.
    pub(super) fn of<C: Client>(client: &Arc<C>) -> Self {
        let client = Arc::downgrade(client);
        Self(Box::new(move |session, thread| {
            let state = C::State::new(&*client.upgrade()?, session, thread);
            Some(ErasedState {
                state: Arc::new(state),
                turn_ended: turn_ended::<C>,
                closed: closed::<C>,
            })
        }))
    }

    /// Creates the state for a new session, or returns `None` if the client was dropped.
    pub(super) fn make(&self, session: &SessionId, thread: &ThreadHandle) -> Option<ErasedState> {
        (self.0)(session, thread)
    }
}

/// A session state whose type is erased.
#[derive(Clone)]
pub(super) struct ErasedState {
    state: Arc<dyn Any + Send + Sync>,
    turn_ended: fn(&(dyn Any + Send + Sync), Option<&StopReason>),
    closed: fn(&(dyn Any + Send + Sync)),
}

impl ErasedState {
    /// Returns the state as its own type, or `None` if `C` is another client type, which does not happen.
    pub(super) fn get<C: Client>(&self) -> Option<Arc<C::State>> {
        Arc::downcast(Arc::clone(&self.state)).ok()
    }

    pub(super) fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        (self.turn_ended)(&*self.state, stop_reason);
    }

    pub(super) fn closed(&self) {
        (self.closed)(&*self.state);
    }
}

fn turn_ended<C: Client>(state: &(dyn Any + Send + Sync), stop_reason: Option<&StopReason>) {
    if let Some(state) = state.downcast_ref::<C::State>() {
        state.turn_ended(stop_reason);
    }
}

fn closed<C: Client>(state: &(dyn Any + Send + Sync)) {
    if let Some(state) = state.downcast_ref::<C::State>() {
        state.closed();
    }
}
