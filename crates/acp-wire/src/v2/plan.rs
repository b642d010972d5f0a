//! The agent's plans. A session can have several, each with its own id. See the specification's page "Agent Plan".

use super::{PlanEntryPriority, PlanFile, PlanId, PlanMarkdown};
use crate::v1::RawPlanItems;

record! {
    /// An update with a full plan, which replaces the plan with the same id.
    pub struct PlanUpdate {
        /// The id and the new content of the plan.
        required plan: PlanUpdateContent,
    }
}

tagged! {
    /// The content of a plan: a list of steps, a file, or Markdown. Each variant includes the plan's id.
    pub enum PlanUpdateContent by "type" {
        /// A list of steps.
        Items(PlanItems) = "items",
        /// A file that contains the plan. Unstable.
        File(PlanFile) = "file",
        /// A plan in Markdown. Unstable.
        Markdown(PlanMarkdown) = "markdown",
    }
}

impl PlanUpdateContent {
    /// Returns the plan's id, or `None` for a plan of an unknown type without an id.
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
    /// A plan that is a list of steps.
    pub struct PlanItems from RawPlanItems<PlanEntry> {
        /// The id of the plan. Also accepted under the name `id`, which one page of the specification uses.
        required plan_id: PlanId,
        /// The plan's steps, in order.
        required_list entries: PlanEntry,
    }
}

impl TryFrom<RawPlanItems<PlanEntry>> for PlanItems {
    type Error = &'static str;
    fn try_from(mut read: RawPlanItems<PlanEntry>) -> Result<Self, Self::Error> {
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
        /// A description of the step, to show to the user.
        required content: String,
        /// The priority of the step.
        tolerant priority: PlanEntryPriority,
        /// The progress of the step.
        tolerant status: PlanEntryStatus,
    }
}

open_enum! {
    /// The progress of a step.
    #[derive(Default)]
    pub enum PlanEntryStatus {
        /// Work on the step has not started.
        #[default]
        Pending = "pending",
        /// The agent is working on the step.
        InProgress = "in_progress",
        /// The step is done.
        Completed = "completed",
        /// The step was cancelled before it was done.
        Cancelled = "cancelled",
    }
}
