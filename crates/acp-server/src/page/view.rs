//! A browser's view of a session: it is a client like any other.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp::client::{
    AgentConnection, Client, ClientSession, Elicitation, ExtensionNotification, PermissionRequest,
    SessionSetup,
};
use acp::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationCapabilities,
    ElicitationFormCapabilities, ElicitationUrlCapabilities, Implementation, PermissionOptionId,
    RequestPermissionOutcome,
};
use acp_html::text;
use serde::Deserialize;
use tokio::sync::{oneshot, watch};

use super::sign_in::PageUser;
use crate::served_agent::AgentRunner;

/// The maximum number of notes to show.
const MAX_NOTES: usize = 3;

/// A view of a session.
pub(super) struct SessionView {
    pub(super) session: ClientSession,
    pub(super) cwd: String,
    pub(super) state: Arc<ViewState>,
}

/// What a view shows apart from the session's thread.
#[derive(Default)]
pub(super) struct ViewState {
    contents: Mutex<ViewContents>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
pub(super) struct ViewContents {
    pub(super) questions: BTreeMap<u64, PageQuestion>,
    next_question: u64,
    pub(super) queue: Vec<QueuedText>,
    /// What has happened lately, apart from the conversation.
    pub(super) notes: Vec<String>,
    /// Whether a turn is running, of this view or of another client.
    pub(super) is_running: bool,
}

/// A permission request that has not been answered.
pub(super) struct PageQuestion {
    pub(super) request: PermissionRequest,
    answer: oneshot::Sender<PermissionOptionId>,
}

/// A prompt that waits in the session's queue.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct QueuedText {
    pub(super) prompt: u64,
    #[serde(default)]
    pub(super) client: Option<String>,
    #[serde(default)]
    pub(super) text: String,
}

/// What a live agent says about itself.
#[derive(Debug, Default, Deserialize)]
pub(super) struct LiveStatus {
    pub(super) sessions: Vec<LiveSessionState>,
}

/// The state of a live session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LiveSessionState {
    pub(super) session_id: String,
    #[serde(default)]
    pub(super) cwd: Option<String>,
    #[serde(default)]
    pub(super) title: Option<String>,
    #[serde(default)]
    pub(super) turn: Option<QueuedText>,
    #[serde(default)]
    pub(super) open_questions: usize,
    #[serde(default)]
    pub(super) queue: Vec<QueuedText>,
}

/// Returns the state of the agent's live sessions: those of this server, or of the server that owns a session.
pub(super) async fn live_status(
    agent: &AgentConnection,
    owner_of: Option<&str>,
) -> acp::Result<LiveStatus> {
    let connection = agent.connection();
    let params = match owner_of {
        Some(session) => serde_json::json!({ "sessionId": session }),
        None => serde_json::json!({}),
    };
    let status = connection.request_raw("_live/status", &params).await?;
    Ok(serde_json::from_str(status.get()).unwrap_or_default())
}

