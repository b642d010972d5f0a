//! Queues the questions that agents ask the user. A question stays in the queue until it is answered or withdrawn.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp::client::PermissionRequest;
use acp::v1::{
    CreateElicitationRequest, ElicitationAction, ElicitationScope, PermissionOptionId, SessionId,
};
use acp_host::AlwaysEffect;
use tokio::sync::{Notify, oneshot};

/// A question from an agent to the user.
#[derive(Debug, Clone)]
pub(crate) enum ChatQuestion {
    /// A permission request, and the effect of answering it with "always".
    ///
    /// Specification: Tool Calls, "Requesting Permission".
    Permission(Box<PermissionRequest>, AlwaysEffect),
    /// A form to fill in or a URL to open (specification: Elicitation).
    Elicitation(Box<CreateElicitationRequest>),
}

/// The user's answer to a question.
#[derive(Debug)]
pub(crate) enum ChatAnswer {
    /// The chosen option of a permission request, or `None` if the user did not choose.
    Permission(Option<PermissionOptionId>),
    /// The answer to a form or URL.
    Elicitation(ElicitationAction),
}

/// A question that has yet to be answered.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    /// The question's id, unique within the queue.
    pub(crate) id: u64,
    /// The session that the question belongs to, or `None` for a question outside any session, such as one during
    /// login.
    pub(crate) session: Option<SessionId>,
    pub(crate) question: ChatQuestion,
}

#[derive(Default)]
struct QuestionQueueState {
    next_id: u64,
    /// The questions, oldest first. The connection's limit on requests in flight bounds their number.
    questions: Vec<(Arc<OpenQuestion>, oneshot::Sender<ChatAnswer>)>,
    /// Whether the chat has ended, so that no more questions are accepted.
    is_closed: bool,
}

/// A queue of the open questions of one agent.
pub(crate) struct QuestionQueue {
    state: Mutex<QuestionQueueState>,
    /// Wakes the chat to redraw when questions are added or dropped.
    wake: Arc<Notify>,
}

impl QuestionQueue {
    pub(crate) fn new(wake: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            wake,
        })
    }

    fn lock(&self) -> MutexGuard<'_, QuestionQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a question and waits for the answer. Returns `None` if the question is dropped unanswered.
    ///
    /// Dropping the future withdraws the question.
    pub(crate) async fn ask(&self, question: ChatQuestion) -> Option<ChatAnswer> {
        let (sender, answer) = oneshot::channel();
        let session = match &question {
            ChatQuestion::Permission(request, _) => Some(request.root_session_id.clone()),
            ChatQuestion::Elicitation(request) => match &request.scope {
                ElicitationScope::Session { session_id, .. } => Some(session_id.clone()),
                _ => None,
            },
        };
        let id = {
            let mut state = self.lock();
            if state.is_closed {
                return None;
            }
            let id = state.next_id;
            state.next_id += 1;
            let asked = Arc::new(OpenQuestion {
                id,
                session,
                question,
            });
            state.questions.push((asked, sender));
            id
        };
        self.wake.notify_one();
        let _withdrawn = QuestionGuard { queue: self, id };
        answer.await.ok()
    }

    /// Returns the open questions, oldest first.
    pub(crate) fn open(&self) -> Vec<Arc<OpenQuestion>> {
        let state = self.lock();
        state
            .questions
            .iter()
            .map(|(asked, _)| Arc::clone(asked))
            .collect()
    }

    /// Answers a question. Does nothing if the question was withdrawn.
    pub(crate) fn answer(&self, id: u64, answer: ChatAnswer) {
        let mut state = self.lock();
        if let Some(at) = state.questions.iter().position(|(asked, _)| asked.id == id) {
            let (_, sender) = state.questions.remove(at);
            // The future that waits for the answer may have been dropped in the meantime.
            let _ = sender.send(answer);
        }
    }

    /// Drops the open questions of a session whose turn was cancelled.
    pub(crate) fn drop_session(&self, session: &SessionId) {
        self.lock()
            .questions
            .retain(|(asked, _)| asked.session.as_ref() != Some(session));
        self.wake.notify_one();
    }

    /// Drops all questions and rejects new ones.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.questions.clear();
    }
}

/// A guard that removes a question from the queue once nobody is waiting for its answer.
struct QuestionGuard<'a> {
    queue: &'a QuestionQueue,
    id: u64,
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        let before = state.questions.len();
        state.questions.retain(|(asked, _)| asked.id != self.id);
        if state.questions.len() < before {
            drop(state);
            self.queue.wake.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acp::ThreadHandle;
    use acp::v1::ToolCallUpdate;

    fn permission_question(session: &str) -> ChatQuestion {
        let call = ToolCallUpdate::new("call");
        let request = PermissionRequest::new(session, &call, Vec::new(), ThreadHandle::new());
        ChatQuestion::Permission(Box::new(request), AlwaysEffect::LeftToAgent)
    }

    #[tokio::test]
    async fn question_waits_until_answered_or_withdrawn() {
        let questions = QuestionQueue::new(Arc::default());
        let first = questions.ask(permission_question("a"));
        let second = questions.ask(permission_question("b"));
        tokio::pin!(first);
        {
            tokio::pin!(second);
            assert!(futures_util::poll!(first.as_mut()).is_pending());
            assert!(futures_util::poll!(second.as_mut()).is_pending());
            let open = questions.open();
            assert_eq!(open.len(), 2);
            assert_eq!(open[0].session.as_ref().map(|id| id.as_str()), Some("a"));
        }
        // The second future was dropped, so its question was withdrawn.
        let open = questions.open();
        assert_eq!(open.len(), 1);
        questions.answer(open[0].id, ChatAnswer::Permission(Some("yes".into())));
        match first.await {
            Some(ChatAnswer::Permission(Some(id))) => assert_eq!(id.as_str(), "yes"),
            other => panic!("{other:?}"),
        }
        assert!(questions.open().is_empty());
    }

    #[tokio::test]
    async fn cancelled_turn_withdraws_its_questions() {
        let questions = QuestionQueue::new(Arc::default());
        let asked = questions.ask(permission_question("a"));
        tokio::pin!(asked);
        assert!(futures_util::poll!(asked.as_mut()).is_pending());
        questions.drop_session(&"b".into());
        assert_eq!(questions.open().len(), 1);
        questions.drop_session(&"a".into());
        assert!(asked.await.is_none());
        questions.close();
        assert!(questions.ask(permission_question("a")).await.is_none());
    }
}
