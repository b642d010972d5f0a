//! The correct agent. It does whatever a one-word prompt asks for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use acp::agent::{
    Agent, AuthContext, Authentication, CloseSession, DeleteSession, ForkSession, ListSessions,
    LoadSession, OpenedSession, Prompt, ResumeSession, Session, SessionSetup, SetSessionTitle,
    Turn,
};
use acp::v1::{
    AuthMethod, AuthMethodId, AvailableCommand, ContentBlock, Cost, Implementation,
    ListSessionsRequest, ListSessionsResponse, PromptCapabilities, SessionConfigId,
    SessionConfigOption, SessionConfigOptionValue, SessionId, SessionInfo, StopReason,
    UnstructuredCommandInput, UsageUpdate,
};
use acp::{Options, Transport};
use acp_check::AgentTask;

use crate::mutants::agent_turns::{
    config_options, run_answer_task, run_ask_task, run_command_task, run_delegate_task,
    run_edit_task, run_long_task, run_plan_task, run_read_task,
};
use crate::mutants::agent_v2;
use crate::mutants::layer::start_behind_mutation;
use crate::mutants::unstable::{self, SystemPrompts};

/// Returns the suite's prompt for each task.
pub(crate) fn task_prompts() -> HashMap<AgentTask, String> {
    [
        (AgentTask::Answer, "answer"),
        (AgentTask::Read, "read"),
        (AgentTask::Edit, "edit"),
        (AgentTask::Run, "run"),
        (AgentTask::Long, "long"),
        (AgentTask::Plan, "plan"),
        (AgentTask::Remember, "remember 7351"),
        (AgentTask::Recall, "recall"),
        (AgentTask::Ask, "ask"),
        (AgentTask::Delegate, "delegate"),
    ]
    .map(|(task, text)| (task, text.to_owned()))
    .into()
}

/// Serves a connection. The agent's state is dropped along with it.
pub(crate) fn start(transport: Transport) {
    serve(transport, Options::new());
}

/// Like [`start`], but for clients that may speak version 2.
pub(crate) fn start_v2(transport: Transport) {
    serve(transport, Options::new().draft_version_2());
}

/// Serves a connection. A layer in front of the agent provides the features that the library does not support.
fn serve(transport: Transport, options: Options) {
    let right = CorrectAgent::default();
    let change = unstable::into_mutation(Arc::clone(&right.system_prompts));
    start_behind_mutation(change, transport, |inside| {
        acp::testing::start_agent(inside, right, options);
    });
}

/// An agent that serves several connections, which share its sessions.
#[derive(Clone, Default)]
pub(crate) struct ReusedAgent(CorrectAgent);

impl ReusedAgent {
    /// Serves a connection until its end.
    pub(crate) async fn serve(self, transport: Transport) {
        // The client learns of failures by other means.
        let _ = acp::agent::serve(transport, self.0).await;
    }
}

/// The id of the auth method. The user is logged in at first.
pub(crate) const LOGIN_METHOD_ID: &str = "check";

/// The number of sessions on each page of the list.
const PAGE_SIZE: usize = 2;

/// The messages of a session, each with its sender and text.
type SessionHistory = Vec<(String, String)>;

#[derive(Default, Clone)]
struct CorrectAgent {
    sessions: Arc<Mutex<HashMap<String, (String, SessionHistory)>>>,
    /// The titles that clients have set, by session.
    titles: Arc<Mutex<HashMap<String, String>>>,
    /// The system prompts used to open sessions.
    system_prompts: SystemPrompts,
    servers: crate::mutants::mcp::RunningServers,
    logged_out: Arc<AtomicBool>,
}

