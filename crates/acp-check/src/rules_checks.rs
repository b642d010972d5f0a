//! Checks that a program followed the protocol rules in all other checks.

use std::time::Duration;

use acp_rules::schema::SchemaVersion;
use acp_rules::{RequirementLevel, Side};

use super::check::{Check, CheckProcedure, ProcessUse};
use super::outcome::CheckOutcome;
use super::schema_results::SchemaResults;
use super::transcript::Transcript;
use super::verdict::Verdict;

/// Returns the check that a side follows the mandatory rules.
pub(super) fn rules_check(version: SchemaVersion, side: Side) -> Check {
    Check {
        version,
        side,
        page: "rules",
        number: match side {
            Side::Agent => 1,
            Side::Client => 101,
        },
        level: RequirementLevel::Must,
        requirement: "All messages follow the mandatory protocol rules.",
        process_use: ProcessUse::Fresh(""),
        required_capability: None,
        procedure: CheckProcedure::Rules,
    }
}

/// Checks that all messages seen in the other checks follow the rules.
pub(super) fn judge_rules(check: Check, judged: &SchemaResults) -> CheckOutcome {
    let mut transcript = Transcript::default();
    let broken = &judged.violations;
    let verdict = match broken.rules.first() {
        Some((first, _)) => {
            for (finding, text) in &broken.rules {
                transcript.push_event(format!("{finding}; {text}"));
            }
            Verdict::Fail(first.to_string())
        }
        None if broken.message_count == 0 => Verdict::Skip("no messages were seen".to_owned()),
        None => Verdict::Pass,
    };
    CheckOutcome {
        check,
        verdict,
        transcript,
        duration: Duration::ZERO,
        shared_result: None,
    }
}
