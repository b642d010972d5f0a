//! Talking to an agent about something that is no session: what it takes to log in, which sessions it has.

use std::sync::Arc;
use std::time::Duration;

use acp::client::{AgentConnection, Client, Elicitation};
use acp::v1::{ElicitationId, Implementation};
use acp_host::AgentProcess;

use crate::elicit::TerminalElicitation;
use crate::exit::CommandExit;
use crate::screen::TerminalScreen;
use crate::signals::{ExitSignal, Signals};
use crate::start::{self, GRACE, SLOW, SLOW_START, StartFailure, StartTarget};
use crate::terminal_user::{self, TerminalUser};

/// How long an agent may take to answer once the person has left its question unanswered.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Starts the agent, does `work` with it, and ends it: when this returns, it does not run any more.
pub(crate) async fn with_agent<T>(
    target: StartTarget<'_>,
    work: impl AsyncFnOnce(&AgentConnection, &TerminalScreen) -> Result<T, StartFailure>,
) -> Result<T, CommandExit> {
    let mut signals = Signals::listen()
        .map_err(|e| CommandExit::failed(format!("cannot listen for signals: {e}")))?;
    let person = TerminalUser::new(TerminalScreen::new(false));
    let process = target.spawn()?;
    let visited = connect_and_run(target, &process, &person, &mut signals, work).await;
    person.screen().finish();
    let grace = match &visited {
        Err(exit) if *exit == CommandExit::CANCELLED => Duration::ZERO,
        _ => GRACE,
    };
    tokio::select! {
        _ = process.shutdown(grace) => {}
        _ = signals.next() => {
            process.shutdown(Duration::ZERO).await;
        }
    }
    visited
}

async fn connect_and_run<T>(
    target: StartTarget<'_>,
    process: &AgentProcess,
    person: &Arc<TerminalUser>,
    signals: &mut Signals,
    work: impl AsyncFnOnce(&AgentConnection, &TerminalScreen) -> Result<T, StartFailure>,
) -> Result<T, CommandExit> {
    let transport = start::transport(process)?;
    let client = VisitClient {
        elicitation: terminal_user::can_ask().then(|| TerminalElicitation::new(Arc::clone(person))),
    };
    let options = start::options(target.agent, process);
    let screen = person.screen();
    let talking = async {
        let (handshake, driver) = acp::client::connect_with(transport, client, options);
        tokio::spawn(driver);
        let agent = note_if_slow(handshake, screen).await?;
        let done = work(&agent, screen).await;
        agent.close();
        done
    };
    tokio::pin!(talking);
    let done = tokio::select! {
        biased;
        done = &mut talking => done,
        signal = signals.next() => {
            let asked = signal == ExitSignal::Interrupt && person.is_asked();
            person.cancel_questions();
            if asked {
                // The agent hears that its question has no answer, and may say what comes of that.
                tokio::select! {
                    _ = tokio::time::timeout(LAST_WORDS, &mut talking) => {}
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

/// Says so if it takes long.
async fn note_if_slow<T>(work: impl Future<Output = T>, screen: &TerminalScreen) -> T {
    tokio::pin!(work);
    if let Ok(done) = tokio::time::timeout(SLOW_START, &mut work).await {
        return done;
    }
    screen.note(SLOW);
    work.await
}

/// What these commands are to an agent.
struct VisitClient {
    /// Where there is someone to ask.
    elicitation: Option<TerminalElicitation>,
}

impl Client for VisitClient {
    type State = ();

    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("acp", env!("CARGO_PKG_VERSION")).title("acp"))
    }

    fn terminal_login(&self) -> bool {
        // Also where there is none: a person is told then what to do where there is one.
        true
    }

    fn elicitation(&self) -> Option<&impl Elicitation<()>> {
        self.elicitation.as_ref()
    }

    async fn elicitation_completed(&self, id: &ElicitationId) {
        if let Some(elicit) = &self.elicitation {
            elicit.completed(id);
        }
    }
}