#[derive(Deserialize)]
struct QueueParams {
    queue: Vec<QueuedText>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QuestionClosedParams {
    answered_by: Option<String>,
    is_answered: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TurnEndedParams {
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    error: Option<acp::jsonrpc::Error>,
}

impl TurnEndedParams {
    /// Returns what to tell the user, if the turn has not ended as usual.
    fn note(&self) -> Option<String> {
        match (&self.error, self.stop_reason.as_deref()) {
            (Some(error), _) => Some(format!("The turn failed: {}", error.message)),
            (None, Some("end_turn") | None) => None,
            (None, Some(reason)) => Some(format!("The turn ended: {reason}.")),
        }
    }
}

impl SessionView {
    /// Connects to a live agent as a client. Starts the agent if it is not running.
    pub(super) async fn connect(
        runner: &Arc<AgentRunner>,
        user: &PageUser,
    ) -> acp::Result<(AgentConnection, Arc<ViewState>)> {
        let (near, far) = acp::transport::memory();
        let span = tracing::info_span!("page", agent = runner.agent.name);
        let handled = Arc::clone(runner).handle(span, user.to_token_user(), near);
        tokio::spawn(handled);
        let state = Arc::<ViewState>::default();
        let client = PageClient {
            elicitation: PageElicitation(Arc::clone(&state)),
            state: Arc::clone(&state),
        };
        let (handshake, driver) = acp::client::connect(far, client);
        tokio::spawn(driver);
        Ok((handshake.await?, state))
    }

    /// Opens a session, with its history.
    pub(super) async fn open(
        runner: &Arc<AgentRunner>,
        user: &PageUser,
        id: &str,
        cwd: &str,
    ) -> acp::Result<Self> {
        let (agent, state) = Self::connect(runner, user).await?;
        let session = agent.load_session(id, SessionSetup::new(cwd)).await?;
        // From here on, notifications tell what changes.
        let status = live_status(&agent, Some(id)).await?;
        let live = status
            .sessions
            .into_iter()
            .find(|live| live.session_id == id);
        if let Some(live) = live {
            state.change(|contents| {
                contents.is_running |= live.turn.is_some();
                contents.queue = live.queue;
            });
        }
        Ok(Self {
            session,
            cwd: cwd.to_owned(),
            state,
        })
    }
}

impl Drop for SessionView {
    fn drop(&mut self) {
        self.session.agent().close();
    }
}

impl ViewState {
    pub(super) fn lock(&self) -> MutexGuard<'_, ViewContents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the contents, and lets the view be shown again.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut ViewContents) -> T) -> T {
        let result = change(&mut self.lock());
        self.changes.send_modify(|changes| *changes += 1);
        result
    }

    pub(super) fn note(&self, note: impl Into<String>) {
        self.change(|contents| {
            if contents.notes.len() >= MAX_NOTES {
                contents.notes.remove(0);
            }
            contents.notes.push(note.into());
        });
    }

    /// Returns a receiver that is notified of changes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Answers a question. Returns `false` if it is no longer open.
    pub(super) fn answer(&self, question: u64, option: PermissionOptionId) -> bool {
        let open = self.change(|contents| contents.questions.remove(&question));
        open.is_some_and(|open| open.answer.send(option).is_ok())
    }
}

/// The client of a view.
struct PageClient {
    state: Arc<ViewState>,
    elicitation: PageElicitation,
}

/// Leaves requests for input to the other clients, and tells the user of them.
struct PageElicitation(Arc<ViewState>);

impl Elicitation<()> for PageElicitation {
    fn capabilities(&self) -> ElicitationCapabilities {
        ElicitationCapabilities::new()
            .form(ElicitationFormCapabilities::new())
            .url(ElicitationUrlCapabilities::new())
    }

    async fn create(
        &self,
        _: Option<&()>,
        request: CreateElicitationRequest,
    ) -> acp::Result<CreateElicitationResponse> {
        self.0.note(format!(
            "The agent asks for input, which only `acp chat` and editors can give: {}",
            text::sanitize_line(&request.message)
        ));
        // The server takes the request back when another client answers it.
        pending().await
    }
}

/// Removes a question when another client has answered it, or its turn has ended.
struct QuestionGuard<'a> {
    state: &'a ViewState,
    number: u64,
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        let number = self.number;
        self.state
            .change(|contents| contents.questions.remove(&number));
    }
}

impl Client for PageClient {
    type State = ();

    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("acp-page", env!("CARGO_PKG_VERSION")).title("browser"))
    }

    async fn request_permission(
        &self,
        (): &(),
        request: PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        let (answer, answered) = oneshot::channel();
        let number = self.state.change(|contents| {
            let number = contents.next_question;
            contents.next_question += 1;
            let question = PageQuestion { request, answer };
            contents.questions.insert(number, question);
            number
        });
        let _guard = QuestionGuard {
            state: &self.state,
            number,
        };
        match answered.await {
            Ok(option) => Ok(RequestPermissionOutcome::selected(option)),
            Err(_) => Err(acp::Error::Cancelled),
        }
    }

    fn elicitation(&self) -> Option<&impl Elicitation<()>> {
        Some(&self.elicitation)
    }

    async fn extension_notification(&self, notification: ExtensionNotification) {
        let params = notification.params().map_or("{}", |params| params.get());
        match notification.method() {
            "_live/queue_changed" => {
                if let Ok(params) = serde_json::from_str::<QueueParams>(params) {
                    self.state.change(|contents| contents.queue = params.queue);
                }
            }
            "_live/turn_started" => self.state.change(|contents| contents.is_running = true),
            "_live/turn_ended" => {
                self.state.change(|contents| contents.is_running = false);
                if let Ok(params) = serde_json::from_str::<TurnEndedParams>(params)
                    && let Some(note) = params.note()
                {
                    self.state.note(note);
                }
            }
            "_live/question_closed" => {
                if let Ok(params) = serde_json::from_str::<QuestionClosedParams>(params)
                    && params.is_answered
                {
                    let by = params
                        .answered_by
                        .unwrap_or_else(|| "another client".to_owned());
                    self.state
                        .note(format!("The question was answered by {by}."));
                }
            }
            _ => {}
        }
    }
}
