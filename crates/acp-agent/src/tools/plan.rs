//! The `plan` tool, which reports the agent's plan. See "Agent Plan" in the specification.

use acp::v1::{PlanEntry, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tool::{
    CallDescription, DraftSpec, Tool, ToolExecution, ToolFuture, ToolInvocation, ToolOutput,
};
use crate::model::message::ToolStatus;
use crate::permission::permit::Permit;
use crate::workspace::Workspace;
use crate::workspace::tool_failure::ToolFailure;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanTool {
    /// All entries of the plan, in order.
    entries: Vec<PlanToolEntry>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanToolEntry {
    /// Description of the step.
    content: String,
    /// Priority of the step. Default: `medium`.
    #[serde(default)]
    priority: PlanToolPriority,
    /// Status of the step. Default: `pending`.
    #[serde(default)]
    status: PlanToolStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PlanToolPriority {
    High,
    #[default]
    Medium,
    Low,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PlanToolStatus {
    #[default]
    Pending,
    InProgress,
    Completed,
}

impl Tool for PlanTool {
    const NAME: &'static str = "plan";

    const DESCRIPTION: &'static str = "\
        Show the user your plan for work that takes several steps. Pass all entries in each call. Call this tool again whenever the plan or a status changes, and mark an entry as completed as soon as it is done.";

    const DRAFT: Option<DraftSpec> = None;
}

impl ToolInvocation for PlanTool {
    fn tool(&self) -> &str {
        Self::NAME
    }

    fn describe(&self, _: &Workspace) -> CallDescription {
        CallDescription::new("Plan", ToolKind::Think, Vec::new())
    }

    fn run_unreported<'a>(&'a self, workspace: &'a Workspace) -> Option<ToolFuture<'a>> {
        Some(Box::pin(self.show(workspace)))
    }

    fn run<'a>(&'a self, execution: &'a mut ToolExecution<'_>, _: Permit) -> ToolFuture<'a> {
        Box::pin(self.show(execution.workspace))
    }
}

impl PlanTool {
    fn entries(&self) -> Vec<PlanEntry> {
        self.entries
            .iter()
            .map(|entry| {
                let priority = match entry.priority {
                    PlanToolPriority::High => "high",
                    PlanToolPriority::Medium => "medium",
                    PlanToolPriority::Low => "low",
                };
                let status = match entry.status {
                    PlanToolStatus::Pending => "pending",
                    PlanToolStatus::InProgress => "in_progress",
                    PlanToolStatus::Completed => "completed",
                };
                PlanEntry::new(&entry.content, priority, status)
            })
            .collect()
    }

    async fn show(&self, workspace: &Workspace) -> Result<ToolOutput, ToolFailure> {
        workspace.turn.set_plan(self.entries()).await?;
        Ok(ToolOutput {
            status: ToolStatus::Done,
            text: "Plan updated.".to_owned(),
            content: None,
            locations: None,
            images: Vec::new(),
            data: Value::Null,
        })
    }
}
