//! The queue of a session's turns, which run one after the other.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// The turn whose place this was: no other one runs until it is dropped.
pub(crate) type MyTurn = OwnedMutexGuard<()>;

/// A place in the queue. Turns run in the order in which their places were taken, whichever of their tasks
/// is run first. Dropping it leaves the queue.
pub(crate) enum Place {
    First(MyTurn),
    Behind(Pin<Box<dyn Future<Output = MyTurn> + Send>>),
}

impl Place {
    /// Takes the place behind all others.
    pub(crate) fn take(turns: &Arc<Mutex<()>>) -> Self {
        let turns = Arc::clone(turns);
        // A lock joins its queue when it is first polled. That must be now, also when the task that takes
        // the place has used up its share of time.
        let mut waiting = Box::pin(tokio::task::unconstrained(turns.lock_owned()));
        let mut nobody = Context::from_waker(Waker::noop());
        match waiting.as_mut().poll(&mut nobody) {
            Poll::Ready(mine) => Self::First(mine),
            Poll::Pending => Self::Behind(waiting),
        }
    }

    /// Waits until all before it have ended.
    pub(crate) async fn reached(self) -> MyTurn {
        match self {
            Self::First(mine) => mine,
            Self::Behind(waiting) => waiting.await,
        }
    }
}
