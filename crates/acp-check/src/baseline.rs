//! Failures that are expected, so that a suite can be put into use before everything is mended, and nothing that is
//! mended breaks again unseen.

use super::check::Check;
use super::outcome::CheckOutcome;
use super::verdict::Verdict;

/// The ids of the checks that are expected to fail, from a file: one a line, `#` begins a comment.
#[must_use]
pub fn read(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| {
        let line = line.split('#').next().unwrap_or_default();
        line.trim().to_owned()
    });
    lines.filter(|line| !line.is_empty()).collect()
}

/// What of the expectations does not hold: a check that is expected to fail and does not any more, or that there is
/// not. `known` are all checks there are, of which `outcomes` are those that were carried out.
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
