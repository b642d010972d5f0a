//! What the benchmark tells a client on its socket, one JSON object a line.

use serde::{Deserialize, Serialize};

/// What a client is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Command {
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
pub struct Answer {
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
