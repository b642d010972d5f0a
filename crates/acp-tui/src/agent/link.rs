//! An agent that runs, and what it takes to start it and to open its sessions.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use acp::client::{AgentConnection, Session, SessionSetup};
use acp::{CloseReason, Transport};
use acp_host::{AgentProcess, Environment, Host, Permissions, Sandbox};
use tokio::sync::Notify;

use super::client::{Ask, ChatClient, Elicit, Notes};
use super::desk::Desk;
use crate::setup::{AgentSpec, Open};

/// How long a broken agent may take to end, so that its exit code can be told.
const ENDING: Duration = Duration::from_millis(500);

/// How long an agent may take to end by itself once its stdin is closed, and again once it is asked to end.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// How much of what an agent printed to stderr is told with its end, in lines.
const TAIL: usize = 20;

/// What all agents of a chat have in common.
pub(crate) struct Surroundings {
    pub(crate) cwd: std::path::PathBuf,
    pub(crate) permissions: Permissions,
    pub(crate) sandbox: Option<Sandbox>,
    pub(crate) environment: Environment,
    pub(crate) wake: Arc<Notify>,
}

/// An agent that runs.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) process: Arc<AgentProcess>,
    pub(crate) connection: AgentConnection,
    pub(crate) host: Arc<Host<Ask>>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("process", &self.process.id())
            .finish_non_exhaustive()
    }
}

/// Why something with an agent did not go well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The agent does not run, or nobody can talk to it: what happened, and the end of its stderr.
    Gone { what: String, tail: String },
    /// One must log in first; the agent's words.
    Login(String),
    /// It said no, or could not be asked.
    Refused(String),
    /// The session is not there any more.
    NoSession(String),
}

impl Trouble {
    /// What an error of the library means for the person.
    pub(crate) fn of(error: &acp::Error) -> Self {
        use acp::jsonrpc::Error as Rpc;
        match error {
            acp::Error::Rpc(rpc) if error.is_auth_required() => Self::Login(rpc.message.clone()),
            error if error.is_closed() => Self::Gone {
                what: error.to_string(),
                tail: String::new(),
            },
            acp::Error::Rpc(rpc) if rpc.code == Rpc::RESOURCE_NOT_FOUND => {
                Self::NoSession(error.to_string())
            }
            other => Self::Refused(other.to_string()),
        }
    }
}

/// Starts an agent's program.
pub(crate) fn spawn(spec: &AgentSpec, cwd: &Path) -> Result<Arc<AgentProcess>, Trouble> {
    let command = spec.command.clone().cwd(cwd);
    let log = |line: &str| tracing::debug!(target: "agent", "{line}");
    AgentProcess::spawn_with(&command, log)
        .map(Arc::new)
        .map_err(|e| Trouble::Gone {
            what: format!("it could not be started: {e}"),
            tail: String::new(),
        })
}

/// Talks to the program for the first time.
pub(crate) async fn connect(
    spec: &AgentSpec,
    around: &Surroundings,
    process: Arc<AgentProcess>,
    desk: &Arc<Desk>,
    notes: &Arc<Notes>,
) -> Result<Link, Trouble> {
    let gone = |what: String| Trouble::Gone {
        what,
        tail: String::new(),
    };
    let host = Host::new(
        around.permissions.clone(),
        Ask(Arc::clone(desk)),
        [around.cwd.clone()],
    )
    .map_err(|e| gone(format!("{}: {e}", around.cwd.display())))?;
    let (told, wake) = (Arc::clone(notes), Arc::clone(&around.wake));
    let mut host = host
        .environment(around.environment.clone())
        .on_note(move |note| {
            told.add(note.to_string());
            wake.notify_one();
        });
    if let Some(sandbox) = &around.sandbox {
        host = host.sandboxed(sandbox.clone());
    }
    let host = Arc::new(host);
    let client = ChatClient {
        host: Arc::clone(&host),
        elicit: Elicit(Arc::clone(desk)),
        notes: Arc::clone(notes),
        wake: Arc::clone(&around.wake),
    };
    let (stdin, stdout) = process
        .take_stdio()
        .ok_or_else(|| gone("it has no stdin and stdout".to_owned()))?;
    let transport = Transport::pipes(stdout, stdin);
    match acp::client::connect_with(transport, client, spec.options.clone()).await {
        Ok(connection) => Ok(Link {
            process,
            connection,
            host,
        }),
        Err(error) => Err(broken(&process, &error).await),
    }
}

/// The agent is gone, or talks what nobody understands.
async fn broken(process: &AgentProcess, error: &acp::Error) -> Trouble {
    let ended = tokio::time::timeout(ENDING, process.wait()).await;
    let what = match (error, ended) {
        (acp::Error::Closed(_), Ok(exit)) => format!("it ended: {exit}"),
        (acp::Error::Closed(reason), Err(_)) => format!("it broke the connection: {reason}"),
        (error, _) => error.to_string(),
    };
    process.shutdown(Duration::ZERO).await;
    Trouble::Gone {
        what,
        tail: tail(process),
    }
}

impl Link {
    /// Waits until the agent has ended, and says how; `None` if this side ended it.
    pub(crate) async fn ended(&self) -> Option<Trouble> {
        let reason = self.connection.closed().await;
        if matches!(reason, CloseReason::Local) {
            return None;
        }
        let ended = tokio::time::timeout(ENDING, self.process.wait()).await;
        let what = match ended {
            Ok(exit) => format!("it ended: {exit}"),
            Err(_) => format!("it broke the connection: {reason}"),
        };
        // What is left of it has nobody to talk to.
        self.process.shutdown(Duration::ZERO).await;
        self.host.close().await;
        Some(Trouble::Gone {
            what,
            tail: tail(&self.process),
        })
    }

    /// Opens a session and brings it into the state that the agent's configuration wants.
    pub(crate) async fn open(
        &self,
        spec: &AgentSpec,
        cwd: &Path,
        how: &Open,
    ) -> Result<Session, Trouble> {
        let agent = &self.connection;
        let setup = SessionSetup::new(cwd).mcp_servers(spec.mcp_servers.clone());
        let opened = match how {
            Open::New => agent.new_session(setup).await,
            Open::Old(id) if agent.capabilities().load_session => {
                agent.load_session(id.clone(), setup).await
            }
            Open::Old(id) => agent.resume_session(id.clone(), setup).await,
            Open::Fork(id) => agent.fork_session(id.clone(), setup).await,
        };
        let session = opened.map_err(|e| Trouble::of(&e))?;
        if *how == Open::New {
            let refused = |e: acp::Error| Trouble::Refused(e.to_string());
            if let Some(mode) = &spec.mode {
                session.set_mode(mode).await.map_err(refused)?;
            }
            for (id, value) in &spec.config {
                let set = session.set_config_option(id.as_str(), value.as_str());
                set.await.map_err(refused)?;
            }
        }
        Ok(session)
    }
}

/// The end of what an agent printed to stderr.
pub(crate) fn tail(process: &AgentProcess) -> String {
    let tail = process.stderr_tail();
    let lines: Vec<&str> = tail.trim_end().lines().collect();
    let last = lines.get(lines.len().saturating_sub(TAIL)..);
    last.unwrap_or_default().join("\n")
}

impl Trouble {
    /// What it is, on a line.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Gone { what, .. }
            | Self::Login(what)
            | Self::Refused(what)
            | Self::NoSession(what) => acp_host::clean::line(what),
        }
    }
}
