//! Handles requests and notifications from MCP servers.
//!
//! The roots for servers are the session's directories. If a server requests input from the user while one of its tools
//! runs, the agent passes the request on to the client, if the client supports elicitation. Sampling, which lets a
//! server use the agent's model, is not supported, because it would let servers spend the user's money.

// MCP's next version removes roots and logging, but today's servers use them.
#![expect(deprecated)]

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError};

use acp::agent::{Session, Turn};
use acp::v1::{
    ElicitationAction as Answer, ElicitationId, ElicitationMode, ElicitationSchema, ToolCallId,
};
use rmcp::ClientHandler;
use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CustomNotification, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, Implementation, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    RequestId, Root, RootsCapabilities,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::{Mutex, Notify, Semaphore, watch};

use crate::text::truncate_to_head;

/// The maximum number of open pages to remember for a connection. A page is forgotten when the server reports that it
/// is completed.
const MAX_PAGES: usize = 64;

/// The maximum number of undelivered requests to remember for a connection.
const MAX_UNDELIVERED_REQUESTS: usize = 64;

/// The maximum length of a question shown to the user, in bytes.
const MAX_QUESTION_BYTES: usize = 8 * 1024;

/// The maximum size of a form shown to the user, in bytes of JSON.
const MAX_FORM_BYTES: usize = 64 * 1024;

/// The maximum length of a URL that the user is asked to open, in bytes.
const MAX_URL_BYTES: usize = 8 * 1024;

/// A server's progress report on a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct McpProgress {
    pub(super) done: f64,
    pub(super) total: Option<f64>,
    pub(super) message: Option<String>,
}

/// A request that is pending at an MCP server.
pub(super) struct RunningRequest {
    pub(super) turn: Turn,
    pub(super) call: Option<ToolCallId>,
    /// The latest progress that the server has reported.
    pub(super) progress: watch::Sender<Option<McpProgress>>,
}

/// A lost connection to a server.
#[derive(Debug, Clone)]
pub(super) struct ConnectionLoss {
    /// The reason for the loss, to show to the user.
    pub(super) why: Arc<str>,
    /// Whether the server is still running but has ended the MCP session.
    pub(super) has_expired: bool,
}

/// The state shared by all parts of a connection to a server.
pub(super) struct McpConnectionState {
    /// The pending requests. The lock is held while a request is sent, so that no progress is handled before the
    /// request is added.
    pub(super) running: Mutex<HashMap<ProgressToken, RunningRequest>>,
    /// Notified when the server's tools, prompts or resources have changed.
    pub(super) changed: Notify,
    /// Limits a server to one question to the user at a time. Additional questions are declined, so that a server
    /// cannot flood the user.
    elicitation_permits: Semaphore,
    /// The ids of the pages that the user was asked to open, oldest first. The server later reports when each page is
    /// completed.
    opened_pages: std::sync::Mutex<VecDeque<String>>,
    loss: watch::Sender<Option<ConnectionLoss>>,
    /// The most recent requests that did not reach the server. If such a failure ends the connection, the requests
    /// themselves may never report it.
    undelivered: std::sync::Mutex<VecDeque<RequestId>>,
}

impl McpConnectionState {
    pub(super) fn new() -> Self {
        Self {
            loss: watch::Sender::new(None),
            undelivered: std::sync::Mutex::default(),
            running: Mutex::default(),
            changed: Notify::new(),
            elicitation_permits: Semaphore::new(1),
            opened_pages: std::sync::Mutex::default(),
        }
    }

    /// Records that the user was asked to open the page with this id.
    fn record_page(&self, page: &str) {
        let mut pages = self.lock_pages();
        pages.push_back(page.to_owned());
        if pages.len() > MAX_PAGES {
            pages.pop_front();
        }
    }

    /// Returns `true` if the user was asked to open this page. Forgets the page.
    fn take_page(&self, page: &str) -> bool {
        let mut pages = self.lock_pages();
        let at = pages.iter().position(|known| known == page);
        at.and_then(|at| pages.remove(at)).is_some()
    }

