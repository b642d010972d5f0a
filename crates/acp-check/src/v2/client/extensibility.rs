//! Checks how a client handles custom methods and metadata.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::client_harness_v2::text_update;
use crate::verdict::{CheckStop, fail};
use crate::wire::ReceivedResponse;

checks! { V2 Client "extensibility";
    101 Should "Unknown extension requests get error -32601." => rejects_unknown_request;
    102 Should "Unknown extension notifications are ignored." => ignores_unknown_notification;
    103 Must "Messages with arbitrary `_meta` are accepted." => accepts_any_meta;
}

async fn rejects_unknown_request(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.begin_turn_v2().await?;
    match harness.request("_acp-check/no-such", json!({})).await? {
        ReceivedResponse::Error { code: -32601, .. } => Ok(()),
        ReceivedResponse::Error { code, .. } => fail(format!(
            "an unknown method got error {code}; expected -32601"
        )),
        ReceivedResponse::Result(_) => fail("an unknown method succeeded; expected an error"),
    }
}

async fn ignores_unknown_notification(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.begin_turn_v2().await?;
    harness
        .wire
        .send_notification("_acp-check/no-such", json!([1, {"two": null}]))
        .await?;
    harness
        .require_responsive_v2("an unknown extension notification")
        .await
}

/// Returns a `_meta` value with unusual types, under names that nobody else uses.
fn unusual_meta() -> Value {
    json!({"example.org/a": 1, "b": [null, {"c": "d"}], "": false, "traceparent": "none"})
}

async fn accepts_any_meta(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.initialize_result["_meta"] = unusual_meta();
    harness.session["_meta"] = unusual_meta();
    let mut update = text_update("Hello.");
    update["_meta"] = unusual_meta();
    update["content"]["_meta"] = unusual_meta();
    harness
        .require_tolerance_v2("unusual metadata", &[update])
        .await
}
