//! What can go wrong with an agent, in words that say what it did.

use std::time::Duration;

use acp::CloseReason;
use acp::jsonrpc::Error as Rpc;
use acp::v1::ProtocolVersion;
use acp_host::{AgentProcess, SpawnError};

use crate::setup::AgentSpec;

/// How long a broken agent may take to end, so that its exit code can be told.
const ENDING: Duration = Duration::from_millis(500);

/// How much of what an agent printed is told with its end, in lines.
const TAIL: usize = 20;

/// Why something with an agent did not go well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentFailure {
    /// The agent does not run, or nobody can talk to it.
    Exited(AgentExit),
    /// One must log in first; the agent's words.
    LoginRequired(String),
    /// It said no, or could not be asked.
    Rejected(String),
    /// The session is not there any more.
    SessionNotFound(String),
}

/// How it came that nobody can talk to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentExit {
    /// What it did, to be put behind its name.
    pub(crate) description: String,
    /// The end of what it has printed, in lines.
    pub(crate) output_tail: String,
    /// What may help.
    pub(crate) remedy: Remedy,
}

/// What may help where an agent does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Nothing that is known here.
    Unknown,
    /// To install it.
    Install,
    /// To speak the draft of version 2 with it.
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

    /// Its program could not be started.
    pub(crate) fn not_started(error: &SpawnError) -> Self {
        let mut gone = Self::new(format!("could not be started: {error}"));
        if matches!(error, SpawnError::NotInPath { .. }) {
            gone.remedy = Remedy::Install;
        }
        gone
    }
}

impl AgentFailure {
    /// What an error of the library means for the person.
    pub(crate) fn of(error: &acp::Error) -> Self {
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

    /// What it is, on a line.
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

/// The agent did not come to an agreement about the protocol: what it did instead. It does not run after that.
pub(super) async fn broken(
    spec: &AgentSpec,
    process: &AgentProcess,
    error: &acp::Error,
) -> AgentExit {
    let latest = spec.options.latest();
    let mut cure = Remedy::Unknown;
    let what = match error {
        acp::Error::Closed(reason) => {
            return disconnected(process, reason, "exited before responding").await;
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
            format!("refused the connection: {error}")
        }
        error => format!("sent an invalid response: {error}"),
    };
    process.shutdown(Duration::ZERO).await;
    AgentExit {
        description: what,
        output_tail: tail(process),
        remedy: cure,
    }
}

/// The connection is over: how its agent went, which does not run after that.
pub(super) async fn disconnected(
    process: &AgentProcess,
    reason: &CloseReason,
    ended: &str,
) -> AgentExit {
    let what = match tokio::time::timeout(ENDING, process.wait()).await {
        Ok(exit) => format!("{ended}: {exit}"),
        Err(_) => format!("closed the connection: {reason}"),
    };
    // What is left of it has nobody to talk to.
    process.shutdown(Duration::ZERO).await;
    AgentExit {
        output_tail: tail(process),
        ..AgentExit::new(what)
    }
}

/// The end of what an agent printed.
pub(crate) fn tail(process: &AgentProcess) -> String {
    let tail = process.output_tail();
    let lines: Vec<&str> = tail.trim_end().lines().collect();
    let last = lines.get(lines.len().saturating_sub(TAIL)..);
    let mut tail = last.unwrap_or_default().join("\n");
    for undone in process.undo_report() {
        tail.push('\n');
        tail.push_str(&undone);
    }
    tail
}
