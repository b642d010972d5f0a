//! Checks for the content in an agent's messages and tool calls.

use serde_json::Value;

use super::values::is_base64;
use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, skip};

checks! { V2 Agent "content";
    1 Must "Images, audio and binary resources are valid base64." => sends_valid_base64, shared;
}

/// Calls `look` with every object nested in a value, except in fields that may contain anything.
pub(super) fn visit_objects(value: &Value, look: &mut impl FnMut(&Value)) {
    match value {
        Value::Object(fields) => {
            look(value);
            for (name, field) in fields {
                if !matches!(name.as_str(), "_meta" | "rawInput" | "rawOutput") {
                    visit_objects(field, look);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| visit_objects(item, look)),
        _ => {}
    }
}

async fn sends_valid_base64(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    for task in [
        AgentTask::Answer,
        AgentTask::Read,
        AgentTask::Edit,
        AgentTask::Run,
    ] {
        harness.run_task_v2(&session, task).await?;
    }
    let (mut seen, mut wrong) = (0, None);
    let mut look = |object: &Value| {
        let data = match object["type"].as_str() {
            Some("image" | "audio") => object["data"].as_str(),
            Some("resource") => object["resource"]["blob"].as_str(),
            _ => None,
        };
        if let Some(data) = data {
            seen += 1;
            if !is_base64(data) {
                wrong = object["type"].as_str().map(str::to_owned);
            }
        }
    };
    for params in harness.updates() {
        visit_objects(params, &mut look);
    }
    match (seen, wrong) {
        (0, _) => skip("the agent sent no image, audio or binary resource"),
        (_, Some(kind)) => fail(format!("content of type `{kind}` is not valid base64")),
        (_, None) => Ok(()),
    }
}
