//! A turn: the model is asked, what it calls is carried out and reported, and it is asked again with
//! the results, until it stops.

mod report;
mod writing;

use std::path::Path;

use acp::agent::Prompt;
use acp::v1::{Cost, StopReason, ToolCall, ToolCallStatus, UsageUpdate};
use serde_json::{Value, json};

use crate::choice::Asked;
use crate::context::{Begun, Conversation};
use crate::mcp;
use crate::mode::Mode;
use crate::model::error::ModelErrorKind;
use crate::model::error::failure;
use crate::model::interface::{Model, Request, ToolSpec};
use crate::model::message::{Message, Sealed, ToolRequest, ToolResult, ToolStatus};
use crate::model::step::next_step;
use crate::model::step::{Step, Usage};
use crate::permission::{self, Decision};
use crate::reported::Reported;
use crate::reported::text;
use crate::rules::{RuleFiles, Standing};
use crate::tools::{Call, Change, Doing, Output, SwitchMode};
use crate::workspace::{Fault, Workspace};
use report::{failed, finish, unanswered, unreadable, whole};
use writing::{Unfinished, Written};

/// A turn that runs.
#[derive(Clone, Copy)]
pub(crate) struct Running<'a> {
    /// The model, until the next round.
    pub(crate) asked: &'a Asked,
    pub(crate) tools: &'a [ToolSpec],
    /// How often the model is asked at most.
    pub(crate) max_requests: usize,
    /// The user's own instructions, if there may be any.
    pub(crate) user_instructions: Option<&'a Path>,
    pub(crate) rules: &'a RuleFiles,
    pub(crate) workspace: &'a Workspace,
}

/// What a model said in one round.
#[derive(Default)]
struct Reply {
    text: String,
    thought: String,
    calls: Vec<ToolRequest>,
    /// Those of them that are shown already.
    written: Written,
    sealed: Option<Sealed>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    /// The conversation does not fit into the model's window.
    overflows: bool,
}

