//! Checks for an agent's usage reports: the tokens in the context, and the session's cost.

use serde_json::Value;

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};

checks! { V1 Agent "usage";
    1 Should "The context usage does not exceed the context size." => stays_within_context, shared;
    2 Must "The reported cost is cumulative and never decreases." => reports_cumulative_cost, shared;
}

/// Runs two turns, and returns all usage updates.
async fn collect_usage(harness: &mut AgentHarness) -> Result<Vec<Value>, CheckStop> {
    let session = harness.new_session().await?;
    for _ in 0..2 {
        harness
            .run_task_or_skip(&session, AgentTask::Answer)
            .await?;
    }
    // The agent may report the cost of the last turn after the turn.
    harness.drain_messages().await?;
    let updates = harness.updates().map(|params| &params["update"]);
    let usage = updates.filter(|update| update["sessionUpdate"] == "usage_update");
    let usage: Vec<Value> = usage.cloned().collect();
    if usage.is_empty() {
        return skip("the agent reports no usage");
    }
    Ok(usage)
}

async fn stays_within_context(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    for update in collect_usage(harness).await? {
        let (used, size) = (&update["used"], &update["size"]);
        let fits = used
            .as_u64()
            .zip(size.as_u64())
            .is_none_or(|(used, size)| used <= size);
        require(fits, || {
            format!("{used} tokens used, but the context size is {size}")
        })?;
    }
    Ok(())
}

async fn reports_cumulative_cost(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let usage = collect_usage(harness).await?;
    let cost = |update: &Value| {
        Some((
            update["cost"]["amount"].as_f64()?,
            update["cost"]["currency"].clone(),
        ))
    };
    let costs: Vec<(f64, Value)> = usage.iter().filter_map(cost).collect();
    if costs.len() < 2 {
        return skip("the agent does not report costs");
    }
    for two in costs.windows(2) {
        if let [(before, of), (after, in_)] = two
            && of == in_
            && after < before
        {
            return fail(format!(
                "the session's cost decreased from {before} to {after}"
            ));
        }
    }
    Ok(())
}
