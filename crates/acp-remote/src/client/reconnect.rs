//! Determines when to retry reaching a server.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The first pause between attempts. Later pauses are longer, up to `MAX_DELAY`.
const INITIAL_DELAY: Duration = Duration::from_millis(50);
const MAX_DELAY: Duration = Duration::from_secs(5);

/// The pauses between attempts to reconnect, up to a deadline. The first attempt is made without a pause.
#[derive(Debug)]
pub(super) struct ReconnectBackoff {
    deadline: Instant,
    next: Duration,
}

impl ReconnectBackoff {
    pub(super) fn new(time: Duration) -> Self {
        Self {
            deadline: Instant::now() + time,
            next: Duration::ZERO,
        }
    }

    /// Waits until it is time for the next attempt. Returns `false` if the deadline has passed.
    pub(super) async fn wait(&mut self) -> bool {
        if Instant::now() >= self.deadline {
            return false;
        }
        // Random, so that the clients of a restarted server do not all reconnect at once.
        let pause = self.next.mul_f64(0.5 + fastrand::f64() / 2.0);
        let left = self.deadline.duration_since(Instant::now());
        sleep(pause.min(left)).await;
        self.next = (self.next * 2).clamp(INITIAL_DELAY, MAX_DELAY);
        true
    }
}
