//! An agent that runs, and what it takes to start it and to open its sessions.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Once};
use std::time::Duration;

use acp::client::{AgentConnection, Session, SessionSetup};
use acp::{CloseReason, Transport};
use acp_host::{AgentProcess, Environment, Host, Note, Permissions, Sandbox, clean, literal};
use tokio::sync::Notify;

use super::client::{Ask, ChatClient, Elicit, Notes};
use super::desk::Desk;
use super::trouble::{Gone, Trouble, broken, left};
use crate::setup::{AgentSpec, Open, Wishes};

/// How long an agent may take to end by itself once its stdin is closed, and again once it is asked to end.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

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

/// Starts an agent's program.
pub(crate) fn spawn(
    spec: &AgentSpec,
    cwd: &Path,
    notes: &Notes,
) -> Result<Arc<AgentProcess>, Trouble> {
    let confined = spec.confine.of(spec.command.clone().cwd(cwd));
    let (command, told) =
        confined.map_err(|why| Trouble::Gone(Gone::new(format!("could not be started: {why}"))))?;
    for note in told {
        notes.add(note);
    }
    let log = |line: &str| tracing::debug!(target: "agent", "{line}");
    AgentProcess::spawn_with(&command, log)
        .map(Arc::new)
        .map_err(|e| Trouble::Gone(Gone::not_started(&e)))
}

/// Talks to the program for the first time.
pub(crate) async fn connect(
    spec: &AgentSpec,
    around: &Surroundings,
    process: Arc<AgentProcess>,
    desk: &Arc<Desk>,
    notes: &Arc<Notes>,
) -> Result<Link, Trouble> {
    let gone = |why: String| Trouble::Gone(Gone::new(format!("could not be started: {why}")));
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
            // What is remembered counts to the last character; other notes have titles of the agent's.
            let most = match note {
                Note::Remembered(_) => clean::MESSAGE,
                _ => clean::VALUE,
            };
            told.add(literal::line(&clean::cut(&note.to_string(), most)));
            wake.notify_one();
        });
    if spec.asks {
        host = host.agent_asks();
    }
    if let Some(sandbox) = &around.sandbox {
        host = host.sandboxed(sandbox.clone());
    }
    let host = Arc::new(host);
    let client = ChatClient {
        host: Arc::clone(&host),
        process: Arc::clone(&process),
        elicit: Elicit(Arc::clone(desk)),
        notes: Arc::clone(notes),
        wake: Arc::clone(&around.wake),
    };
    let (stdin, stdout) = process
        .take_stdio()
        .ok_or_else(|| gone("its stdin and stdout are gone".to_owned()))?;
    let transport = Transport::pipes(stdout, stdin);
    let options = listening(spec, &process, notes, &around.wake);
    let (handshake, driver) = acp::client::connect_with(transport, client, options);
    tokio::spawn(driver);
    match handshake.await {
        Ok(connection) => Ok(Link {
            process,
            connection,
            host,
        }),
        Err(error) => Err(Trouble::Gone(broken(spec, &process, &error).await)),
    }
}

/// How the connection is made: what the agent prints that is no message is kept, and the person told of it once.
fn listening(
    spec: &AgentSpec,
    process: &AgentProcess,
    notes: &Arc<Notes>,
    wake: &Arc<Notify>,
) -> acp::Options {
    let keep = process.noise_keeper();
    let (notes, wake) = (Arc::clone(notes), Arc::clone(wake));
    let told = Once::new();
    spec.options.clone().on_noise(move |line| {
        keep(line);
        if !line.trim().is_empty() {
            told.call_once(|| {
                let line = acp_host::clean::line(line);
                notes.add(format!(
                    "the agent prints to stdout what is no message, which is passed over: {line}"
                ));
                wake.notify_one();
            });
        }
    })
}

impl Link {
    /// Waits until the agent has ended, and says how; `None` if this side ended it.
    pub(crate) async fn ended(&self) -> Option<Trouble> {
        let reason = self.connection.closed().await;
        if matches!(reason, CloseReason::Local) {
            return None;
        }
        let gone = left(&self.process, &reason, "ended").await;
        self.host.close().await;
        Some(Trouble::Gone(gone))
    }

    /// Opens a session and brings it into the state that the agent's configuration wants.
    pub(crate) async fn open(
        &self,
        spec: &AgentSpec,
        cwd: &Path,
        how: &Open,
        wishes: &Wishes,
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
        // In one of before the person may have chosen since.
        let begins = (*how == Open::New).then_some(&spec.begins);
        let refused = |e: acp::Error| Trouble::Refused(e.to_string());
        let mode = begins.and_then(|begins| begins.mode.as_ref());
        if let Some(mode) = wishes.mode.as_ref().or(mode) {
            session.set_mode(mode).await.map_err(refused)?;
        }
        let is_wished = |id: &str| wishes.config.iter().any(|(wished, _)| wished == id);
        let config = begins.iter().flat_map(|begins| &begins.config);
        let config = config.filter(|(id, _)| !is_wished(id));
        for (id, value) in config.chain(&wishes.config) {
            let set = session.set_config_option(id.as_str(), value.as_str());
            set.await.map_err(refused)?;
        }
        Ok(session)
    }
}
