//! Runs checks in lanes: several at a time, and within a lane one after another.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::check::{Check, ProcessUse};
use super::earlier_run::EarlierRun;
use super::outcome::CheckRun;
use super::verdict::CheckStop;

/// The maximum number of events that wait to be handled.
const MAX_WAITING_EVENTS: usize = 64;

/// Runs checks, one after another.
pub(super) trait CheckLane: Send + 'static {
    /// Runs a check. `earlier` is its run before, if it is repeated.
    fn run(
        &mut self,
        check: Check,
        earlier: Option<EarlierRun>,
    ) -> impl Future<Output = LaneRun> + Send;

    /// Ends what the lane has kept for further checks.
    fn finish(self) -> impl Future<Output = ()> + Send;
}

/// How a lane has run a check.
pub(super) enum LaneRun {
    /// The result counts.
    Finished(Box<CheckRun>),
    /// The check is to be repeated, when the others that share agents have been run.
    RepeatLater(EarlierRun),
}

impl LaneRun {
    pub(super) fn finished(run: CheckRun) -> Self {
        Self::Finished(Box::new(run))
    }
}

/// A lane whose checks have nothing in common.
pub(super) struct SeparateChecks<F>(pub(super) F);

impl<F, Fut> CheckLane for SeparateChecks<F>
where
    F: Fn(Check) -> Fut + Send + 'static,
    Fut: Future<Output = CheckRun> + Send + 'static,
{
    fn run(&mut self, check: Check, _: Option<EarlierRun>) -> impl Future<Output = LaneRun> + Send {
        let running = (self.0)(check);
        async move {
            let run = catch_panic(running).await;
            LaneRun::finished(run.unwrap_or_else(|| CheckRun::broken(INTERNAL_ERROR)))
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
/// If `stop` is cancelled, the checks that are running end without a result.
pub(super) async fn run_in_lanes<L: CheckLane>(
    checks: &[Check],
    lanes: usize,
    stop: &CancellationToken,
    new_lane: impl Fn() -> L,
    mut handle: impl FnMut(LaneEvent),
) {
    let queue = CheckQueue::new(checks);
    let lanes = lanes.clamp(1, queue.len().max(1));
    let queue = Arc::new(Mutex::new(queue));
    let (events, mut received) = mpsc::channel(MAX_WAITING_EVENTS);
    let mut running = JoinSet::new();
    for _ in 0..lanes {
        let mut lane = new_lane();
        let (queue, events) = (Arc::clone(&queue), events.clone());
        running.spawn(async move {
            while let Some(mut queued) = next_check(&queue) {
                let began = Instant::now();
                let earlier = queued.earlier.take();
                // If nobody receives events, the checks are being stopped.
                if earlier.is_none() && events.send(LaneEvent::Started(queued.index)).await.is_err()
                {
                    break;
                }
                let run = lane.run(queued.check, earlier).await;
                queued.duration += began.elapsed();
                match run {
                    LaneRun::Finished(run) => {
                        let done = LaneEvent::Finished(queued.index, run, queued.duration);
                        if events.send(done).await.is_err() {
                            break;
                        }
                    }
                    LaneRun::RepeatLater(earlier) => {
                        queued.earlier = Some(earlier);
                        lock(&queue).add(queued);
                    }
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

/// A check that waits to be run.
struct QueuedCheck {
    index: usize,
    check: Check,
    /// The run before, if the check is repeated.
    earlier: Option<EarlierRun>,
    /// How long the run before took.
    duration: Duration,
}

impl QueuedCheck {
    /// Returns when the check has its turn. The lanes keep their agents until they need them no longer, and what might
    /// confuse an agent comes after other checks.
    fn priority(&self) -> usize {
        match (self.check.process_use, &self.earlier) {
            (ProcessUse::Shared, None) => 0,
            (ProcessUse::Shared, Some(_)) => 1,
            (ProcessUse::SharedLast, None) => 2,
            (ProcessUse::SharedLast, Some(_)) => 3,
            (ProcessUse::Fresh(_), _) => 4,
        }
    }
}

/// The checks that wait to be run. Those that share an agent come first. Otherwise, checks start in order.
struct CheckQueue {
    /// The checks by priority.
    waiting: [VecDeque<QueuedCheck>; 5],
}

impl CheckQueue {
    /// Contains the checks that have their own code.
    fn new(checks: &[Check]) -> Self {
        let mut queue = Self {
            waiting: Default::default(),
        };
        for (index, check) in checks.iter().enumerate() {
            if !check.judges_others() {
                queue.add(QueuedCheck {
                    index,
                    check: *check,
                    earlier: None,
                    duration: Duration::ZERO,
                });
            }
        }
        queue
    }

    fn len(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }

    fn add(&mut self, queued: QueuedCheck) {
        self.waiting[queued.priority()].push_back(queued);
    }

    fn next(&mut self) -> Option<QueuedCheck> {
        self.waiting.iter_mut().find_map(VecDeque::pop_front)
    }
}

fn next_check(queue: &Mutex<CheckQueue>) -> Option<QueuedCheck> {
    lock(queue).next()
}

fn lock(queue: &Mutex<CheckQueue>) -> MutexGuard<'_, CheckQueue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
