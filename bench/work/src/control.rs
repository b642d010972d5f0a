//! The commands that the benchmark sends to a client on its socket, one JSON object per line.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A command for a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum ClientCommand {
    /// Open sessions, which later commands use.
    Open {
        /// The number of sessions.
        sessions: usize,
    },
    /// Open further connections, and leave them idle. Only for our client, over the network.
    Connect {
        /// The number of connections.
        connections: usize,
    },
    /// Make all open sessions stream at the same time.
    Stream {
        /// The number of chunks per session.
        messages: u64,
        /// The text length of each chunk, in bytes.
        bytes: usize,
        /// How long the handler of the first chunk waits, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sleep_ms: Option<u64>,
        /// How long the client reads nothing, in milliseconds. Only for the floor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stall_ms: Option<u64>,
        /// The number of chunks per second, or `None` for full speed. Only for our client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate: Option<u64>,
    },
    /// Send empty requests.
    Empty {
        /// The number of requests.
        requests: u64,
    },
    /// Make the agent request permission.
    Ask {
        /// The number of requests.
        requests: u64,
    },
    /// Make the agent read a file.
    Read {
        /// The path of the file.
        path: String,
        /// The size of the file, in bytes.
        bytes: u64,
    },
    /// Load a session.
    Load {
        /// The number of chunks to replay.
        messages: u64,
        /// The text length of each chunk, in bytes.
        bytes: usize,
    },
}

/// A report from a client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientReport {
    /// Whether the client is connected to the agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ready: bool,
    /// How long the work took, in nanoseconds.
    pub ns: u64,
    /// How long each part took, in nanoseconds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub each_ns: Vec<u64>,
    /// The reason for a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ClientReport {
    /// Creates the first report, which says that the client is ready.
    #[must_use]
    pub fn ready() -> Self {
        Self {
            ready: true,
            ..Self::default()
        }
    }

    /// Creates the report for work that was started at this time and is done.
    #[must_use]
    pub fn since(start: Instant) -> Self {
        Self {
            ns: nanoseconds(start.elapsed()),
            ..Self::default()
        }
    }

    /// Creates the report for work that is done, with the duration of each part.
    #[must_use]
    pub fn with_durations(self, times: impl IntoIterator<Item = Duration>) -> Self {
        Self {
            each_ns: times.into_iter().map(nanoseconds).collect(),
            ..self
        }
    }

    /// Creates the report for work that failed.
    pub fn failed(error: impl std::fmt::Display) -> Self {
        Self {
            error: Some(error.to_string()),
            ..Self::default()
        }
    }

    /// Returns the report as a line for the socket.
    #[must_use]
    pub fn to_line(&self) -> Vec<u8> {
        // Numbers and texts are always JSON.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// Converts a duration to nanoseconds.
#[must_use]
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the durations between consecutive times.
pub fn gaps(moments: &[Instant]) -> impl Iterator<Item = Duration> + '_ {
    moments
        .iter()
        .zip(moments.iter().skip(1))
        .map(|(one, next)| *next - *one)
}
