//! What is measured of each run.

use std::collections::BTreeMap;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Messages a second.
    Rate,
    /// MB a second.
    Throughput,
    /// Microseconds from a request to the next, the median.
    P50,
    /// The same, the 99th percentile.
    P99,
    /// Milliseconds until `initialize` is answered.
    Start,
    /// Microseconds of the agent's CPU time for each message or request.
    AgentCpu,
    /// The same of the client's.
    ClientCpu,
    /// The same of `acp trace`, which stands between the two.
    TraceCpu,
    /// The most memory that the agent had resident, in MB.
    AgentPeak,
    /// The same of the client.
    ClientPeak,
    /// What the agent has resident while nothing happens, in MB.
    AgentRest,
    /// What a session that rests takes of the agent, in KB.
    AgentSession,
    /// The same of the client.
    ClientSession,
}

impl Metric {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Rate => "messages/s",
            Self::Throughput => "MB/s",
            Self::P50 => "p50 µs",
            Self::P99 => "p99 µs",
            Self::Start => "ms",
            Self::AgentCpu => "CPU µs, agent",
            Self::ClientCpu => "CPU µs, client",
            Self::TraceCpu => "CPU µs, trace",
            Self::AgentPeak => "peak MB, agent",
            Self::ClientPeak => "peak MB, client",
            Self::AgentRest => "MB at rest",
            Self::AgentSession => "KB per session, agent",
            Self::ClientSession => "KB per session, client",
        }
    }

    /// Whether more of it is better.
    pub(crate) fn more_is_better(self) -> bool {
        matches!(self, Self::Rate | Self::Throughput)
    }
}

/// What one run gave.
pub(crate) type Sample = BTreeMap<Metric, f64>;
