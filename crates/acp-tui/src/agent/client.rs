//! Implements the client side of a chat, which handles an agent's requests.

use std::sync::{Arc, Mutex, PoisonError};

use acp::client::{
    Client, ClientState, Elicitation, ExtensionNotification, PermissionRequest, ReadTextFile,
    Terminals, WriteTextFile,
};
use acp::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationCapabilities, ElicitationFormCapabilities, ElicitationId, ElicitationMode,
    ElicitationNoContent, ElicitationUrlCapabilities, Implementation, PermissionOptionId,
    RequestPermissionOutcome, SessionId, StopReason,
};
use acp::{Result, ThreadHandle};
use acp_host::{AgentProcess, AlwaysEffect, Host, HostSession, Prompter, terminal_text};
use serde::Deserialize;
use tokio::sync::Notify;

use super::question_queue::{ChatAnswer, ChatQuestion, QuestionQueue};

/// The maximum number of buffered notes. When the buffer is full, the oldest note is dropped.
const MAX_NOTES: usize = 32;

/// A buffer of notes to show to the user beside the conversation.
#[derive(Debug, Default)]
pub(crate) struct ChatNotes {
    notes: Mutex<std::collections::VecDeque<String>>,
}

impl ChatNotes {
    pub(crate) fn add(&self, note: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() == MAX_NOTES {
            notes.pop_front();
        }
        notes.push_back(note);
    }

    pub(crate) fn take(&self) -> Vec<String> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.drain(..).collect()
    }
}

/// A [`Prompter`] that passes permission requests to the user through the question queue.
pub(crate) struct ChatPrompter(pub(crate) Arc<QuestionQueue>);

impl Prompter for ChatPrompter {
    async fn ask(&self, request: &PermissionRequest) -> Option<PermissionOptionId> {
        self.ask_with(request, &AlwaysEffect::LeftToAgent).await
    }

    async fn ask_with(
        &self,
        request: &PermissionRequest,
        always: &AlwaysEffect,
    ) -> Option<PermissionOptionId> {
        let question = ChatQuestion::Permission(Box::new(request.clone()), always.clone());
        match self.0.ask(question).await {
            Some(ChatAnswer::Permission(option)) => option,
            _ => None,
        }
    }
}

/// The client side of a chat's connection to one agent.
pub(crate) struct ChatClient {
    pub(crate) host: Arc<Host<ChatPrompter>>,
    pub(crate) process: Arc<AgentProcess>,
    pub(crate) elicitation: ChatElicitation,
    pub(crate) notes: Arc<ChatNotes>,
    pub(crate) wake: Arc<Notify>,
}

/// The client-side state of one session in the chat.
pub(crate) struct ChatSession {
    host: HostSession,
    process: Arc<AgentProcess>,
    notes: Arc<ChatNotes>,
    wake: Arc<Notify>,
}

impl AsRef<HostSession> for ChatSession {
    fn as_ref(&self) -> &HostSession {
        &self.host
    }
}

impl ClientState<ChatClient> for ChatSession {
    fn new(client: &ChatClient, session: &SessionId, thread: &ThreadHandle) -> Self {
        Self {
            host: client.host.session(session, thread),
            process: Arc::clone(&client.process),
            notes: Arc::clone(&client.notes),
            wake: Arc::clone(&client.wake),
        }
    }

    fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        self.host.turn_ended(stop_reason);
        let process = Arc::clone(&self.process);
        let (notes, wake) = (Arc::clone(&self.notes), Arc::clone(&self.wake));
        tokio::spawn(async move {
            if let Some(undone) = process.undo().await {
                notes.add(undone);
                wake.notify_one();
            }
        });
    }

    fn closed(&self) {
        self.host.closed();
    }
}

impl Client for ChatClient {
    type State = ChatSession;

    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("acp", env!("CARGO_PKG_VERSION")).title("acp chat"))
    }

    async fn request_permission(
        &self,
        session: &ChatSession,
        request: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        self.host
            .request_permission(session.as_ref(), &request)
            .await
    }

    async fn extension_notification(&self, notification: ExtensionNotification) {
        if let Some(note) = answered_elsewhere(&notification) {
            self.notes.add(note);
            self.wake.notify_one();
        }
    }

    fn supports_terminal_login(&self) -> bool {
        true
    }

    fn elicitation(&self) -> Option<&impl Elicitation<ChatSession>> {
        Some(&self.elicitation)
    }

    async fn elicitation_completed(&self, _: &ElicitationId) {
        let note = "the request on the web page is complete";
        self.notes.add(note.to_owned());
        self.wake.notify_one();
    }

    fn read_text_file(&self) -> Option<&impl ReadTextFile<ChatSession>> {
        self.host.can_read_files().then_some(&*self.host)
    }

    fn write_text_file(&self) -> Option<&impl WriteTextFile<ChatSession>> {
        self.host.can_change_files().then_some(&*self.host)
    }

    fn terminals(&self) -> Option<&impl Terminals<ChatSession>> {
        self.host.can_change_files().then_some(&*self.host)
    }
}

/// Returns a note if another client of a live session has answered a question.
fn answered_elsewhere(notification: &ExtensionNotification) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct QuestionClosedNote {
        answered_by: Option<String>,
        is_answered: bool,
    }
    if notification.method() != "_live/question_closed" {
        return None;
    }
    let closed: QuestionClosedNote = serde_json::from_str(notification.params()?.get()).ok()?;
    let by = closed.answered_by.as_deref().unwrap_or("another client");
    closed.is_answered.then(|| {
        format!(
            "the question was answered by {}",
            terminal_text::clean_line(by)
        )
    })
}

/// An elicitation handler that passes forms and URLs to the user through the question queue.
pub(crate) struct ChatElicitation(pub(crate) Arc<QuestionQueue>);

impl<S: Sync> Elicitation<S> for ChatElicitation {
    fn capabilities(&self) -> ElicitationCapabilities {
        ElicitationCapabilities::new()
            .form(ElicitationFormCapabilities::new())
            .url(ElicitationUrlCapabilities::new())
    }

    async fn create(
        &self,
        _: Option<&S>,
        request: CreateElicitationRequest,
    ) -> Result<CreateElicitationResponse> {
        let known = matches!(
            request.mode,
            ElicitationMode::Form { .. } | ElicitationMode::Url { .. }
        );
        if !known {
            let message = "unsupported elicitation mode";
            return Err(acp::Error::invalid_params(message));
        }
        let answer = self
            .0
            .ask(ChatQuestion::Elicitation(Box::new(request)))
            .await;
        let action = match answer {
            Some(ChatAnswer::Elicitation(action)) => action,
            _ => ElicitationAction::Cancel(ElicitationNoContent::default()),
        };
        Ok(CreateElicitationResponse::new(action))
    }
}
