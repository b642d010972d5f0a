//! Checks how a client handles `_meta` and custom methods.

use serde_json::json;

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail};
use crate::wire::ReceivedResponse;

use super::steps::{require_responsive, require_updates_accepted};

checks! { V1 Client "extensibility";
    101 Must "An extension request gets a response with its id." => responds_to_extension;
    102 Should "Unknown extension requests get error -32601." => rejects_unknown_extension;
    103 Should "Unknown extension notifications are ignored." => ignores_unknown_extension;
    104 Must "`_meta` with any content is accepted anywhere." => accepts_any_meta;
    105 May "Unknown notifications are ignored, even without a leading underscore." => ignores_unknown_notification;
}

/// A method that no client supports.
const UNKNOWN_METHOD: &str = "_example.org/acp-check/unheard-of";

async fn responds_to_extension(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    harness
        .request(UNKNOWN_METHOD, json!({"language": "rust"}))
        .await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn rejects_unknown_extension(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    match harness.request(UNKNOWN_METHOD, json!([1, 2])).await? {
        ReceivedResponse::Error { code: -32601, .. } => {
            harness.end_turn(&prompted, "end_turn").await
        }
        ReceivedResponse::Error { code, .. } => fail(format!(
            "`{UNKNOWN_METHOD}` failed with error {code}; expected -32601"
        )),
        ReceivedResponse::Result(result) => fail(format!(
            "`{UNKNOWN_METHOD}` succeeded with {result}; expected an error"
        )),
    }
}

async fn ignores_unknown_extension(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    harness
        .wire
        .send_notification(UNKNOWN_METHOD, json!({"path": "/x"}))
        .await?;
    require_responsive(harness, "an extension notification").await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn accepts_any_meta(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let meta =
        json!({"example.org/trace": {"id": [1, "two", null]}, "traceparent": "00-80e1-00f0-01"});
    harness.initialize_result["_meta"] = meta.clone();
    harness.initialize_result["agentCapabilities"]["_meta"] = meta.clone();
    harness.session["_meta"] = meta.clone();
    let update = json!({
        "sessionUpdate": "tool_call", "toolCallId": "meta", "title": "With `_meta`", "_meta": meta,
        "content": [{"type": "content", "content": {"type": "text", "text": "x", "_meta": meta}, "_meta": null}],
    });
    require_updates_accepted(harness, "`_meta` everywhere", [update]).await
}

async fn ignores_unknown_notification(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    harness
        .wire
        .send_notification("$/acp_check", json!({"a": 1}))
        .await?;
    harness
        .wire
        .send_notification("acp_check/unheard_of", json!({"a": 1}))
        .await?;
    require_responsive(harness, "an unknown notification").await?;
    harness.end_turn(&prompted, "end_turn").await
}
