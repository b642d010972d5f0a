//! Who is wrong? A conformance suite for agents and for clients of the Agent Client Protocol: checks of what the
//! specification requires, and their verdicts.
//!
//! A check plays one side by hand against the program that is tested ([`Target`]), and says whether it keeps to one
//! sentence of the specification. [`agents`] has those for agents, [`clients`] those for clients; [`run`] carries
//! them out, and [`report`] prints what came of them. What shapes and rules there are, `acp-rules` knows.
//!
//! Where things are and why: `docs/decisions/0013-who-is-wrong.md`.

pub mod baseline;
mod both;
mod check;
pub mod host;
mod options;
mod outcome;
mod place;
pub mod relay;
pub mod report;
mod rules_checks;
mod runner;
mod schema_checks;
mod shaped;
mod spoken;
mod target;
mod transcript;
mod turns;
mod v1;
mod v2;
mod verdict;
mod watch;
mod wire;
mod with_agent;
mod with_agent_v2;
mod with_client;
mod with_client_v2;

pub use acp_rules::schema::Version;
pub use acp_rules::{Level, Side};
pub use check::{Check, Play, Playing};
pub use options::{Options, Task};
pub use outcome::Outcome;
pub use place::Place;
pub use runner::{run, run_telling};
pub use shaped::Shaped;
pub use spoken::{spoken, spoken_by_client};
pub use target::{Program, Started, Target};
pub use transcript::{Entry, Transcript};
pub use turns::Turn;
pub use v1::client::{PLEASE_CANCEL, PLEASE_WAIT};
pub use verdict::{Stop, Verdict};
pub use wire::{Answer, Message, Wire};
pub use with_agent::AgentPlay;
pub use with_agent_v2::Begun;
pub use with_client::{ClientPlay, Prompted, SESSION};

/// Every check for agents of a version, in the order of the specification's pages; then those that are the same in both
/// versions.
#[must_use]
pub fn agents(version: Version) -> Vec<Check> {
    let mut checks = match version {
        Version::V1 => v1::agent::checks(),
        Version::V2 => v2::agent::checks(),
    };
    checks.extend(both::agent::checks(version));
    checks.extend(schema_checks::checks(version, Side::Agent));
    checks.push(rules_checks::check(version, Side::Agent));
    checks
}

/// Every check for clients of a version, in the order of the specification's pages; then those that are the same in both
/// versions.
#[must_use]
pub fn clients(version: Version) -> Vec<Check> {
    let mut checks = match version {
        Version::V1 => v1::client::checks(),
        Version::V2 => v2::client::checks(),
    };
    checks.extend(both::client::checks(version));
    checks.extend(schema_checks::checks(version, Side::Client));
    checks.push(rules_checks::check(version, Side::Client));
    checks
}