impl Agent for CorrectAgent {
    type State = ();

    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("right", "1.0.0"))
    }

    fn prompt_capabilities(&self) -> PromptCapabilities {
        let mut capabilities = PromptCapabilities::default();
        (
            capabilities.image,
            capabilities.audio,
            capabilities.embedded_context,
        ) = (true, true, true);
        capabilities
    }

    fn supports_additional_directories(&self) -> bool {
        true
    }

    fn authentication(&self) -> Option<&impl Authentication> {
        Some(self)
    }

    async fn new_session(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> acp::Result<OpenedSession> {
        if self.logged_out.load(Ordering::Relaxed) {
            return Err(acp::jsonrpc::Error::auth_required().into());
        }
        self.servers.start_and_connect(&setup.mcp_servers).await;
        let kept = (session.cwd().to_owned(), SessionHistory::new());
        self.sessions
            .lock()
            .unwrap()
            .insert(session.id().to_string(), kept);
        Ok(OpenedSession::new().config_options(config_options("ask", false)))
    }

    async fn session_opened(&self, (): &(), session: Session) {
        let say =
            AvailableCommand::new("say", "Says it").input(UnstructuredCommandInput::new("what"));
        let help = AvailableCommand::new("help", "Says what there is");
        let _ = session.set_commands(vec![help, say]).await;
    }

    async fn set_config_option(
        &self,
        (): &(),
        session: &Session,
        option: &SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> acp::Result<Vec<SessionConfigOption>> {
        let mut now = serde_json::to_value(session.config_options()).unwrap();
        for of in now.as_array_mut().unwrap() {
            if of["id"] == option.as_str() {
                of["currentValue"] = match &value {
                    SessionConfigOptionValue::Boolean(value) => serde_json::json!(value),
                    SessionConfigOptionValue::Id(value) => serde_json::json!(value),
                };
            }
        }
        Ok(serde_json::from_value(now).unwrap())
    }

    fn load_session(&self) -> Option<&impl LoadSession> {
        Some(self)
    }

    fn resume_session(&self) -> Option<&impl ResumeSession> {
        Some(self)
    }

    fn set_session_title(&self) -> Option<&impl SetSessionTitle> {
        Some(self)
    }

    fn list_sessions(&self) -> Option<&impl ListSessions> {
        Some(self)
    }

    fn fork_session(&self) -> Option<&impl ForkSession> {
        Some(self)
    }

    fn close_session(&self) -> Option<&impl CloseSession> {
        Some(self)
    }

    fn delete_session(&self) -> Option<&impl DeleteSession> {
        Some(self)
    }

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> acp::Result<StopReason> {
        let said = prompt.text();
        self.show_turn_start(&turn, &prompt).await?;
        let done = match said.trim() {
            "read" => run_read_task(&turn).await,
            "edit" => run_edit_task(&turn).await,
            "run" if agent_v2::is_version_2(&turn) => agent_v2::run_command_task(&turn).await,
            "run" => run_command_task(&turn).await,
            "long" => run_long_task(&turn).await,
            "plan" => run_plan_task(&turn).await,
            "recall" => self.recall_history(&turn).await,
            "ask" => run_ask_task(&turn).await,
            "delegate" => run_delegate_task(&turn).await,
            _ if agent_v2::is_version_2(&turn) => agent_v2::run_answer_task(&turn).await,
            _ => run_answer_task(&turn).await,
        };
        if let Some((_, past)) = self.sessions.lock().unwrap().get_mut(turn.id().as_str()) {
            past.push((said, "Hello.".to_owned()));
        }
        match done {
            Err(acp::Error::Cancelled) => Ok(StopReason::Cancelled),
            done => done,
        }
    }
}

impl CorrectAgent {
    /// Sends the updates that every turn starts with: the session's title, its usage, and the images and files in the
    /// prompt.
    async fn show_turn_start(&self, turn: &Turn, prompt: &Prompt) -> acp::Result<()> {
        let turns = self.stored_history(turn.id())?.len();
        if turns == 0 {
            turn.set_title(prompt.text()).await?;
        }
        let used = 100 * (turns as u64 + 1);
        let cost = Cost::new(0.01 * used as f64, "USD");
        turn.report_usage(UsageUpdate::new(used, 100_000_u64).cost(cost))
            .await?;
        for block in &prompt.content {
            if let ContentBlock::Image(_) | ContentBlock::Audio(_) | ContentBlock::Resource(_) =
                block
            {
                turn.send_message_content(block.clone()).await?;
            }
        }
        Ok(())
    }

    async fn recall_history(&self, turn: &Turn) -> acp::Result<StopReason> {
        let past = self.stored_history(turn.id())?;
        let system = self
            .system_prompts
            .lock()
            .unwrap()
            .get(turn.id().as_str())
            .cloned();
        let mut said = past
            .iter()
            .map(|(said, _)| said)
            .chain(&system)
            .filter_map(|said| said.strip_prefix("remember "));
        turn.send_message(said.next().unwrap_or("I know of none."))
            .await?;
        Ok(StopReason::EndTurn)
    }

    fn stored_history(&self, id: &SessionId) -> acp::Result<SessionHistory> {
        let sessions = self.sessions.lock().unwrap();
        match sessions.get(id.as_str()) {
            Some((_, past)) => Ok(past.clone()),
            None => Err(acp::jsonrpc::Error::resource_not_found(format!("session {id}")).into()),
        }
    }
}

impl LoadSession for CorrectAgent {
    async fn load(&self, session: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
        for (user, agent) in self.stored_history(session.id())? {
            session.replay_user_message(user.as_str()).await?;
            session.send_message(agent).await?;
        }
        Ok(OpenedSession::new().config_options(config_options("ask", false)))
    }
}

impl ResumeSession for CorrectAgent {
    async fn resume(&self, session: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
        self.stored_history(session.id())?;
        Ok(OpenedSession::new().config_options(config_options("ask", false)))
    }
}

impl ForkSession for CorrectAgent {
    async fn fork(
        &self,
        from: &SessionId,
        session: &Session,
        _: SessionSetup,
    ) -> acp::Result<OpenedSession> {
        let kept = (session.cwd().to_owned(), self.stored_history(from)?);
        let mut sessions = self.sessions.lock().unwrap();
        sessions.insert(session.id().to_string(), kept);
        Ok(OpenedSession::new().config_options(config_options("ask", false)))
    }
}

impl ListSessions for CorrectAgent {
    async fn list(&self, request: ListSessionsRequest) -> acp::Result<ListSessionsResponse> {
        let sessions = self.sessions.lock().unwrap();
        let of_cwd = sessions
            .iter()
            .filter(|(_, (cwd, _))| request.cwd.as_ref().is_none_or(|wanted| wanted == cwd));
        let mut listed: Vec<SessionInfo> = of_cwd
            .map(|(id, (cwd, past))| {
                let info = SessionInfo::new(id.as_str(), cwd.as_str());
                let titles = self.titles.lock().unwrap();
                match (titles.get(id), past.first()) {
                    (Some(title), _) => info.title(title.as_str()),
                    (None, Some((said, _))) => info.title(said.as_str()),
                    (None, None) => info,
                }
            })
            .collect();
        listed.sort_by(|a, b| a.session_id.cmp(&b.session_id));
        let from = match request.cursor.as_deref().map(str::parse) {
            None => 0,
            Some(Ok(from)) if from < listed.len() => from,
            Some(_) => return Err(acp::Error::invalid_params("unknown cursor")),
        };
        let more = listed.len() > from + PAGE_SIZE;
        let page: Vec<SessionInfo> = listed.into_iter().skip(from).take(PAGE_SIZE).collect();
        let mut page = ListSessionsResponse::new(page);
        page.next_cursor = more.then(|| (from + PAGE_SIZE).to_string());
        Ok(page)
    }
}

impl SetSessionTitle for CorrectAgent {
    async fn set_title(
        &self,
        _: Option<&()>,
        session: &SessionId,
        title: &str,
    ) -> acp::Result<String> {
        self.stored_history(session)?;
        if title.is_empty() {
            return Err(acp::Error::invalid_params("the title must not be empty"));
        }
        let mut titles = self.titles.lock().unwrap();
        titles.insert(session.to_string(), title.to_owned());
        Ok(title.to_owned())
    }
}

impl CloseSession for CorrectAgent {
    async fn close(&self, (): &(), _: &SessionId) -> acp::Result<()> {
        Ok(())
    }
}

impl DeleteSession for CorrectAgent {
    async fn delete(&self, session: &SessionId) -> acp::Result<()> {
        self.sessions.lock().unwrap().remove(session.as_str());
        Ok(())
    }
}

impl Authentication for CorrectAgent {
    fn methods(&self) -> Vec<AuthMethod> {
        let methods = serde_json::json!([
            {"id": LOGIN_METHOD_ID, "name": "Log in"},
            {"type": "terminal", "id": "tui", "name": "Log in in a terminal", "env": {"CHECKED": "1"}},
        ]);
        serde_json::from_value(methods).unwrap()
    }

    async fn authenticate(&self, _: &AuthContext, _: &AuthMethodId) -> acp::Result<()> {
        self.logged_out.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn can_logout(&self) -> bool {
        true
    }

    async fn logout(&self) -> acp::Result<()> {
        self.logged_out.store(true, Ordering::Relaxed);
        Ok(())
    }
}
