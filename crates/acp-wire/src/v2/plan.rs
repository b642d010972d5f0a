//! Agent plan: the specification's page "Agent Plan". A session can have several plans, each with its own id.

use super::{PlanEntryPriority, PlanFile, PlanId, PlanMarkdown};
use crate::v1::ReadPlanItems;

record! {
    /// A plan in full, which replaces the plan with the same id.
    pub struct PlanUpdate {
        /// The plan.
        required plan: PlanUpdateContent,
    }
}

tagged! {
    /// The content of a plan.
    pub enum PlanUpdateContent by "type" {
        /// A list of entries.
        Items(PlanItems) = "items",
        /// A file. Unstable.
        File(PlanFile) = "file",
        /// Markdown text. Unstable.
        Markdown(PlanMarkdown) = "markdown",
    }
}

impl PlanUpdateContent {
    /// Returns the id of the plan. Returns `None` for an unknown type without one.
    #[must_use]
    pub fn plan_id(&self) -> Option<PlanId> {
        match self {
            Self::Items(plan) => Some(plan.plan_id.clone()),
            Self::File(plan) => Some(plan.plan_id.clone()),
            Self::Markdown(plan) => Some(plan.plan_id.clone()),
            Self::Unknown(plan) => plan.field("planId").or_else(|| plan.field("id")),
        }
    }
}

record! {
    /// A plan that consists of entries.
    pub struct PlanItems from ReadPlanItems<PlanEntry> {
        /// The id of the plan. Also read from `id`, the name on one page of the specification.
        required plan_id: PlanId,
        /// The entries, in order.
        required_list entries: PlanEntry,
    }
}

impl TryFrom<ReadPlanItems<PlanEntry>> for PlanItems {
    type Error = &'static str;
    fn try_from(mut read: ReadPlanItems<PlanEntry>) -> Result<Self, Self::Error> {
        Ok(Self {
            plan_id: read.plan_id()?,
            entries: read.entries,
            meta: read.meta,
        })
    }
}

record! {
    /// A step of a plan.
    pub struct PlanEntry {
        /// A description of the task.
        required content: String,
        /// The priority.
        tolerant priority: PlanEntryPriority,
        /// The status.
        tolerant status: PlanEntryStatus,
    }
}

open_enum! {
    /// The status of a step.
    #[derive(Default)]
    pub enum PlanEntryStatus {
        /// Not started.
        #[default]
        Pending = "pending",
        /// In progress.
        InProgress = "in_progress",
        /// Completed.
        Completed = "completed",
        /// Cancelled before it was completed.
        Cancelled = "cancelled",
    }
}
