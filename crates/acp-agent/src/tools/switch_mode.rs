//! The `switch_mode` tool, which asks the user to switch the mode. See "Exiting plan modes" under "Session Modes" in
//! the specification.

use acp::v1::{PermissionOption, PermissionOptionKind, ToolCallStatus, ToolKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::tool::{
    CallDescription, DraftSpec, Tool, ToolExecution, ToolFuture, ToolInvocation, ToolOutput,
};
use crate::mode::{self, Mode};
use crate::model::message::ToolStatus;
use crate::permission::ask;
use crate::permission::permit::Permit;
use crate::reported_call::text_content;
use crate::workspace::Workspace;
use crate::workspace::tool_failure::ToolFailure;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwitchModeTool {
    /// Mode to switch to: `ask`, `architect` or `code`. When leaving architect mode, the user chooses between
    /// the other two.
    #[serde(default = "SwitchModeTool::default_mode")]
    mode: String,
    /// What you plan to do in that mode, as Markdown.
    #[serde(default)]
    plan: String,
}

const QUESTION_TITLE: &str = "Ready for implementation";

impl Tool for SwitchModeTool {
    const NAME: &'static str = "switch_mode";

    const DESCRIPTION: &'static str = "\
        Ask the user to switch the session to another mode. You cannot change files or run commands in architect mode. To leave it, call this tool and describe in `plan` what you are going to do.";

    const DRAFT: Option<DraftSpec> = Some(DraftSpec {
        kind: ToolKind::SwitchMode,
        title: QUESTION_TITLE,
        subject_field: "mode",
        required_fields: &[],
    });
}

impl ToolInvocation for SwitchModeTool {
    fn tool(&self) -> &str {
        Self::NAME
    }

    fn describe(&self, _: &Workspace) -> CallDescription {
        let content = (!self.plan.is_empty()).then(|| text_content(self.plan.as_str()));
        CallDescription {
            title: QUESTION_TITLE.to_owned(),
            kind: ToolKind::SwitchMode,
            locations: Vec::new(),
            content: content.into_iter().collect(),
        }
    }

    fn requests_own_permission(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, execution: &'a mut ToolExecution<'_>, _: Permit) -> ToolFuture<'a> {
        Box::pin(self.switch(execution))
    }
}

impl SwitchModeTool {
    /// Creates a call that leaves architect mode to carry out `plan`.
    pub(crate) fn from_action(plan: String) -> Self {
        Self {
            mode: Self::default_mode(),
            plan,
        }
    }

    fn default_mode() -> String {
        Mode::Ask.as_str().to_owned()
    }

    async fn switch(&self, execution: &mut ToolExecution<'_>) -> Result<ToolOutput, ToolFailure> {
        let memory = &execution.workspace.memory;
        let now = memory.mode();
        let wanted: Mode = self
            .mode
            .parse()
            .map_err(|e: mode::ParseModeError| ToolFailure::failed(e.to_string()))?;
        let mode = match mode_options(now, wanted) {
            None => wanted,
            Some(options) => {
                let update = execution
                    .handle
                    .new_update()
                    .title(QUESTION_TITLE)
                    .kind(ToolKind::SwitchMode)
                    .status(ToolCallStatus::Pending)
                    .content(self.describe(execution.workspace).content);
                let offered = options.iter().map(|(_, option)| option.clone()).collect();
                let chosen =
                    ask::request_choice(&execution.workspace.turn, update, offered).await?;
                let chosen = options
                    .into_iter()
                    .find(|(_, option)| option.option_id == chosen);
                match chosen {
                    Some((Some(mode), _)) => mode,
                    _ => return Ok(rejected_output(memory.mode())),
                }
            }
        };
        execution.handle.start().await?;
        if memory.mode() != mode {
            // If the mode cannot be stored, the turn fails.
            memory.set_mode(mode).await.map_err(ToolFailure::Stop)?;
            execution
                .workspace
                .turn
                .set_config_options(memory.config_options())
                .await?;
        }
        let summary = format!("The session is in {mode} mode.");
        let content = if self.plan.is_empty() {
            summary.clone()
        } else {
            self.plan.clone()
        };
        Ok(ToolOutput::completed(
            summary,
            vec![text_content(content)],
            json!({ "mode": mode.as_str() }),
        ))
    }
}

/// Returns the options of the permission request, each with the mode that it selects. Returns `None` if the requested
/// mode allows no more than the current one, so that no permission is needed.
fn mode_options(now: Mode, wanted: Mode) -> Option<Vec<(Option<Mode>, PermissionOption)>> {
    let code = ask::permission_option(
        "Yes, and change files without asking",
        PermissionOptionKind::AllowAlways,
    );
    let ask = ask::permission_option(
        "Yes, and ask me before each action",
        PermissionOptionKind::AllowOnce,
    );
    let (code, ask) = ((Some(Mode::Code), code), (Some(Mode::Ask), ask));
    let reject = |name: &str| {
        let option = ask::permission_option(name, PermissionOptionKind::RejectOnce);
        (None, option)
    };
    match (now, wanted) {
        (Mode::Architect, Mode::Ask | Mode::Code) => {
            Some(vec![code, ask, reject("No, stay in architect mode")])
        }
        (Mode::Ask, Mode::Code) => Some(vec![code, reject("No, keep asking me")]),
        (_, Mode::Architect) | (Mode::Ask | Mode::Code, Mode::Ask) | (Mode::Code, Mode::Code) => {
            None
        }
    }
}

fn rejected_output(stays: Mode) -> ToolOutput {
    let summary = format!("Rejected by the user. The session stays in {stays} mode.");
    ToolOutput {
        status: ToolStatus::Rejected,
        content: Some(vec![text_content(summary.as_str())]),
        text: summary,
        locations: None,
        images: Vec::new(),
        data: json!({ "mode": stays.as_str() }),
    }
}
