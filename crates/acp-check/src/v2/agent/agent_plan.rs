//! Checks for the plans that an agent reports.

use serde_json::Value;

use crate::agent_harness::AgentHarness;
use crate::agent_harness_v2::update_type;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, skip};

checks! { V2 Agent "agent-plan";
    1 Must "Every plan has an id." => has_id, shared;
    2 Must "Custom plan types start with `_`." => prefixes_custom_types, shared;
    3 Must "Custom priorities start with `_`." => prefixes_custom_priorities, shared;
    4 Must "Custom statuses start with `_`." => prefixes_custom_statuses, shared;
}

/// Makes the agent show a plan, and returns all plan updates.
async fn collect_plans(harness: &mut AgentHarness) -> Result<Vec<Value>, CheckStop> {
    let session = harness.new_session_v2().await?;
    let turn = harness.run_task_v2(&session, AgentTask::Plan).await?;
    let plans = turn
        .updates
        .iter()
        .filter(|update| update_type(update) == "plan_update");
    let plans: Vec<Value> = plans.map(|update| update["plan"].clone()).collect();
    if plans.is_empty() {
        return skip("the agent reported no plan");
    }
    Ok(plans)
}

fn plan_entries(plans: &[Value]) -> impl Iterator<Item = &Value> {
    let items = plans.iter().filter(|plan| plan["type"] == "items");
    items.flat_map(|plan| plan["entries"].as_array().into_iter().flatten())
}

async fn has_id(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let plans = collect_plans(harness).await?;
    match plans.iter().find(|plan| !plan["planId"].is_string()) {
        Some(plan) => fail(format!("a plan of type {} has no `planId`", plan["type"])),
        None => Ok(()),
    }
}

/// Requires that each value is in `known` or starts with `_`. `what` describes the values for error messages.
fn require_known_or_custom<'a>(
    what: &str,
    values: impl Iterator<Item = &'a Value>,
    known: &[&str],
) -> Result<(), CheckStop> {
    let mut names = values.filter_map(Value::as_str);
    match names.find(|name| !known.contains(name) && !name.starts_with('_')) {
        Some(name) => fail(format!(
            "unknown {what} {name:?}; custom names must start with `_`"
        )),
        None => Ok(()),
    }
}

async fn prefixes_custom_types(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let plans = collect_plans(harness).await?;
    // The last two values are in the unstable schema.
    let known = ["items", "file", "markdown"];
    require_known_or_custom("plan type", plans.iter().map(|plan| &plan["type"]), &known)
}

async fn prefixes_custom_priorities(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let plans = collect_plans(harness).await?;
    let priorities = plan_entries(&plans).map(|entry| &entry["priority"]);
    require_known_or_custom("priority", priorities, &["high", "medium", "low"])
}

async fn prefixes_custom_statuses(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let plans = collect_plans(harness).await?;
    let statuses = plan_entries(&plans).map(|entry| &entry["status"]);
    require_known_or_custom(
        "status",
        statuses,
        &["pending", "in_progress", "completed", "cancelled"],
    )
}