    fn lock_pages(&self) -> std::sync::MutexGuard<'_, VecDeque<String>> {
        self.opened_pages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the connection as lost. Only the first reason is kept.
    pub(super) fn set_lost(&self, why: String, expired: bool) {
        self.loss.send_if_modified(|loss| {
            let first = loss.is_none();
            loss.get_or_insert_with(|| ConnectionLoss {
                why: why.into(),
                has_expired: expired,
            });
            first
        });
    }

    /// Records that a request did not reach the server.
    pub(super) fn record_undelivered(&self, request: RequestId) {
        let undelivered = &self.undelivered;
        let mut all = undelivered.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_back(request);
        if all.len() > MAX_UNDELIVERED_REQUESTS {
            all.pop_front();
        }
    }

    /// Returns `true` if the request is known to be undelivered.
    pub(super) fn is_undelivered(&self, request: &RequestId) -> bool {
        let undelivered = &self.undelivered;
        let all = undelivered.lock().unwrap_or_else(PoisonError::into_inner);
        all.contains(request)
    }

    /// Returns how the connection was lost, or `None` if it wasn't.
    pub(super) fn loss(&self) -> Option<ConnectionLoss> {
        self.loss.borrow().clone()
    }

    /// Waits until the connection is lost.
    pub(super) async fn wait_until_lost(&self) -> ConnectionLoss {
        let mut loss = self.loss.subscribe();
        loop {
            if let Some(loss) = &*loss.borrow_and_update() {
                return loss.clone();
            }
            if loss.changed().await.is_err() {
                // The sender was dropped. This does not happen, because the sender is in `self`.
                std::future::pending::<()>().await;
            }
        }
    }
}

/// The agent's side of a connection to a server.
pub(super) struct McpClientHandler {
    session: Session,
    name: String,
    key: String,
    shared: Arc<McpConnectionState>,
}

/// A server's question to the user.
struct ServerQuestion {
    message: String,
    mode: ElicitationMode,
    /// The server's id for the web page where the user must answer, if any.
    page: Option<String>,
}

impl McpClientHandler {
    /// Creates the handler for a server with this name. `key` is unique in the session.
    pub(super) fn new(
        session: Session,
        name: String,
        key: String,
        connection_state: Arc<McpConnectionState>,
    ) -> Self {
        Self {
            session,
            name,
            key,
            shared: connection_state,
        }
    }

