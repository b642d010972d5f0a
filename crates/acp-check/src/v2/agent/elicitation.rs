//! Checks for an agent's requests for input from the user.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};

checks! { V2 Agent "elicitation"
    fresh "declares other capabilities in `initialize`";
    1 Must "A client that supports only forms gets only forms." => sends_forms_only;
    2 Must "A client that supports only URLs gets only URLs." => sends_urls_only;
    3 Must "A select field has at least one choice." => has_choices;
    4 Must "A form requires only fields that it contains." => requires_only_existing_fields;
}

/// Makes the agent request input from a client with this capability, and returns the elicitations.
async fn collect_elicitations(
    harness: &mut AgentHarness,
    offered: Value,
) -> Result<Vec<Value>, CheckStop> {
    let mut params = harness.initialize_params();
    params["capabilities"]["elicitation"] = offered;
    harness.initialize_with(params).await?;
    let session = harness.new_session_v2().await?;
    for task in [AgentTask::Answer, AgentTask::Edit] {
        harness.run_task_v2(&session, task).await?;
    }
    let asked = harness
        .requests()
        .filter(|(method, _)| *method == "elicitation/create");
    let asked: Vec<Value> = asked.map(|(_, params)| params.clone()).collect();
    if asked.is_empty() {
        return skip("the agent sent no elicitation");
    }
    Ok(asked)
}

async fn require_only_mode(harness: &mut AgentHarness, mode: &str) -> Result<(), CheckStop> {
    let asked = collect_elicitations(harness, json!({mode: {}})).await?;
    match asked.iter().find(|params| params["mode"] != *mode) {
        Some(params) => fail(format!(
            "the client supports only `elicitation.{mode}`, but the agent used mode {}",
            params["mode"]
        )),
        None => Ok(()),
    }
}

async fn sends_forms_only(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_only_mode(harness, "form").await
}

async fn sends_urls_only(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_only_mode(harness, "url").await
}

/// Makes the agent request input, and returns the forms that it sends.
async fn collect_forms(harness: &mut AgentHarness) -> Result<Vec<Value>, CheckStop> {
    let asked = collect_elicitations(harness, json!({"form": {}})).await?;
    Ok(asked
        .into_iter()
        .map(|params| params["requestedSchema"].clone())
        .collect())
}

async fn has_choices(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    for form in collect_forms(harness).await? {
        let fields = form["properties"].as_object().into_iter().flatten();
        for (name, field) in fields {
            let lists = [
                &field["enum"],
                &field["oneOf"],
                &field["items"]["enum"],
                &field["items"]["anyOf"],
            ];
            let empty = lists
                .iter()
                .any(|list| list.as_array().is_some_and(Vec::is_empty));
            require(!empty, || {
                format!("field {name:?} of a form has no choices")
            })?;
        }
    }
    Ok(())
}

async fn requires_only_existing_fields(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    for form in collect_forms(harness).await? {
        let required = form["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            require(form["properties"].get(name).is_some(), || {
                format!("the form requires {name:?}, which is not one of its fields")
            })?;
        }
    }
    Ok(())
}
