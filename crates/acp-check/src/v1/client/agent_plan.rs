//! Checks how a client handles plans.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::CheckStop;

use super::steps::require_updates_accepted;

checks! { V1 Client "agent-plan";
    101 Must "Plan entries of every priority and status are accepted." => accepts_every_value;
    102 Must "A plan replaces the previous one, even if it is shorter or empty." => accepts_replaced_plan;
    103 May "Unknown priorities and statuses are ignored." => ignores_unknown_values;
}

fn plan_update(entries: Vec<Value>) -> Value {
    json!({"sessionUpdate": "plan", "entries": entries})
}

fn plan_entry(priority: &str, status: &str) -> Value {
    json!({"content": format!("{priority}, {status}"), "priority": priority, "status": status})
}

async fn accepts_every_value(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let priorities = ["high", "medium", "low"];
    let entries = priorities.into_iter().flat_map(|priority| {
        ["pending", "in_progress", "completed"].map(|status| plan_entry(priority, status))
    });
    require_updates_accepted(harness, "a plan", [plan_update(entries.collect())]).await
}

async fn accepts_replaced_plan(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let plans = [
        plan_update(vec![
            plan_entry("high", "pending"),
            plan_entry("low", "pending"),
            plan_entry("low", "pending"),
        ]),
        plan_update(vec![plan_entry("high", "completed")]),
        plan_update(Vec::new()),
        plan_update(vec![plan_entry("medium", "in_progress")]),
    ];
    require_updates_accepted(harness, "a plan that replaces the previous one", plans).await
}

async fn ignores_unknown_values(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let plans = [plan_update(vec![
        plan_entry("urgent", "blocked"),
        plan_entry("high", "pending"),
    ])];
    require_updates_accepted(harness, "a plan with an unknown status", plans).await
}
