//! Sends requests to an MCP server during a turn. A request ends early if the turn is cancelled, the time limit is
//! reached or the connection is lost.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CancelledNotificationParam, ClientRequest, PingRequest, ServerResult};
use rmcp::service::{PeerRequestOptions, ServiceError};
use rmcp::transport::DynamicTransportError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::failure::ConnectFailure;
use super::handler::{McpProgress, RunningRequest};
use super::limits::McpLimits;
use super::listing::McpListing;
use super::server::SessionMcpServer;
use super::sse::SseError;
use crate::reported_call::{ReportedCall, text_content};
use crate::text::truncate_to_head;
use crate::workspace::Workspace;
use crate::workspace::tool_failure::ToolFailure;

/// The minimum time between two progress updates to the client.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// The time limit for sending a cancellation to the server.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// How long to wait to learn why a connection was lost.
const LOSS_REASON_TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum length of a progress or error message from a server that is shown to the user, in bytes.
const MAX_MESSAGE_BYTES: usize = 4 * 1024;

/// The factor by which progress reports extend the time limit of a call.
const PROGRESS_FACTOR: u32 = 10;

/// Why a request got no response.
enum McpRequestError {
    /// The request did not reach the server.
    Undelivered(ToolFailure),
    Fault(ToolFailure),
}

impl From<McpRequestError> for ToolFailure {
    fn from(unanswered: McpRequestError) -> Self {
        match unanswered {
            McpRequestError::Undelivered(fault) | McpRequestError::Fault(fault) => fault,
        }
    }
}

impl SessionMcpServer {
    /// Sends a request and waits for the response. Shows progress in `call`, if given. If the connection was lost and
    /// the request did not reach the server, sends it again as soon as the server has reconnected. A request that may
    /// have reached the server is not repeated, because the server may have acted on it.
    pub(super) async fn request_with_retry(
        &self,
        ready: &McpListing,
        workspace: &Workspace,
        request: ClientRequest,
        limits: &McpLimits,
        call: Option<&ReportedCall>,
    ) -> Result<ServerResult, ToolFailure> {
        let limit = limits.call;
        let attempt = self.send_request_once(ready, workspace, request.clone(), limit, call);
        let fault = match attempt.await {
            Err(McpRequestError::Undelivered(fault)) => fault,
            answered => return Ok(answered?),
        };
        let again = self.wait_until_reconnected(ready, limits.reconnect);
        match workspace.run_unless_cancelled(again).await? {
            Some(ready) => {
                let attempt = self.send_request_once(&ready, workspace, request, limit, call);
                Ok(attempt.await?)
            }
            None => Err(fault),
        }
    }

