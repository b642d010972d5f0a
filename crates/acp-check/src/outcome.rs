//! The outcome of one check.

use std::time::Duration;

use super::check::Check;
use super::transcript::Transcript;
use super::verdict::Verdict;

/// The outcome of one check.
#[derive(Debug)]
pub struct CheckOutcome {
    /// The check.
    pub check: Check,
    /// Its verdict.
    pub verdict: Verdict,
    /// The messages of the check.
    pub transcript: Transcript,
    /// How long it took.
    pub took: Duration,
}
