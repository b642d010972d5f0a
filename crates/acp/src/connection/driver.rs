//! The driver: the future that reads, writes and runs handlers.
//!
//! No part of a connection runs anywhere else, so the library needs no particular runtime: everything runs on the
//! thread and the executor that poll the driver. [`Options::spawn_work`](crate::Options::spawn_work) moves three things
//! from the driver to an executor: turns, requests that have to wait, and writing.
//!
//! The futures are in a `FuturesUnordered`, so that each is polled only after it was woken.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::{Either, FutureExt, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;

use super::Connection;
use crate::error::CloseReason;

/// A future polled by the driver. If it resolves to a reason, the connection ends for that reason.
type DriverFuture = Pin<Box<dyn Future<Output = Option<CloseReason>> + Send>>;

/// A task that runs on the caller's executor.
pub(crate) type SpawnedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A function that starts a task on an executor.
pub(crate) type SpawnFn = Arc<dyn Fn(SpawnedTask) + Send + Sync>;

/// How often per poll the driver looks for new tasks before it yields to its executor.
const MAX_POLL_ROUNDS: usize = 64;

/// The future that runs a connection by reading, writing and calling handlers. Nothing happens unless it is polled. It
/// resolves to the reason why the connection ended.
///
/// Spawn the driver, or use [`run`](Self::run) to do other work beside it. Dropping the driver ends the connection at
/// once: pending requests fail, and unwritten messages are lost. Work of the connection is dropped with the driver.
/// Work that was [spawned elsewhere](crate::Options::spawn_work) ends when it is next polled.
///
/// In a tokio runtime, timers must be enabled (`enable_time`), because the end of a connection uses timeouts.
#[must_use = "a connection makes no progress unless its driver is polled"]
pub struct Driver {
    conn: Connection,
    futures: FuturesUnordered<DriverFuture>,
    /// Why the connection ended, if it has.
    close_reason: Option<CloseReason>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Driver {
    /// Creates the driver. The future `life` runs as long as the connection exists.
    pub(super) fn new(
        conn: Connection,
        life: impl Future<Output = CloseReason> + Send + 'static,
    ) -> Self {
        let parts = FuturesUnordered::new();
        let life: DriverFuture = Box::pin(life.map(Some));
        parts.push(life);
        Self {
            conn,
            futures: parts,
            close_reason: None,
        }
    }

    /// Drives the connection while `work` runs, then closes it and drives it to its end. Messages that were already
    /// sent are still written, for up to two seconds.
    ///
    /// ```
    /// # use acp::testing::{NoopClient, PromptAgent};
    /// # async fn example(transport: acp::Transport) -> acp::Result<()> {
    /// let (handshake, driver) = acp::client::connect(transport, NoopClient);
    /// let work = async {
    ///     let session = handshake.await?.new_session("/").await?;
    ///     session.prompt("Say hello").await
    /// };
    /// let stop_reason = driver.run(work).await?;
    /// # let _ = stop_reason;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run<T>(mut self, work: impl Future<Output = T>) -> T {
        let work = pin!(work);
        match select(work, &mut self).await {
            Either::Left((done, _)) => {
                self.conn.close();
                self.await;
                done
            }
            // Pending requests have failed with the connection, so `work` can finish.
            Either::Right((_, work)) => work.await,
        }
    }

    /// Moves new tasks from the queue into the driver.
    fn take_new_tasks(&mut self) {
        self.futures.extend(self.conn.0.tasks.take_new_tasks());
    }

    /// Drops all remaining work, and wakes everything that waits for the end of the connection.
    fn end(&mut self, reason: CloseReason) {
        // Close the queue first: dropping the futures can start new tasks, which would never run.
        self.conn.0.tasks.close();
        self.futures.clear();
        self.close_reason = Some(reason.clone());
        self.conn.0.close_reason.send_replace(Some(reason));
    }
}

