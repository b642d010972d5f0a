//! How long is waited before a model is asked again.

use std::time::Duration;

/// How often a busy model is asked again, and how long is waited before that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often it is asked in all; at least once.
    pub tries: u32,
    /// How long is waited at most before the second time, twice as long before the third, and so on: half of it
    /// at least, and of the rest as much as chance has it. What the provider asks for goes before it.
    pub first: Duration,
    /// How long is waited at most. Where a provider asks for more, it is not asked again.
    pub longest: Duration,
}

impl Default for RetryPolicy {
    /// Four times; after 1, 2 and 4 seconds, or up to half of that less; a minute at most.
    fn default() -> Self {
        Self {
            tries: 4,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
        }
    }
}

/// How often a model was asked in a round, and how long to wait before it is asked again.
pub(super) struct Backoff {
    retries: RetryPolicy,
    /// How often it was asked.
    tries: u32,
    /// A number from 0 up to 1, another each time.
    chance: fn() -> f64,
}

/// What to do about a failure that may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryDecision {
    /// Ask again after this time.
    After(Duration),
    /// The provider wants to be left alone for this time, which is too long.
    TooLong(Duration),
    /// It was asked often enough.
    GiveUp,
}

impl Backoff {
    pub(super) fn new(retries: RetryPolicy) -> Self {
        Self {
            retries,
            tries: 0,
            chance: fastrand::f64,
        }
    }

    /// It is asked now.
    pub(super) fn begin_attempt(&mut self) {
        self.tries = self.tries.saturating_add(1);
    }

    /// Which try the next one is, and how many there are.
    pub(super) fn next(&self) -> (u32, u32) {
        (self.tries.saturating_add(1), self.retries.tries)
    }

    /// What to do now that it has failed; it may have said how long to wait.
    pub(super) fn wait(&self, asked_for: Option<Duration>) -> RetryDecision {
        if self.tries >= self.retries.tries {
            return RetryDecision::GiveUp;
        }
        match asked_for {
            Some(time) if time > self.retries.longest => RetryDecision::TooLong(time),
            Some(time) => RetryDecision::After(time),
            None => RetryDecision::After(self.default_delay()),
        }
    }

    /// Half of it for certain, and of the other half as much as chance has it: sessions that failed at the same
    /// moment must not come back at the same moment.
    fn default_delay(&self) -> Duration {
        let doubled = 2_u32.saturating_pow(self.tries.saturating_sub(1));
        let longest = self.retries.first.saturating_mul(doubled);
        let half = longest.min(self.retries.longest) / 2;
        half + half.mul_f64((self.chance)().clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(chance: fn() -> f64) -> Vec<RetryDecision> {
        let retries = RetryPolicy {
            tries: 5,
            first: Duration::from_secs(2),
            longest: Duration::from_secs(10),
        };
        let mut backoff = Backoff {
            chance,
            ..Backoff::new(retries)
        };
        let wait = |_| {
            backoff.begin_attempt();
            backoff.wait(None)
        };
        (0..5).map(wait).collect()
    }

    #[test]
    fn each_wait_is_twice_as_long_and_left_to_chance_by_half() {
        let seconds = |waits: [f64; 4]| {
            let waits = waits.map(|wait| RetryDecision::After(Duration::from_secs_f64(wait)));
            waits
                .into_iter()
                .chain([RetryDecision::GiveUp])
                .collect::<Vec<_>>()
        };
        assert_eq!(waits(|| 0.0), seconds([1.0, 2.0, 4.0, 5.0]));
        assert_eq!(waits(|| 0.5), seconds([1.5, 3.0, 6.0, 7.5]));
        assert_eq!(waits(|| 1.0), seconds([2.0, 4.0, 8.0, 10.0]));
    }

    #[test]
    fn chance_is_not_always_the_same() {
        let first = waits(fastrand::f64);
        assert!((0..20).any(|_| waits(fastrand::f64) != first));
    }

    #[test]
    fn what_the_provider_asks_for_goes_before_it_exactly() {
        let retries = RetryPolicy::default();
        let mut backoff = Backoff::new(retries);
        backoff.begin_attempt();
        assert_eq!(backoff.next(), (2, retries.tries));
        let wait = |seconds| backoff.wait(Some(Duration::from_secs(seconds)));
        assert_eq!(wait(0), RetryDecision::After(Duration::ZERO));
        assert_eq!(wait(60), RetryDecision::After(Duration::from_secs(60)));
        assert_eq!(wait(61), RetryDecision::TooLong(Duration::from_secs(61)));
    }
}
