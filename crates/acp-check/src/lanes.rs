//! Runs checks in lanes: several at a time, and within a lane one after another.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::check::{Check, ProcessUse};
use super::outcome::CheckRun;
use super::verdict::CheckStop;

/// The maximum number of events that wait to be handled.
const MAX_WAITING_EVENTS: usize = 64;

/// Runs checks, one after another.
pub(super) trait CheckLane: Send + 'static {
    /// Runs a check.
    fn run(&mut self, check: Check) -> impl Future<Output = CheckRun> + Send;

    /// Ends what the lane has kept for further checks.
    fn finish(self) -> impl Future<Output = ()> + Send;
}

/// A lane whose checks have nothing in common.
pub(super) struct SeparateChecks<F>(pub(super) F);

impl<F, Fut> CheckLane for SeparateChecks<F>
where
    F: Fn(Check) -> Fut + Send + 'static,
    Fut: Future<Output = CheckRun> + Send + 'static,
{
    fn run(&mut self, check: Check) -> impl Future<Output = CheckRun> + Send {
        let running = (self.0)(check);
        async move {
            let run = catch_panic(running).await;
            run.unwrap_or_else(|| CheckRun::broken(INTERNAL_ERROR))
        }
    }

    async fn finish(self) {}
}

/// The reason for a check that panicked.
pub(super) const INTERNAL_ERROR: &str = "internal error in the check; please report it";

/// Runs a part of a check. Returns `None` if it panics. Dropping the future ends the part.
pub(super) async fn catch_panic<T: Send + 'static>(
    part: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let mut task = JoinSet::new();
    task.spawn(part);
    task.join_next().await.and_then(Result::ok)
}

/// Waits for the result of a check, and fails the check if it takes longer than `limit`.
pub(super) async fn limit_time(
    limit: Duration,
    running: impl Future<Output = Result<(), CheckStop>>,
) -> Result<(), CheckStop> {
    match tokio::time::timeout(limit, running).await {
        Ok(stopped) => stopped,
        Err(_) => Err(CheckStop::Fail(format!(
            "the check timed out after {limit:?}"
        ))),
    }
}

/// Something that a lane reports about a check, which is identified by its index.
pub(super) enum LaneEvent {
    Started(usize),
    Finished(usize, Box<CheckRun>, Duration),
}

/// Runs all checks that have their own code in `lanes` lanes, and calls `handle` with each event.
///
/// Checks that share an agent come first, so that the lanes keep their agents until they need them no longer.
/// Otherwise, checks start in order. If `stop` is cancelled, the checks that are running end without a result.
pub(super) async fn run_in_lanes<L: CheckLane>(
    checks: &[Check],
    lanes: usize,
    stop: &CancellationToken,
    new_lane: impl Fn() -> L,
    mut handle: impl FnMut(LaneEvent),
) {
    let mut queue: Vec<(usize, Check)> = checks.iter().copied().enumerate().collect();
    queue.retain(|(_, check)| !check.judges_others());
    queue.sort_by_key(|(_, check)| match check.process_use {
        ProcessUse::Shared => 0,
        ProcessUse::SharedLast => 1,
        ProcessUse::Fresh(_) => 2,
    });
    let lanes = lanes.clamp(1, queue.len().max(1));
    let queue = Arc::new(Mutex::new(VecDeque::from(queue)));
    let (events, mut received) = mpsc::channel(MAX_WAITING_EVENTS);
    let mut running = JoinSet::new();
    for _ in 0..lanes {
        let mut lane = new_lane();
        let (queue, events) = (Arc::clone(&queue), events.clone());
        running.spawn(async move {
            while let Some((index, check)) = next_check(&queue) {
                let began = Instant::now();
                // If nobody receives events, the checks are being stopped.
                if events.send(LaneEvent::Started(index)).await.is_err() {
                    break;
                }
                let run = lane.run(check).await;
                let done = LaneEvent::Finished(index, Box::new(run), began.elapsed());
                if events.send(done).await.is_err() {
                    break;
                }
            }
            lane.finish().await;
        });
    }
    drop(events);
    let all = async {
        while let Some(event) = received.recv().await {
            handle(event);
        }
        while running.join_next().await.is_some() {}
    };
    // What is still running ends when it is dropped.
    stop.run_until_cancelled(all).await;
}

fn next_check(queue: &Mutex<VecDeque<(usize, Check)>>) -> Option<(usize, Check)> {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    queue.pop_front()
}
