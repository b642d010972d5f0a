//! The contents of a report, independent of its format.

use std::time::Duration;

use acp_rules::schema::SchemaVersion;
use acp_rules::{RequirementLevel, Side};

use crate::outcome::CheckOutcome;
use crate::verdict::Verdict;

/// The results of one run of the suite.
#[derive(Debug)]
pub struct CheckReport {
    /// The side that was tested: agent or client.
    pub side: Side,
    /// The command line of the program that was tested.
    pub program: String,
    /// How long the run took.
    pub duration: Duration,
    /// The versions that the program does not speak, whose checks were omitted.
    pub unsupported_versions: Vec<SchemaVersion>,
    /// The outcomes of all checks that were run.
    pub outcomes: Vec<CheckOutcome>,
    /// The number of checks that have no outcome, because the run was interrupted.
    pub unfinished_count: usize,
    /// Descriptions of all differences from the baseline. Empty if there is no baseline.
    pub mismatches: Vec<String>,
    /// The ids of the checks that are expected to fail.
    pub expected_failures: Vec<String>,
}

/// The number of checks with each verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckSummary {
    /// The number of checks that passed.
    pub passed: usize,
    /// The number of MUST requirements that were violated.
    pub failed: usize,
    /// The number of SHOULD and MAY requirements that were violated.
    pub warned: usize,
    /// The number of requirements that were not tested.
    pub skipped: usize,
    /// The number of checks that failed to complete because of an error in the suite.
    pub harness_errors: usize,
}

impl CheckReport {
    /// Counts the checks by verdict.
    #[must_use]
    pub fn summary(&self) -> CheckSummary {
        let mut summary = CheckSummary::default();
        for outcome in &self.outcomes {
            match outcome.verdict {
                Verdict::Pass => summary.passed += 1,
                Verdict::Fail(_) => summary.failed += 1,
                Verdict::Warn(_) => summary.warned += 1,
                Verdict::Skip(_) => summary.skipped += 1,
                Verdict::Harness(_) => summary.harness_errors += 1,
            }
        }
        summary
    }

    /// Returns `true` if the program has passed: all failures are expected, the baseline has no stale entries, and, if
    /// `strict` is set, all warnings are expected as well.
    #[must_use]
    pub fn has_passed(&self, strict: bool) -> bool {
        let fails = |outcome: &CheckOutcome| match outcome.verdict {
            Verdict::Fail(_) => true,
            Verdict::Warn(_) => strict,
            _ => false,
        };
        self.mismatches.is_empty()
            && self
                .outcomes
                .iter()
                .filter(|outcome| fails(outcome))
                .all(|outcome| self.is_expected(outcome))
    }

    /// Says how many checks have no outcome, if the run was interrupted.
    pub(super) fn interruption_note(&self) -> Option<String> {
        let count = self.unfinished_count;
        let checks = if count == 1 {
            "check has"
        } else {
            "checks have"
        };
        (count > 0).then(|| format!("Interrupted: {count} {checks} no result."))
    }
    pub(super) fn is_expected(&self, outcome: &CheckOutcome) -> bool {
        let id = outcome.check.id();
        self.expected_failures.contains(&id)
    }

    /// Groups the outcomes by page, in order.
    pub(super) fn pages(&self) -> Vec<(String, Vec<&CheckOutcome>)> {
        let mut pages: Vec<(String, Vec<&CheckOutcome>)> = Vec::new();
        for outcome in &self.outcomes {
            let page = outcome.check.page_id();
            match pages.iter_mut().find(|(each, _)| *each == page) {
                Some((_, outcomes)) => outcomes.push(outcome),
                None => pages.push((page, vec![outcome])),
            }
        }
        pages
    }
}

impl CheckSummary {
    pub(super) fn format_summary(self, took: Duration) -> String {
        let Self {
            passed,
            failed,
            warned,
            skipped,
            harness_errors: broken,
        } = self;
        let all = passed + failed + warned + skipped + broken;
        let s = if all == 1 { "" } else { "s" };
        let mut words = format!("{all} check{s}: {passed} passed, {failed} failed");
        for (count, what) in [(warned, "warned"), (skipped, "skipped"), (broken, "broken")] {
            if count > 0 {
                words += &format!(", {count} {what}");
            }
        }
        words + &format!(" in {:.1} s", took.as_secs_f64())
    }
}

/// Returns the level's name, padded to the width of the longest one.
pub(super) fn padded_level(level: RequirementLevel) -> String {
    format!("{:<6}", level.to_string())
}
