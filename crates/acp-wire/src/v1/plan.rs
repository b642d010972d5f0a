//! The agent's plan. See the specification's page "Agent Plan".

use serde::Deserialize;

use crate::Meta;
use crate::lenient::Lenient;

record! {
    /// An update with the agent's whole plan, which replaces the previous plan.
    pub struct Plan {
        /// The plan's steps, in order.
        required_list entries: PlanEntry,
    }
}

string_id! {
    /// The id of a plan, unique in its session.
    pub struct PlanId;
}

record! {
    /// An update with the full content of one plan, for sessions with several plans. Unstable: requires the client's
    /// capability `plan`.
    pub struct PlanUpdate {
        /// The id and the new content of the plan.
        required plan: PlanUpdateContent,
    }
}

record! {
    /// An update that removes a plan. Unstable: requires the client's capability `plan`.
    pub struct PlanRemoved {
        /// The plan to remove.
        required plan_id: PlanId,
    }
}

tagged! {
    /// The content of a plan: a list of steps, a file, or Markdown. Each variant includes the plan's id.
    pub enum PlanUpdateContent by "type" {
        /// A list of steps.
        Items(PlanItems) = "items",
        /// A file that contains the plan.
        File(PlanFile) = "file",
        /// A plan in Markdown.
        Markdown(PlanMarkdown) = "markdown",
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

/// [`PlanItems`] as received, which may use either name for the plan id, or both. A serde alias would reject a plan
/// with both names.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawPlanItems<E: Lenient> {
    #[serde(default, deserialize_with = "crate::lenient::option")]
    plan_id: Option<PlanId>,
    #[serde(default, deserialize_with = "crate::lenient::option")]
    id: Option<PlanId>,
    #[serde(default = "Vec::new", deserialize_with = "crate::lenient::list")]
    pub(crate) entries: Vec<E>,
    #[serde(default, rename = "_meta", deserialize_with = "crate::lenient::option")]
    pub(crate) meta: Option<Meta>,
}

impl<E: Lenient> RawPlanItems<E> {
    pub(crate) fn plan_id(&mut self) -> Result<PlanId, &'static str> {
        let id = self.plan_id.take().or(self.id.take());
        id.ok_or("missing field `planId`")
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
    /// A plan stored in a file.
    pub struct PlanFile {
        /// The plan's id, unique in its session.
        required plan_id: PlanId,
        /// The URI of the file that contains the plan.
        required uri: String,
    }
}

record! {
    /// A plan in Markdown.
    pub struct PlanMarkdown {
        /// The plan's id, unique in its session.
        required plan_id: PlanId,
        /// The text of the plan, in Markdown.
        required content: String,
    }
}

record! {
    /// An empty object that declares support for the updates `plan_update` and `plan_removed`.
    pub struct PlanCapabilities {}
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
    /// The priority of a step.
    #[derive(Default)]
    pub enum PlanEntryPriority {
        /// The step is essential to reaching the goal.
        High = "high",
        /// The step is important.
        #[default]
        Medium = "medium",
        /// The step is nice to have.
        Low = "low",
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
    }
}
