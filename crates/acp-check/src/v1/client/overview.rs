//! Checks how a client responds to JSON-RPC 2.0 messages.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail, require};
use crate::wire::ReceivedResponse;
use acp_rules::schema::Envelope;

use super::steps::{add_context, request_error, require_responsive, require_updates_accepted};

checks! { V1 Client "overview";
    101 Must "Every request gets exactly one response." => responds_once;
    102 Must "A string id stays a string in the response." => keeps_string_id;
    103 Must "A large numeric id is unchanged in the response." => keeps_large_id;
    104 Must "Client and agent request ids are independent." => separates_ids;
    105 Must "Unknown methods get an error." => rejects_unknown_method;
    106 Should "Unknown methods get error -32601." => reports_method_not_found;
    107 Must "Notifications get no response." => ignores_notifications;
    108 May "Responses to unknown requests are ignored." => ignores_stray_response;
    109 Must "Each concurrent request gets a response with its own id." => handles_many_requests;
    110 Should "Unknown fields are ignored." => ignores_unknown_fields;
}

/// Returns the ids of all responses from the client.
fn received_responses(harness: &ClientHarness) -> Vec<Value> {
    let answers = harness.messages.iter().filter_map(|m| match m.envelope() {
        Some(Envelope::Response { id, .. }) => Some(id.clone()),
        _ => None,
    });
    answers.collect()
}

async fn require_response_with_id(harness: &mut ClientHarness, id: Value) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let asked = json!({"jsonrpc": "2.0", "id": id, "method": "_acp_check/id", "params": {}});
    harness.wire.send(&asked).await?;
    harness.wait_for_response(&id).await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn responds_once(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let id = harness
        .wire
        .send_request("_acp_check/once", json!({}))
        .await?;
    harness.wait_for_response(&id).await?;
    // A second response would arrive before the response to this request.
    harness.request("_acp_check/then", json!({})).await?;
    let times = received_responses(harness)
        .iter()
        .filter(|of| **of == id)
        .count();
    require(times == 1, || format!("request {id} got {times} responses"))?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn keeps_string_id(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_response_with_id(harness, json!("17")).await
}

async fn keeps_large_id(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    // This is the largest integer that the number types of all languages represent exactly.
    require_response_with_id(harness, json!(9_007_199_254_740_991_u64)).await
}

async fn separates_ids(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let id = prompted.id.clone();
    let asked = json!({"jsonrpc": "2.0", "id": id, "method": "_acp_check/id", "params": {}});
    harness.wire.send(&asked).await?;
    let response = harness.wait_for_response(&id).await;
    add_context(
        "a request with the same id as the client's prompt",
        response,
    )?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn rejects_unknown_method(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let what = "the unknown method `acp_check/unheard_of`";
    request_error(harness, "acp_check/unheard_of", json!({}), what).await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn reports_method_not_found(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    match harness.request("acp_check/unheard_of", json!({})).await? {
        ReceivedResponse::Error { code: -32601, .. } => {
            harness.end_turn(&prompted, "end_turn").await
        }
        ReceivedResponse::Error { code, .. } => fail(format!(
            "an unknown method got error {code}; expected -32601"
        )),
        ReceivedResponse::Result(result) => fail(format!(
            "an unknown method got the result {result}; expected an error"
        )),
    }
}

async fn ignores_notifications(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    harness.send_text(&prompted.session, "One moment.").await?;
    harness
        .wire
        .send_notification("_acp_check/note", json!({}))
        .await?;
    harness
        .wire
        .send_notification("acp_check/note", json!({}))
        .await?;
    let id = harness
        .wire
        .send_request("_acp_check/alive", json!({}))
        .await?;
    harness.wait_for_response(&id).await?;
    let others: Vec<Value> = received_responses(harness)
        .into_iter()
        .filter(|of| *of != id)
        .collect();
    require(others.is_empty(), || {
        format!(
            "the client responded to a notification, with id {}",
            json!(others)
        )
    })?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn ignores_stray_response(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    harness
        .wire
        .send_result(&json!(424_242), json!({"stray": true}))
        .await?;
    harness
        .wire
        .send_result(&json!("stray"), json!(null))
        .await?;
    harness
        .wire
        .send_error(&json!(424_243), -32603, "stray")
        .await?;
    require_responsive(harness, "a response to an unknown request").await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn handles_many_requests(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let mut open = Vec::new();
    for number in 0..20 {
        open.push(
            harness
                .wire
                .send_request("_acp_check/many", json!({"number": number}))
                .await?,
        );
    }
    let last = open.last().cloned().unwrap_or_default();
    let mut waiting = open.clone();
    while !waiting.is_empty() {
        let next = tokio::time::timeout(harness.wire.timeout(), harness.next()).await;
        let Ok(Some(message)) = next.unwrap_or(Ok(None)) else {
            return fail(format!(
                "sent concurrent requests 0 to {last}, but got no response to: {}",
                json!(waiting)
            ));
        };
        match message.envelope() {
            Some(Envelope::Response { id, .. }) => waiting.retain(|of| of != id),
            _ => harness.serve(&message).await?,
        }
    }
    harness.end_turn(&prompted, "end_turn").await
}

async fn ignores_unknown_fields(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.initialize_result["mood"] = json!("good");
    harness.session["mood"] = json!(["good"]);
    let update = json!({
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "Hello.", "mood": 1},
        "mood": null,
    });
    require_updates_accepted(harness, "unknown fields", [update]).await
}
