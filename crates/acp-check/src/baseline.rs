//! The baseline: a list of the checks that are expected to fail. With a baseline, a program can use the suite before it
//! passes every check, and its author notices when a check that passed starts to fail.

use super::check::Check;
use super::outcome::CheckOutcome;
use super::verdict::Verdict;

/// Parses a baseline: one check id per line, with comments that start with `#`.
#[must_use]
pub fn parse_baseline(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| {
        let line = line.split('#').next().unwrap_or_default();
        line.trim().to_owned()
    });
    lines.filter(|line| !line.is_empty()).collect()
}

/// Returns the entries of the baseline that are wrong: checks that are expected to fail but pass, and checks that do
/// not exist. `known` contains all checks, and `outcomes` contains the checks that were run.
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
