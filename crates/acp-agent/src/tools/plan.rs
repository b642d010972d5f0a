//! The plan: the specification's page "Agent Plan".

use acp::v1::{PlanEntry, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tool::{About, Call, Draft, Execution, Outcome, Output, Tool};
use crate::model::message::ToolStatus;
use crate::permission::permit::Permit;
use crate::workspace::Workspace;
use crate::workspace::fault::Fault;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    /// All entries, in order.
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// What is to be done.
    content: String,
    /// How important it is; `medium` if absent.
    #[serde(default)]
    priority: Priority,
    /// How far it is; `pending` if absent.
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Priority {
    High,
    #[default]
    Medium,
    Low,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    #[default]
    Pending,
    InProgress,
    Completed,
}

impl Tool for Plan {
    const NAME: &'static str = "plan";

    const DESCRIPTION: &'static str = "\
        Shows the plan to the person: all of its entries with how far each is. Call it again whenever that \
        changes.";

    const DRAFT: Option<Draft> = None;
}

impl Call for Plan {
    fn tool(&self) -> &str {
        Self::NAME
    }

    fn about(&self, _: &Workspace) -> About {
        About::new("Plan", ToolKind::Think, Vec::new())
    }

    fn run_unseen<'a>(&'a self, workspace: &'a Workspace) -> Option<Outcome<'a>> {
        Some(Box::pin(self.show(workspace)))
    }

    fn run<'a>(&'a self, execution: &'a mut Execution<'_>, _: Permit) -> Outcome<'a> {
        Box::pin(self.show(execution.workspace))
    }
}

impl Plan {
    fn entries(&self) -> Vec<PlanEntry> {
        self.entries
            .iter()
            .map(|entry| {
                let priority = match entry.priority {
                    Priority::High => "high",
                    Priority::Medium => "medium",
                    Priority::Low => "low",
                };
                let status = match entry.status {
                    Status::Pending => "pending",
                    Status::InProgress => "in_progress",
                    Status::Completed => "completed",
                };
                PlanEntry::new(&entry.content, priority, status)
            })
            .collect()
    }

    async fn show(&self, workspace: &Workspace) -> Result<Output, Fault> {
        workspace.turn.plan(self.entries()).await?;
        Ok(Output {
            status: ToolStatus::Done,
            text: "The plan is shown.".to_owned(),
            content: None,
            locations: None,
            images: Vec::new(),
            data: Value::Null,
        })
    }
}
