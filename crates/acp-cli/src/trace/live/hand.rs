//! Messages that the user sends by hand.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use acp_trace::{HandMessage, InjectError, MessageInjector, Side};
use serde::Deserialize;
use tokio::sync::Semaphore;

/// How long a page waits for a message to be sent. After that, the message still waits, and the page is told so.
const SEND_TIMEOUT: Duration = Duration::from_secs(3);

/// How long to wait for the message before, which may just be about to be sent.
const PERMIT_TIMEOUT: Duration = Duration::from_millis(300);

/// What a page sends, to be sent to a side.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SendCommand {
    to: Side,
    text: String,
    #[serde(default)]
    expects_response: bool,
}

/// What became of a message.
#[derive(Debug)]
pub(super) enum SendOutcome {
    /// The message was sent. A request has got this id.
    Sent(Option<String>),
    /// The message is still waiting: the other side is in the middle of a line, or this side does not read.
    Waiting,
    /// The message cannot be sent, for this reason.
    Rejected(String),
}

/// Sends messages to the agent and the client, once they are connected.
#[derive(Debug, Default)]
pub(super) struct HandSender {
    injectors: OnceLock<SideInjectors>,
}

#[derive(Debug)]
struct SideInjectors {
    agent: SideInjector,
    client: SideInjector,
}

#[derive(Debug)]
struct SideInjector {
    injector: MessageInjector,
    /// Permits one message at a time, because sending blocks a thread.
    permit: Arc<Semaphore>,
}

impl HandSender {
    /// Connects both sides. Until then, nothing can be sent.
    pub(super) fn connect(&self, to_agent: MessageInjector, to_client: MessageInjector) {
        let side = |injector| SideInjector {
            injector,
            permit: Arc::new(Semaphore::new(1)),
        };
        // There is only one connection.
        let _ = self.injectors.set(SideInjectors {
            agent: side(to_agent),
            client: side(to_client),
        });
    }

    pub(super) async fn send(&self, command: &SendCommand) -> SendOutcome {
        let message = match HandMessage::parse(&command.text, command.expects_response) {
            Ok(message) => message,
            Err(e) => return SendOutcome::Rejected(e.to_string()),
        };
        let Some(injectors) = self.injectors.get() else {
            return SendOutcome::Rejected("the agent has not been started yet".to_owned());
        };
        let to = match command.to {
            Side::Agent => &injectors.agent,
            Side::Client => &injectors.client,
        };
        let permit = Arc::clone(&to.permit).acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout(PERMIT_TIMEOUT, permit).await else {
            let busy = InjectError::Busy { to: command.to };
            return SendOutcome::Rejected(busy.to_string());
        };
        let injector = to.injector.clone();
        let sending = tokio::task::spawn_blocking(move || {
            let sent = injector.send(&message);
            drop(permit);
            sent
        });
        match tokio::time::timeout(SEND_TIMEOUT, sending).await {
            Ok(Ok(Ok(id))) => SendOutcome::Sent(id),
            Ok(Ok(Err(e))) => SendOutcome::Rejected(e.to_string()),
            Ok(Err(e)) => SendOutcome::Rejected(e.to_string()),
            Err(_) => SendOutcome::Waiting,
        }
    }
}
