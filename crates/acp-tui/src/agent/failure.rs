//! Classifies and describes agent failures.

use std::time::Duration;

use acp::CloseReason;
use acp::jsonrpc::Error as Rpc;
use acp::v1::ProtocolVersion;
use acp_host::{AgentProcess, SpawnError};

use crate::setup::AgentSpec;

/// How long a failed agent has to exit before it is killed. An agent that exits on its own leaves an exit code to show.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// The maximum number of output lines shown when an agent exits.
const MAX_TAIL_LINES: usize = 20;

/// The reason why an agent operation failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentFailure {
    /// The agent is not running, or its connection is closed.
    Exited(AgentExit),
    /// The agent requires a login. Contains the agent's message.
    LoginRequired(String),
    /// The agent rejected the request, or the request could not be sent.
    Rejected(String),
    /// The session no longer exists.
    SessionNotFound(String),
}

/// A description of how an agent or its connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentExit {
    /// How the agent ended, phrased to follow the agent's name, such as `exited before responding`.
    pub(crate) description: String,
    /// The last lines of the agent's output.
    pub(crate) output_tail: String,
    /// A way for the user to get the agent to start.
    pub(crate) remedy: Remedy,
}

/// Something that the user can do when an agent does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// No remedy is known.
    Unknown,
    /// Install the agent.
    Install,
    /// Allow the draft of protocol version 2.
    Version2,
}

impl AgentExit {
    pub(crate) fn new(what: String) -> Self {
        Self {
            description: what,
            output_tail: String::new(),
            remedy: Remedy::Unknown,
        }
    }

    /// Describes an agent whose program could not be started.
    pub(crate) fn from_spawn_error(error: &SpawnError) -> Self {
        let mut gone = Self::new(format!("could not be started: {error}"));
        if matches!(error, SpawnError::NotInPath { .. }) {
            gone.remedy = Remedy::Install;
        }
        gone
    }
}

impl AgentFailure {
    /// Classifies an error from the library.
    pub(crate) fn from_error(error: &acp::Error) -> Self {
        match error {
            acp::Error::Rpc(rpc) if error.is_auth_required() => {
                Self::LoginRequired(rpc.message.clone())
            }
            error if error.is_closed() => {
                Self::Exited(AgentExit::new(format!("disconnected: {error}")))
            }
            acp::Error::Rpc(rpc) if rpc.code == Rpc::RESOURCE_NOT_FOUND => {
                Self::SessionNotFound(error.to_string())
            }
            other => Self::Rejected(other.to_string()),
        }
    }

    /// Describes the failure in full, possibly on several lines.
    pub(crate) fn to_full_text(&self) -> String {
        match self {
            Self::Exited(_) => self.to_text(),
            Self::LoginRequired(what) | Self::Rejected(what) | Self::SessionNotFound(what) => {
                acp_host::terminal_text::clean_text(what)
            }
        }
    }

    /// Describes the failure on one line.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Exited(AgentExit {
                description: what, ..
            }) => acp_host::terminal_text::clean_line(&format!("the agent {what}")),
            Self::LoginRequired(what) | Self::Rejected(what) | Self::SessionNotFound(what) => {
                acp_host::terminal_text::clean_line(what)
            }
        }
    }
}

/// Describes why the agent did not complete `initialize`, and shuts down its process.
pub(super) async fn describe_failed_start(
    spec: &AgentSpec,
    process: &AgentProcess,
    error: &acp::Error,
) -> AgentExit {
    let latest = spec.options.latest();
    let mut cure = Remedy::Unknown;
    let what = match error {
        acp::Error::Closed(reason) => {
            return describe_disconnect(process, reason, "exited before responding").await;
        }
        acp::Error::Version { theirs: 2, .. } if latest == ProtocolVersion::V1 => {
            cure = Remedy::Version2;
            "speaks protocol version 2, which is a draft".to_owned()
        }
        acp::Error::Rpc(rpc) if rpc.code == Rpc::METHOD_NOT_FOUND => {
            "does not speak ACP: unknown method `initialize`".to_owned()
        }
        acp::Error::Rpc(rpc) => {
            let about_version = rpc.message.to_ascii_lowercase().contains("version");
            if about_version && latest == ProtocolVersion::V1 {
                cure = Remedy::Version2;
            }
            format!("rejected the connection: {error}")
        }
        error => format!("sent an invalid response: {error}"),
    };
    process.shutdown(Duration::ZERO).await;
    AgentExit {
        description: what,
        output_tail: output_tail(process),
        remedy: cure,
    }
}

/// Describes how the agent ended after its connection was closed, and shuts down its process.
pub(super) async fn describe_disconnect(
    process: &AgentProcess,
    reason: &CloseReason,
    ended: &str,
) -> AgentExit {
    let what = match tokio::time::timeout(EXIT_TIMEOUT, process.wait()).await {
        Ok(exit) => format!("{ended}: {exit}"),
        Err(_) => format!("closed the connection: {reason}"),
    };
    // If the process is still running, it no longer has a connection.
    process.shutdown(Duration::ZERO).await;
    AgentExit {
        output_tail: output_tail(process),
        ..AgentExit::new(what)
    }
}

/// Returns the last lines of an agent's output.
pub(crate) fn output_tail(process: &AgentProcess) -> String {
    let tail = process.output_tail();
    let lines: Vec<&str> = tail.trim_end().lines().collect();
    let last = lines.get(lines.len().saturating_sub(MAX_TAIL_LINES)..);
    let mut tail = last.unwrap_or_default().join("\n");
    for undone in process.undo_report() {
        tail.push('\n');
        tail.push_str(&undone);
    }
    tail
}
