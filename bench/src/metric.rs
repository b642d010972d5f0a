//! The metrics that are measured in a run.

use std::collections::BTreeMap;

/// A metric that is measured in a run, with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// The number of messages per second.
    Rate,
    /// The number of MB per second.
    Throughput,
    /// The median time from one request to the next, in microseconds.
    P50,
    /// The 99th percentile of the time from one request to the next, in microseconds.
    P99,
    /// The time until the response to `initialize`, in milliseconds.
    Start,
    /// The agent's CPU time per message or request, in microseconds.
    AgentCpu,
    /// The client's CPU time per message or request, in microseconds.
    ClientCpu,
    /// The CPU time of `acp trace` per message or request, in microseconds.
    TraceCpu,
    /// The agent's peak resident memory, in MB.
    AgentPeak,
    /// The client's peak resident memory, in MB.
    ClientPeak,
    /// The resident memory of an idle agent, in MB.
    AgentRest,
    /// The agent's memory per idle session, in KB.
    AgentSession,
    /// The client's memory per idle session, in KB.
    ClientSession,
    /// How much more memory a server takes at its peak than with an idle connection, in MB.
    ServerGrowth,
    /// A server's memory per idle connection, in KB.
    ServerConnection,
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
            Self::ServerGrowth => "more than at rest, MB, agent",
            Self::ServerConnection => "KB per connection, agent",
        }
    }

    /// Returns `true` if higher values are better.
    pub(crate) fn more_is_better(self) -> bool {
        matches!(self, Self::Rate | Self::Throughput)
    }
}

/// The values measured in one run, by metric.
pub(crate) type Sample = BTreeMap<Metric, f64>;
