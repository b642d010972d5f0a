//! The desk: what agents ask the person, until it is answered or nobody waits for it any more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp::client::PermissionRequest;
use acp::v1::{
    CreateElicitationRequest, ElicitationAction, ElicitationScope, PermissionOptionId, SessionId,
};
use acp_host::Always;
use tokio::sync::{Notify, oneshot};

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) enum Question {
    /// Whether something may be done, and what an answer for always comes to: tool calls, "Requesting
    /// Permission".
    Permission(Box<PermissionRequest>, Always),
    /// To fill in a form, or to go to a web page: Elicitation.
    Elicitation(Box<CreateElicitationRequest>),
}

/// What the person says.
#[derive(Debug)]
pub(crate) enum Answer {
    /// This option of a permission request; `None` if they choose none of them.
    Permission(Option<PermissionOptionId>),
    /// To a form or an address.
    Elicitation(ElicitationAction),
}

/// A question that waits for its answer.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Tells it from every other of this desk.
    pub(crate) id: u64,
    /// The session it belongs to; absent for one that is asked outside of all, as a login is.
    pub(crate) session: Option<SessionId>,
    pub(crate) question: Question,
}

#[derive(Default)]
struct State {
    next: u64,
    /// In the order they came. The connection bounds how many requests of an agent are open at once.
    open: Vec<(Arc<Asked>, oneshot::Sender<Answer>)>,
    /// The person has left: nothing is asked any more.
    closed: bool,
}

/// The questions of one agent's.
pub(crate) struct Desk {
    state: Mutex<State>,
    /// Told when something has come or gone.
    wake: Arc<Notify>,
}

impl Desk {
    pub(crate) fn new(wake: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            wake,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks, and waits; `None` if there will be no answer. Who drops this withdraws the question.
    pub(crate) async fn ask(&self, question: Question) -> Option<Answer> {
        let (sender, answer) = oneshot::channel();
        let session = match &question {
            Question::Permission(request, _) => Some(request.asked_in.clone()),
            Question::Elicitation(request) => match &request.scope {
                ElicitationScope::Session { session_id, .. } => Some(session_id.clone()),
                _ => None,
            },
        };
        let id = {
            let mut state = self.lock();
            if state.closed {
                return None;
            }
            let id = state.next;
            state.next += 1;
            let asked = Arc::new(Asked {
                id,
                session,
                question,
            });
            state.open.push((asked, sender));
            id
        };
        self.wake.notify_one();
        let _withdrawn = Withdraw { desk: self, id };
        answer.await.ok()
    }

    /// What is asked now, the oldest first.
    pub(crate) fn open(&self) -> Vec<Arc<Asked>> {
        let state = self.lock();
        state
            .open
            .iter()
            .map(|(asked, _)| Arc::clone(asked))
            .collect()
    }

    /// Answers a question; nothing happens if it was withdrawn meanwhile.
    pub(crate) fn answer(&self, id: u64, answer: Answer) {
        let mut state = self.lock();
        if let Some(at) = state.open.iter().position(|(asked, _)| asked.id == id) {
            let (_, sender) = state.open.remove(at);
            // Whoever asked may have gone in this moment.
            let _ = sender.send(answer);
        }
    }

    /// Nothing of this session's is answered, for its turn is cancelled.
    pub(crate) fn drop_session(&self, session: &SessionId) {
        self.lock()
            .open
            .retain(|(asked, _)| asked.session.as_ref() != Some(session));
        self.wake.notify_one();
    }

    /// No question has an answer from now on.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.open.clear();
    }
}

/// Takes a question off the desk when nobody waits for its answer.
struct Withdraw<'a> {
    desk: &'a Desk,
    id: u64,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        let mut state = self.desk.lock();
        let before = state.open.len();
        state.open.retain(|(asked, _)| asked.id != self.id);
        if state.open.len() < before {
            drop(state);
            self.desk.wake.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acp::ThreadHandle;
    use acp::v1::ToolCallUpdate;

    fn permission(session: &str) -> Question {
        let call = ToolCallUpdate::new("call");
        let request = PermissionRequest::new(session, &call, Vec::new(), ThreadHandle::new());
        Question::Permission(Box::new(request), Always::ByAgent)
    }

    #[tokio::test]
    async fn a_question_waits_until_it_is_answered_or_withdrawn() {
        let desk = Desk::new(Arc::default());
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
        desk.answer(open[0].id, Answer::Permission(Some("yes".into())));
        match first.await {
            Some(Answer::Permission(Some(id))) => assert_eq!(id.as_str(), "yes"),
            other => panic!("{other:?}"),
        }
        assert!(desk.open().is_empty());
    }

    #[tokio::test]
    async fn a_cancelled_turn_has_no_questions() {
        let desk = Desk::new(Arc::default());
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
