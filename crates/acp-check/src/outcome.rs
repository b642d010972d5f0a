//! The outcome of one check.

use std::time::Duration;

use super::check::Check;
use super::schema_results::SchemaResults;
use super::transcript::Transcript;
use super::verdict::{CheckStop, Verdict};

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
    /// The result that the check had with an agent that had run other checks before, if a new agent got another one.
    /// The agent probably keeps something between sessions.
    pub shared_result: Option<String>,
}

/// Something that happens while checks run.
#[derive(Debug, Clone, Copy)]
pub enum CheckEvent<'a> {
    /// A check has started.
    Started(&'a Check),
    /// A check has ended.
    Finished(&'a CheckOutcome),
}

/// What running a check has produced, before it is judged.
pub(super) struct CheckRun {
    pub(super) stopped: Result<(), CheckStop>,
    pub(super) transcript: Transcript,
    pub(super) schema_results: SchemaResults,
    pub(super) shared_result: Option<String>,
}

impl CheckRun {
    pub(super) fn new(stopped: Result<(), CheckStop>, transcript: Transcript) -> Self {
        Self {
            stopped,
            transcript,
            schema_results: SchemaResults::default(),
            shared_result: None,
        }
    }

    /// Creates the result of a check that could not run, because the suite failed.
    pub(super) fn broken(why: impl Into<String>) -> Self {
        let stopped = Err(CheckStop::Harness(why.into()));
        Self::new(stopped, Transcript::default())
    }
}
