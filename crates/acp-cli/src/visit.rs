//! Talking to an agent about something that is no session: what it takes to log in, which sessions it has.

use std::sync::Arc;
use std::time::Duration;

use acp::client::{AgentConnection, Client, Elicitation};
use acp::v1::{ElicitationId, Implementation};
use acp_host::AgentProcess;

use crate::ask::{self, Person};
use crate::elicit::Elicit;
use crate::exit::Exit;
use crate::screen::Screen;
use crate::signals::{Signal, Signals};
use crate::start::{self, Failure, GRACE, SLOW, SLOW_START, Target};

/// How long an agent may take to answer once the person has left its question unanswered.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Starts the agent, does `work` with it, and ends it: when this returns, it does not run any more.
pub(crate) async fn visit<T>(
    target: Target<'_>,
    work: impl AsyncFnOnce(&AgentConnection, &Screen) -> Result<T, Failure>,
) -> Result<T, Exit> {
    let mut signals =
        Signals::listen().map_err(|e| Exit::failed(format!("cannot listen for signals: {e}")))?;
    let person = Person::new(Screen::new(false));
    let process = target.spawn()?;
    let visited = talk(target, &process, &person, &mut signals, work).await;
    person.screen().finish();
    let grace = match &visited {
        Err(exit) if *exit == Exit::CANCELLED => Duration::ZERO,
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

async fn talk<T>(
    target: Target<'_>,
    process: &AgentProcess,
    person: &Arc<Person>,
    signals: &mut Signals,
    work: impl AsyncFnOnce(&AgentConnection, &Screen) -> Result<T, Failure>,
) -> Result<T, Exit> {
    let transport = start::transport(process)?;
    let client = Visitor {
        elicit: ask::possible().then(|| Elicit::new(Arc::clone(person))),
    };
    let options = start::options(target.agent, process);
    let screen = person.screen();
    let talking = async {
        let (handshake, driver) = acp::client::connect_with(transport, client, options);
        tokio::spawn(driver);
        let agent = slowly(handshake, screen).await?;
        let done = work(&agent, screen).await;
        agent.close();
        done
    };
    tokio::pin!(talking);
    let done = tokio::select! {
        biased;
        done = &mut talking => done,
        signal = signals.next() => {
            let asked = signal == Signal::Interrupt && person.is_asked();
            person.leave();
            if asked {
                // The agent hears that its question has no answer, and may say what comes of that.
                tokio::select! {
                    _ = tokio::time::timeout(LAST_WORDS, &mut talking) => {}
                    _ = signals.next() => {}
                }
            }
            return Err(Exit::CANCELLED);
        }
    };
    match done {
        Ok(done) => Ok(done),
        Err(failure) => Err(failure.exit(&target, process).await),
    }
}

/// Says so if it takes long.
async fn slowly<T>(work: impl Future<Output = T>, screen: &Screen) -> T {
    tokio::pin!(work);
    if let Ok(done) = tokio::time::timeout(SLOW_START, &mut work).await {
        return done;
    }
    screen.note(SLOW);
    work.await
}

/// What these commands are to an agent.
struct Visitor {
    /// Where there is someone to ask.
    elicit: Option<Elicit>,
}

impl Client for Visitor {
    type State = ();

    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("acp", env!("CARGO_PKG_VERSION")).title("acp"))
    }

    fn terminal_login(&self) -> bool {
        // Also where there is none: a person is told then what to do where there is one.
        true
    }

    fn elicitation(&self) -> Option<&impl Elicitation<()>> {
        self.elicit.as_ref()
    }

    async fn elicitation_completed(&self, id: &ElicitationId) {
        if let Some(elicit) = &self.elicit {
            elicit.completed(id);
        }
    }
}
