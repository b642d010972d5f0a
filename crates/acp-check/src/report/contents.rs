//! What a report has in it, whichever way it is told.

use std::time::Duration;

use acp_rules::schema::SchemaVersion;
use acp_rules::{RequirementLevel, Side};

use crate::outcome::CheckOutcome;
use crate::verdict::Verdict;

/// A run of the suite.
#[derive(Debug)]
pub struct CheckReport {
    /// Which side was tested.
    pub side: Side,
    /// What was tested: its command line.
    pub program: String,
    /// How long it took in all.
    pub took: Duration,
    /// The versions that the program does not speak, whose checks were left out.
    pub not_spoken: Vec<SchemaVersion>,
    /// What came of each check.
    pub outcomes: Vec<CheckOutcome>,
    /// What does not fit the baseline, in words; nothing if there is none.
    pub surprises: Vec<String>,
    /// The ids of checks that are expected to fail.
    pub expected: Vec<String>,
}

/// How many checks came to what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckSummary {
    /// Requirements that are met.
    pub passed: usize,
    /// MUSTs that are not.
    pub failed: usize,
    /// SHOULDs and MAYs that are not.
    pub warned: usize,
    /// What could not be seen.
    pub skipped: usize,
    /// Failures of the suite itself.
    pub broken: usize,
}

impl CheckReport {
    /// How many checks came to what.
    #[must_use]
    pub fn summary(&self) -> CheckSummary {
        let mut summary = CheckSummary::default();
        for outcome in &self.outcomes {
            match outcome.verdict {
                Verdict::Pass => summary.passed += 1,
                Verdict::Fail(_) => summary.failed += 1,
                Verdict::Warn(_) => summary.warned += 1,
                Verdict::Skip(_) => summary.skipped += 1,
                Verdict::Harness(_) => summary.broken += 1,
            }
        }
        summary
    }

    /// Whether the program has passed: no MUST is violated but those that are expected to be, nothing that is
    /// expected is stale, and, if `strict`, no SHOULD is violated either.
    #[must_use]
    pub fn passed(&self, strict: bool) -> bool {
        let fails = |outcome: &CheckOutcome| match outcome.verdict {
            Verdict::Fail(_) => true,
            Verdict::Warn(_) => strict,
            _ => false,
        };
        self.surprises.is_empty()
            && self
                .outcomes
                .iter()
                .filter(|outcome| fails(outcome))
                .all(|outcome| self.is_expected(outcome))
    }

    pub(super) fn is_expected(&self, outcome: &CheckOutcome) -> bool {
        let id = outcome.check.id();
        self.expected.contains(&id)
    }

    /// The outcomes by version and page, in order.
    pub(super) fn pages(&self) -> Vec<(SchemaVersion, &'static str, Vec<&CheckOutcome>)> {
        let mut pages: Vec<(SchemaVersion, &'static str, Vec<&CheckOutcome>)> = Vec::new();
        for outcome in &self.outcomes {
            let (version, page) = (outcome.check.version, outcome.check.page);
            match pages
                .iter_mut()
                .find(|(v, p, _)| (*v, *p) == (version, page))
            {
                Some((_, _, outcomes)) => outcomes.push(outcome),
                None => pages.push((version, page, vec![outcome])),
            }
        }
        pages
    }
}

/// The page of the specification that a check is of. Version 2's are beside version 1's.
pub(super) fn address(version: SchemaVersion, page: &str) -> String {
    let base = "https://agentclientprotocol.com/protocol";
    // What has no page of its own.
    let page = match page {
        "transport" => "transports",
        other => other,
    };
    match version {
        SchemaVersion::V1 => format!("{base}/{page}"),
        SchemaVersion::V2 => format!("{base}/v2/{page}"),
    }
}

impl CheckSummary {
    pub(super) fn words(self, took: Duration) -> String {
        let Self {
            passed,
            failed,
            warned,
            skipped,
            broken,
        } = self;
        let all = passed + failed + warned + skipped + broken;
        let mut words = format!("{all} checks: {passed} passed, {failed} failed");
        for (count, what) in [(warned, "warned"), (skipped, "skipped"), (broken, "broken")] {
            if count > 0 {
                words += &format!(", {count} {what}");
            }
        }
        words + &format!(" in {:.1} s", took.as_secs_f64())
    }
}

/// How binding a requirement is, as wide as the widest.
pub(super) fn padded(level: RequirementLevel) -> String {
    format!("{:<6}", level.to_string())
}
