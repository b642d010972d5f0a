//! The outcome of one check.

use std::time::Duration;

use super::check::Check;
use super::transcript::Transcript;
use super::verdict::Verdict;

/// A completed check, with its verdict and the messages that led to it.
#[derive(Debug)]
pub struct CheckOutcome {
    /// The check that was run.
    pub check: Check,
    /// The verdict: whether the requirement is met.
    pub verdict: Verdict,
    /// The messages sent and received in the check.
    pub transcript: Transcript,
    /// How long the check took.
    pub duration: Duration,
}
