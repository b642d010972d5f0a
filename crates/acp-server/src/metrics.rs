//! Counts an agent's activity, and exports the counters as text for Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use acp_remote::server::ServerStats;

/// A counter that several tasks can update.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn decrement(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of an agent since the server started.
#[derive(Debug, Default)]
pub(crate) struct AgentCounters {
    pub(crate) processes_running: Counter,
    /// Processes that failed to start, or that ended while their client was connected.
    pub(crate) processes_failed: Counter,
    /// Client requests that were passed on.
    pub(crate) requests: Counter,
    pub(crate) requests_in_flight: Counter,
    /// Client messages that were rejected with an error response.
    pub(crate) messages_rejected: Counter,
}

/// An agent's name, counters and statistics.
pub(crate) struct AgentMetrics<'a> {
    pub(crate) name: &'a str,
    pub(crate) counters: &'a AgentCounters,
    pub(crate) stats: ServerStats,
}

/// A metric's name, type and description, with a function that returns its value for an agent.
type Metric = (
    &'static str,
    &'static str,
    &'static str,
    fn(&AgentMetrics<'_>) -> u64,
);

const METRICS: [Metric; 13] = [
    ("acp_connections_open", "gauge", "Open connections.", |f| {
        f.stats.open_connections
    }),
    (
        "acp_connections_total",
        "counter",
        "Accepted connections.",
        |f| f.stats.connections,
    ),
    (
        "acp_connections_resumed_total",
        "counter",
        "Connections that were cut and resumed.",
        |f| f.stats.resumed,
    ),
    (
        "acp_connections_abandoned_total",
        "counter",
        "Connections whose client did not reconnect in time.",
        |f| f.stats.abandoned,
    ),
    (
        "acp_http_requests_refused_total",
        "counter",
        "HTTP requests rejected because of their token, host or origin.",
        |f| f.stats.refused,
    ),
    (
        "acp_http_requests_limited_total",
        "counter",
        "HTTP requests rejected because a limit was reached.",
        |f| f.stats.limited,
    ),
    (
        "acp_received_bytes_total",
        "counter",
        "Bytes of messages from clients.",
        |f| f.stats.received_bytes,
    ),
    (
        "acp_sent_bytes_total",
        "counter",
        "Bytes of messages to clients.",
        |f| f.stats.sent_bytes,
    ),
    (
        "acp_requests_total",
        "counter",
        "Requests from clients to the agent.",
        |f| f.counters.requests.get(),
    ),
    (
        "acp_requests_in_flight",
        "gauge",
        "Requests that the agent has not responded to yet.",
        |f| f.counters.requests_in_flight.get(),
    ),
    (
        "acp_messages_rejected_total",
        "counter",
        "Messages from clients that were not passed on to the agent.",
        |f| f.counters.messages_rejected.get(),
    ),
    (
        "acp_agent_processes_running",
        "gauge",
        "Running agent processes.",
        |f| f.counters.processes_running.get(),
    ),
    (
        "acp_agent_processes_failed_total",
        "counter",
        "Agent processes that could not be started, or ended while their client was connected.",
        |f| f.counters.processes_failed.get(),
    ),
];

/// Returns the metrics in Prometheus's text format.
pub(crate) fn metrics_text(agents: &[AgentMetrics<'_>]) -> String {
    let mut text = String::new();
    for (name, kind, help, value) in METRICS {
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for agent in agents {
            let label = escape_label(agent.name);
            let _ = writeln!(text, "{name}{{agent=\"{label}\"}} {}", value(agent));
        }
    }
    text
}

fn escape_label(value: &str) -> String {
    value
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_help_a_type_and_a_value_per_agent() {
        let counters = AgentCounters::default();
        counters.requests.increment();
        let figures = ["one", "a \"b\"\\"].map(|name| AgentMetrics {
            name,
            counters: &counters,
            stats: ServerStats::default(),
        });
        let text = metrics_text(&figures);
        assert_eq!(text.lines().count(), METRICS.len() * 4);
        assert!(
            text.contains(
                "# TYPE acp_requests_total counter\nacp_requests_total{agent=\"one\"} 1\n"
            )
        );
        assert!(text.contains("{agent=\"a \\\"b\\\"\\\\\"} 1\n"));
    }
}
