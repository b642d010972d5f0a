//! Tests of an agent's session state, which is passed to every call about the session and dropped with it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use acp::agent::{
    Agent, CloseSession, DeleteSession, LoadSession, OpenedSession, Prompt, Session, SessionSetup,
    SetSessionTitle, Turn,
};
use acp::testing::{NoopClient, connect};
use acp::v1::{
    SessionConfigId, SessionConfigOption, SessionConfigOptionValue, SessionConfigSelect,
    SessionConfigSelectOption, SessionId, StopReason,
};
use acp::{Error, Result};

/// A state that counts the prompts in its session.
struct CountingState {
    title: Mutex<String>,
    prompts: AtomicUsize,
    /// The number of existing states.
    all: Arc<AtomicUsize>,
    /// A reference to the session, which must not keep the session open.
    _session: Session,
}

impl CountingState {
    fn new(title: &str, session: &Session, all: &Arc<AtomicUsize>) -> Self {
        all.fetch_add(1, Ordering::SeqCst);
        Self {
            title: Mutex::new(title.to_owned()),
            prompts: AtomicUsize::new(0),
            all: Arc::clone(all),
            _session: session.clone(),
        }
    }
}

impl Drop for CountingState {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct NotebookAgent {
    notebooks: Arc<AtomicUsize>,
    /// The number of states existing when each session was closed.
    at_close: Arc<Mutex<Vec<(String, usize)>>>,
}

impl Agent for NotebookAgent {
    type State = CountingState;

    async fn new_session(
        &self,
        session: &Session,
        _: SessionSetup,
    ) -> Result<OpenedSession<CountingState>> {
        let choices = vec![SessionConfigSelectOption::new("ink", "Ink")];
        let select = SessionConfigSelect::new("ink", choices);
        let option = SessionConfigOption::new("pen", "Pen", select);
        let opened = OpenedSession::with_state(CountingState::new("new", session, &self.notebooks));
        Ok(opened.config_options(vec![option]))
    }

    async fn prompt(&self, notebook: &CountingState, turn: Turn, _: Prompt) -> Result<StopReason> {
        let prompts = notebook.prompts.fetch_add(1, Ordering::SeqCst) + 1;
        let title = notebook.title.lock().unwrap().clone();
        turn.send_message(format!("{title}: {prompts}")).await?;
        Ok(StopReason::EndTurn)
    }

    async fn set_config_option(
        &self,
        notebook: &CountingState,
        session: &Session,
        _: &SessionConfigId,
        _: SessionConfigOptionValue,
    ) -> Result<Vec<SessionConfigOption>> {
        "in ink".clone_into(&mut notebook.title.lock().unwrap());
        Ok(session.config_options())
    }

    fn load_session(&self) -> Option<&impl LoadSession<CountingState>> {
        Some(self)
    }

    fn close_session(&self) -> Option<&impl CloseSession<CountingState>> {
        Some(self)
    }

    fn delete_session(&self) -> Option<&impl DeleteSession> {
        Some(self)
    }

    fn set_session_title(&self) -> Option<&impl SetSessionTitle<CountingState>> {
        Some(self)
    }
}

impl LoadSession<CountingState> for NotebookAgent {
    async fn load(
        &self,
        session: &Session,
        _: SessionSetup,
    ) -> Result<OpenedSession<CountingState>> {
        if session.id().as_str() == "lost" {
            return Err(Error::invalid_params("it is lost"));
        }
        let notebook = CountingState::new("loaded", session, &self.notebooks);
        Ok(OpenedSession::with_state(notebook))
    }
}

impl CloseSession<CountingState> for NotebookAgent {
    async fn close(&self, notebook: &CountingState, _: &SessionId) -> Result<()> {
        let title = notebook.title.lock().unwrap().clone();
        let open = self.notebooks.load(Ordering::SeqCst);
        self.at_close.lock().unwrap().push((title, open));
        Ok(())
    }
}

impl DeleteSession for NotebookAgent {
    async fn delete(&self, _: &SessionId) -> Result<()> {
        Ok(())
    }
}

impl SetSessionTitle<CountingState> for NotebookAgent {
    async fn set_title(
        &self,
        notebook: Option<&CountingState>,
        _: &SessionId,
        title: &str,
    ) -> Result<String> {
        let Some(notebook) = notebook else {
            return Ok(format!("{title} (closed)"));
        };
        title.clone_into(&mut notebook.title.lock().unwrap());
        Ok(title.to_owned())
    }
}

/// Sends a prompt, and returns the agent's last message.
async fn prompt_for_text(session: &acp::client::ClientSession) -> String {
    let before = session.thread().read(|thread| thread.items().len());
    session.prompt("Go on").await.unwrap();
    session.thread().read(|thread| {
        let items = thread.items().iter().skip(before);
        let mut said = items.filter_map(|item| match &item.kind {
            acp::thread::ItemKind::Agent(message) => Some(message.text()),
            _ => None,
        });
        said.next_back().unwrap()
    })
}

#[tokio::test]
async fn every_call_gets_the_state_of_its_session() {
    let writer = NotebookAgent::default();
    let (agent, _) = connect(writer, NoopClient).await;
    let first = agent.new_session("/").await.unwrap();
    let second = agent.new_session("/").await.unwrap();
    assert_eq!(prompt_for_text(&first).await, "new: 1");
    assert_eq!(prompt_for_text(&first).await, "new: 2");
    assert_eq!(prompt_for_text(&second).await, "new: 1");
    second.set_config_option("pen", "ink").await.unwrap();
    assert_eq!(prompt_for_text(&second).await, "in ink: 2");
    agent.set_session_title(first.id(), "diary").await.unwrap();
    assert_eq!(prompt_for_text(&first).await, "diary: 3");
    // Opened again, it has another state.
    let first = agent.load_session(first.id().clone(), "/").await.unwrap();
    assert_eq!(prompt_for_text(&first).await, "loaded: 1");
}

#[tokio::test]
async fn state_is_dropped_with_its_session() {
    let writer = NotebookAgent::default();
    let (notebooks, at_close) = (Arc::clone(&writer.notebooks), Arc::clone(&writer.at_close));
    let open = || notebooks.load(Ordering::SeqCst);
    let (agent, serving) = connect(writer, NoopClient).await;
    let closed = agent.new_session("/").await.unwrap();
    let deleted = agent.new_session("/").await.unwrap();
    let loaded = agent.new_session("/").await.unwrap();
    assert_eq!(open(), 3);
    closed.close().await.unwrap();
    assert_eq!(open(), 2);
    agent.delete_session(deleted.id()).await.unwrap();
    assert_eq!(open(), 1);
    // The state existed when the agent freed its resources.
    let new = "new".to_owned();
    assert_eq!(*at_close.lock().unwrap(), [(new.clone(), 3), (new, 2)]);
    let title = agent.set_session_title(closed.id(), "diary").await.unwrap();
    assert_eq!(title, "diary (closed)");
    agent.load_session(loaded.id().clone(), "/").await.unwrap();
    assert_eq!(open(), 1);
    agent.load_session("lost", "/").await.unwrap_err();
    assert_eq!(open(), 1);
    agent.close();
    serving.closed().await;
    assert_eq!(open(), 0);
}
