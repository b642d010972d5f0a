//! Plans.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::CheckStop;

use super::steps::takes;

checks! { V1 Client "agent-plan";
    101 Must "Plans are taken, with entries of every priority and status." => every;
    102 Must "A plan takes the place of the one before, also if it is shorter or empty." => replaced;
    103 May "Priorities and statuses that the client does not know do no harm." => unknown;
}

fn plan(entries: Vec<Value>) -> Value {
    json!({"sessionUpdate": "plan", "entries": entries})
}

fn entry(priority: &str, status: &str) -> Value {
    json!({"content": format!("{priority}, {status}"), "priority": priority, "status": status})
}

async fn every(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let priorities = ["high", "medium", "low"];
    let entries = priorities.into_iter().flat_map(|priority| {
        ["pending", "in_progress", "completed"].map(|status| entry(priority, status))
    });
    takes(play, "a plan", [plan(entries.collect())]).await
}

async fn replaced(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let plans = [
        plan(vec![
            entry("high", "pending"),
            entry("low", "pending"),
            entry("low", "pending"),
        ]),
        plan(vec![entry("high", "completed")]),
        plan(Vec::new()),
        plan(vec![entry("medium", "in_progress")]),
    ];
    takes(play, "a plan that was replaced", plans).await
}

async fn unknown(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let plans = [plan(vec![
        entry("urgent", "blocked"),
        entry("high", "pending"),
    ])];
    takes(play, "a plan with a status that there is not", plans).await
}
