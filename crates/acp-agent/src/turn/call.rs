//! Runs a tool call, from `pending` to its final status.

use acp::v1::{ToolCall, ToolCallStatus};
use serde_json::{Value, json};

use super::active::ActiveTurn;
use super::draft_calls::DraftInterruption;
use super::report::{complete_update, failed_output, finish, invalid_arguments_message};
use crate::mode::Mode;
use crate::model::message::{ToolRequest, ToolResult, ToolStatus};
use crate::permission::ask::{self, AskOutcome};
use crate::permission::rules::CallDecision;
use crate::reported_call::{ReportedCall, text_content};
use crate::tools;
use crate::tools::switch_mode::SwitchModeTool;
use crate::tools::tool::{TextChange, ToolExecution, ToolInvocation, ToolOutput};
use crate::workspace::tool_failure::ToolFailure;

impl ActiveTurn<'_> {
    /// Runs a tool call, and reports its progress from `pending` to its final status. `shown` is the handle of the call
    /// if it has already been reported.
    pub(super) async fn execute(
        &self,
        request: &ToolRequest,
        shown: Option<ReportedCall>,
    ) -> acp::Result<ToolResult> {
        let result = |output: ToolOutput| ToolResult {
            id: request.id.clone(),
            status: output.status,
            text: output.text,
            data: output.data,
            images: output.images,
        };
        if let Value::String(written) = &request.arguments {
            let why = invalid_arguments_message(written);
            return self.reject_call(request, shown, why).await.map(result);
        }
        let servers = &self.state.servers;
        let call = match servers.call(self.tools, &request.tool, &request.arguments) {
            Some(call) => call.map(|call| Box::new(call) as Box<dyn ToolInvocation>),
            None => tools::parse_call(&request.tool, &request.arguments),
        };
        let call = match call {
            Ok(call) => call,
            Err(why) => return self.reject_call(request, shown, why).await.map(result),
        };
        if let Some(outcome) = call.run_unreported(self.workspace) {
            return match outcome.await {
                Ok(output) => Ok(result(output)),
                Err(ToolFailure::Stop(error)) => Err(error),
                Err(ToolFailure::Failed(why) | ToolFailure::NotFound(why)) => {
                    Ok(result(failed_output(why)))
                }
            };
        }
        let mut refused = None;
        if call.may_change() && self.state.mode() == Mode::Architect {
            let left = self.leave_architect_mode(&*call).await;
            if let (Err(_), Some(shown)) = (&left, &shown) {
                DraftInterruption::from_result(&left)
                    .report_to(shown)
                    .await?;
            }
            let left = left?;
            refused = (left.status != ToolStatus::Done).then_some(left.text);
        }
        self.report_and_run(&*call, &request.arguments, shown, refused)
            .await
            .map(result)
    }

    /// Reports an invalid call as failed.
    async fn reject_call(
        &self,
        request: &ToolRequest,
        shown: Option<ReportedCall>,
        why: String,
    ) -> acp::Result<ToolOutput> {
        let title = format!("Call `{}`", request.tool);
        let arguments = request.arguments.clone();
        let handle = match shown {
            Some(handle) => {
                handle.defer_update(handle.new_update().raw_input(arguments));
                handle
            }
            None => {
                let id = self.state.next_call_id();
                let call = ToolCall::new(id, title).raw_input(arguments);
                ReportedCall::begin(&self.workspace.turn, call).await?
            }
        };
        handle.fail(&why).await?;
        Ok(failed_output(why))
    }

    /// Asks the user to leave architect mode, which does not allow this call.
    async fn leave_architect_mode(&self, call: &dyn ToolInvocation) -> acp::Result<ToolOutput> {
        let title = call.describe(self.workspace).title;
        let plan = format!(
            "In architect mode, files cannot be changed and commands cannot be run. Leave this mode to continue. Next step:\n\n- {title}"
        );
        let arguments = json!({ "mode": Mode::Ask.as_str(), "plan": plan });
        let call = SwitchModeTool::from_action(plan);
        self.report_and_run(&call, &arguments, None, None).await
    }

    /// Reports a call and runs it, unless it has already been rejected.
    async fn report_and_run(
        &self,
        call: &dyn ToolInvocation,
        arguments: &Value,
        shown: Option<ReportedCall>,
        refused: Option<String>,
    ) -> acp::Result<ToolOutput> {
        let about = call.describe(self.workspace);
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
                handle.defer_update(complete_update(&report));
                handle
            }
            None => ReportedCall::begin(&self.workspace.turn, report.clone()).await?,
        };
        let mut execution = ToolExecution {
            workspace: self.workspace,
            handle: &handle,
            rules: self.rules,
            terminals: Vec::new(),
            preview: None,
        };
        let done = match refused {
            Some(why) => Ok(ToolOutput::rejected(why)),
            None => self.run_permitted(call, report, &mut execution).await,
        };
        let terminals = execution.terminals;
        match done {
            Ok(output) => {
                finish(&handle, &output).await?;
                Ok(output)
            }
            Err(ToolFailure::Failed(why) | ToolFailure::NotFound(why)) => {
                let mut content = terminals;
                content.push(text_content(&why));
                let update = handle.new_update().status(ToolCallStatus::Failed);
                let update = update.content(content);
                let update = update.raw_output(json!({ "error": why }));
                handle.update(update).await?;
                Ok(failed_output(why))
            }
            Err(ToolFailure::Stop(error)) => {
                if matches!(error, acp::Error::Cancelled) {
                    handle.cancel().await?;
                }
                Err(error)
            }
        }
    }

    async fn run_permitted(
        &self,
        call: &dyn ToolInvocation,
        report: ToolCall,
        execution: &mut ToolExecution<'_>,
    ) -> Result<ToolOutput, ToolFailure> {
        execution.workspace.check_cancelled()?;
        // Decide this before reading the file, because a rule may deny reading it.
        let decision = self
            .rules
            .decide(self.workspace, call.action(self.workspace));
        let refused = match decision.await? {
            CallDecision::Deny(why) => return Ok(ToolOutput::rejected(why)),
            CallDecision::Ask(_, question) => question.rejection.is_some(),
            CallDecision::Allow(_) => false,
        };
        let change = match refused {
            true => None,
            false => call.preview(self.workspace).await?,
        };
        if let Some(change) = &change {
            let update = execution
                .handle
                .new_update()
                .content(vec![change.content()]);
            execution
                .handle
                .defer_update(update.locations(vec![change.location()]));
        }
        let permitted = self.request_permission(call, report, change.as_ref(), execution);
        let permit = match permitted.await? {
            AskOutcome::Allowed(permit) => permit,
            AskOutcome::Rejected(why) => return Ok(ToolOutput::rejected(why)),
        };
        execution.preview = change;
        if !call.requests_own_permission() {
            execution.handle.start().await?;
        }
        call.run(execution, permit).await
    }

    /// Requests permission for the call if the mode and the rules require it.
    async fn request_permission(
        &self,
        call: &dyn ToolInvocation,
        report: ToolCall,
        change: Option<&TextChange>,
        execution: &ToolExecution<'_>,
    ) -> Result<AskOutcome, ToolFailure> {
        // Decide again: the user may have changed the mode in the meantime.
        let decision = self
            .rules
            .decide(self.workspace, call.action(self.workspace));
        let (tool_action, question) = match decision.await? {
            CallDecision::Allow(permit) => return Ok(AskOutcome::Allowed(permit)),
            CallDecision::Deny(why) => return Ok(AskOutcome::Rejected(why)),
            CallDecision::Ask(tool_action, question) => (tool_action, question),
        };
        let subject = call.permission_subject(&tool_action, question.is_special);
        execution.handle.flush().await?;
        // Send all fields again, because some clients show a permission request separately from its call.
        let mut update = execution
            .handle
            .new_update()
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
        Ok(ask::ask(self.workspace, tool_action, &subject, question, update).await?)
    }
}
