//! What servers may ask of the agent, and tell it.
//!
//! Roots are the session's directories. What a server wants to know of the person while one of its tools runs
//! is asked through the client, where that shows such questions. Sampling, which is asking the agent's model, is
//! not offered: it would spend the person's money at a server's will.

// MCP's next version drops roots and logs; the servers of today use them.
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

use crate::text::head;

/// How many pages whose end is not known are remembered for a connection.
const PAGES: usize = 64;

/// How many requests that were not delivered are remembered for a connection: it ends with the first.
const UNDELIVERED: usize = 64;

/// The longest question, the largest form and the longest address that a person is shown, in bytes.
const LONGEST_QUESTION: usize = 8 * 1024;
const LARGEST_FORM: usize = 64 * 1024;
const LONGEST_URL: usize = 8 * 1024;

/// What a server tells of a call that runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct McpProgress {
    pub(super) done: f64,
    pub(super) total: Option<f64>,
    pub(super) message: Option<String>,
}

/// A request that runs at a server.
pub(super) struct RunningRequest {
    pub(super) turn: Turn,
    pub(super) call: Option<ToolCallId>,
    /// The last that was told.
    pub(super) progress: watch::Sender<Option<McpProgress>>,
}

/// Why a connection to a server is no more.
#[derive(Debug, Clone)]
pub(super) struct ConnectionLoss {
    /// For people.
    pub(super) why: Arc<str>,
    /// The server is there, and has forgotten this connection.
    pub(super) has_expired: bool,
}

/// What all that have to do with one connection to a server have in common.
pub(super) struct McpConnectionState {
    /// The requests that run. Locked until a request is in here, so that nothing told of it comes too early.
    pub(super) running: Mutex<HashMap<ProgressToken, RunningRequest>>,
    /// The server has other tools, prompts or resources now.
    pub(super) changed: Notify,
    /// The person is asked one question of a server at a time, and what comes meanwhile is declined: a server
    /// must not heap up questions.
    elicitation_permits: Semaphore,
    /// The pages to which the person was sent, by the server's ids, the last ones: what is done there is told later.
    opened_pages: std::sync::Mutex<VecDeque<String>>,
    loss: watch::Sender<Option<ConnectionLoss>>,
    /// Requests that have not reached the server, the last ones: their own errors may not arrive any more when the
    /// connection ends for that reason.
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

    /// The person is sent to this page.
    fn record_page(&self, page: &str) {
        let mut pages = self.lock_pages();
        pages.push_back(page.to_owned());
        if pages.len() > PAGES {
            pages.pop_front();
        }
    }

    /// Whether the person was sent to this page. It is forgotten then.
    fn has_opened_page(&self, page: &str) -> bool {
        let mut pages = self.lock_pages();
        let at = pages.iter().position(|known| known == page);
        at.and_then(|at| pages.remove(at)).is_some()
    }

    fn lock_pages(&self) -> std::sync::MutexGuard<'_, VecDeque<String>> {
        self.opened_pages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that the connection is lost. What is said first counts.
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

    /// This request has not reached the server.
    pub(super) fn set_undelivered(&self, request: RequestId) {
        let undelivered = &self.undelivered;
        let mut all = undelivered.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_back(request);
        if all.len() > UNDELIVERED {
            all.pop_front();
        }
    }

    /// Whether this request is known not to have reached the server.
    pub(super) fn is_undelivered(&self, request: &RequestId) -> bool {
        let undelivered = &self.undelivered;
        let all = undelivered.lock().unwrap_or_else(PoisonError::into_inner);
        all.contains(request)
    }

    /// Why the connection is lost, if it is known to be.
    pub(super) fn loss(&self) -> Option<ConnectionLoss> {
        self.loss.borrow().clone()
    }

    /// Waits until the connection is lost.
    pub(super) async fn wait_lost(&self) -> ConnectionLoss {
        let mut loss = self.loss.subscribe();
        loop {
            if let Some(loss) = &*loss.borrow_and_update() {
                return loss.clone();
            }
            if loss.changed().await.is_err() {
                // Nobody can say so any more. The sender is in `self`, so that this does not happen.
                std::future::pending::<()>().await;
            }
        }
    }
}

/// The agent's side of a connection.
pub(super) struct McpClientHandler {
    session: Session,
    name: String,
    key: String,
    shared: Arc<McpConnectionState>,
}

impl McpClientHandler {
    /// That of a server with this name, and this key, which is its own among those of the session.
    pub(super) fn new(
        session: Session,
        name: String,
        key: String,
        shared: Arc<McpConnectionState>,
    ) -> Self {
        Self {
            session,
            name,
            key,
            shared,
        }
    }

    /// What the client knows a page by. Two servers may have the same ids.
    fn page_elicitation_id(&self, id: &str) -> ElicitationId {
        format!("{}/{id}", self.key).into()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What it has in common with the rest of its connection.
    pub(super) fn shared(&self) -> Arc<McpConnectionState> {
        Arc::clone(&self.shared)
    }

    /// Asks the person, in the turn that has the server work.
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
        // Outside of a turn there is nobody to ask: whatever is shown then looks as if it came from nowhere.
        let Some((turn, call)) = turn else {
            return Ok(nobody());
        };
        let refused = |why: &'static str| ErrorData::invalid_params(why, None);
        let mut page = None;
        let (message, mode) = match request {
            ElicitRequestParams::FormElicitationParams {
                message,
                requested_schema,
                ..
            } => {
                let unreadable = |e: serde_json::Error| {
                    ErrorData::invalid_params(format!("invalid form: {e}"), None)
                };
                // Both protocols have the same forms.
                let schema = serde_json::to_string(&requested_schema).map_err(unreadable)?;
                if schema.len() > LARGEST_FORM {
                    return Err(refused("the form is too large to show"));
                }
                let requested_schema: ElicitationSchema =
                    serde_json::from_str(&schema).map_err(unreadable)?;
                (message, ElicitationMode::Form { requested_schema })
            }
            ElicitRequestParams::UrlElicitationParams {
                message,
                url,
                elicitation_id,
                ..
            } => {
                // A browser opens it: no file of this machine, and no script.
                let web = ["https://", "http://"];
                if url.len() > LONGEST_URL || !web.iter().any(|it| url.starts_with(it)) {
                    return Err(refused("not a URL that can be opened"));
                }
                let elicitation_id = self.page_elicitation_id(page.insert(elicitation_id));
                (
                    message,
                    ElicitationMode::Url {
                        elicitation_id,
                        url,
                    },
                )
            }
            _ => return Ok(nobody()),
        };
        let message = head(&message, LONGEST_QUESTION);
        let message = format!("The MCP server `{}` asks: {message}", self.name);
        if let Some(page) = &page {
            // Now: the person may be done there before the client says that they went.
            self.shared.record_page(page);
        }
        let answered = turn.elicit(message, mode, call).await;
        if let (Some(page), false) = (&page, matches!(answered, Ok(Answer::Accept(_)))) {
            self.shared.has_opened_page(page);
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
                tracing::debug!(server = self.name, %error, "cannot ask a server's question");
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
        // A path of another system, as a client in a container may have it, is no file of this one.
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
            // A server that no longer wants to know.
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
        let Some(id) = id.filter(|id| self.shared.has_opened_page(id)) else {
            return;
        };
        if let Err(error) = self
            .session
            .elicitation_completed(self.page_elicitation_id(id))
            .await
        {
            tracing::debug!(server = self.name, %error, "cannot notify the client");
        }
    }
}
