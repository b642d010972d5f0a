//! A tool call, from `pending` to its end.

use acp::v1::{ToolCall, ToolCallStatus};
use serde_json::{Value, json};

use super::active::ActiveTurn;
use super::report::{failed, finish, unreadable, whole};
use super::writing::Interruption;
use crate::mode::Mode;
use crate::model::message::{ToolRequest, ToolResult, ToolStatus};
use crate::permission::ask::{self, Decision};
use crate::permission::rules::Judgement;
use crate::reported::{Reported, text};
use crate::tools;
use crate::tools::switch_mode::SwitchMode;
use crate::tools::tool::{Call, Change, Execution, Output};
use crate::workspace::fault::Fault;

impl ActiveTurn<'_> {
    /// Carries out a tool call and reports it, from `pending` to its end. It may be `shown` already.
    pub(super) async fn execute(
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
        let servers = &self.state.servers;
        let call = match servers.call(self.tools, &request.tool, &request.arguments) {
            Some(call) => call.map(|call| Box::new(call) as Box<dyn Call>),
            None => tools::read(&request.tool, &request.arguments),
        };
        let call = match call {
            Ok(call) => call,
            Err(why) => return self.refuse(request, shown, why).await.map(result),
        };
        if let Some(outcome) = call.run_unseen(self.workspace) {
            return match outcome.await {
                Ok(output) => Ok(result(output)),
                Err(Fault::Stop(error)) => Err(error),
                Err(Fault::Failed(why) | Fault::Missing(why)) => Ok(result(failed(why))),
            };
        }
        let mut refused = None;
        if call.may_change() && self.state.mode() == Mode::Architect {
            let left = self.leave_architect_mode(&*call).await;
            if let (Err(_), Some(shown)) = (&left, &shown) {
                Interruption::of(&left).tell(shown).await?;
            }
            let left = left?;
            refused = (left.status != ToolStatus::Done).then_some(left.text);
        }
        self.report(&*call, &request.arguments, shown, refused)
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
                let id = self.state.next_call_id();
                let call = ToolCall::new(id, title).raw_input(arguments);
                Reported::begin(&self.workspace.turn, call).await?
            }
        };
        handle.fail(&why).await?;
        Ok(failed(why))
    }

    /// Asks to leave architect mode, in which what this call does is not done.
    async fn leave_architect_mode(&self, call: &dyn Call) -> acp::Result<Output> {
        let title = call.about(self.workspace).title;
        let plan = format!(
            "Architect mode changes nothing and runs nothing. To go on, the session has to leave it. \
             The next step is:\n\n- {title}"
        );
        let arguments = json!({ "mode": Mode::Ask.as_str(), "plan": plan });
        let call = SwitchMode::to_do(plan);
        self.report(&call, &arguments, None, None).await
    }

    /// Reports a call and carries it out, unless it is refused already.
    async fn report(
        &self,
        call: &dyn Call,
        arguments: &Value,
        shown: Option<Reported>,
        refused: Option<String>,
    ) -> acp::Result<Output> {
        let about = call.about(self.workspace);
        let arguments = if arguments.is_null() {
            json!({})
        } else {
            arguments.clone()
        };
        let id = match &shown {
            Some(handle) => handle.id().clone(),
            None => self.state.next_call_id().into(),
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
        let mut execution = Execution {
            workspace: self.workspace,
            handle: &handle,
            rules: self.rules,
            terminals: Vec::new(),
            previewed: None,
        };
        let done = match refused {
            Some(why) => Ok(Output::rejected(why)),
            None => self.carry_out(call, report, &mut execution).await,
        };
        let terminals = execution.terminals;
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
        call: &dyn Call,
        report: ToolCall,
        execution: &mut Execution<'_>,
    ) -> Result<Output, Fault> {
        execution.workspace.go_on()?;
        // Before anything of a file is looked at, since it may be one that nobody is to read.
        let judged = self
            .rules
            .judge_in(self.workspace, call.deed(self.workspace));
        let refused = match judged.await? {
            Judgement::Refused(why) => return Ok(Output::rejected(why)),
            Judgement::Asked(_, question) => question.refused.is_some(),
            Judgement::Allowed(_) => false,
        };
        let change = match refused {
            true => None,
            false => call.preview(self.workspace).await?,
        };
        if let Some(change) = &change {
            let update = execution.handle.change().content(vec![change.content()]);
            execution
                .handle
                .later(update.locations(vec![change.location()]));
        }
        let permitted = self.permitted(call, report, change.as_ref(), execution);
        let permit = match permitted.await? {
            Decision::Allowed(permit) => permit,
            Decision::Rejected(why) => return Ok(Output::rejected(why)),
        };
        execution.previewed = change;
        if !call.asks_itself() {
            execution.handle.start().await?;
        }
        call.run(execution, permit).await
    }

    /// Asks for permission, if that is what the mode and the rules say of the call.
    async fn permitted(
        &self,
        call: &dyn Call,
        report: ToolCall,
        change: Option<&Change>,
        execution: &Execution<'_>,
    ) -> Result<Decision, Fault> {
        // Once more: the client may have gone back to another mode just now.
        let judged = self
            .rules
            .judge_in(self.workspace, call.deed(self.workspace));
        let (deed, question) = match judged.await? {
            Judgement::Allowed(permit) => return Ok(Decision::Allowed(permit)),
            Judgement::Refused(why) => return Ok(Decision::Rejected(why)),
            Judgement::Asked(deed, question) => (deed, question),
        };
        let subject = call.asked_about(&deed, question.special);
        execution.handle.flush().await?;
        // All of it once more: what is asked is shown apart from the call by some clients.
        let mut update = execution
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
        Ok(ask::ask(self.workspace, deed, &subject, question, update).await?)
    }
}
