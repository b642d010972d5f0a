//! Manages a running agent: its process, its connection and the opening of its sessions.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;

use acp::client::{AgentConnection, ClientSession, SessionSetup};
use acp::v1::{MessageId, SessionId};
use acp::{CloseReason, Transport};
use acp_host::session_options::{set_model_when_offered, set_option_when_offered};
use acp_host::{
    AgentProcess, Environment, Host, PermissionNote, Permissions, Sandbox, literal, terminal_text,
};
use tokio::sync::Notify;

use super::client::{ChatClient, ChatElicitation, ChatNotes, ChatPrompter};
use super::failure::{AgentExit, AgentFailure, describe_disconnect, describe_failed_start};
use super::question_queue::QuestionQueue;
use crate::file_history::FileHistory;
use crate::setup::{AgentSpec, InitialOptions, SessionSource};

/// How long an agent has to exit after its stdin is closed, and again after it is asked to terminate.
pub(crate) const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// The state that all agents of a chat share.
pub(crate) struct ChatEnvironment {
    pub(crate) cwd: PathBuf,
    /// The directories of all sessions besides `cwd`.
    pub(crate) additional_directories: Vec<PathBuf>,
    pub(crate) permissions: Permissions,
    pub(crate) sandbox: Option<Sandbox>,
    pub(crate) environment: Environment,
    /// The history of the project's files.
    pub(crate) files: FileHistory,
    pub(crate) wake: Arc<Notify>,
}

/// A running agent process and its connection.
#[derive(Clone)]
pub(crate) struct RunningAgent {
    pub(crate) process: Arc<AgentProcess>,
    pub(crate) connection: AgentConnection,
    pub(crate) host: Arc<Host<ChatPrompter>>,
}

impl fmt::Debug for RunningAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("process", &self.process.id())
            .finish_non_exhaustive()
    }
}

/// Starts the agent's program.
pub(crate) fn spawn(
    spec: &AgentSpec,
    cwd: &Path,
    notes: &ChatNotes,
) -> Result<Arc<AgentProcess>, AgentFailure> {
    let confined = spec.sandbox_hook.apply(spec.command.clone().cwd(cwd));
    let (command, messages) = confined.map_err(|why| {
        AgentFailure::Exited(AgentExit::new(format!("could not be started: {why}")))
    })?;
    for note in messages {
        notes.add(note);
    }
    let log = |line: &str| tracing::debug!(target: "agent", "{line}");
    AgentProcess::spawn_with(&command, log)
        .map(Arc::new)
        .map_err(|e| AgentFailure::Exited(AgentExit::from_spawn_error(&e)))
}

/// Connects to the agent's process and negotiates the protocol version.
pub(crate) async fn connect(
    spec: &AgentSpec,
    environment: &ChatEnvironment,
    process: Arc<AgentProcess>,
    questions: &Arc<QuestionQueue>,
    notes: &Arc<ChatNotes>,
) -> Result<RunningAgent, AgentFailure> {
    let gone =
        |why: String| AgentFailure::Exited(AgentExit::new(format!("could not be started: {why}")));
    let roots = std::iter::once(&environment.cwd).chain(&environment.additional_directories);
    let host = Host::new(
        environment.permissions.clone(),
        ChatPrompter(Arc::clone(questions)),
        roots.cloned(),
    )
    .map_err(|e| gone(format!("{}: {e}", environment.cwd.display())))?;
    let (messages, wake) = (Arc::clone(notes), Arc::clone(&environment.wake));
    let mut host = host
        .environment(environment.environment.clone())
        .on_note(move |note| {
            // A remembered answer must be shown in full. Other notes contain titles from the agent.
            let most = match note {
                PermissionNote::Remembered(_) => terminal_text::MAX_MESSAGE_CHARS,
                _ => terminal_text::MAX_VALUE_CHARS,
            };
            messages.add(literal::escape_line(&terminal_text::truncate_middle(
                &note.to_string(),
                most,
            )));
            wake.notify_one();
        });
    if spec.asks {
        host = host.trust_agent_to_ask();
    }
    if let Some(sandbox) = &environment.sandbox {
        host = host.sandbox(sandbox.clone());
    }
    let host = Arc::new(host);
    let client = ChatClient {
        host: Arc::clone(&host),
        process: Arc::clone(&process),
        elicitation: ChatElicitation(Arc::clone(questions)),
        notes: Arc::clone(notes),
        wake: Arc::clone(&environment.wake),
    };
    let (stdin, stdout) = process
        .take_stdio()
        .ok_or_else(|| gone("its stdin and stdout are not available".to_owned()))?;
    let transport = Transport::pipes(stdout, stdin);
    let options = connect_options(spec, &process, notes, &environment.wake);
    let (handshake, driver) = acp::client::connect_with(transport, client, options);
    tokio::spawn(driver);
    match handshake.await {
        Ok(connection) => Ok(RunningAgent {
            process,
            connection,
            host,
        }),
        Err(error) => Err(AgentFailure::Exited(
            describe_failed_start(spec, &process, &error).await,
        )),
    }
}

