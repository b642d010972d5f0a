//! The run of a check whose result does not count.

use super::outcome::CheckRun;
use super::verdict::{CheckStop, truncate};

/// The maximum length of a result in the note about a repetition, in characters.
const MAX_NOTE_LEN: usize = 300;

/// The result of a check with an agent that had run other checks. It could be the work of one of them, so the check is
/// repeated.
pub(super) struct EarlierRun {
    /// The number of checks that the agent had run before.
    check_count: usize,
    pub(super) result: String,
    has_failed: bool,
}

impl EarlierRun {
    pub(super) fn new(check_count: usize, run: &CheckRun) -> Self {
        Self {
            check_count,
            result: describe(run),
            has_failed: has_failed(run),
        }
    }

    /// Returns the note at the beginning of the repetition's transcript.
    pub(super) fn note(&self) -> String {
        let Self {
            check_count: count,
            result,
            ..
        } = self;
        let s = if *count == 1 { "" } else { "s" };
        format!(
            "the check is repeated with another agent; with one that had run {count} other check{s}, the result was: {result}"
        )
    }

    /// Returns `true` if the check failed, and does not fail in this repetition.
    pub(super) fn is_refuted_by(&self, run: &CheckRun) -> bool {
        self.has_failed && !has_failed(run)
    }

    /// Returns `true` if the check was skipped for the same reason in this repetition.
    pub(super) fn is_same_skip(&self, run: &CheckRun) -> bool {
        matches!(run.stopped, Err(CheckStop::Skip(_))) && describe(run) == self.result
    }
}

fn has_failed(run: &CheckRun) -> bool {
    matches!(run.stopped, Err(CheckStop::Fail(_) | CheckStop::Harness(_)))
}

/// Describes a result that may have to be repeated.
fn describe(run: &CheckRun) -> String {
    let faults = run.schema_results.faults.values().flatten();
    let mut faults = faults.map(|(fault, _)| fault.to_string());
    let mut violations = run.schema_results.violations.rules.iter();
    let what = match &run.stopped {
        Err(CheckStop::Fail(why)) => format!("fail: {why}"),
        Err(CheckStop::Harness(why)) => format!("error: {why}"),
        Err(CheckStop::Skip(why)) => format!("skip: {why}"),
        Ok(()) => match (faults.next(), violations.next()) {
            (Some(fault), _) => format!("fault in a message: {fault}"),
            (None, Some((finding, _))) => finding.to_string(),
            (None, None) => "pass".to_owned(),
        },
    };
    truncate(&what, MAX_NOTE_LEN)
}
