//! Checks for the plans that an agent reports.

use serde_json::Value;

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};

checks! { V1 Agent "agent-plan";
    1 Must "A plan update contains all entries, not only the changed ones." => includes_all_entries, shared;
    2 Should "Every plan entry has a human-readable description." => describes_entries, shared;
}

/// Makes the agent show a plan. Returns the texts of all entries for each plan update, in order.
async fn collect_plans(harness: &mut AgentHarness) -> Result<Vec<Vec<String>>, CheckStop> {
    let session = harness.new_session().await?;
    let turn = harness.run_task_or_skip(&session, AgentTask::Plan).await?;
    let plans: Vec<Vec<String>> = turn.updates_of_type("plan").map(entry_texts).collect();
    if plans.is_empty() {
        return skip("the agent reported no plan");
    }
    Ok(plans)
}

fn entry_texts(plan: &Value) -> Vec<String> {
    let entries = plan["entries"].as_array().into_iter().flatten();
    entries
        .map(|entry| entry["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Requires that no update omits entries. If an entry is missing from one update but present in the next, it was
/// omitted. If it never reappears, it was removed, which is allowed.
async fn includes_all_entries(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let plans = collect_plans(harness).await?;
    for three in plans.windows(3) {
        let [before, between, after] = three else {
            continue;
        };
        let left_out = before
            .iter()
            .find(|entry| !between.contains(entry) && after.contains(entry));
        if let Some(entry) = left_out {
            return fail(format!(
                "entry {entry:?} is missing from one plan update, but present in the updates before and after it"
            ));
        }
    }
    if plans.len() < 3 {
        return skip("the agent sent fewer than three plan updates");
    }
    Ok(())
}

async fn describes_entries(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let plans = collect_plans(harness).await?;
    let mut entries = plans.iter().flatten();
    require(entries.all(|entry| !entry.trim().is_empty()), || {
        "a plan entry has no text".to_owned()
    })
}
