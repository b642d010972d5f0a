//! Decides whether to retry a failed request to a model, and how long to wait first.

use std::time::Duration;

/// Limits how often a request is retried and how long to wait before each retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of attempts, including the first one. There is always at least one.
    pub tries: u32,
    /// The maximum wait before the second attempt. It doubles with each later attempt. The actual wait is random, but
    /// at least half of the maximum. If the provider asks for a specific wait, that is used instead.
    pub first_delay: Duration,
    /// The maximum wait. If the provider asks for a longer one, the request is not retried.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    /// Returns a policy of four attempts, with waits of up to 1, 2 and 4 seconds. A wait that the provider asks for can
    /// be up to a minute.
    fn default() -> Self {
        Self {
            tries: 4,
            first_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(60),
        }
    }
}

/// Counts the attempts in one round, and applies the retry policy.
pub(super) struct Backoff {
    retries: RetryPolicy,
    /// The number of attempts so far.
    tries: u32,
    /// A function that returns a random number from 0 up to, but not including, 1.
    random: fn() -> f64,
}

/// The decision on whether to retry after a possibly temporary failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryDecision {
    /// Retry after waiting this long.
    After(Duration),
    /// Give up, because the provider asks for a wait this long.
    TooLong(Duration),
    /// Give up, because all attempts have been made.
    GiveUp,
}

impl Backoff {
    pub(super) fn new(retries: RetryPolicy) -> Self {
        Self {
            retries,
            tries: 0,
            random: fastrand::f64,
        }
    }

    /// Records the start of another attempt.
    pub(super) fn begin_attempt(&mut self) {
        self.tries = self.tries.saturating_add(1);
    }

    /// Returns the number of the next attempt and the maximum number of attempts.
    pub(super) fn next_attempt(&self) -> (u32, u32) {
        (self.tries.saturating_add(1), self.retries.tries)
    }

    /// Decides what to do after a failure. `asked_for` is the wait that the provider asks for, if any.
    pub(super) fn decide_retry(&self, asked_for: Option<Duration>) -> RetryDecision {
        if self.tries >= self.retries.tries {
            return RetryDecision::GiveUp;
        }
        match asked_for {
            Some(time) if time > self.retries.max_delay => RetryDecision::TooLong(time),
            Some(time) => RetryDecision::After(time),
            None => RetryDecision::After(self.default_delay()),
        }
    }

    /// Returns a random wait, which is at least half of the current maximum. The wait is random so that sessions that
    /// failed together do not retry together.
    fn default_delay(&self) -> Duration {
        let doubled = 2_u32.saturating_pow(self.tries.saturating_sub(1));
        let longest = self.retries.first_delay.saturating_mul(doubled);
        let half = longest.min(self.retries.max_delay) / 2;
        half + half.mul_f64((self.random)().clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry_decisions(chance: fn() -> f64) -> Vec<RetryDecision> {
        let retries = RetryPolicy {
            tries: 5,
            first_delay: Duration::from_secs(2),
            max_delay: Duration::from_secs(10),
        };
        let mut backoff = Backoff {
            random: chance,
            ..Backoff::new(retries)
        };
        let wait = |_| {
            backoff.begin_attempt();
            backoff.decide_retry(None)
        };
        (0..5).map(wait).collect()
    }

    #[test]
    fn delay_doubles_with_half_jitter() {
        let seconds = |waits: [f64; 4]| {
            let waits = waits.map(|wait| RetryDecision::After(Duration::from_secs_f64(wait)));
            waits
                .into_iter()
                .chain([RetryDecision::GiveUp])
                .collect::<Vec<_>>()
        };
        assert_eq!(retry_decisions(|| 0.0), seconds([1.0, 2.0, 4.0, 5.0]));
        assert_eq!(retry_decisions(|| 0.5), seconds([1.5, 3.0, 6.0, 7.5]));
        assert_eq!(retry_decisions(|| 1.0), seconds([2.0, 4.0, 8.0, 10.0]));
    }

    #[test]
    fn jitter_varies() {
        let first = retry_decisions(fastrand::f64);
        assert!((0..20).any(|_| retry_decisions(fastrand::f64) != first));
    }

    #[test]
    fn provider_delay_takes_precedence() {
        let retries = RetryPolicy::default();
        let mut backoff = Backoff::new(retries);
        backoff.begin_attempt();
        assert_eq!(backoff.next_attempt(), (2, retries.tries));
        let wait = |seconds| backoff.decide_retry(Some(Duration::from_secs(seconds)));
        assert_eq!(wait(0), RetryDecision::After(Duration::ZERO));
        assert_eq!(wait(60), RetryDecision::After(Duration::from_secs(60)));
        assert_eq!(wait(61), RetryDecision::TooLong(Duration::from_secs(61)));
    }
}