    /// Returns the client's id for a page. The id includes the server's key, because two servers may use the same ids.
    fn page_elicitation_id(&self, id: &str) -> ElicitationId {
        format!("{}/{id}", self.key).into()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the state that all parts of the connection share.
    pub(super) fn shared(&self) -> Arc<McpConnectionState> {
        Arc::clone(&self.shared)
    }

    /// Parses a question from a server. Returns `None` if its type is unknown.
    fn read_question(
        &self,
        request: ElicitRequestParams,
    ) -> Result<Option<ServerQuestion>, ErrorData> {
        let refused = |why: &'static str| ErrorData::invalid_params(why, None);
        Ok(match request {
            ElicitRequestParams::FormElicitationParams {
                message,
                requested_schema,
                ..
            } => {
                let unreadable = |e: serde_json::Error| {
                    ErrorData::invalid_params(format!("invalid form: {e}"), None)
                };
                // MCP and ACP define forms in the same way.
                let schema = serde_json::to_string(&requested_schema).map_err(unreadable)?;
                if schema.len() > MAX_FORM_BYTES {
                    return Err(refused("the form is too large to show"));
                }
                let requested_schema: ElicitationSchema =
                    serde_json::from_str(&schema).map_err(unreadable)?;
                Some(ServerQuestion {
                    message,
                    mode: ElicitationMode::Form { requested_schema },
                    page: None,
                })
            }
            ElicitRequestParams::UrlElicitationParams {
                message,
                url,
                elicitation_id,
                ..
            } => {
                // The URL is opened in a browser, so do not accept local files or scripts.
                let web = ["https://", "http://"];
                if url.len() > MAX_URL_BYTES || !web.iter().any(|it| url.starts_with(it)) {
                    return Err(refused(
                        "invalid URL: too long, or does not start with http:// or https://",
                    ));
                }
                let mode = ElicitationMode::Url {
                    elicitation_id: self.page_elicitation_id(&elicitation_id),
                    url,
                };
                Some(ServerQuestion {
                    message,
                    mode,
                    page: Some(elicitation_id),
                })
            }
            _ => None,
        })
    }

    /// Asks the user for input as part of a turn that is waiting for this server. Outside of such a turn, declines the
    /// request.
    async fn ask(&self, request: ElicitRequestParams) -> Result<ElicitResult, ErrorData> {
        let nobody = || ElicitResult::new(ElicitationAction::Decline);
        let Ok(_asking) = self.shared.elicitation_permits.try_acquire() else {
            return Ok(nobody());
        };
        let turn = {
            let running = self.shared.running.lock().await;
            let of_call = running.values().next();
            of_call.map(|running| (running.turn.clone(), running.call.clone()))
        };
        // Outside of a turn, decline the request, because the user would see a question without any context.
        let Some((turn, call)) = turn else {
            return Ok(nobody());
        };
        let Some(question) = self.read_question(request)? else {
            return Ok(nobody());
        };
        let ServerQuestion {
            message,
            mode,
            page,
        } = question;
        let message = truncate_to_head(&message, MAX_QUESTION_BYTES);
        let message = format!("The MCP server `{}` asks: {message}", self.name);
        if let Some(page) = &page {
            // Record the page before the client responds, because the user may complete it first.
            self.shared.record_page(page);
        }
        let answered = turn.elicit(message, mode, call).await;
        if let (Some(page), false) = (&page, matches!(answered, Ok(Answer::Accept(_)))) {
            self.shared.take_page(page);
        }
        match answered {
            Ok(Answer::Accept(accepted)) => {
                let result = ElicitResult::new(ElicitationAction::Accept);
                Ok(match serde_json::to_value(&accepted.content) {
                    Ok(content) if !content.is_null() => result.with_content(content),
                    _ => result,
                })
            }
            Ok(Answer::Cancel(_)) => Ok(ElicitResult::new(ElicitationAction::Cancel)),
            Ok(_) => Ok(nobody()),
            Err(error) => {
                tracing::debug!(server = self.name, %error, "cannot show an MCP server's question to the user");
                Ok(nobody())
            }
        }
    }
}

impl ClientHandler for McpClientHandler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        if let Some(offered) = &self.session.client().capabilities().elicitation {
            let mut elicitation = ElicitationCapability::new();
            elicitation.form = offered.form.as_ref().map(|_| Default::default());
            elicitation.url = offered.url.as_ref().map(|_| Default::default());
            capabilities.elicitation = Some(elicitation);
        }
        let agent = Implementation::new("acp-agent", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, agent)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let roots = self.session.roots().iter();
        // Skip a path of another operating system, which a client in a container may have. It is not a file here.
        let urls = roots.filter_map(|root| reqwest::Url::from_directory_path(root).ok());
        Ok(ListRootsResult::new(
            urls.map(|url| Root::new(url.as_str().trim_end_matches('/')))
                .collect(),
        ))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            // The server has cancelled its request.
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
            answer = self.ask(request) => answer,
        }
    }

    async fn on_progress(
        &self,
        told: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let running = self.shared.running.lock().await;
        if let Some(running) = running.get(&told.progress_token) {
            running.progress.send_replace(Some(McpProgress {
                done: told.progress,
                total: told.total,
                message: told.message,
            }));
        }
    }

    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        tracing::debug!(server = self.name, data = %message.data, "MCP server log");
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.shared.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.shared.changed.notify_one();
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleClient>,
    ) {
        if notification.method != "notifications/elicitation/complete" {
            return;
        }
        let params = notification.params.unwrap_or_default();
        let id = params.get("elicitationId").and_then(|id| id.as_str());
        let Some(id) = id.filter(|id| self.shared.take_page(id)) else {
            return;
        };
        if let Err(error) = self
            .session
            .complete_elicitation(self.page_elicitation_id(id))
            .await
        {
            tracing::debug!(server = self.name, %error, "cannot notify the client");
        }
    }
}
