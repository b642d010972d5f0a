//! Agent plan: the specification's page of that name. A session has any number of plans, told apart by
//! their ids.

use super::{PlanEntryPriority, PlanFile, PlanId, PlanMarkdown};
use crate::v1::ReadPlanItems;

record! {
    /// A plan, whole; it replaces the one of that id.
    pub struct PlanUpdate {
        /// The plan.
        required plan: PlanUpdateContent,
    }
}

tagged! {
    /// What a plan is made of.
    pub enum PlanUpdateContent by "type" {
        /// Entries.
        Items(PlanItems) = "items",
        /// A file. Unstable.
        File(PlanFile) = "file",
        /// Markdown text. Unstable.
        Markdown(PlanMarkdown) = "markdown",
    }
}

impl PlanUpdateContent {
    /// Its id; `None` for a kind this library does not know that has none.
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
    /// A plan of entries.
    pub struct PlanItems from ReadPlanItems<PlanEntry> {
        /// The plan. Read from `id` as well, as one page of the specification writes it.
        required plan_id: PlanId,
        /// Its entries, in order.
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
        /// What is to be done.
        required content: String,
        /// How important it is.
        tolerant priority: PlanEntryPriority,
        /// The status.
        tolerant status: PlanEntryStatus,
    }
}

open_enum! {
    /// How far a step is.
    #[derive(Default)]
    pub enum PlanEntryStatus {
        /// Not begun.
        #[default]
        Pending = "pending",
        /// In progress.
        InProgress = "in_progress",
        /// Completed.
        Completed = "completed",
        /// Cancelled before it was done.
        Cancelled = "cancelled",
    }
}
