//! Agent plan.

use serde_json::Value;

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};

checks! { V1 Agent "agent-plan";
    1 Must "A plan update contains all entries, not only the changed ones." => whole;
    2 Should "Every plan entry has a human-readable description." => says_something;
}

/// Returns the contents of all plan entries, for each plan update of a turn, in order.
async fn plans(harness: &mut AgentHarness) -> Result<Vec<Vec<String>>, CheckStop> {
    let session = harness.session().await?;
    let turn = harness.task(&session, AgentTask::Plan).await?;
    let plans: Vec<Vec<String>> = turn.of_kind("plan").map(words).collect();
    if plans.is_empty() {
        return skip("the agent reported no plan");
    }
    Ok(plans)
}

fn words(plan: &Value) -> Vec<String> {
    let entries = plan["entries"].as_array().into_iter().flatten();
    entries
        .map(|entry| entry["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Plans may lose entries. An entry that is missing from one update and back in the next was not really lost.
async fn whole(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let plans = plans(harness).await?;
    for three in plans.windows(3) {
        let [before, between, after] = three else {
            continue;
        };
        let left_out = before
            .iter()
            .find(|entry| !between.contains(entry) && after.contains(entry));
        if let Some(entry) = left_out {
            return fail(format!(
                "entry {entry:?} is missing from one plan update, but present before and after it"
            ));
        }
    }
    if plans.len() < 3 {
        return skip("too few plan updates to check");
    }
    Ok(())
}

async fn says_something(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let plans = plans(harness).await?;
    let mut entries = plans.iter().flatten();
    require(entries.all(|entry| !entry.trim().is_empty()), || {
        "a plan entry has no text".to_owned()
    })
}
