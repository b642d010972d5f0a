//! The agent that is right: it does what it is asked by one word each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use acp::agent::{
    Agent, Authentication, CloseSession, DeleteSession, ListSessions, LoadSession, Prompt,
    ResumeSession, Session, SessionOpened, SessionSetup, TerminalCommand, Turn,
};
use acp::v1::{
    AvailableCommand, Diff, Implementation, ListSessionsRequest, ListSessionsResponse,
    PermissionOption, PermissionOptionKind, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    PromptCapabilities, RequestPermissionOutcome, SessionConfigId, SessionConfigOption,
    SessionConfigOptionValue, SessionId, SessionInfo, StopReason, ToolCall, ToolCallLocation,
    ToolKind,
};
use acp::{Options, Transport};
use acp_check::suite::Task;

use crate::agent_v2;

/// What the suite asks it with.
pub(crate) fn texts() -> HashMap<Task, String> {
    [
        (Task::Answer, "answer"),
        (Task::Read, "read"),
        (Task::Edit, "edit"),
        (Task::Run, "run"),
        (Task::Long, "long"),
        (Task::Plan, "plan"),
    ]
    .map(|(task, text)| (task, text.to_owned()))
    .into()
}

/// Serves a connection. What it keeps is gone with it.
pub(crate) fn start(transport: Transport) {
    acp::agent::start(transport, Right::default(), Options::new());
}

/// As [`start`], for clients that may speak version 2. It has ways to authenticate, too.
pub(crate) fn start_v2(transport: Transport) {
    let right = Right {
        v2: true,
        ..Right::default()
    };
    acp::agent::start(transport, right, Options::new().draft_version_2());
}

/// What was said in a session: the person's words and the agent's.
type Past = Vec<(String, String)>;

#[derive(Default, Clone)]
struct Right {
    sessions: Arc<Mutex<HashMap<String, (String, Past)>>>,
    v2: bool,
}

impl Agent for Right {
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

    async fn new_session(&self, session: &Session, _: SessionSetup) -> acp::Result<SessionOpened> {
        let kept = (session.cwd().to_owned(), Past::new());
        self.sessions
            .lock()
            .unwrap()
            .insert(session.id().to_string(), kept);
        Ok(SessionOpened::new().config_options(options("ask", false)))
    }

    async fn session_opened(&self, session: Session) {
        let _ = session
            .commands(vec![AvailableCommand::new("help", "Says what there is")])
            .await;
    }

