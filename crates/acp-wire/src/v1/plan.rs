//! Agent plan: the specification's page of that name.

record! {
    /// The whole plan; it replaces the one before.
    pub struct Plan {
        /// Its entries, in order.
        required_list entries: PlanEntry,
    }
}

record! {
    /// A step of a plan.
    pub struct PlanEntry {
        /// What is to be done.
        required content: String,
        /// How important it is.
        tolerant priority: PlanEntryPriority,
        /// How far it is.
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
        /// Under way.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
    }
}
