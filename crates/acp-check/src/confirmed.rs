//! What has been seen with an agent that ran no other check before.

use std::collections::{HashMap, HashSet};
use std::mem::Discriminant;

use serde_json::Value;

use acp_rules::schema::{SchemaFaultKind, SchemaVersion};

use super::capability::{capability_pointer, require_capability};
use super::check::Check;
use super::outcome::CheckRun;
use super::schema_results::{SchemaResults, ShapeKey};
use super::verdict::CheckStop;

/// Reasons for skipping checks, schema faults and violated rules that were seen with a new agent. A reason for skipping a
/// check also counts if two agents gave it, and one of them had only run checks that were skipped.
///
/// A result with a shared agent counts only if it could not be the work of an earlier check. If it contains nothing but
/// what a new agent has shown, too, it need not be repeated. Without this, an agent with a fault in every session would
/// be started for every check.
#[derive(Debug, Default)]
pub(super) struct ConfirmedResults {
    skips: HashSet<(SchemaVersion, String)>,
    faults: HashSet<(
        SchemaVersion,
        ShapeKey,
        String,
        Discriminant<SchemaFaultKind>,
    )>,
    rules: HashSet<(SchemaVersion, &'static str)>,
    /// What the agent has answered to `initialize`.
    initialize_responses: HashMap<SchemaVersion, Value>,
}

impl ConfirmedResults {
    /// Adds a new agent's response to the usual `initialize`.
    pub(super) fn add_initialize_response(&mut self, version: SchemaVersion, response: &Value) {
        let responses = &mut self.initialize_responses;
        responses.entry(version).or_insert_with(|| response.clone());
    }

    /// Requires the capability that a check needs, as far as the agent's capabilities are known. An agent takes seconds
    /// to start, and a check that is skipped needs none.
    ///
    /// # Errors
    /// The check is skipped if the agent does not support the capability.
    pub(super) fn require_capability(&self, check: &Check) -> Result<(), CheckStop> {
        let response = self.initialize_responses.get(&check.version);
        match (check.required_capability, response) {
            (Some(name), Some(response)) => {
                require_capability(response, &capability_pointer(check.version, name))
            }
            _ => Ok(()),
        }
    }

    /// Adds the result of a check with a new agent.
    pub(super) fn add(&mut self, version: SchemaVersion, run: &CheckRun) {
        self.add_skip(version, run);
        self.faults.extend(fault_keys(version, &run.schema_results));
        let violations = run.schema_results.violations.rules.iter();
        self.rules
            .extend(violations.map(|(finding, _)| (version, finding.rule.name)));
    }

    /// Adds the reason for which a check was skipped, if it was.
    pub(super) fn add_skip(&mut self, version: SchemaVersion, run: &CheckRun) {
        if let Err(CheckStop::Skip(why)) = &run.stopped {
            self.skips.insert((version, why.clone()));
        }
    }

    /// Returns `true` if the result of a check with a shared agent counts. `has_sent` says whether the check sent
    /// anything: a check that was skipped without a message was skipped because of the agent's capabilities.
    pub(super) fn covers(&self, version: SchemaVersion, run: &CheckRun, has_sent: bool) -> bool {
        let is_expected = match &run.stopped {
            Ok(()) => true,
            Err(CheckStop::Skip(why)) => !has_sent || self.skips.contains(&(version, why.clone())),
            Err(_) => false,
        };
        let mut violations = run.schema_results.violations.rules.iter();
        is_expected
            && fault_keys(version, &run.schema_results).all(|key| self.faults.contains(&key))
            && violations.all(|(finding, _)| self.rules.contains(&(version, finding.rule.name)))
    }
}

/// Identifies the faults, regardless of the values in the messages.
fn fault_keys(
    version: SchemaVersion,
    results: &SchemaResults,
) -> impl Iterator<
    Item = (
        SchemaVersion,
        ShapeKey,
        String,
        Discriminant<SchemaFaultKind>,
    ),
> {
    let faults = results.faults.iter();
    faults.flat_map(move |(shape, faults)| {
        faults.iter().map(move |(fault, _)| {
            let kind = std::mem::discriminant(&fault.kind);
            (version, shape.clone(), fault.path.clone(), kind)
        })
    })
}
