//! The plan: the specification's page "Agent Plan".

use acp::v1::PlanEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tool::Output;
use crate::model::message::ToolStatus;
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

    pub(crate) async fn run(&self, workspace: &Workspace) -> Result<Output, Fault> {
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