impl Future for Driver {
    type Output = CloseReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CloseReason> {
        if let Some(reason) = &self.close_reason {
            return Poll::Ready(reason.clone());
        }
        for _ in 0..MAX_POLL_ROUNDS {
            self.take_new_tasks();
            match self.futures.poll_next_unpin(cx) {
                Poll::Ready(Some(None)) => {}
                Poll::Ready(Some(Some(reason))) => {
                    self.end(reason.clone());
                    return Poll::Ready(reason);
                }
                // Unreachable: the connection's life is one of the futures, and it returns a reason.
                Poll::Ready(None) => {
                    self.end(CloseReason::Local);
                    return Poll::Ready(CloseReason::Local);
                }
                Poll::Pending if self.conn.0.tasks.set_waker(cx.waker()) => return Poll::Pending,
                // A task was started in the meantime.
                Poll::Pending => {}
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.close_reason.is_none() {
            self.end(CloseReason::Local);
        }
    }
}

/// A connection's tasks for writing and for the work on requests, but not for reading.
pub(crate) struct Tasks {
    queue: Mutex<DriverQueue>,
    /// The number of running tasks that must end before the connection can end.
    running_count: watch::Sender<usize>,
    spawn_fn: Option<SpawnFn>,
}

#[derive(Default)]
struct DriverQueue {
    /// New tasks that are not in the driver yet.
    new_tasks: Vec<DriverFuture>,
    /// The driver's waker, set while the driver is not being polled.
    waker: Option<Waker>,
    /// Whether the driver has ended.
    is_closed: bool,
}

/// A guard that counts as a running task until dropped.
struct TaskCounter(watch::Sender<usize>);

impl Drop for TaskCounter {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

impl Tasks {
    /// Creates an empty set of tasks. If `spawn` is set, tasks run on the caller's executor.
    pub(super) fn new(spawn: Option<SpawnFn>) -> Self {
        Self {
            queue: Mutex::default(),
            running_count: watch::Sender::new(0),
            spawn_fn: spawn,
        }
    }

    fn lock(&self) -> MutexGuard<'_, DriverQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a task that must end before the connection ends. A panic affects only this task.
    // Takes a boxed task, so that this code is compiled once, and not for each type of task.
    pub(crate) fn spawn(&self, task: SpawnedTask) {
        self.running_count.send_modify(|running| *running += 1);
        let running = TaskCounter(self.running_count.clone());
        self.spawn_detached(async move {
            let _running = running;
            task.await;
        });
    }

    /// Starts a task that does not delay the end of the connection. A panic affects only this task.
    pub(super) fn spawn_detached(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task = AssertUnwindSafe(task).catch_unwind().map(|done| {
            if done.is_err() {
                tracing::error!("a connection task panicked");
            }
        });
        if let Some(spawn) = &self.spawn_fn {
            return spawn(Box::pin(task));
        }
        let mut queue = self.lock();
        if queue.is_closed {
            // Release the lock first: dropping the task may start another one.
            drop(queue);
            return;
        }
        queue.new_tasks.push(Box::pin(task.map(|()| None)));
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the tasks started since the last call, and removes the waker, because the driver is being polled.
    fn take_new_tasks(&self) -> Vec<DriverFuture> {
        let (new, waker) = {
            let mut queue = self.lock();
            (std::mem::take(&mut queue.new_tasks), queue.waker.take())
        };
        drop(waker);
        new
    }

    /// Sets the waker to call when a task is started. Returns `false` if a task was started in the meantime.
    fn set_waker(&self, waker: &Waker) -> bool {
        let waker = waker.clone();
        let mut queue = self.lock();
        if queue.new_tasks.is_empty() {
            queue.waker = Some(waker);
            return true;
        }
        false
    }

    /// Waits until all tasks except detached ones have ended.
    pub(super) async fn wait(&self) {
        let mut running = self.running_count.subscribe();
        // This cannot fail, because `self` holds the sender.
        let _ = running.wait_for(|running| *running == 0).await;
    }

    /// Closes the queue when the driver has ended.
    fn close(&self) {
        self.lock().is_closed = true;
        // Release the lock first: dropping tasks can start others.
        drop(self.take_new_tasks());
    }
}

/// Sleeps for `time`. Uses tokio's timer in a tokio runtime, so that tests can pause it, and otherwise the timer thread
/// of `futures-timer`.
async fn sleep(time: Duration) {
    if tokio::runtime::Handle::try_current().is_ok() {
        tokio::time::sleep(time).await;
    } else {
        futures_timer::Delay::new(time).await;
    }
}

/// Runs `work` and returns its result, or `None` if it takes longer than `time`.
pub(crate) async fn timeout<T>(time: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = sleep(time) => None,
    }
}
