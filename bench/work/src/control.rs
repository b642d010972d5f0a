//! What the benchmark tells a client on its socket, one JSON object a line.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// What a client is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum ClientCommand {
    /// Open so many sessions, which are the ones that are used from then on.
    Open {
        /// How many.
        sessions: usize,
    },
    /// Have each open session stream, all at the same time.
    Stream {
        /// How many chunks each.
        messages: u64,
        /// How much text in each.
        bytes: usize,
        /// How long the handler of the first chunk waits, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sleep_ms: Option<u64>,
        /// How long the client reads nothing, in milliseconds. For the floor only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stall_ms: Option<u64>,
        /// How many are sent a second; as many as can be if it is not given. For ours only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate: Option<u64>,
    },
    /// Send so many empty requests.
    Empty {
        /// How many.
        requests: u64,
    },
    /// Be asked for permission so many times.
    Ask {
        /// How many times.
        requests: u64,
    },
    /// Have the agent read a file.
    Read {
        /// Which.
        path: String,
        /// How long it is.
        bytes: u64,
    },
    /// Load a session.
    Load {
        /// How many chunks are replayed.
        messages: u64,
        /// How much text in each.
        bytes: usize,
    },
}

/// What a client says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientReport {
    /// It is connected to the agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ready: bool,
    /// How long it took, in nanoseconds.
    pub ns: u64,
    /// How long each took, in nanoseconds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub each_ns: Vec<u64>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ClientReport {
    /// The first one.
    #[must_use]
    pub fn ready() -> Self {
        Self {
            ready: true,
            ..Self::default()
        }
    }

    /// What began then has been done.
    #[must_use]
    pub fn since(start: Instant) -> Self {
        Self {
            ns: nanoseconds(start.elapsed()),
            ..Self::default()
        }
    }

    /// The same, with how long each part of it took.
    #[must_use]
    pub fn each(self, times: impl IntoIterator<Item = Duration>) -> Self {
        Self {
            each_ns: times.into_iter().map(nanoseconds).collect(),
            ..self
        }
    }

    /// It was not done.
    pub fn failed(error: impl std::fmt::Display) -> Self {
        Self {
            error: Some(error.to_string()),
            ..Self::default()
        }
    }

    /// As a line for the socket.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        // Numbers and texts are always JSON.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// A time in nanoseconds.
#[must_use]
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The times from each moment to the next.
pub fn gaps(moments: &[Instant]) -> impl Iterator<Item = Duration> + '_ {
    moments
        .iter()
        .zip(moments.iter().skip(1))
        .map(|(one, next)| *next - *one)
}
