//! The twin of `official-agent` on our own library: the same prompts, the same things done.
//!
//! `--auth` opens sessions only after `authenticate`. Every session id that begins with `old-` can be
//! loaded, and has a past; two of them are listed.

use std::sync::atomic::{AtomicBool, Ordering};

use acp::agent::{
    AuthContext, Authentication, CloseSession, DeleteSession, ListSessions, LoadSession, Prompt,
    ResumeSession, Session, SessionOpened, SessionSetup, TerminalCommand, Turn,
};
use acp::v1::{
    AuthMethod, AuthMethodAgent, AuthMethodId, AvailableCommand, ContentBlock, Cost, Diff,
    EnvVariable, Implementation, ListSessionsRequest, ListSessionsResponse, PermissionOption,
    PermissionOptionKind, PlanEntry, PlanEntryPriority, PlanEntryStatus, RequestPermissionOutcome,
    SessionConfigId, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelect, SessionConfigSelectOption, SessionId, SessionInfo, StopReason, ToolCall,
    ToolCallLocation, ToolCallStatus, ToolKind, UsageUpdate,
};
use acp::{Agent, Connection, Error, Result, jsonrpc};
use serde_json::json;
use serde_json::value::RawValue;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let auth = std::env::args().any(|arg| arg == "--auth");
    acp::agent::serve_stdio(Twin {
        auth,
        authenticated: AtomicBool::new(false),
    })
    .await
}

struct Twin {
    auth: bool,
    authenticated: AtomicBool,
}

