//! Checks how a client responds to permission requests (Tool calls, section "Requesting Permission").

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail, require};

checks! { V2 Client "tool-calls";
    121 Must "The selected option is one of the offered options." => selects_one_of_the_options;
    122 Must "A permission request may omit its subject." => accepts_missing_subject;
    123 Must "A permission request may be about a command." => accepts_command;
    124 Should "A permission request with an unknown subject gets a response." => responds_to_unknown_subject;
    125 Should "Unknown option kinds are accepted." => accepts_unknown_option;
    126 Must "A permission request may refer to a tool call that was not announced." => accepts_unannounced_call;
    127 Must "Permission requests from an announced subagent are answered like those from its parent." => responds_to_subagent_permission_request;
}

/// Returns the params of a permission request with one option to allow the action and one to reject it.
pub(super) fn permission_params(session: &str) -> Value {
    json!({
        "sessionId": session,
        "title": "May the check continue?",
        "options": [
            {"optionId": "acp-check-yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "acp-check-no", "name": "No", "kind": "reject_once"},
        ],
    })
}

/// Requests permission, and requires that the response is valid.
async fn require_permission_response(
    harness: &mut ClientHarness,
    change: impl FnOnce(&mut Value),
) -> Result<(), CheckStop> {
    let prompted = harness.begin_turn_v2().await?;
    let mut params = permission_params(&prompted.session);
    change(&mut params);
    harness
        .send_state_v2(&prompted, json!({"state": "requires_action"}))
        .await?;
    let options = params["options"].clone();
    let outcome = harness.request_permission_v2(params).await?;
    match outcome["outcome"].as_str() {
        Some("selected") => {
            let mut offered = options.as_array().into_iter().flatten();
            let chosen = &outcome["optionId"];
            require(offered.any(|option| option["optionId"] == *chosen), || {
                format!("the client selected option {chosen}, which was not offered")
            })?;
        }
        Some("cancelled") => {}
        Some(own) if own.starts_with('_') => {}
        _ => {
            return fail(format!(
                "invalid outcome {}; expected `selected`, `cancelled` or a name starting with `_`",
                outcome["outcome"]
            ));
        }
    }
    harness.end_turn_v2(&prompted, "end_turn").await
}

async fn responds_to_subagent_permission_request(
    harness: &mut ClientHarness,
) -> Result<(), CheckStop> {
    let prompted = harness.begin_turn_v2().await?;
    let child = "acp-check-subagent";
    let announced = json!({"sessionUpdate": "subagent_update", "sessionId": child,
                           "title": "Look around", "state": {"state": "running"}});
    harness.send_update(&prompted.session, announced).await?;
    let outcome = harness
        .request_permission_v2(permission_params(child))
        .await?;
    require(outcome["outcome"].is_string(), || {
        format!("invalid outcome {}", outcome["outcome"])
    })?;
    harness.end_turn_v2(&prompted, "end_turn").await
}

async fn selects_one_of_the_options(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_permission_response(harness, |params| {
        let call = json!({"toolCallId": "asked", "title": "Check", "kind": "edit"});
        params["subject"] = json!({"type": "tool_call", "toolCall": call});
    })
    .await
}

async fn accepts_missing_subject(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_permission_response(harness, |_| {}).await
}

async fn accepts_command(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_permission_response(harness, |params| {
        params["subject"] = json!({"type": "command", "command": "echo checked", "cwd": "/"});
    })
    .await
}

async fn responds_to_unknown_subject(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_permission_response(harness, |params| {
        params["subject"] = json!({"type": "_acp-check/weather", "sunny": true});
    })
    .await
}

async fn accepts_unknown_option(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_permission_response(harness, |params| {
        if let Some(options) = params["options"].as_array_mut() {
            let own =
                json!({"optionId": "acp-check-maybe", "name": "Maybe", "kind": "_acp-check/maybe"});
            options.insert(0, own);
        }
    })
    .await
}

async fn accepts_unannounced_call(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_permission_response(harness, |params| {
        params["subject"] =
            json!({"type": "tool_call", "toolCall": {"toolCallId": "never-told-of"}});
    })
    .await
}
