//! The desk: what agents ask the person, until it is answered or nobody waits for it any more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp::client::PermissionRequest;
use acp::v1::{
    CreateElicitationRequest, ElicitationAction, ElicitationScope, PermissionOptionId, SessionId,
};
use acp_host::AlwaysEffect;
use tokio::sync::{Notify, oneshot};

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) enum ChatQuestion {
    /// Whether something may be done, and what an answer for always comes to: tool calls, "Requesting
    /// Permission".
    Permission(Box<PermissionRequest>, AlwaysEffect),
    /// To fill in a form, or to go to a web page: Elicitation.
    Elicitation(Box<CreateElicitationRequest>),
}

/// What the person says.
#[derive(Debug)]
pub(crate) enum ChatAnswer {
    /// This option of a permission request; `None` if they choose none of them.
    Permission(Option<PermissionOptionId>),
    /// To a form or an address.
    Elicitation(ElicitationAction),
}

/// A question that waits for its answer.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    /// Tells it from every other of this desk.
    pub(crate) id: u64,
    /// The session it belongs to; absent for one that is asked outside of all, as a login is.
    pub(crate) session: Option<SessionId>,
    pub(crate) question: ChatQuestion,
}

#[derive(Default)]
struct QuestionQueueState {
    next_id: u64,
    /// In the order they came. The connection bounds how many requests of an agent are open at once.
    questions: Vec<(Arc<OpenQuestion>, oneshot::Sender<ChatAnswer>)>,
    /// The person has left: nothing is asked any more.
    closed: bool,
}

/// The questions of one agent's.
pub(crate) struct QuestionQueue {
    state: Mutex<QuestionQueueState>,
    /// Told when something has come or gone.
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

    /// Asks, and waits; `None` if there will be no answer. Who drops this withdraws the question.
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
            if state.closed {
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

    /// What is asked now, the oldest first.
    pub(crate) fn open(&self) -> Vec<Arc<OpenQuestion>> {
        let state = self.lock();
        state
            .questions
            .iter()
            .map(|(asked, _)| Arc::clone(asked))
            .collect()
    }

    /// Answers a question; nothing happens if it was withdrawn meanwhile.
    pub(crate) fn answer(&self, id: u64, answer: ChatAnswer) {
        let mut state = self.lock();
        if let Some(at) = state.questions.iter().position(|(asked, _)| asked.id == id) {
            let (_, sender) = state.questions.remove(at);
            // Whoever asked may have gone in this moment.
            let _ = sender.send(answer);
        }
    }

    /// Nothing of this session's is answered, for its turn is cancelled.
    pub(crate) fn drop_session(&self, session: &SessionId) {
        self.lock()
            .questions
            .retain(|(asked, _)| asked.session.as_ref() != Some(session));
        self.wake.notify_one();
    }

    /// No question has an answer from now on.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.questions.clear();
    }
}

/// Takes a question off the desk when nobody waits for its answer.
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

    fn permission(session: &str) -> ChatQuestion {
        let call = ToolCallUpdate::new("call");
        let request = PermissionRequest::new(session, &call, Vec::new(), ThreadHandle::new());
        ChatQuestion::Permission(Box::new(request), AlwaysEffect::LeftToAgent)
    }

    #[tokio::test]
    async fn a_question_waits_until_it_is_answered_or_withdrawn() {
        let desk = QuestionQueue::new(Arc::default());
        let first = desk.ask(permission("a"));
        let second = desk.ask(permission("b"));
        tokio::pin!(first);
        {
            tokio::pin!(second);
            assert!(futures_util::poll!(first.as_mut()).is_pending());
            assert!(futures_util::poll!(second.as_mut()).is_pending());
            let open = desk.open();
            assert_eq!(open.len(), 2);
            assert_eq!(open[0].session.as_ref().map(|id| id.as_str()), Some("a"));
        }
        // The second was dropped: it is not asked any more.
        let open = desk.open();
        assert_eq!(open.len(), 1);
        desk.answer(open[0].id, ChatAnswer::Permission(Some("yes".into())));
        match first.await {
            Some(ChatAnswer::Permission(Some(id))) => assert_eq!(id.as_str(), "yes"),
            other => panic!("{other:?}"),
        }
        assert!(desk.open().is_empty());
    }

    #[tokio::test]
    async fn a_cancelled_turn_has_no_questions() {
        let desk = QuestionQueue::new(Arc::default());
        let asked = desk.ask(permission("a"));
        tokio::pin!(asked);
        assert!(futures_util::poll!(asked.as_mut()).is_pending());
        desk.drop_session(&"b".into());
        assert_eq!(desk.open().len(), 1);
        desk.drop_session(&"a".into());
        assert!(asked.await.is_none());
        desk.close();
        assert!(desk.ask(permission("a")).await.is_none());
    }
}
