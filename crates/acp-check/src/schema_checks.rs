//! Checks of shapes: every message of every check is judged by the schema.

use std::time::Duration;

use acp_wire::{MethodKind, Sender};

use acp_rules::schema::{Schema, Version};
use acp_rules::{Level, Side};

use super::check::{Check, Play};
use super::outcome::Outcome;
use super::shaped::Shaped;
use super::transcript::Transcript;
use super::verdict::Verdict;
use super::wire::Judged;

/// The page: the schema.
const PAGE: &str = "schema";

/// One check for each shape that a side sends: what it asks, what it answers, each kind of update, and errors.
/// They go by the names of their shapes, in the order of the method table, then of the kinds of updates.
pub(super) fn checks(version: Version, side: Side) -> Vec<Check> {
    let schema = Schema::of(version);
    let mut shapes = vec![
        Shaped {
            shape: "JSON-RPC",
            variant: None,
        },
        Shaped {
            shape: "Error",
            variant: None,
        },
    ];
    let mut add = |shape| {
        let shaped = Shaped {
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
            shapes.push(Shaped {
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
            page: PAGE,
            number: 0,
            level: Level::Must,
            requirement: requirement(shaped),
            play: Play::Shape(shaped),
        })
        .collect()
}

fn requirement(shaped: Shaped) -> &'static str {
    match shaped.shape {
        "JSON-RPC" => {
            "Every line is a message of JSON-RPC 2.0, of a method that there is or whose name begins with `_`."
        }
        "Error" => "Every error has a code and a message.",
        _ => "Every message of this kind has the shape that the schema gives it.",
    }
}

/// The verdict on a shape, by all that was seen.
pub(super) fn judge(check: Check, shaped: Shaped, judged: &Judged) -> Outcome {
    let (seen, faults) = judged.of(shaped);
    let mut transcript = Transcript::default();
    let verdict = match faults.first() {
        Some((first, _)) => {
            for (fault, text) in faults {
                transcript.event(format!("{fault}; {text}"));
            }
            Verdict::Fail(first.to_string())
        }
        None if seen == 0 => Verdict::Skip("no message of this kind was seen".to_owned()),
        None => Verdict::Pass,
    };
    Outcome {
        check,
        verdict,
        transcript,
        took: Duration::ZERO,
    }
}