    async fn send_request_once(
        &self,
        ready: &McpListing,
        workspace: &Workspace,
        request: ClientRequest,
        limit: Duration,
        call: Option<&ReportedCall>,
    ) -> Result<ServerResult, McpRequestError> {
        workspace
            .check_cancelled()
            .map_err(McpRequestError::Fault)?;
        if let Some(loss) = ready.shared.loss() {
            return Err(McpRequestError::Undelivered(ToolFailure::failed(
                &*loss.why,
            )));
        }
        let options = PeerRequestOptions::with_timeout(limit)
            .reset_timeout_on_progress()
            .with_max_total_timeout(limit.saturating_mul(PROGRESS_FACTOR));
        let (told, mut progress) = watch::channel(None);
        let running = RunningRequest {
            turn: workspace.turn.clone(),
            call: call.map(|call| call.id().clone()),
            progress: told,
        };
        // Hold the lock while sending, because the server may report progress immediately.
        let mut all = ready.shared.running.lock().await;
        let sent = ready.peer.send_request_with_option(request, options).await;
        let sent = match sent {
            Ok(sent) => sent,
            Err(error) => {
                drop(all);
                return Err(self.request_error(ready, error).await);
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
                    let why = Some("the user cancelled the turn".to_owned());
                    let cancel = CancelledNotificationParam::new(Some(id.clone()), why);
                    if timeout(CANCEL_TIMEOUT, ready.peer.notify_cancelled(cancel)).await.is_err() {
                        tracing::debug!(server = self.name, "cannot send a cancellation to an MCP server");
                    }
                    break Err(McpRequestError::Fault(ToolFailure::Stop(acp::Error::Cancelled)));
                }
                answer = &mut answer => break match answer {
                    Ok(answer) => Ok(answer),
                    Err(error) => Err(self.request_error(ready, error).await),
                },
                () = wait_for_progress_after(next, &mut progress) => {
                    let news = progress.borrow_and_update().clone();
                    if let (Some(news), Some(call)) = (news, call) {
                        next = Instant::now() + PROGRESS_INTERVAL;
                        if let Err(error) = call.set_content(vec![text_content(progress_text(&news))]).await {
                            break Err(McpRequestError::Fault(error.into()));
                        }
                    }
                }
            }
        };
        ready.shared.running.lock().await.remove(&token);
        match answered {
            Err(McpRequestError::Fault(fault @ ToolFailure::Failed(_)))
                if ready.shared.is_undelivered(&id) =>
            {
                Err(McpRequestError::Undelivered(fault))
            }
            answered => answered,
        }
    }

    /// Converts an `rmcp` service error to a request error.
    async fn request_error(&self, ready: &McpListing, error: ServiceError) -> McpRequestError {
        let name = &self.name;
        let why = match error {
            ServiceError::McpError(error) => {
                let server_message = truncate_to_head(&error.message, MAX_MESSAGE_BYTES);
                format!("The MCP server `{name}` rejected the request: {server_message}")
            }
            ServiceError::Timeout { timeout } => format!(
                "The MCP server `{name}` did not respond within {} s; the request was cancelled.",
                timeout.as_secs_f32()
            ),
            ServiceError::TransportClosed => match loss_reason(ready).await {
                Some(why) => why.to_string(),
                None => format!("The MCP server `{name}` sent an incomplete response."),
            },
            ServiceError::TransportSend(error) => {
                let undelivered = is_undelivered_by_sse(&error);
                let why = match ready.shared.loss() {
                    Some(loss) => loss.why.to_string(),
                    None => format!(
                        "The MCP server `{name}` rejected the request. {}",
                        ConnectFailure::from_transport_error(&error).why
                    ),
                };
                if undelivered {
                    return McpRequestError::Undelivered(ToolFailure::failed(why));
                }
                why
            }
            other => format!("The MCP server `{name}` returned an error: {other}"),
        };
        McpRequestError::Fault(ToolFailure::failed(why))
    }
}

/// Returns `true` if a message did not reach a server over the older transport with server-sent events. The Streamable
/// HTTP transport reports that itself (`http.rs`).
fn is_undelivered_by_sse(error: &DynamicTransportError) -> bool {
    let error = error.error.downcast_ref::<SseError>();
    matches!(error, Some(SseError::Http(error)) if error.is_connect())
}

/// Returns how the connection was lost, or `None` if it wasn't. Pings the server in case only the response is missing.
async fn loss_reason(ready: &McpListing) -> Option<Arc<str>> {
    if let Some(loss) = ready.shared.loss() {
        return Some(loss.why);
    }
    let options = PeerRequestOptions::with_timeout(LOSS_REASON_TIMEOUT);
    let ping = ClientRequest::PingRequest(PingRequest::default());
    let alive = async {
        let sent = ready.peer.send_request_with_option(ping, options).await;
        match sent {
            Ok(sent) => !matches!(
                sent.await_response().await,
                Err(ServiceError::TransportClosed | ServiceError::TransportSend(_))
            ),
            Err(_) => false,
        }
    };
    if alive.await {
        return None;
    }
    let loss = timeout(LOSS_REASON_TIMEOUT, ready.shared.wait_until_lost()).await;
    loss.ok().map(|loss| loss.why)
}

/// Waits until `at`, then for new progress. Waits forever if no more progress can arrive.
async fn wait_for_progress_after(at: Instant, progress: &mut watch::Receiver<Option<McpProgress>>) {
    sleep_until(at).await;
    if progress.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Formats a server's progress report for the user.
fn progress_text(progress: &McpProgress) -> String {
    let done = match progress.total {
        Some(total) => format!("{} of {total}", progress.done),
        None => progress.done.to_string(),
    };
    match &progress.message {
        Some(message) => format!("{done}: {}", truncate_to_head(message, MAX_MESSAGE_BYTES)),
        None => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_formatted_as_text() {
        let progress = |done, total, message: Option<&str>| McpProgress {
            done,
            total,
            message: message.map(str::to_owned),
        };
        assert_eq!(progress_text(&progress(1.0, Some(4.0), None)), "1 of 4");
        assert_eq!(
            progress_text(&progress(0.5, None, Some("reading"))),
            "0.5: reading"
        );
    }
}
