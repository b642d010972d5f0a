//! Checks how a client handles plans.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::CheckStop;

checks! { V2 Client "agent-plan";
    101 Must "Several plans are accepted, and each may change or become empty." => accepts_several_plans;
    102 Should "Unknown plan types are accepted." => accepts_unknown_plan_type;
    103 Should "Unknown priorities and statuses are accepted." => accepts_unknown_values;
}

fn plan_update(plan: &Value) -> Value {
    json!({"sessionUpdate": "plan_update", "plan": plan})
}

fn items_plan(id: &str, entries: Value) -> Value {
    let mut items = json!({"type": "items", "planId": id});
    items["entries"] = entries;
    plan_update(&items)
}

async fn accepts_several_plans(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let entry = json!([{"content": "Look", "priority": "high", "status": "pending"}]);
    let updates = [
        items_plan("one", entry.clone()),
        items_plan("two", entry.clone()),
        items_plan("one", json!([])),
        items_plan("two", entry),
    ];
    harness.require_tolerance_v2("two plans", &updates).await
}

async fn accepts_unknown_plan_type(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let own = plan_update(&json!({"type": "_acp-check/map", "planId": "map", "places": []}));
    let later = plan_update(&json!({"type": "map", "planId": "map"}));
    harness
        .require_tolerance_v2("a plan of an unknown type", &[own, later])
        .await
}

async fn accepts_unknown_values(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let entries = json!([
        {"content": "Look", "priority": "_acp-check/someday", "status": "_acp-check/asleep"},
        {"content": "Look", "priority": "someday", "status": "asleep"},
    ]);
    harness
        .require_tolerance_v2(
            "an unknown priority and status",
            &[items_plan("odd", entries)],
        )
        .await
}
