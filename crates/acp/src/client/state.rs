//! What a client keeps of each session, made when the session is first seen and dropped when it is closed.

use std::any::Any;
use std::sync::Arc;

use acp_wire::v1::{SessionId, StopReason};

use super::Client;
use crate::thread::ThreadHandle;

/// A client's own data for one session: [`Client::State`].
///
/// It is made when the session is first seen, which may be before the agent has answered the request that opens it, and
/// also for a session that only the agent has named: agents may speak ahead of that answer. It is handed to every call
/// about the session. It is dropped when this client closes, deletes or archives the session, when opening it failed, or
/// when the connection ends; a call that still runs keeps it until it returns. A session that is loaded again while it is
/// open keeps its state, but its subagents lose theirs. What arrives for a session after it was closed makes a new one.
///
/// `()` is one, for clients that keep nothing.
pub trait ClientState<C: ?Sized>: Send + Sync + 'static {
    /// The session is seen for the first time. Called before anything else of it reaches the client. Must not block.
    fn new(client: &C, session: &SessionId, thread: &ThreadHandle) -> Self;

    /// A turn that this client began has ended, and the thread shows it: with this stop reason, or without one if it
    /// failed. Called also when nobody waits for its end any more, and for each subagent of the session. When the
    /// connection ends, it is called for sessions whose own turn ran; when a session is closed, only
    /// [`closed`](Self::closed) is. Must not block.
    fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        let _ = stop_reason;
    }

    /// The session is open no more, or the connection has ended. Calls that still run keep the state, maybe for as long
    /// as something in it goes on: what the session began is to be ended here, not when the state is dropped. Must not
    /// block.
    fn closed(&self) {}
}

impl<C: ?Sized> ClientState<C> for () {
    fn new(_: &C, _: &SessionId, _: &ThreadHandle) -> Self {}
}

/// Makes the states of a client's sessions. The table of sessions does not know the client's type.
pub(super) struct StateFactory(Box<StateFn>);

type StateFn = dyn Fn(&SessionId, &ThreadHandle) -> Option<ErasedState> + Send + Sync;

impl StateFactory {
    /// For this client. It is not kept alive: a client may hold the connection that holds this.
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

    /// The state of a new session; `None` when the client is gone, and nothing is asked of it any more.
    pub(super) fn make(&self, session: &SessionId, thread: &ThreadHandle) -> Option<ErasedState> {
        (self.0)(session, thread)
    }
}

/// A state whose type is not said.
#[derive(Clone)]
pub(super) struct ErasedState {
    state: Arc<dyn Any + Send + Sync>,
    turn_ended: fn(&(dyn Any + Send + Sync), Option<&StopReason>),
    closed: fn(&(dyn Any + Send + Sync)),
}

impl ErasedState {
    /// The state as its own type; `None` if it is that of another client, which it never is.
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