/// Builds the options of the agent's connection.
///
/// Noise is added to the agent's recorded output, and the user is notified the first time.
fn connect_options(
    spec: &AgentSpec,
    process: &AgentProcess,
    notes: &Arc<ChatNotes>,
    wake: &Arc<Notify>,
) -> acp::Options {
    let keep = process.noise_handler();
    let (notes, wake) = (Arc::clone(notes), Arc::clone(wake));
    let messages = Once::new();
    spec.options.clone().on_noise(move |line| {
        keep(line);
        if !line.trim().is_empty() {
            messages.call_once(|| {
                let line = acp_host::terminal_text::clean_line(line);
                notes.add(format!(
                    "ignoring agent output on stdout that is not a message: {line}"
                ));
                wake.notify_one();
            });
        }
    })
}

impl RunningAgent {
    /// Waits until the agent ends, and describes how it ended. Returns `None` if this side closed the connection.
    pub(crate) async fn wait_until_agent_ended(&self) -> Option<AgentFailure> {
        let reason = self.connection.closed().await;
        if matches!(reason, CloseReason::Local) {
            return None;
        }
        let gone = describe_disconnect(&self.process, &reason, "ended").await;
        self.host.close().await;
        Some(AgentFailure::Exited(gone))
    }

    /// Opens a session and sets the configured mode and config options.
    pub(crate) async fn open(
        &self,
        spec: &AgentSpec,
        environment: &ChatEnvironment,
        how: &SessionSource,
        initial_options: &InitialOptions,
    ) -> Result<ClientSession, AgentFailure> {
        let agent = &self.connection;
        let setup = SessionSetup::new(&environment.cwd)
            .additional_directories(&environment.additional_directories)
            .mcp_servers(spec.mcp_servers.clone());
        let opened = match how {
            SessionSource::New => agent.new_session(setup).await,
            SessionSource::Existing(id) if agent.capabilities().load_session => {
                agent.load_session(id.clone(), setup).await
            }
            SessionSource::Existing(id) => agent.resume_session(id.clone(), setup).await,
            SessionSource::Fork(id) => self.fork(id, None, setup).await,
            SessionSource::ForkAt { session, last } => self.fork(session, Some(last), setup).await,
        };
        let session = opened.map_err(|e| AgentFailure::from_error(&e))?;
        // In an existing session, the user may have changed the mode and the options since.
        let begins = (*how == SessionSource::New).then_some(&spec.initial_options);
        let refused = |e: acp::Error| AgentFailure::Rejected(e.to_string());
        let mode = begins.and_then(|begins| begins.mode.as_ref());
        if let Some(mode) = initial_options.mode.as_ref().or(mode) {
            session.set_mode(mode).await.map_err(refused)?;
        }
        let is_overridden = |id: &str| initial_options.config.iter().any(|(other, _)| other == id);
        let config = begins.iter().flat_map(|begins| &begins.config);
        let config = config.filter(|(id, _)| !is_overridden(id));
        for (id, value) in config {
            let set = session.set_config_option(id.as_str(), value.as_str());
            set.await.map_err(refused)?;
        }
        if let Some(model) = &initial_options.model
            && !set_model_when_offered(&session, model)
                .await
                .map_err(refused)?
        {
            return Err(AgentFailure::Rejected(
                "the agent does not offer a choice of models".to_owned(),
            ));
        }
        for (id, value) in &initial_options.config {
            let set = set_option_when_offered(&session, id, value);
            set.await.map_err(refused)?;
        }
        Ok(session)
    }

    /// Opens a copy of a session, or of the session up to a message, and loads it so that it is shown.
    async fn fork(
        &self,
        session: &SessionId,
        last: Option<&MessageId>,
        setup: SessionSetup,
    ) -> acp::Result<ClientSession> {
        let agent = &self.connection;
        let forked = match last {
            Some(last) => agent.fork_session_at(session, last, setup.clone()).await?,
            None => agent.fork_session(session.clone(), setup.clone()).await?,
        };
        if !agent.capabilities().load_session {
            return Ok(forked);
        }
        let loaded = agent.load_session(forked.id().clone(), setup).await;
        if loaded.is_err() {
            discard_session(&forked).await;
        }
        loaded
    }
}

/// Closes a session that is not needed, and deletes it. An agent that supports neither keeps the session.
pub(crate) async fn discard_session(session: &ClientSession) {
    let _ = session.close().await;
    let _ = session.agent().delete_session(session.id()).await;
}
