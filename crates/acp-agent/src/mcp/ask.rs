//! A request to a server in a turn: waited for as long as the turn is not cancelled, the limit is not reached and
//! the server lives.

use std::time::Duration;

use acp::agent::ToolCallHandle;
use rmcp::model::{CancelledNotificationParam, ClientRequest, ServerResult};
use rmcp::service::{PeerRequestOptions, ServiceError};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::handler::{Progress, Running};
use super::server::{Ready, Server};
use crate::tools::{head, text};
use crate::workspace::{Fault, Workspace};

/// How often progress is shown at most.
const SHOW_EVERY: Duration = Duration::from_millis(100);

/// How long a server may take to be told that its answer is no longer wanted.
const TELLING: Duration = Duration::from_secs(1);

/// How long after its connection is lost it may take to know why.
const ENDING: Duration = Duration::from_secs(2);

/// The longest message of a server's progress that is shown, in bytes.
const LONGEST: usize = 1024;

/// How many times the limit of a call it may take altogether if the server tells of progress.
const WITH_PROGRESS: u32 = 10;

impl Server {
    /// Asks, and shows progress in the tool call if there is one.
    pub(super) async fn ask(
        &self,
        ready: &Ready,
        workspace: &Workspace,
        request: ClientRequest,
        limit: Duration,
        call: Option<&ToolCallHandle>,
    ) -> Result<ServerResult, Fault> {
        workspace.go_on()?;
        let options = PeerRequestOptions::with_timeout(limit)
            .reset_timeout_on_progress()
            .with_max_total_timeout(limit.saturating_mul(WITH_PROGRESS));
        let (told, mut progress) = watch::channel(None);
        let running = Running {
            turn: workspace.turn.clone(),
            call: call.map(|call| call.id().clone()),
            progress: told,
        };
        // From before it is sent: the server may tell of it at once.
        let mut all = ready.shared.running.lock().await;
        let sent = ready.peer.send_request_with_option(request, options).await;
        let sent = match sent {
            Ok(sent) => sent,
            Err(error) => {
                drop(all);
                return Err(self.fault(error).await);
            }
        };
        let (id, token) = (sent.id.clone(), sent.progress_token.clone());
        all.insert(token.clone(), running);
        drop(all);
        let answer = sent.await_response();
        tokio::pin!(answer);
        let mut next = Instant::now();
        let answered = loop {
            tokio::select! {
                biased;
                () = workspace.turn.cancelled() => {
                    let why = Some("the person has cancelled the turn".to_owned());
                    let cancel = CancelledNotificationParam::new(Some(id), why);
                    if timeout(TELLING, ready.peer.notify_cancelled(cancel)).await.is_err() {
                        tracing::debug!(server = self.name, "it takes no messages");
                    }
                    break Err(Fault::Stop(acp::Error::Cancelled));
                }
                answer = &mut answer => break match answer {
                    Ok(answer) => Ok(answer),
                    Err(error) => Err(self.fault(error).await),
                },
                changed = later(next, &mut progress) => {
                    let news = progress.borrow_and_update().clone();
                    if let (true, Some(news), Some(call)) = (changed, news, call) {
                        next = Instant::now() + SHOW_EVERY;
                        if let Err(error) = call.content(vec![text(shown(&news))]).await {
                            break Err(error.into());
                        }
                    }
                }
            }
        };
        ready.shared.running.lock().await.remove(&token);
        answered
    }

    /// What a request that failed means.
    async fn fault(&self, error: ServiceError) -> Fault {
        let name = &self.name;
        Fault::failed(match error {
            ServiceError::McpError(error) => {
                format!("The MCP server `{name}` refused this: {}", error.message)
            }
            ServiceError::Timeout { timeout } => format!(
                "The MCP server `{name}` did not answer within {} s, and was told that it need not.",
                timeout.as_secs_f32()
            ),
            ServiceError::TransportClosed => match self.failed(ENDING).await {
                Some(why) => why.to_string(),
                None => format!("The MCP server `{name}` has closed the connection."),
            },
            ServiceError::TransportSend(error) => {
                format!("The MCP server `{name}` cannot be reached: {}", error.error)
            }
            other => format!("The MCP server `{name}` did not do this: {other}"),
        })
    }
}

/// Waits for news, and not too often. Whether there are any; if the server can tell none any more, for ever.
async fn later(at: Instant, progress: &mut watch::Receiver<Option<Progress>>) -> bool {
    sleep_until(at).await;
    if progress.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
    true
}

/// Progress, for the person.
fn shown(progress: &Progress) -> String {
    let done = match progress.total {
        Some(total) => format!("{} of {total}", progress.done),
        None => progress.done.to_string(),
    };
    match &progress.message {
        Some(message) => format!("{done}: {}", head(message, LONGEST)),
        None => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_in_words() {
        let progress = |done, total, message: Option<&str>| Progress {
            done,
            total,
            message: message.map(str::to_owned),
        };
        assert_eq!(shown(&progress(1.0, Some(4.0), None)), "1 of 4");
        assert_eq!(shown(&progress(0.5, None, Some("reading"))), "0.5: reading");
    }
}
