//! The queue of a session's turns, which runs them one at a time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// The running turn's guard. Dropping it starts the session's next turn.
pub(crate) type TurnGuard = OwnedMutexGuard<()>;

/// A turn's place in its session's queue. Turns run in the order of their tickets, whichever task is polled first.
/// Dropping a ticket gives up the place.
pub(crate) enum TurnTicket {
    Ready(TurnGuard),
    Waiting(Pin<Box<dyn Future<Output = TurnGuard> + Send>>),
}

impl TurnTicket {
    /// Takes the last place in the queue.
    pub(crate) fn take(turns: &Arc<Mutex<()>>) -> Self {
        let turns = Arc::clone(turns);
        // A lock joins its queue when it is first polled. That must happen now, even if this task has used up its
        // budget.
        let mut waiting = Box::pin(tokio::task::unconstrained(turns.lock_owned()));
        let mut nobody = Context::from_waker(Waker::noop());
        match waiting.as_mut().poll(&mut nobody) {
            Poll::Ready(guard) => Self::Ready(guard),
            Poll::Pending => Self::Waiting(waiting),
        }
    }

    /// Waits until all turns ahead of this one have ended.
    pub(crate) async fn wait(self) -> TurnGuard {
        match self {
            Self::Ready(guard) => guard,
            Self::Waiting(waiting) => waiting.await,
        }
    }
}
