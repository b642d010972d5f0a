//! Agent plan: the specification's page of that name.

use serde::Deserialize;

use crate::Meta;
use crate::lenient::Lenient;

record! {
    /// The whole plan; it replaces the one before.
    pub struct Plan {
        /// Its entries, in order.
        required_list entries: PlanEntry,
    }
}

string_id! {
    /// Names a plan within its session.
    pub struct PlanId;
}

record! {
    /// A plan among several, whole. Unstable in version 1: for clients that have `plan`.
    pub struct PlanUpdate {
        /// The plan.
        required plan: PlanUpdateContent,
    }
}

record! {
    /// A plan is gone. Unstable: for clients that have `plan`.
    pub struct PlanRemoved {
        /// The plan.
        required plan_id: PlanId,
    }
}

tagged! {
    /// What a plan is made of.
    pub enum PlanUpdateContent by "type" {
        /// Entries.
        Items(PlanItems) = "items",
        /// A file.
        File(PlanFile) = "file",
        /// Markdown text.
        Markdown(PlanMarkdown) = "markdown",
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

/// An alias would refuse a plan that has both names.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReadPlanItems<E: Lenient> {
    #[serde(default, deserialize_with = "crate::lenient::option")]
    plan_id: Option<PlanId>,
    #[serde(default, deserialize_with = "crate::lenient::option")]
    id: Option<PlanId>,
    #[serde(default = "Vec::new", deserialize_with = "crate::lenient::list")]
    pub(crate) entries: Vec<E>,
    #[serde(default, rename = "_meta", deserialize_with = "crate::lenient::option")]
    pub(crate) meta: Option<Meta>,
}

impl<E: Lenient> ReadPlanItems<E> {
    pub(crate) fn plan_id(&mut self) -> Result<PlanId, &'static str> {
        let id = self.plan_id.take().or(self.id.take());
        id.ok_or("missing field `planId`")
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
    /// A plan that is a file.
    pub struct PlanFile {
        /// The plan.
        required plan_id: PlanId,
        /// The file.
        required uri: String,
    }
}

record! {
    /// A plan that is Markdown text.
    pub struct PlanMarkdown {
        /// The plan.
        required plan_id: PlanId,
        /// The text.
        required content: String,
    }
}

record! {
    /// Present when the client takes `plan_update` and `plan_removed`.
    pub struct PlanCapabilities {}
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
    /// How important a step is.
    #[derive(Default)]
    pub enum PlanEntryPriority {
        /// It decides over the goal.
        High = "high",
        /// It matters.
        #[default]
        Medium = "medium",
        /// It would be good to have.
        Low = "low",
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
    }
}
