//! Mutants of version 1 clients, with one file for each page of the specification.

mod cancellation;
mod elicitation;
mod extensibility;
mod file_system;
mod initialization;
mod overview;
mod prompt_turn;
mod rules;
mod schema;
mod session_setup;
mod sessions;
mod terminals;
mod tool_calls;
mod transport;
mod updates;

use crate::mutants::both_client;
use crate::mutants::layer::Mutant;

/// Checks that the correct client skips because they apply only to clients without a certain feature. The minimal
/// client passes them.
pub(crate) const SKIPPED_CHECKS: &[&str] = &[
    "v1/file-system/112",
    "v1/file-system/113",
    "v1/terminals/113",
    "v1/elicitation/104",
];

pub(crate) fn mutants() -> Vec<Mutant> {
    let pages = [
        cancellation::mutants(),
        elicitation::mutants(),
        extensibility::mutants(),
        file_system::mutants(),
        initialization::mutants(),
        overview::mutants(),
        prompt_turn::mutants(),
        rules::mutants(),
        schema::mutants(),
        session_setup::mutants(),
        sessions::mutants(),
        terminals::mutants(),
        tool_calls::mutants(),
        transport::mutants(),
        updates::mutants(),
        both_client::mutants("v1"),
    ];
    pages.into_iter().flatten().collect()
}

/// Builds an unexpected request for a mutant to send to the agent.
fn method_call(method: &str, params: serde_json::Value) -> serde_json::Value {
    serde_json::json!({"jsonrpc": "2.0", "id": "too-much", "method": method, "params": params})
}
