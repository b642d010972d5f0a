//! What the messages of a check say about the schema and the rules.

use std::collections::BTreeMap;

use acp_rules::schema::{SchemaFault, SchemaFaultKind};

use super::checked_shape::CheckedShape;
use super::watch::RuleViolations;

/// The maximum number of faults to store for each shape. A single one is enough to fail a check.
pub(super) const MAX_FAULTS: usize = 8;

/// The results of checking received messages against the schema and the rules.
#[derive(Debug, Clone, Default)]
pub(super) struct SchemaResults {
    /// The number of received messages of each shape.
    pub(super) shape_counts: BTreeMap<ShapeKey, usize>,
    /// The faults found in messages of each shape, each with the faulty message.
    pub(super) faults: BTreeMap<ShapeKey, Vec<(SchemaFault, String)>>,
    /// The violations of protocol rules.
    pub(super) violations: RuleViolations,
}

/// A shape, with the value of its tag if it is one of several variants.
pub(super) type ShapeKey = (String, Option<String>);

impl SchemaResults {
    pub(super) fn add_noise(&mut self, why: String) {
        let shape = ("JSON-RPC".to_owned(), None);
        *self.shape_counts.entry(shape.clone()).or_default() += 1;
        let fault = SchemaFault {
            path: String::new(),
            kind: SchemaFaultKind::Envelope("the line is not valid JSON".to_owned()),
        };
        let kept = self.faults.entry(shape).or_default();
        if kept.len() < MAX_FAULTS {
            kept.push((fault, why));
        }
    }

    /// Adds the results from another check, whose id is `of`.
    pub(super) fn merge(&mut self, of: &str, other: Self) {
        self.violations.merge(of, other.violations);
        for (shape, count) in other.shape_counts {
            *self.shape_counts.entry(shape).or_default() += count;
        }
        for (shape, faults) in other.faults {
            let kept = self.faults.entry(shape).or_default();
            for (fault, text) in faults {
                if kept.len() < MAX_FAULTS {
                    kept.push((fault, format!("in {of}: {text}")));
                }
            }
        }
    }

    /// Returns the number of messages with this shape, and their faults.
    pub(super) fn results_for(&self, shaped: CheckedShape) -> (usize, &[(SchemaFault, String)]) {
        let key = (shaped.shape.to_owned(), shaped.variant.map(str::to_owned));
        let faults = self.faults.get(&key).map(Vec::as_slice).unwrap_or_default();
        (
            self.shape_counts.get(&key).copied().unwrap_or_default(),
            faults,
        )
    }
}
