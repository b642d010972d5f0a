//! Checks that all messages seen in the other checks match the schema.

use std::time::Duration;

use acp_wire::{MethodKind, Sender};

use acp_rules::schema::{Schema, SchemaVersion};
use acp_rules::{RequirementLevel, Side};

use super::check::{Check, CheckProcedure, ProcessUse};
use super::checked_shape::CheckedShape;
use super::outcome::CheckOutcome;
use super::schema_results::SchemaResults;
use super::transcript::Transcript;
use super::verdict::Verdict;

/// The page name under which schema checks are listed.
const PAGE_NAME: &str = "schema";

/// Returns one check for each shape that a side sends: request params, results, each type of update, and errors. Checks
/// are named after shapes. Those in the method table come first, followed by the update types.
pub(super) fn schema_checks(version: SchemaVersion, side: Side) -> Vec<Check> {
    let schema = Schema::for_version(version);
    let mut shapes = vec![
        CheckedShape {
            shape: "JSON-RPC",
            variant: None,
        },
        CheckedShape {
            shape: "Error",
            variant: None,
        },
    ];
    let mut add = |shape| {
        let shaped = CheckedShape {
            shape,
            variant: None,
        };
        if !shapes.contains(&shaped) {
            shapes.push(shaped);
        }
    };
    for method in schema
        .methods()
        .iter()
        .filter(|method| method.unstable.is_none())
    {
        let sends = match method.sender {
            Sender::Agent => side == Side::Agent,
            Sender::Client => side == Side::Client,
            Sender::Either => true,
        };
        if sends && method.name != "session/update" {
            add(method.params);
        }
        if let Some(result) = method
            .result
            .filter(|_| !sends && method.kind == MethodKind::Request)
        {
            add(result);
        }
    }
    if side == Side::Agent {
        for variant in schema.variants("SessionUpdate") {
            shapes.push(CheckedShape {
                shape: "SessionUpdate",
                variant: Some(variant),
            });
        }
    }
    shapes
        .into_iter()
        .map(|shaped| Check {
            version,
            side,
            page: PAGE_NAME,
            number: 0,
            level: RequirementLevel::Must,
            requirement: requirement(shaped),
            process_use: ProcessUse::Fresh(""),
            required_capability: None,
            procedure: CheckProcedure::Shape(shaped),
        })
        .collect()
}

fn requirement(shaped: CheckedShape) -> &'static str {
    match shaped.shape {
        "JSON-RPC" => {
            "Every line is a JSON-RPC 2.0 message with a known method or a method that starts with `_`."
        }
        "Error" => "Every error has a code and a message.",
        _ => "Every message of this kind matches the schema.",
    }
}

/// Judges one shape, based on all messages seen in the other checks.
pub(super) fn judge_shape(
    check: Check,
    shaped: CheckedShape,
    judged: &SchemaResults,
) -> CheckOutcome {
    let (seen, faults) = judged.results_for(shaped);
    let mut transcript = Transcript::default();
    let verdict = match faults.first() {
        Some((first, _)) => {
            for (fault, text) in faults {
                transcript.push_event(format!("{fault}; {text}"));
            }
            Verdict::Fail(first.to_string())
        }
        None if seen == 0 => Verdict::Skip("no message of this kind was seen".to_owned()),
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
