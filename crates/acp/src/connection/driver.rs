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
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::future::{Either, FutureExt, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;

use super::Connection;
use crate::error::CloseReason;

/// A future that the driver polls. If it returns a reason, the connection has ended for that reason.
type DriverFuture = Pin<Box<dyn Future<Output = Option<CloseReason>> + Send>>;

/// A task that runs on the caller's executor.
pub(super) type SpawnedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A function that starts a task on an executor.
pub(crate) type SpawnFn = Arc<dyn Fn(SpawnedTask) + Send + Sync>;

/// The maximum number of times per poll that the driver looks for more to do before it yields to its executor.
const MAX_POLL_ROUNDS: usize = 16;

/// The future that runs a connection: it reads, writes and calls handlers. Nothing happens unless it is polled. It
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
    /// Creates the driver. `life` is the future that runs as long as the connection exists.
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

    /// Drives the connection while `work` runs, and then closes the connection and drives it until it has ended.
    /// Messages that were already sent are still written, for up to two seconds.
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

    /// Drops all remaining work, and wakes everything that waits for the connection to end.
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
        let driver_waker = Arc::clone(&self.conn.0.tasks.driver_waker);
        let waker = Waker::from(Arc::clone(&driver_waker));
        for _ in 0..MAX_POLL_ROUNDS {
            driver_waker.begin_poll();
            self.take_new_tasks();
            match self
                .futures
                .poll_next_unpin(&mut Context::from_waker(&waker))
            {
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
                Poll::Pending if driver_waker.end_poll(cx.waker()) => return Poll::Pending,
                // A task was started or woken meanwhile.
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

/// The tasks of a connection except for reading: writing, and the work on requests.
pub(crate) struct Tasks {
    queue: Mutex<DriverQueue>,
    driver_waker: Arc<DriverWaker>,
    /// The number of running tasks that must end before the connection ends.
    running_count: watch::Sender<usize>,
    spawn_fn: Option<SpawnFn>,
}

#[derive(Default)]
struct DriverQueue {
    /// Started tasks that are not in the driver yet.
    new_tasks: Vec<DriverFuture>,
    /// Whether the driver has ended.
    is_closed: bool,
}

/// What wakes the driver. Its futures often wake each other: the reader a turn, and the turn the writer. The executor
/// is not told of that while it polls the driver, because it would poll again for nothing, and tokio makes a system call
/// before it does.
#[derive(Default)]
struct DriverWaker(Mutex<WakeState>);

#[derive(Default)]
struct WakeState {
    /// The executor's waker, while the driver is not being polled.
    executor: Option<Waker>,
    /// Whether the driver was woken since the last poll began.
    is_woken: bool,
}

impl DriverWaker {
    fn lock(&self) -> MutexGuard<'_, WakeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_poll(&self) {
        let before = std::mem::take(&mut *self.lock());
        // After the lock is released: a waker of the executor may do anything when it is dropped.
        drop(before);
    }

    /// Sets the waker to call from now on. Returns `false` if the driver was woken during the poll.
    fn end_poll(&self, executor: &Waker) -> bool {
        let executor = executor.clone();
        let mut state = self.lock();
        if !state.is_woken {
            state.executor = Some(executor);
            return true;
        }
        false
    }
}

impl Wake for DriverWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let executor = {
            let mut state = self.lock();
            state.is_woken = true;
            state.executor.take()
        };
        if let Some(executor) = executor {
            executor.wake();
        }
    }
}

/// A guard that counts as a running task until it is dropped.
struct TaskCounter(watch::Sender<usize>);

impl Drop for TaskCounter {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

impl Tasks {
    /// Creates an empty set of tasks, which `spawn` runs if it is set.
    pub(super) fn new(spawn: Option<SpawnFn>) -> Self {
        Self {
            queue: Mutex::default(),
            driver_waker: Arc::default(),
            running_count: watch::Sender::new(0),
            spawn_fn: spawn,
        }
    }

    fn lock(&self) -> MutexGuard<'_, DriverQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a task that must end before the connection ends. A panic affects only this task.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.running_count.send_modify(|running| *running += 1);
        let running = TaskCounter(self.running_count.clone());
        self.spawn_detached(async move {
            let _running = running;
            task.await;
        });
    }

    /// Starts a task that the end of the connection does not wait for. A panic affects only this task.
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
        drop(queue);
        self.driver_waker.wake_by_ref();
    }

    /// Returns the tasks that were started since the last call.
    fn take_new_tasks(&self) -> Vec<DriverFuture> {
        std::mem::take(&mut self.lock().new_tasks)
    }

    /// Waits until all tasks have ended, except for detached ones.
    pub(super) async fn wait(&self) {
        let mut running = self.running_count.subscribe();
        // This cannot fail, because `self` holds the sender.
        let _ = running.wait_for(|running| *running == 0).await;
    }

    /// Closes the queue, because the driver has ended.
    fn close(&self) {
        self.lock().is_closed = true;
        // Release the lock first: dropping tasks can start others.
        drop(self.take_new_tasks());
    }
}

/// Sleeps for `time`. Uses tokio's timer in a tokio runtime, so that tests can pause it, and the timer thread of
/// `futures-timer` elsewhere.
async fn sleep(time: Duration) {
    if tokio::runtime::Handle::try_current().is_ok() {
        tokio::time::sleep(time).await;
    } else {
        futures_timer::Delay::new(time).await;
    }
}

/// Returns the result of `work`, or `None` if `work` takes longer than `time`.
pub(crate) async fn timeout<T>(time: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = sleep(time) => None,
    }
}
