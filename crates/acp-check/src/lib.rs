//! A conformance suite for agents and clients of the Agent Client Protocol. Each check tests one requirement of the
//! specification and produces a verdict.
//!
//! Each check plays one side for the program under test ([`CheckTarget`]), and tests one requirement. [`agent_checks`]
//! returns the checks for agents, [`client_checks`] those for clients. [`run_checks`] runs them, and [`report`] formats
//! the results. The schema and the protocol rules are in `acp-rules`.
//!
//! The design and its reasons are in `docs/decisions/0013-who-is-wrong.md`.

mod agent_harness;
mod agent_harness_v2;
mod agent_lane;
pub mod baseline;
mod both;
mod capability;
mod check;
mod check_directory;
mod checked_shape;
mod client_harness;
mod client_harness_v2;
mod confirmed;
mod earlier_run;
pub mod host;
mod lanes;
mod open_items;
mod options;
mod outcome;
pub mod relay;
mod remote;
pub mod report;
mod reusable_agent;
mod rules_checks;
mod runner;
mod schema_checks;
mod schema_results;
mod target;
mod transcript;
mod turns;
mod v1;
mod v2;
mod verdict;
mod versions;
mod watch;
mod wire;
mod wire_input;

pub use acp_rules::schema::SchemaVersion;
pub use acp_rules::{RequirementLevel, Side};
pub use agent_harness::AgentHarness;
pub use agent_harness_v2::AcceptedPrompt;
pub use check::{Check, CheckFuture, CheckProcedure, ProcessUse};
pub use check_directory::CheckDirectory;
pub use checked_shape::CheckedShape;
pub use client_harness::{ClientHarness, ReceivedPrompt, SESSION_ID};
pub use options::{AgentTask, CheckOptions};
pub use outcome::{CheckEvent, CheckOutcome};
pub use remote::client_harness::RemoteClientHarness;
pub use remote::client_target::{
    ClientStartFuture, MissingUrlPlaceholder, RemoteClientProgram, RemoteClientTarget,
};
pub use remote::detect::detect_transports;
pub use remote::run::{run_remote_client_checks, run_server_checks};
pub use remote::server_harness::ServerHarness;
pub use remote::server_target::{InvalidServerUrl, OfferedTransports, RemoteServer};
pub use runner::{run_checks, run_checks_with_progress};
pub use target::{AgentProgram, CheckTarget, TargetProcess};
pub use transcript::{Transcript, TranscriptEntry};
pub use turns::CheckTurn;
pub use v1::client::{CANCEL_REQUEST_TEXT, WAIT_REQUEST_TEXT};
pub use verdict::{CheckStop, Verdict};
pub use versions::{detect_agent_versions, detect_client_versions};
pub use wire::{ReceivedMessage, ReceivedResponse, Wire};

/// Returns all checks for agents that speak this version. Those for the specification's pages come first, followed by
/// those that both versions share.
#[must_use]
pub fn agent_checks(version: SchemaVersion) -> Vec<Check> {
    let mut checks = match version {
        SchemaVersion::V1 => v1::agent::checks(),
        SchemaVersion::V2 => v2::agent::checks(),
    };
    checks.extend(both::agent::checks(version));
    checks.extend(schema_checks::schema_checks(version, Side::Agent));
    checks.push(rules_checks::rules_check(version, Side::Agent));
    checks
}

/// Returns all checks for clients that speak this version. Those for the specification's pages come first, followed by
/// those that both versions share.
#[must_use]
pub fn client_checks(version: SchemaVersion) -> Vec<Check> {
    let mut checks = match version {
        SchemaVersion::V1 => v1::client::checks(),
        SchemaVersion::V2 => v2::client::checks(),
    };
    checks.extend(both::client::checks(version));
    checks.extend(schema_checks::schema_checks(version, Side::Client));
    checks.push(rules_checks::rules_check(version, Side::Client));
    checks
}

/// Returns all checks for servers of the remote transport.
#[must_use]
pub fn server_checks() -> Vec<Check> {
    remote::server::checks()
}

/// Returns all checks for clients of the remote transport.
#[must_use]
pub fn remote_client_checks() -> Vec<Check> {
    remote::client::checks()
}
