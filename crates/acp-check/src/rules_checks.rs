//! The check of rules: what a program says in the other checks is judged by the rules of a conversation.

use std::time::Duration;

use acp_rules::schema::Version;
use acp_rules::{Level, Side};

use super::check::{Check, Play};
use super::outcome::Outcome;
use super::transcript::Transcript;
use super::verdict::Verdict;
use super::wire::Judged;

/// One check for each side: of the rules that are binding.
pub(super) fn check(version: Version, side: Side) -> Check {
    Check {
        version,
        side,
        page: "rules",
        number: match side {
            Side::Agent => 1,
            Side::Client => 101,
        },
        level: Level::Must,
        requirement: "What is said keeps to the rules of a conversation that are binding.",
        play: Play::Rules,
    }
}

/// The verdict, by all that was seen.
pub(super) fn judge(check: Check, judged: &Judged) -> Outcome {
    let mut transcript = Transcript::default();
    let broken = &judged.broken;
    let verdict = match broken.rules.first() {
        Some((first, _)) => {
            for (finding, text) in &broken.rules {
                transcript.event(format!("{finding}; {text}"));
            }
            Verdict::Fail(first.to_string())
        }
        None if broken.seen == 0 => Verdict::Skip("nothing was said".to_owned()),
        None => Verdict::Pass,
    };
    Outcome {
        check,
        verdict,
        transcript,
        took: Duration::ZERO,
    }
}
