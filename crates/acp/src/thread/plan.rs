//! Applies plan updates to a thread.

use acp_wire::RawObject;
use acp_wire::v1::PlanId;
use acp_wire::v2::{PlanEntry, PlanUpdateContent};

use super::Thread;

/// The plan id used for agents that have only one plan, such as version 1 agents.
pub const ONLY_PLAN_ID: &str = "plan";

/// An agent's plan as shown to the user.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ThreadPlan {
    /// The id of the plan, which is [`ONLY_PLAN_ID`] if the agent has only one.
    pub id: PlanId,
    /// The plan's content: a list of steps, a file or Markdown.
    pub content: PlanContent,
    /// The thread's revision when this plan last changed.
    pub revision: u64,
    /// The estimated size of the plan, in bytes.
    pub(super) weight: usize,
}

/// The content of a plan: a list of steps, a file or Markdown.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PlanContent {
    /// A list of steps.
    Entries(Vec<PlanEntry>),
    /// The URI of a file that contains the plan.
    File(String),
    /// The text of the plan, in Markdown.
    Markdown(String),
    /// An unknown content type, as received.
    Unknown(RawObject),
}

impl ThreadPlan {
    /// Returns the plan's steps, or an empty list if it has another kind of content.
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

    /// Stores a plan of an unknown type. Without an id, it counts as the agent's only plan.
    fn set_unknown_plan(&mut self, object: &RawObject) {
        let id = object.field("planId").or_else(|| object.field("id"));
        let content = PlanContent::Unknown(object.clone());
        self.set_plan(id.unwrap_or_else(|| ONLY_PLAN_ID.into()), content);
    }

    fn set_plan(&mut self, id: PlanId, content: PlanContent) {
        let revision = self.revision;
        let before = self.plans.iter().position(|plan| plan.id == id);
        let weighed = before
            .and_then(|at| self.plans.get(at))
            .map_or(0, |p| p.weight);
        let weight = match &content {
            PlanContent::Entries(entries) => self.update_plan_weight(&id, entries, weighed),
            PlanContent::File(text) | PlanContent::Markdown(text) => {
                self.update_plan_weight(&id, text, weighed)
            }
            PlanContent::Unknown(object) => self.update_plan_weight(&id, object, weighed),
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
            self.subtract_plan(&plan);
        }
    }
}