impl Agent for Twin {
    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("our-agent", "1.0"))
    }

    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<SessionOpened> {
        if self.auth && !self.authenticated.load(Ordering::Acquire) {
            return Err(Error::Rpc(jsonrpc::Error::new(
                jsonrpc::Error::AUTH_REQUIRED,
                "Authentication required",
            )));
        }
        Ok(SessionOpened::new().config_options(vec![mode("ask")]))
    }

    async fn session_opened(&self, session: Session) {
        // A client that is gone needs no commands.
        let _ = session
            .commands(vec![AvailableCommand::new("work", "Do one of everything")])
            .await;
    }

    async fn set_config_option(
        &self,
        _: &Session,
        _: &SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> Result<Vec<SessionConfigOption>> {
        match value {
            SessionConfigOptionValue::Id(id) => Ok(vec![mode(id.as_str())]),
            _ => Err(Error::invalid_params("a mode is an id")),
        }
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

    fn authentication(&self) -> Option<&impl Authentication> {
        self.auth.then_some(self)
    }

    async fn extension_request(
        &self,
        _: &Connection,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>> {
        if method == "_interop/wait" {
            // Until whoever asks takes it back.
            return std::future::pending().await;
        }
        if method != "_interop/ask" {
            return Err(Error::Rpc(jsonrpc::Error::method_not_found(method)));
        }
        let ask: interop::Ask = read(params.as_deref())?;
        write(&interop::Asked {
            answer: format!("our agent heard {}", ask.question),
        })
    }

    async fn extension_notification(
        &self,
        client: &Connection,
        method: &str,
        params: Option<Box<RawValue>>,
    ) {
        if let ("_interop/told", Ok(told)) = (method, read::<interop::Told>(params.as_deref())) {
            // Told back, so that whoever told can see that it arrived.
            let told = interop::Told {
                what: format!("our agent was told {}", told.what),
            };
            let _ = client.notify_raw(method, &told).await;
        }
    }

    async fn prompt(&self, turn: Turn, prompt: Prompt) -> Result<StopReason> {
        let text = prompt.text();
        match text.split_whitespace().next().unwrap_or_default() {
            "work" => work(&turn).await,
            "wait" => {
                turn.message("waiting").await?;
                std::future::pending().await
            }
            "wait-permission" => {
                let cancelled = turn.take_cancellation();
                turn.tool_call(ToolCall::new("ask", "Ask").kind(ToolKind::Edit))
                    .await?;
                let outcome = ask_permission(&turn, "ask").await?;
                cancelled.cancelled().await;
                turn.message(match outcome {
                    RequestPermissionOutcome::Cancelled(_) => "the question was withdrawn",
                    _ => "there was an answer",
                })
                .await?;
                Ok(StopReason::Cancelled)
            }
            "wait-command" => {
                let call = turn
                    .tool_call(ToolCall::new("run", "Wait").kind(ToolKind::Execute))
                    .await?;
                let script = "echo $$ > pid; echo started; exec sleep 600";
                let terminal = turn
                    .create_terminal(TerminalCommand::new("sh", ["-c", script]))
                    .await?;
                call.update(
                    call.change()
                        .status(ToolCallStatus::InProgress)
                        .content(vec![terminal.as_content()]),
                )
                .await?;
                // Cancelling drops all of this, and the terminal is released.
                terminal.wait_for_exit().await?;
                Ok(StopReason::EndTurn)
            }
            "ask-extension" => {
                let told = interop::Told {
                    what: "a turn runs".to_owned(),
                };
                turn.connection().notify_raw("_interop/told", &told).await?;
                let ask = interop::Ask {
                    question: "how are you".to_owned(),
                };
                let answer = turn.connection().request_raw("_interop/ask", &ask).await?;
                turn.message(read::<interop::Asked>(Some(&answer))?.answer)
                    .await?;
                Ok(StopReason::EndTurn)
            }
            "ask-unknown" => {
                let answer = turn
                    .connection()
                    .request_raw("terminal/explode", &json!({}))
                    .await;
                say_error(&turn, answer).await
            }
            "ask-missing-file" => {
                let answer = turn
                    .read_text_file(&format!("{}/missing.txt", turn.cwd()), None, None)
                    .await;
                say_error(&turn, answer).await
            }
            "refuse" => Ok(StopReason::Refusal),
            "max-tokens" => Ok(StopReason::MaxTokens),
            "fail" => Err(Error::Rpc(jsonrpc::Error::new(
                -32050,
                "the model is on holiday",
            ))),
            _ => {
                turn.message(text).await?;
                Ok(StopReason::EndTurn)
            }
        }
    }
}

impl LoadSession for Twin {
    async fn load_session(&self, session: &Session, _: SessionSetup) -> Result<SessionOpened> {
        is_old(session.id())?;
        session
            .user_message(ContentBlock::text("what was said"))
            .await?;
        session.thought("what was thought").await?;
        let call = session
            .tool_call(ToolCall::new("call", "What was done").kind(ToolKind::Read))
            .await?;
        call.complete().await?;
        session.message("what was answered").await?;
        Ok(SessionOpened::new().config_options(vec![mode("code")]))
    }
}

impl ResumeSession for Twin {
    async fn resume_session(&self, session: &Session, _: SessionSetup) -> Result<SessionOpened> {
        is_old(session.id())?;
        Ok(SessionOpened::new().config_options(vec![mode("code")]))
    }
}

impl ListSessions for Twin {
    async fn list_sessions(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse> {
        let page = |id, title, next: Option<&str>| {
            let mut session = SessionInfo::new(id, "/tmp");
            session.title = Some(String::from(title));
            let mut page = ListSessionsResponse::new(vec![session]);
            page.next_cursor = next.map(str::to_owned);
            page
        };
        match request.cursor.as_deref() {
            None => Ok(page("old-1", "The first", Some("second"))),
            Some("second") => Ok(page("old-2", "The second", None)),
            Some(_) => Err(Error::invalid_params("there is no such page")),
        }
    }
}

impl CloseSession for Twin {
    async fn close_session(&self, _: &SessionId) -> Result<()> {
        Ok(())
    }
}

impl DeleteSession for Twin {
    async fn delete_session(&self, _: &SessionId) -> Result<()> {
        Ok(())
    }
}

impl Authentication for Twin {
    fn methods(&self) -> Vec<AuthMethod> {
        vec![AuthMethod::Agent(AuthMethodAgent::new("key", "A key"))]
    }

    async fn authenticate(&self, _: &AuthContext, _: &AuthMethodId) -> Result<()> {
        self.authenticated.store(true, Ordering::Release);
        Ok(())
    }

    fn can_logout(&self) -> bool {
        true
    }

    async fn logout(&self) -> Result<()> {
        self.authenticated.store(false, Ordering::Release);
        Ok(())
    }
}

/// Only these sessions have a past.
fn is_old(session: &SessionId) -> Result<()> {
    match session.as_str().starts_with("old-") {
        true => Ok(()),
        false => Err(Error::Rpc(jsonrpc::Error::resource_not_found(format!(
            "session {session}"
        )))),
    }
}

/// One of everything.
async fn work(turn: &Turn) -> Result<StopReason> {
    let file = format!("{}/note.txt", turn.cwd());
    turn.thought("First I look.").await?;
    for word in ["Reading ", "the ", "note."] {
        turn.message(word).await?;
    }
    plan(
        turn,
        [
            PlanEntryStatus::InProgress,
            PlanEntryStatus::Pending,
            PlanEntryStatus::Pending,
        ],
    )
    .await?;

    let location = vec![ToolCallLocation::new(&file).line(1_u32)];
    let call = ToolCall::new("read", "Read note.txt")
        .kind(ToolKind::Read)
        .locations(location.clone());
    let call = turn
        .tool_call(call.status(ToolCallStatus::InProgress))
        .await?;
    let old = turn.read_text_file(&file, None, None).await?;
    let second = turn.read_text_file(&file, Some(2), Some(1)).await?;
    let done = call
        .change()
        .status(ToolCallStatus::Completed)
        .raw_output(json!({"second": second}));
    call.update(done.content(vec![ContentBlock::text(&old).into()]))
        .await?;

    let new = old.to_uppercase();
    let mut diff = Diff::new(&file, &new);
    diff.old_text = Some(old);
    let call = ToolCall::new("edit", "Shout")
        .kind(ToolKind::Edit)
        .locations(location);
    let call = turn.tool_call(call).await?;
    if !matches!(ask_permission(turn, "edit").await?, RequestPermissionOutcome::Selected(yes) if yes.option_id.as_str() == "yes")
    {
        call.update(call.change().status(ToolCallStatus::Failed))
            .await?;
        turn.message(" I was not allowed to.").await?;
        return Ok(StopReason::EndTurn);
    }
    call.start().await?;
    turn.write_text_file(&file, &new).await?;
    call.update(
        call.change()
            .status(ToolCallStatus::Completed)
            .content(vec![acp::v1::ToolCallContent::Diff(diff)]),
    )
    .await?;
    plan(
        turn,
        [
            PlanEntryStatus::Completed,
            PlanEntryStatus::InProgress,
            PlanEntryStatus::Pending,
        ],
    )
    .await?;

    run_command(turn).await?;
    kill_command(turn).await?;
    plan(
        turn,
        [
            PlanEntryStatus::Completed,
            PlanEntryStatus::Completed,
            PlanEntryStatus::Completed,
        ],
    )
    .await?;

    let mut usage = UsageUpdate::new(1200_u64, 200_000_u64);
    usage.cost = Some(Cost::new(0.25, "EUR"));
    turn.usage(usage).await?;
    turn.set_config_options(vec![mode("code")]).await?;
    turn.title("A loud note").await?;
    turn.message(" Done.").await?;
    Ok(StopReason::EndTurn)
}

/// A command that ends by itself, not well.
async fn run_command(turn: &Turn) -> Result<()> {
    let call = turn
        .tool_call(ToolCall::new("run", "Count").kind(ToolKind::Execute))
        .await?;
    let script = "cat note.txt; echo $GREETING >&2; exit 3";
    let mut command = TerminalCommand::new("sh", ["-c", script])
        .cwd(turn.cwd())
        .output_byte_limit(64 * 1024);
    command.env = vec![EnvVariable::new("GREETING", "hello")];
    let terminal = turn.create_terminal(command).await?;
    call.update(
        call.change()
            .status(ToolCallStatus::InProgress)
            .content(vec![terminal.as_content()]),
    )
    .await?;
    let exit = terminal.wait_for_exit().await?;
    let output = terminal.output().await?;
    terminal.release().await?;
    let result = json!({
        "code": exit.exit_code,
        "output": output.output,
        "truncated": output.truncated,
        "ended": output.exit_status.is_some(),
    });
    call.update(
        call.change()
            .status(ToolCallStatus::Completed)
            .raw_output(result),
    )
    .await
}

/// A command that does not.
async fn kill_command(turn: &Turn) -> Result<()> {
    let call = turn
        .tool_call(ToolCall::new("kill", "Wait").kind(ToolKind::Execute))
        .await?;
    let terminal = turn
        .create_terminal(TerminalCommand::new("sleep", ["600"]))
        .await?;
    call.update(
        call.change()
            .status(ToolCallStatus::InProgress)
            .content(vec![terminal.as_content()]),
    )
    .await?;
    let running = terminal.output().await?;
    terminal.kill().await?;
    let exit = terminal.wait_for_exit().await?;
    terminal.release().await?;
    let result = json!({"ran": running.exit_status.is_none(), "signal": exit.signal});
    call.update(
        call.change()
            .status(ToolCallStatus::Failed)
            .raw_output(result),
    )
    .await
}

async fn ask_permission(turn: &Turn, call: &str) -> Result<RequestPermissionOutcome> {
    let options = vec![
        PermissionOption::new("no", "No", PermissionOptionKind::RejectOnce),
        PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce),
    ];
    turn.request_permission(acp::v1::ToolCallUpdate::new(call), options)
        .await
}

async fn plan(turn: &Turn, statuses: [PlanEntryStatus; 3]) -> Result<()> {
    let steps = ["Look", "Shout", "Count"].into_iter().zip(statuses);
    turn.plan(
        steps
            .map(|(step, status)| PlanEntry::new(step, PlanEntryPriority::Medium, status))
            .collect(),
    )
    .await
}

async fn say_error<T>(turn: &Turn, answer: Result<T>) -> Result<StopReason> {
    let code = answer.err().map_or(0, |error| error.into_rpc().code);
    turn.message(format!("error {code}")).await?;
    Ok(StopReason::EndTurn)
}

fn mode(current: &str) -> SessionConfigOption {
    let modes = [("ask", "Ask"), ("code", "Code")]
        .map(|(id, name)| SessionConfigSelectOption::new(id, name));
    SessionConfigOption::new(
        "mode",
        "Mode",
        SessionConfigSelect::new(current, modes.to_vec()),
    )
    .category(SessionConfigOptionCategory::Mode)
}

fn read<T: serde::de::DeserializeOwned>(params: Option<&RawValue>) -> Result<T> {
    let params = params.map_or("null", RawValue::get);
    serde_json::from_str(params).map_err(|e| Error::invalid_params(e.to_string()))
}

fn write(answer: &impl serde::Serialize) -> Result<Box<RawValue>> {
    serde_json::value::to_raw_value(answer).map_err(|e| Error::internal(e.to_string()))
}
