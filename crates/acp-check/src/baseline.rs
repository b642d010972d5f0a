//! The baseline: failures that are expected. With it, a suite can be used before everything is fixed, and what is
//! fixed cannot break again unnoticed.

use super::check::Check;
use super::outcome::CheckOutcome;
use super::verdict::Verdict;

/// Reads the ids of the checks that are expected to fail: one a line, and `#` starts a comment.
#[must_use]
pub fn read(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| {
        let line = line.split('#').next().unwrap_or_default();
        line.trim().to_owned()
    });
    lines.filter(|line| !line.is_empty()).collect()
}

/// Returns what does not match the baseline: a check that is expected to fail and no longer does, or that does not
/// exist. `known` are all checks; `outcomes` are those that were run.
#[must_use]
pub fn unexpected_results(
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
