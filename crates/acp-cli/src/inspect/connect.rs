//! Starts an agent, and asks it what it is.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use acp::Transport;
use acp::client::{AgentConnection, Client, ClientSession, SessionSetup, Update, UpdateContext};
use acp::jsonrpc::{self, Incoming, RequestId};
use acp::v1::{Implementation, SessionId};
use acp_config::AgentChoice;
use acp_host::AgentProcess;
use serde_json::Value;
use tokio::sync::Notify;

use super::capabilities::CapabilityReport;
use super::report::{InspectReport, LoginReport, ProgramReport, ProtocolReport, SessionReport};
use crate::exit::CommandExit;
use crate::login;
use crate::screen::TerminalScreen;
use crate::start::{self, EXIT_GRACE_PERIOD, StartFailure, StartTarget};

/// How long to wait for the slash commands after a session was opened. Many agents send none.
const COMMANDS_TIMEOUT: Duration = Duration::from_secs(2);

/// How an agent is inspected.
#[derive(Clone, Copy)]
pub(super) struct Inspection<'a> {
    pub(super) target: StartTarget<'a>,
    /// Whether to open a session.
    pub(super) opens_session: bool,
    /// How long to wait for each response.
    pub(super) timeout: Duration,
}

impl Inspection<'_> {
    /// Starts the agent, offers it this protocol version as the latest one, and returns what it says.
    ///
    /// # Errors
    /// The agent could not be started, exited, or did not respond to `initialize`.
    pub(super) async fn run(self, latest: u16) -> Result<InspectReport, CommandExit> {
        let agent = AgentChoice {
            protocol: latest,
            ..self.target.agent.clone()
        };
        let target = StartTarget {
            agent: &agent,
            ..self.target
        };
        let screen = TerminalScreen::new(false);
        let process = target.spawn_command(&target.command()?, &screen)?;
        let inspected = self.inspect(&target, &process).await;
        let grace = match &inspected {
            Ok(_) => EXIT_GRACE_PERIOD,
            Err(_) => Duration::ZERO,
        };
        process.shutdown(grace).await;
        inspected
    }

    async fn inspect(
        self,
        target: &StartTarget<'_>,
        process: &AgentProcess,
    ) -> Result<InspectReport, CommandExit> {
        let result = Arc::new(Mutex::new(Value::Null));
        let transport = keep_initialize_result(start::transport(process)?, Arc::clone(&result));
        let client = InspectClient::default();
        let commands_arrived = Arc::clone(&client.commands_arrived);
        let options = start::connection_options(target.agent, process);
        let (handshake, driver) = acp::client::connect_with(transport, client, options);
        tokio::spawn(driver);
        let agent = match tokio::time::timeout(self.timeout, handshake).await {
            Ok(Ok(agent)) => agent,
            Ok(Err(error)) => return Err(StartFailure::Agent(error).exit(target, process).await),
            Err(_) => {
                let seconds = self.timeout.as_secs();
                let output = process.stderr_excerpt();
                return Err(CommandExit::agent_failed(format!(
                    "the agent did not respond to `initialize` within {seconds} s; check that the command starts an ACP agent, or wait longer with --timeout{output}"
                )));
            }
        };
        let initialize = std::mem::take(&mut *lock(&result));
        let version = agent.version();
        let session = match self.opens_session {
            true => Some(
                self.inspect_session(target, &agent, &commands_arrived)
                    .await,
            ),
            false => None,
        };
        let report = InspectReport {
            agent: ProgramReport::new(agent.info(), target.agent),
            protocol: ProtocolReport {
                inspected: version.0,
                accepted: vec![version.0],
            },
            capabilities: CapabilityReport::new(version, agent.capabilities(), &initialize),
            logins: agent
                .auth_methods()
                .iter()
                .filter_map(LoginReport::new)
                .collect(),
            session,
            initialize,
        };
        agent.close();
        Ok(report)
    }

    async fn inspect_session(
        self,
        target: &StartTarget<'_>,
        agent: &AgentConnection,
        commands_arrived: &Notify,
    ) -> SessionReport {
        let opening = agent.new_session(SessionSetup::new(target.cwd));
        let session = match tokio::time::timeout(self.timeout, opening).await {
            Ok(Ok(session)) => session,
            Ok(Err(error)) if error.is_auth_required() => {
                let exit = login::login_required_exit(target, agent, &error);
                return SessionReport::failed(exit.message.unwrap_or_default(), true);
            }
            Ok(Err(error)) => return SessionReport::failed(error.to_string(), false),
            Err(_) => {
                let seconds = self.timeout.as_secs();
                let why = format!("the agent did not respond to `session/new` within {seconds} s");
                return SessionReport::failed(why, false);
            }
        };
        let waiting = tokio::time::timeout(COMMANDS_TIMEOUT, commands_arrived.notified());
        let has_commands = waiting.await.is_ok();
        let report = session.thread().read(|thread| {
            let commands = has_commands.then(|| thread.commands());
            SessionReport::open(thread.config_options(), commands)
        });
        // A session that remains is no failure: nothing was done in it.
        let removing = remove_session(agent, &session);
        let _ = tokio::time::timeout(self.timeout, removing).await;
        report
    }
}

/// Closes and deletes the session, if the agent supports that.
async fn remove_session(agent: &AgentConnection, session: &ClientSession) {
    let supported = &agent.capabilities().session_capabilities;
    let id: SessionId = session.id().clone();
    if supported.close.is_some()
        && let Err(error) = session.close().await
    {
        tracing::info!("cannot close the session: {error}");
    }
    if supported.delete.is_some()
        && let Err(error) = agent.delete_session(&id).await
    {
        tracing::info!("cannot delete the session: {error}");
    }
}

/// Keeps the result of `initialize`, which is the first request.
fn keep_initialize_result(transport: Transport, result: Arc<Mutex<Value>>) -> Transport {
    let mut is_found = false;
    transport.inspect(move |line| {
        if is_found {
            return;
        }
        if let Ok(Incoming::Response { id, .. }) = jsonrpc::parse(line)
            && id == RequestId::Number(0)
        {
            is_found = true;
            let message: Value = serde_json::from_slice(line).unwrap_or_default();
            *lock(&result) = message.get("result").cloned().unwrap_or_default();
        }
    })
}

fn lock(result: &Mutex<Value>) -> std::sync::MutexGuard<'_, Value> {
    result.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client that only looks.
#[derive(Default)]
struct InspectClient {
    /// Notified when the agent has reported its slash commands.
    commands_arrived: Arc<Notify>,
}

impl Client for InspectClient {
    type State = ();

    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("acp", env!("CARGO_PKG_VERSION")).title("acp"))
    }

    fn supports_terminal_login(&self) -> bool {
        // Announced so that the agent offers these auth methods.
        true
    }

    async fn update(&self, (): &(), _: &UpdateContext, update: &Update) {
        if matches!(update, Update::AvailableCommandsUpdate(_)) {
            self.commands_arrived.notify_one();
        }
    }
}