    async fn set_config_option(
        &self,
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

    fn list_sessions(&self) -> Option<&impl ListSessions> {
        Some(self)
    }

    fn close_session(&self) -> Option<&impl CloseSession> {
        Some(self)
    }

    fn delete_session(&self) -> Option<&impl DeleteSession> {
        Some(self)
    }

    fn additional_directories(&self) -> bool {
        self.v2
    }

    fn authentication(&self) -> Option<&impl Authentication> {
        self.v2.then_some(&agent_v2::Logins)
    }

    async fn prompt(&self, turn: Turn, prompt: Prompt) -> acp::Result<StopReason> {
        let said = prompt.text();
        let done = match said.trim() {
            "read" => read(&turn).await,
            "edit" => edit(&turn).await,
            "run" if agent_v2::spoken(&turn) => agent_v2::run(&turn).await,
            "run" => run(&turn).await,
            "long" => long(&turn).await,
            "plan" => plan(&turn).await,
            _ if agent_v2::spoken(&turn) => agent_v2::answer(&turn).await,
            _ => turn.message("Hello.").await.map(|()| StopReason::EndTurn),
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

fn options(mode: &str, loud: bool) -> Vec<SessionConfigOption> {
    serde_json::from_value(serde_json::json!([
        {"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": mode,
         "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code"}]},
        {"id": "loud", "name": "Loud", "type": "boolean", "currentValue": loud},
    ]))
    .unwrap()
}

fn notes(turn: &Turn) -> String {
    format!("{}/notes.txt", turn.cwd())
}

async fn text(turn: &Turn) -> acp::Result<String> {
    let path = notes(turn);
    if turn.client().capabilities().fs.read_text_file {
        return turn.read_text_file(&path, None, None).await;
    }
    std::fs::read_to_string(path).map_err(|e| acp::Error::internal(e.to_string()))
}

async fn read(turn: &Turn) -> acp::Result<StopReason> {
    let call = ToolCall::new(agent_v2::fresh("read"), "Read notes.txt")
        .kind(ToolKind::Read)
        .locations([ToolCallLocation::new(notes(turn))]);
    let call = turn.tool_call(call).await?;
    call.start().await?;
    let text = text(turn).await?;
    call.complete().await?;
    let first = text.lines().next().unwrap_or_default();
    turn.message(format!("It begins with {first}.")).await?;
    Ok(StopReason::EndTurn)
}

async fn edit(turn: &Turn) -> acp::Result<StopReason> {
    let old = text(turn).await?;
    let new = old.replace("beta", "delta");
    let diff = Diff::new(notes(turn), new.clone()).old_text(old);
    let call = ToolCall::new("edit-1", "Edit notes.txt")
        .kind(ToolKind::Edit)
        .content([diff.into()]);
    let call = turn.tool_call(call).await?;
    let options = vec![
        PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce),
        PermissionOption::new("no", "No", PermissionOptionKind::RejectOnce),
    ];
    match turn.request_permission(call.change(), options).await? {
        RequestPermissionOutcome::Selected(chosen) if chosen.option_id.as_str() == "yes" => {}
        RequestPermissionOutcome::Selected(_) => {
            call.fail("not allowed").await?;
            return Ok(StopReason::EndTurn);
        }
        _ => {
            call.fail("cancelled").await?;
            return Ok(StopReason::Cancelled);
        }
    }
    call.start().await?;
    if turn.client().capabilities().fs.write_text_file {
        turn.write_text_file(&notes(turn), &new).await?;
    } else {
        std::fs::write(notes(turn), new).map_err(|e| acp::Error::internal(e.to_string()))?;
    }
    call.complete().await?;
    turn.message("Done.").await?;
    Ok(StopReason::EndTurn)
}

async fn run(turn: &Turn) -> acp::Result<StopReason> {
    let call = ToolCall::new("run-1", "Run echo checked").kind(ToolKind::Execute);
    if turn.client().capabilities().terminal {
        let terminal = turn
            .create_terminal(TerminalCommand::new("echo", ["checked"]))
            .await?;
        let call = turn
            .tool_call(call.content([terminal.as_content()]))
            .await?;
        call.start().await?;
        terminal.wait_for_exit().await?;
        let printed = terminal.output().await?.output;
        call.complete().await?;
        turn.message(format!("It printed {}.", printed.trim()))
            .await?;
        terminal.release().await?;
    } else {
        let call = turn.tool_call(call).await?;
        call.start().await?;
        call.complete().await?;
        turn.message("It printed checked.").await?;
    }
    Ok(StopReason::EndTurn)
}

async fn long(turn: &Turn) -> acp::Result<StopReason> {
    let call = ToolCall::new("long-1", "Count").kind(ToolKind::Think);
    let call = turn.tool_call(call).await?;
    call.start().await?;
    turn.message("One, ").await?;
    turn.cancelled().await;
    call.fail("cancelled").await?;
    Ok(StopReason::Cancelled)
}

async fn plan(turn: &Turn) -> acp::Result<StopReason> {
    let entry = |content: &str, status| PlanEntry::new(content, PlanEntryPriority::High, status);
    for done in [PlanEntryStatus::InProgress, PlanEntryStatus::Completed] {
        let rest = PlanEntryStatus::Pending;
        turn.plan(vec![
            entry("Look", done),
            entry("Rename", rest.clone()),
            entry("Look again", rest),
        ])
        .await?;
    }
    turn.message("That is the plan.").await?;
    Ok(StopReason::EndTurn)
}

impl Right {
    fn past(&self, id: &SessionId) -> acp::Result<Past> {
        let sessions = self.sessions.lock().unwrap();
        match sessions.get(id.as_str()) {
            Some((_, past)) => Ok(past.clone()),
            None => Err(acp::jsonrpc::Error::resource_not_found(format!("session {id}")).into()),
        }
    }
}

impl LoadSession for Right {
    async fn load_session(&self, session: &Session, _: SessionSetup) -> acp::Result<SessionOpened> {
        for (user, agent) in self.past(session.id())? {
            session.user_message(user.as_str()).await?;
            session.message(agent).await?;
        }
        Ok(SessionOpened::new().config_options(options("ask", false)))
    }
}

impl ResumeSession for Right {
    async fn resume_session(
        &self,
        session: &Session,
        _: SessionSetup,
    ) -> acp::Result<SessionOpened> {
        self.past(session.id())?;
        Ok(SessionOpened::new().config_options(options("ask", false)))
    }
}

impl ListSessions for Right {
    async fn list_sessions(
        &self,
        request: ListSessionsRequest,
    ) -> acp::Result<ListSessionsResponse> {
        let sessions = self.sessions.lock().unwrap();
        let of_cwd = sessions
            .iter()
            .filter(|(_, (cwd, _))| request.cwd.as_ref().is_none_or(|wanted| wanted == cwd));
        let listed = of_cwd.map(|(id, (cwd, _))| SessionInfo::new(id.as_str(), cwd.as_str()));
        Ok(ListSessionsResponse::new(listed.collect::<Vec<_>>()))
    }
}

impl CloseSession for Right {
    async fn close_session(&self, _: &SessionId) -> acp::Result<()> {
        Ok(())
    }
}

impl DeleteSession for Right {
    async fn delete_session(&self, session: &SessionId) -> acp::Result<()> {
        self.past(session)?;
        self.sessions.lock().unwrap().remove(session.as_str());
        Ok(())
    }
}