impl<'a> Running<'a> {
    pub(crate) fn model(&self) -> &'a dyn Model {
        &*self.asked.model
    }

    /// Runs the turn to its end. A cancelled one ends as soon as everything it has begun is ended.
    pub(crate) async fn run(&self, prompt: Prompt) -> acp::Result<StopReason> {
        let mut conversation = self.workspace.state.conversation.lock().await;
        match self.begin(&mut conversation, prompt.content).await {
            Ok(Begun::Asks) => {}
            Ok(Begun::Answered) => return Ok(StopReason::EndTurn),
            Err(acp::Error::Cancelled) => return Ok(StopReason::Cancelled),
            Err(error) => return Err(error),
        }
        for _ in 0..self.max_requests {
            // It may have been changed meanwhile.
            let asked = self.workspace.state.asked()?;
            let running = Running {
                asked: &asked,
                ..*self
            };
            match running.round_with_room(&mut conversation).await {
                Ok(None) => {}
                Ok(Some(reason)) => return Ok(reason),
                Err(acp::Error::Cancelled) => return Ok(StopReason::Cancelled),
                Err(error) => return Err(error),
            }
        }
        Ok(StopReason::MaxTurnRequests)
    }

    /// Asks the model once and carries out what it calls. Gives the stop reason if it stops.
    pub(crate) async fn round(
        &self,
        conversation: &mut Conversation,
    ) -> acp::Result<Option<StopReason>> {
        let mut reply = Reply::default();
        let heard = self.listen(conversation, &mut reply).await;
        if std::mem::take(&mut reply.overflows) {
            conversation.overflowed();
        }
        let Reply {
            text,
            thought,
            calls,
            mut written,
            sealed,
            usage,
            stop,
            ..
        } = reply;
        let heard = match usage {
            Some(usage) => heard.and(self.used(usage).await),
            None => heard,
        };
        let state = &self.workspace.state;
        let message = Message::Assistant {
            text,
            thought,
            calls: calls.clone(),
            sealed,
        };
        let kept = state.tell(conversation, message).await;
        if let Some(usage) = usage {
            conversation.used(usage);
        }
        let mut ended = match (heard.and(kept.map_err(Into::into)), stop) {
            (Err(error), _) => Some(Err(error)),
            // After any other reason the calls may be cut off.
            (Ok(()), Some(reason)) if reason != StopReason::EndTurn => Some(Ok(Some(reason))),
            (Ok(()), _) if calls.is_empty() => Some(Ok(Some(StopReason::EndTurn))),
            (Ok(()), _) => None,
        };
        for (n, call) in calls.iter().enumerate() {
            // Whatever happens, every call has a result: a conversation in which one lacks it is one
            // that no provider takes.
            let result = match &ended {
                None => self.execute(call, written.take(n)).await,
                Some(_) => Ok(unanswered(call)),
            };
            let result = result.unwrap_or_else(|error| {
                ended = Some(Err(error));
                unanswered(call)
            });
            let message = Message::ToolResult(result);
            if let Err(error) = state.tell(conversation, message).await {
                ended.get_or_insert(Err(error.into()));
            }
        }
        let ended = ended.unwrap_or(Ok(None));
        let told = written.end(&Unfinished::of(&ended)).await;
        ended.and_then(|reason| told.map(|()| reason))
    }

    /// Adds what this cost to what the session has cost, where that is known.
    pub(crate) async fn spend(&self, usage: Usage) -> acp::Result<()> {
        if let Some(price) = self.model().price() {
            let cost = price.of(&usage);
            self.workspace.state.spend(cost).await?;
        }
        Ok(())
    }

    /// Reports that so much of the model's window is filled, in tokens, and what the session has cost so far.
    pub(crate) async fn show_usage(&self, filled: u64, window: u64) -> acp::Result<()> {
        let spent = self.workspace.state.spent();
        let mut usage = UsageUpdate::new(filled, window);
        usage.cost = (spent > 0).then(|| Cost::new(spent as f64 / 1e9, "USD"));
        self.workspace.turn.usage(usage).await
    }

    /// Takes what a round has used, and reports it where the window's size is known.
    async fn used(&self, usage: Usage) -> acp::Result<()> {
        self.spend(usage).await?;
        match self.model().context_window() {
            Some(window) => self.show_usage(usage.in_window(), window).await,
            None => Ok(()),
        }
    }

    /// Reports what the model says as it comes. What it has said so far is in `reply` also after an
    /// error.
    async fn listen(&self, conversation: &Conversation, reply: &mut Reply) -> acp::Result<()> {
        let turn = &self.workspace.turn;
        let tools = mcp::offered(self.workspace, self.tools).await?;
        let instructions = conversation.instructions(self.workspace.state.mode());
        let request =
            Request::new(conversation.messages(), &tools, turn.cwd()).instructions(&instructions);
        let request = request.thought(self.asked.thought);
        let mut steps = self.model().respond(request);
        loop {
            let next = turn.unless_cancelled(async { Ok(next_step(&mut steps).await) });
            let next = match reply.written.due() {
                None => next.await?,
                Some(due) => match tokio::time::timeout_at(due, next).await {
                    Ok(next) => next?,
                    Err(_) => {
                        self.announce_due(&mut reply.written).await?;
                        continue;
                    }
                },
            };
            match next {
                None => return Ok(()),
                Some(Ok(Step::Text(text))) => {
                    turn.message(&text).await?;
                    reply.text.push_str(&text);
                }
                Some(Ok(Step::Thought(thought))) => {
                    turn.thought(&thought).await?;
                    reply.thought.push_str(&thought);
                }
                Some(Ok(Step::Begins { call, tool })) => {
                    self.begins(&mut reply.written, call, tool).await?;
                }
                Some(Ok(Step::Writes { call, arguments })) => {
                    self.writes(&mut reply.written, call, &arguments).await?;
                }
                Some(Ok(Step::Call(call))) => reply.calls.push(call),
                // As a thought: that is what clients show as it comes and put aside afterwards, and none takes it for
                // a part of the answer.
                Some(Ok(Step::Delay(why))) => {
                    let broke_off = "The answer broke off before this was whole. Nothing was done.";
                    reply.written.end(&Unfinished::Failed(broke_off)).await?;
                    turn.thought(format!("{why}\n\n")).await?;
                }
                Some(Ok(Step::Sealed(sealed))) => reply.sealed = Some(sealed),
                Some(Ok(Step::Usage(usage))) => reply.usage = Some(usage),
                Some(Ok(Step::Stop(reason))) => {
                    reply.stop = Some(reason);
                    return Ok(());
                }
                Some(Err(error)) => {
                    reply.overflows = error.kind == ModelErrorKind::ContextFull;
                    tracing::warn!(model = self.model().name(), %error, "the model failed");
                    return Err(failure(error));
                }
            }
        }
    }

    /// Carries out a tool call and reports it, from `pending` to its end. It may be `shown` already.
    async fn execute(
        &self,
        request: &ToolRequest,
        shown: Option<Reported>,
    ) -> acp::Result<ToolResult> {
        let result = |output: Output| ToolResult {
            id: request.id.clone(),
            status: output.status,
            text: output.text,
            data: output.data,
            images: output.images,
        };
        if let Value::String(written) = &request.arguments {
            let why = unreadable(written);
            return self.refuse(request, shown, why).await.map(result);
        }
        let servers = &self.workspace.state.servers;
        let call = match servers.call(self.tools, &request.tool, &request.arguments) {
            Some(call) => call.map(Call::Server),
            None => Call::read(&request.tool, &request.arguments),
        };
        let call = match call {
            Ok(call) => call,
            Err(why) => return self.refuse(request, shown, why).await.map(result),
        };
        if let Some(plan) = call.as_plan() {
            return match plan.run(self.workspace).await {
                Ok(output) => Ok(result(output)),
                Err(Fault::Stop(error)) => Err(error),
                Err(Fault::Failed(why) | Fault::Missing(why)) => Ok(result(failed(why))),
            };
        }
        let mut refused = None;
        let only_reads = matches!(&call, Call::Server(call) if call.only_reads());
        let changes = call.subject().is_some() && !only_reads;
        if changes && self.workspace.state.mode() == Mode::Architect {
            let left = self.leave_architect_mode(&call).await;
            if let (Err(_), Some(shown)) = (&left, &shown) {
                Unfinished::of(&left).tell(shown).await?;
            }
            let left = left?;
            refused = (left.status != ToolStatus::Done).then_some(left.text);
        }
        self.report(&call, &request.arguments, shown, refused)
            .await
            .map(result)
    }

    /// Reports a call that cannot be read.
    async fn refuse(
        &self,
        request: &ToolRequest,
        shown: Option<Reported>,
        why: String,
    ) -> acp::Result<Output> {
        let title = format!("Call `{}`", request.tool);
        let arguments = request.arguments.clone();
        let handle = match shown {
            Some(handle) => {
                handle.later(handle.change().raw_input(arguments));
                handle
            }
            None => {
                let id = self.workspace.state.next_call_id();
                let call = ToolCall::new(id, title).raw_input(arguments);
                Reported::begin(&self.workspace.turn, call).await?
            }
        };
        handle.fail(&why).await?;
        Ok(failed(why))
    }

    /// Asks to leave architect mode, in which what this call does is not done.
    async fn leave_architect_mode(&self, call: &Call) -> acp::Result<Output> {
        let title = call
            .about(self.workspace)
            .map(|about| about.title)
            .unwrap_or_default();
        let plan = format!(
            "Architect mode changes nothing and runs nothing. To go on, the session has to leave it. \
             The next step is:\n\n- {title}"
        );
        let arguments = json!({ "mode": Mode::Ask.as_str(), "plan": plan });
        let call = Call::SwitchMode(SwitchMode::to_do(plan));
        self.report(&call, &arguments, None, None).await
    }

    /// Reports a call and carries it out, unless it is refused already.
    async fn report(
        &self,
        call: &Call,
        arguments: &Value,
        shown: Option<Reported>,
        refused: Option<String>,
    ) -> acp::Result<Output> {
        let Some(about) = call.about(self.workspace) else {
            return Err(acp::Error::internal("this tool has nothing to report"));
        };
        let arguments = if arguments.is_null() {
            json!({})
        } else {
            arguments.clone()
        };
        let id = match &shown {
            Some(handle) => handle.id().clone(),
            None => self.workspace.state.next_call_id().into(),
        };
        let report = ToolCall::new(id, about.title)
            .kind(about.kind)
            .status(ToolCallStatus::Pending)
            .content(about.content)
            .locations(about.locations)
            .raw_input(arguments);
        let handle = match shown {
            Some(handle) => {
                handle.later(whole(&report));
                handle
            }
            None => Reported::begin(&self.workspace.turn, report.clone()).await?,
        };
        let mut doing = Doing {
            workspace: self.workspace,
            handle: &handle,
            rules: self.rules,
            terminals: Vec::new(),
        };
        let done = match refused {
            Some(why) => Ok(Output::rejected(why)),
            None => self.carry_out(call, report, &mut doing).await,
        };
        let terminals = doing.terminals;
        match done {
            Ok(output) => {
                finish(&handle, &output).await?;
                Ok(output)
            }
            Err(Fault::Failed(why) | Fault::Missing(why)) => {
                let mut content = terminals;
                content.push(text(&why));
                let update = handle.change().status(ToolCallStatus::Failed);
                let update = update.content(content);
                let update = update.raw_output(json!({ "error": why }));
                handle.update(update).await?;
                Ok(failed(why))
            }
            Err(Fault::Stop(error)) => {
                if matches!(error, acp::Error::Cancelled) {
                    handle.cancel().await?;
                }
                Err(error)
            }
        }
    }

    async fn carry_out(
        &self,
        call: &Call,
        report: ToolCall,
        doing: &mut Doing<'_>,
    ) -> Result<Output, Fault> {
        doing.workspace.go_on()?;
        // Before anything of a file is looked at, since it may be one that nobody is to read.
        let mut refused = false;
        if let Some(deed) = call.deed(self.workspace) {
            match self.rules.stand(self.workspace, deed).await? {
                Standing::Refused(why) => return Ok(Output::rejected(why)),
                Standing::Asked(question) => refused = question.refused.is_some(),
                Standing::Allowed => {}
            }
        }
        let change = match refused {
            true => None,
            false => call.preview(self.workspace).await?,
        };
        if let Some(change) = &change {
            let update = doing.handle.change().content(vec![change.content()]);
            doing
                .handle
                .later(update.locations(vec![change.location()]));
        }
        if let Decision::Rejected(why) =
            self.permitted(call, report, change.as_ref(), doing).await?
        {
            return Ok(Output::rejected(why));
        }
        if !call.asks_itself() {
            doing.handle.start().await?;
        }
        call.run(doing, change.as_ref()).await
    }

    /// Asks for permission, if that is what the mode and the rules say of the call.
    async fn permitted(
        &self,
        call: &Call,
        report: ToolCall,
        change: Option<&Change>,
        doing: &Doing<'_>,
    ) -> Result<Decision, Fault> {
        let Some(deed) = call.deed(self.workspace) else {
            return Ok(Decision::Allowed);
        };
        // Once more: the client may have gone back to another mode just now.
        let question = match self.rules.stand(self.workspace, deed.clone()).await? {
            Standing::Allowed => return Ok(Decision::Allowed),
            Standing::Refused(why) => return Ok(Decision::Rejected(why)),
            Standing::Asked(question) => question,
        };
        let subject = call.asked_about(&deed, question.special);
        doing.handle.flush().await?;
        // All of it once more: what is asked is shown apart from the call by some clients.
        let mut update = doing
            .handle
            .change()
            .title(report.title)
            .kind(report.kind)
            .status(ToolCallStatus::Pending)
            .locations(report.locations);
        update.raw_input = report.raw_input;
        if let Some(change) = change {
            update = update
                .content(vec![change.content()])
                .locations(vec![change.location()]);
        }
        let asked = permission::ask(self.workspace, &subject, question.each_time, update).await?;
        Ok(match question.refused {
            Some(why) => Decision::Rejected(why),
            None => asked,
        })
    }
}
