//! Checks how a client responds to permission requests.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

use super::steps::{request_result, sent_params, wait_for_response};

checks! { V1 Client "tool-calls";
    121 Must "The response to a permission request selects one of its options, or is `cancelled`." => selects_offered_option;
    122 Must "Option ids are returned unchanged, whatever characters they contain." => keeps_option_ids;
    123 Must "If several options have the same kind, the client selects one of them." => handles_options_of_same_kind;
    124 Must "A permission request may have a single option." => accepts_single_option;
    125 Must "A permission request may refer to a tool call by its id alone." => accepts_call_without_details;
    126 Must "Concurrent permission requests are each answered with one of their own options." => handles_several_requests;
    127 Should "The outcome is `cancelled` only if the turn was cancelled." => cancels_permission_request_only_with_turn;
    128 May "Unknown option kinds are accepted." => accepts_unknown_option_kind;
    129 Must "Permission requests of an announced subagent are answered like those of its parent." => responds_to_subagent_permission_request;
}

fn permission_params(session: &str, call: Value, options: Value) -> Value {
    json!({"sessionId": session, "toolCall": call, "options": options})
}

/// Requires that the response is `cancelled` or selects one of the options.
fn require_offered_option(response: &Value, options: &Value) -> Result<(), CheckStop> {
    let outcome = &response["outcome"];
    match outcome["outcome"].as_str() {
        Some("cancelled") => Ok(()),
        Some("selected") => {
            let mut offered = options.as_array().into_iter().flatten();
            let chosen = &outcome["optionId"];
            require(offered.any(|option| option["optionId"] == *chosen), || {
                format!("the client selected {chosen}, which is not one of the options")
            })
        }
        _ => fail(format!("invalid outcome {outcome}")),
    }
}

async fn request_permission(
    harness: &mut ClientHarness,
    call: Value,
    options: Value,
) -> Result<Value, CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let params = permission_params(&prompted.session, call, options.clone());
    let response = request_result(harness, "session/request_permission", params).await?;
    require_offered_option(&response, &options)?;
    harness.end_turn(&prompted, "end_turn").await?;
    Ok(response)
}

fn edit_call() -> Value {
    json!({"toolCallId": "edit", "title": "Edit notes.txt", "kind": "edit", "status": "pending"})
}

fn two_options() -> Value {
    json!([
        {"optionId": "allow-once", "name": "Allow once", "kind": "allow_once"},
        {"optionId": "allow-always", "name": "Allow always", "kind": "allow_always"},
        {"optionId": "reject-once", "name": "Reject", "kind": "reject_once"},
        {"optionId": "reject-always", "name": "Reject always", "kind": "reject_always"},
    ])
}

async fn responds_to_subagent_permission_request(
    harness: &mut ClientHarness,
) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    if harness
        .capability("/clientCapabilities/subagents")
        .is_null()
    {
        return skip("the client does not support subagents");
    }
    let child = "acp-check-subagent";
    let announced =
        json!({"sessionUpdate": "subagent_update", "sessionId": child, "title": "Look around"});
    harness.send_update(&prompted.session, announced).await?;
    harness.send_text(child, "Looking around.").await?;
    let options = two_options();
    let params = permission_params(child, edit_call(), options.clone());
    let response = request_result(harness, "session/request_permission", params).await?;
    require_offered_option(&response, &options)?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn selects_offered_option(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    request_permission(harness, edit_call(), two_options())
        .await
        .map(drop)
}

async fn keeps_option_ids(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let options = json!([
        {"optionId": "0", "name": "Yes", "kind": "allow_once"},
        {"optionId": " a/b?c=\"ja\"\\ ", "name": "Yes, always", "kind": "allow_always"},
        {"optionId": "нет🦀", "name": "No", "kind": "reject_once"},
    ]);
    request_permission(harness, edit_call(), options)
        .await
        .map(drop)
}

async fn handles_options_of_same_kind(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let options = json!([
        {"optionId": "this-file", "name": "This file", "kind": "allow_once"},
        {"optionId": "all-files", "name": "All files", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
        {"optionId": "no-and-stop", "name": "No, and stop", "kind": "reject_once"},
    ]);
    request_permission(harness, edit_call(), options)
        .await
        .map(drop)
}

async fn accepts_single_option(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let options = json!([{"optionId": "go", "name": "Continue", "kind": "allow_once"}]);
    request_permission(harness, edit_call(), options)
        .await
        .map(drop)
}

async fn accepts_call_without_details(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let call = json!({"toolCallId": "call/never announced"});
    request_permission(harness, call, two_options())
        .await
        .map(drop)
}

async fn handles_several_requests(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let mut open = Vec::new();
    for number in 0..3 {
        let call =
            json!({"toolCallId": format!("several-{number}"), "title": format!("Step {number}")});
        let options = json!([
            {"optionId": format!("yes-{number}"), "name": "Yes", "kind": "allow_once"},
            {"optionId": format!("no-{number}"), "name": "No", "kind": "reject_once"},
        ]);
        let params = permission_params(&prompted.session, call, options.clone());
        let id = harness
            .wire
            .send_request("session/request_permission", params)
            .await?;
        open.push((id, options));
    }
    for (id, options) in open {
        match wait_for_response(harness, &id).await? {
            ReceivedResponse::Result(response) => require_offered_option(&response, &options)?,
            ReceivedResponse::Error { code, message, .. } => {
                return fail(format!("request {id} failed with error {code}: {message}"));
            }
        }
    }
    harness.end_turn(&prompted, "end_turn").await
}

async fn cancels_permission_request_only_with_turn(
    harness: &mut ClientHarness,
) -> Result<(), CheckStop> {
    let response = request_permission(harness, edit_call(), two_options()).await?;
    let cancelled = sent_params(harness, "session/cancel").next().is_some();
    require(
        cancelled || response["outcome"]["outcome"] != "cancelled",
        || "the client responded with `cancelled`, but did not cancel the turn".to_owned(),
    )
}

async fn accepts_unknown_option_kind(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let options = json!([
        {"optionId": "maybe", "name": "Maybe", "kind": "shrug"},
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]);
    request_permission(harness, edit_call(), options)
        .await
        .map(drop)
}
