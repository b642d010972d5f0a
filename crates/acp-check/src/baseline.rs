//! The baseline: a list of checks that are expected to fail. It lets a program use the suite before all checks pass,
//! and still shows its author when a check that used to pass starts to fail.

use super::check::Check;
use super::outcome::CheckOutcome;
use super::verdict::Verdict;

/// Parses a baseline, which contains one check id per line. Comments start with `#`.
#[must_use]
pub fn parse_baseline(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| {
        let line = line.split('#').next().unwrap_or_default();
        line.trim().to_owned()
    });
    lines.filter(|line| !line.is_empty()).collect()
}

/// Returns the mistakes in the baseline: checks that are expected to fail but pass, and checks that do not exist.
/// `known` contains all checks, and `outcomes` those that were run.
#[must_use]
pub fn find_mismatches(
    expected: &[String],
    known: &[Check],
    outcomes: &[CheckOutcome],
) -> Vec<String> {
    let mut surprises = Vec::new();
    for id in expected {
        if !known.iter().any(|check| check.id() == *id) {
            surprises.push(format!("unknown check in the baseline: {id}"));
        }
        let passed = outcomes
            .iter()
            .any(|outcome| outcome.check.id() == *id && outcome.verdict == Verdict::Pass);
        if passed {
            surprises.push(format!(
                "{id} passes but is listed in the baseline; remove it"
            ));
        }
    }
    surprises
}
