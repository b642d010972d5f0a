//! Connections to an agent for commands that run no turns: `acp login`, `acp logout` and `acp sessions`.

use std::sync::Arc;
use std::time::Duration;

use acp::client::{AgentConnection, Client, Elicitation, ExtensionNotification, PermissionRequest};
use acp::v1::{ElicitationId, Implementation, RequestPermissionOutcome};
use acp_host::AgentProcess;

use crate::confinement::Confinement;
use crate::elicit::TerminalElicitation;
use crate::exit::CommandExit;
use crate::live::WatcherNotes;
use crate::screen::TerminalScreen;
use crate::signals::{ExitSignal, Signals};
use crate::start::{
    self, EXIT_GRACE_PERIOD, SLOW_NOTE, SLOW_START_DELAY, StartFailure, StartTarget,
};
use crate::terminal_user::{self, TerminalUser};

/// How long the agent may take to respond after the user has cancelled an elicitation.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts the agent, runs `work` with it, and shuts it down. The agent has exited when this returns.
pub(crate) async fn with_agent<T>(
    target: StartTarget<'_>,
    work: impl AsyncFnOnce(&AgentConnection, &TerminalScreen) -> Result<T, StartFailure>,
) -> Result<T, CommandExit> {
    with_confined_agent(target, None, work).await
}

/// Like [`with_agent`], but starts the agent in a sandbox if there is one.
pub(crate) async fn with_confined_agent<T>(
    target: StartTarget<'_>,
    confinement: Option<&Confinement>,
    work: impl AsyncFnOnce(&AgentConnection, &TerminalScreen) -> Result<T, StartFailure>,
) -> Result<T, CommandExit> {
    let mut signals = Signals::listen()
        .map_err(|e| CommandExit::failed(format!("cannot listen for signals: {e}")))?;
    let user = TerminalUser::new(TerminalScreen::new(false));
    let mut command = target.command()?;
    // The agent of a live session is confined by its server.
    if let (Some(confinement), None) = (confinement, target.live) {
        command = confinement.confine(target.agent, command)?.command;
    }
    let process = target.spawn_command(&command, user.screen())?;
    let result = connect_and_run(target, &process, &user, &mut signals, work).await;
    user.screen().finish();
    let grace = match &result {
        Err(exit) if *exit == CommandExit::CANCELLED => Duration::ZERO,
        _ => EXIT_GRACE_PERIOD,
    };
    tokio::select! {
        _ = process.shutdown(grace) => {}
        _ = signals.next() => {
            process.shutdown(Duration::ZERO).await;
        }
    }
    result
}

async fn connect_and_run<T>(
    target: StartTarget<'_>,
    process: &AgentProcess,
    user: &Arc<TerminalUser>,
    signals: &mut Signals,
    work: impl AsyncFnOnce(&AgentConnection, &TerminalScreen) -> Result<T, StartFailure>,
) -> Result<T, CommandExit> {
    let transport = start::transport(process)?;
    let client = SessionlessClient {
        notes: WatcherNotes::new(user.screen().clone()),
        elicitation: terminal_user::can_ask().then(|| TerminalElicitation::new(Arc::clone(user))),
    };
    let options = start::connection_options(target.agent, process);
    let screen = user.screen();
    let talking = async {
        let (handshake, driver) = acp::client::connect_with(transport, client, options);
        tokio::spawn(driver);
        let agent = note_if_slow(handshake, screen).await?;
        let meta = agent.capabilities().meta.as_ref();
        if let Some(live) = meta.and_then(|meta| meta.get("live")) {
            // Questions about turns of other clients are not for this one to answer. A server that does not know `shown`
            // would ask.
            let shows_questions = live["linePositions"] == true;
            let wanted = if shows_questions { "shown" } else { "none" };
            let questions = serde_json::json!({ "questions": wanted });
            agent
                .connection()
                .notify_raw("_live/answers", &questions)
                .await?;
        }
        let done = work(&agent, screen).await;
        agent.close();
        done
    };
    tokio::pin!(talking);
    let done = tokio::select! {
        biased;
        done = &mut talking => done,
        signal = signals.next() => {
            let asked = signal == ExitSignal::Interrupt && user.has_open_question();
            user.cancel_questions();
            if asked {
                // The agent learns that its question was cancelled, and may respond to that.
                tokio::select! {
                    _ = tokio::time::timeout(CANCEL_TIMEOUT, &mut talking) => {}
                    _ = signals.next() => {}
                }
            }
            return Err(CommandExit::CANCELLED);
        }
    };
    match done {
        Ok(done) => Ok(done),
        Err(failure) => Err(failure.exit(&target, process).await),
    }
}

/// Runs `work`, and shows a note if it is slow.
async fn note_if_slow<T>(work: impl Future<Output = T>, screen: &TerminalScreen) -> T {
    tokio::pin!(work);
    if let Ok(done) = tokio::time::timeout(SLOW_START_DELAY, &mut work).await {
        return done;
    }
    screen.note(SLOW_NOTE);
    work.await
}

/// The client side of a connection that runs no turns.
struct SessionlessClient {
    notes: WatcherNotes,
    /// The elicitation handler, if there is a user who can answer.
    elicitation: Option<TerminalElicitation>,
}

impl Client for SessionlessClient {
    type State = ();

    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("acp", env!("CARGO_PKG_VERSION")).title("acp"))
    }

    async fn request_permission(
        &self,
        (): &(),
        _request: PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        // A turn of another client asks. It is not for this one to answer.
        std::future::pending().await
    }

    fn supports_terminal_login(&self) -> bool {
        // Announced even without a terminal: the user then learns which command to run in one.
        true
    }

    fn elicitation(&self) -> Option<&impl Elicitation<()>> {
        self.elicitation.as_ref()
    }

    async fn extension_notification(&self, notification: ExtensionNotification) {
        let (method, params) = (notification.method(), notification.params());
        self.notes.handle(method, params);
    }

    async fn elicitation_completed(&self, id: &ElicitationId) {
        if let Some(elicit) = &self.elicitation {
            elicit.report_completed(id);
        }
    }
}
