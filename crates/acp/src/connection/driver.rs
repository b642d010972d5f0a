//! What moves a connection: a future that reads, writes and works on what the peer asks.
//!
//! Nothing of a connection runs anywhere else, so the library needs no runtime of a kind: whoever polls the driver
//! decides on which thread and executor it all happens. [`Options::spawn_work`](crate::Options::spawn_work) takes the
//! work on requests, and writing, out of the driver onto an executor.
//!
//! Each part is polled only when it was woken: they are in a `FuturesUnordered`.

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

/// A future without a result, on the heap.
pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts a task on an executor.
pub(crate) type Spawn = Arc<dyn Fn(Task) + Send + Sync>;

/// What moves a connection: reading, writing, and the work on what the peer asks. Nothing happens unless it is polled.
/// It ends when the connection has, and gives the reason.
///
/// Spawn it, or [`run`](Self::run) something beside it. Dropping it ends the connection at once: requests that wait
/// fail, work is dropped, and what was not written yet is lost.
#[must_use = "nothing happens on a connection unless its driver is polled"]
pub struct Driver {
    conn: Connection,
    parts: FuturesUnordered<Pin<Box<dyn Future<Output = Option<CloseReason>> + Send>>>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Driver {
    /// `life` is the connection's from its first byte to its last.
    pub(super) fn new(
        conn: Connection,
        life: impl Future<Output = CloseReason> + Send + 'static,
    ) -> Self {
        let parts = FuturesUnordered::new();
        let life: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(life.map(Some));
        parts.push(life);
        Self { conn, parts }
    }

    /// Drives the connection while `work` runs, then closes it, and drives it to its end: what was sent is still
    /// written, for two seconds at most.
    ///
    /// ```
    /// # use acp::testing::{Nobody, OnPrompt};
    /// # async fn example(transport: acp::Transport) -> acp::Result<()> {
    /// let (handshake, driver) = acp::client::connect(transport, Nobody);
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
            // What waits for the connection has failed with it.
            Either::Right((_, work)) => work.await,
        }
    }

    /// Takes in what was begun since. Whoever begins something from here on wakes `waker`.
    fn take_new(&self, waker: &Waker) {
        let mut queue = self.conn.0.tasks.lock();
        for task in queue.new.drain(..) {
            self.parts.push(Box::pin(task.map(|()| None)));
        }
        match &mut queue.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }
}

impl Future for Driver {
    type Output = CloseReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CloseReason> {
        loop {
            self.take_new(cx.waker());
            match self.parts.poll_next_unpin(cx) {
                Poll::Ready(Some(None)) => {}
                Poll::Ready(Some(Some(reason))) => {
                    self.parts.clear();
                    self.conn.0.tasks.end();
                    return Poll::Ready(reason);
                }
                // Its life has ended before: it was polled again.
                Poll::Ready(None) => return Poll::Ready(CloseReason::Local),
                Poll::Pending if self.conn.0.tasks.lock().new.is_empty() => return Poll::Pending,
                Poll::Pending => {}
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // First, or what is dropped below would begin something that nobody does.
        self.conn.0.tasks.end();
    }
}

/// What is done beside reading: writing, and the work on requests.
pub(crate) struct Tasks {
    queue: Mutex<Queue>,
    /// How many there are that the end of the connection waits for.
    running: watch::Sender<usize>,
    spawn: Option<Spawn>,
}

#[derive(Default)]
struct Queue {
    /// For the driver to take.
    new: Vec<Task>,
    /// Wakes the driver.
    waker: Option<Waker>,
    /// The driver is gone.
    ended: bool,
}

/// One of those that are waited for.
struct Running(watch::Sender<usize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

impl Tasks {
    pub(super) fn new(spawn: Option<Spawn>) -> Self {
        Self {
            queue: Mutex::default(),
            running: watch::Sender::new(0),
            spawn,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins something that the end of the connection waits for. If it panics, it ends alone.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.running.send_modify(|running| *running += 1);
        let running = Running(self.running.clone());
        self.begin(async move {
            let _running = running;
            task.await;
        });
    }

    /// Begins something that nobody waits for.
    pub(super) fn begin(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(spawn) = &self.spawn {
            return spawn(Box::pin(task));
        }
        let task = AssertUnwindSafe(task).catch_unwind().map(|done| {
            if done.is_err() {
                tracing::error!(
                    "the work on a request panicked; the connection goes on without it"
                );
            }
        });
        let mut queue = self.lock();
        if queue.ended {
            // Dropped when the lock is free: it may begin something itself.
            drop(queue);
            return;
        }
        queue.new.push(Box::pin(task));
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits until all that is waited for has ended.
    pub(super) async fn wait(&self) {
        let mut running = self.running.subscribe();
        // It cannot fail: the sender is here.
        let _ = running.wait_for(|running| *running == 0).await;
    }

    /// There is no driver any more.
    fn end(&self) {
        let left = {
            let mut queue = self.lock();
            queue.ended = true;
            queue.waker = None;
            std::mem::take(&mut queue.new)
        };
        drop(left);
    }
}

/// Waits so long: by tokio's clock where there is one, else by a thread that keeps time for the whole process.
pub(super) async fn sleep(time: Duration) {
    if tokio::runtime::Handle::try_current().is_ok() {
        tokio::time::sleep(time).await;
    } else {
        futures_timer::Delay::new(time).await;
    }
}

/// What `work` gives; `None` if it takes longer than this.
pub(super) async fn timeout<T>(time: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = sleep(time) => None,
    }
}
