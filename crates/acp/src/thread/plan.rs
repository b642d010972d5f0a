//! How plan updates change a thread.

use acp_wire::RawObject;
use acp_wire::v1::PlanId;
use acp_wire::v2::{PlanEntry, PlanUpdateContent};

use super::Thread;

/// The id of the plan of an agent that has only one, such as a version 1 agent.
pub const PLAN: &str = "plan";

/// A plan in a thread.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ThreadPlan {
    /// The id of the plan, which is [`PLAN`] if the agent has only one.
    pub id: PlanId,
    /// The content of the plan.
    pub content: PlanContent,
    /// The revision of the thread when this plan last changed.
    pub revision: u64,
    /// The size of the plan in bytes.
    pub(super) weight: usize,
}

/// The content of a plan.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PlanContent {
    /// A list of steps.
    Entries(Vec<PlanEntry>),
    /// A file that contains the plan, by its URI.
    File(String),
    /// Markdown text.
    Markdown(String),
    /// An unknown content type, as received.
    Unknown(RawObject),
}

impl ThreadPlan {
    /// Returns the steps of the plan, or no steps if it has other content.
    #[must_use]
    pub fn entries(&self) -> &[PlanEntry] {
        match &self.content {
            PlanContent::Entries(entries) => entries,
            _ => &[],
        }
    }
}

impl Thread {
    pub(super) fn update_plan(&mut self, plan: &PlanUpdateContent) {
        match plan {
            PlanUpdateContent::Items(items) => {
                let entries = PlanContent::Entries(items.entries.clone());
                self.set_plan(items.plan_id.clone(), entries);
            }
            PlanUpdateContent::File(plan) => {
                self.set_plan(plan.plan_id.clone(), PlanContent::File(plan.uri.clone()));
            }
            PlanUpdateContent::Markdown(plan) => {
                let text = PlanContent::Markdown(plan.content.clone());
                self.set_plan(plan.plan_id.clone(), text);
            }
            PlanUpdateContent::Unknown(object) => self.set_unknown_plan(object),
            _ => {}
        }
    }

    /// Stores a plan of an unknown type. A plan without an id is the agent's only plan.
    fn set_unknown_plan(&mut self, object: &RawObject) {
        let id = object.field("planId").or_else(|| object.field("id"));
        let content = PlanContent::Unknown(object.clone());
        self.set_plan(id.unwrap_or_else(|| PLAN.into()), content);
    }

    fn set_plan(&mut self, id: PlanId, content: PlanContent) {
        let revision = self.revision;
        let before = self.plans.iter().position(|plan| plan.id == id);
        let weighed = before
            .and_then(|at| self.plans.get(at))
            .map_or(0, |p| p.weight);
        let weight = match &content {
            PlanContent::Entries(entries) => self.weigh_plan(&id, entries, weighed),
            PlanContent::File(text) | PlanContent::Markdown(text) => {
                self.weigh_plan(&id, text, weighed)
            }
            PlanContent::Unknown(object) => self.weigh_plan(&id, object, weighed),
        };
        let plan = ThreadPlan {
            id,
            content,
            revision,
            weight,
        };
        match before.and_then(|at| self.plans.get_mut(at)) {
            Some(known) => *known = plan,
            None => self.plans.push(plan),
        }
    }

    pub(super) fn remove_plan(&mut self, id: &PlanId) {
        if let Some(at) = self.plans.iter().position(|plan| plan.id == *id) {
            let plan = self.plans.remove(at);
            self.forget_plan(&plan);
        }
    }
}
