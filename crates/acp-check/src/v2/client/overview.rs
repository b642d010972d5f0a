//! Checks how a client follows JSON-RPC 2.0.

use serde_json::json;

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::client_harness_v2::text_update;
use crate::verdict::{CheckStop, fail};
use crate::wire::ReceivedResponse;
use acp_rules::schema::Envelope;

checks! { V2 Client "overview";
    101 Must "Unknown methods get error -32601." => reports_method_not_found;
    102 Must "A string id is unchanged in the response." => keeps_string_id;
    103 Must "Notifications get no response." => ignores_notifications;
}

async fn reports_method_not_found(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.begin_turn_v2().await?;
    match harness
        .request("session/acp_check_no_such", json!({}))
        .await?
    {
        ReceivedResponse::Error { code: -32601, .. } => Ok(()),
        ReceivedResponse::Error { code, .. } => fail(format!(
            "an unknown method got error {code}; expected -32601"
        )),
        ReceivedResponse::Result(_) => fail("an unknown method succeeded; expected an error"),
    }
}

async fn keeps_string_id(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.begin_turn_v2().await?;
    let id = json!("acp-check-07");
    harness
        .wire
        .send(&json!({"jsonrpc": "2.0", "id": id, "method": "_acp-check/id", "params": {}}))
        .await?;
    harness.wait_for_response(&id).await.map(drop)
}

async fn ignores_notifications(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.begin_turn_v2().await?;
    harness
        .send_update(&prompted.session, text_update("Hello."))
        .await?;
    harness
        .wire
        .send_notification("_acp-check/notification", json!({"any": "thing"}))
        .await?;
    let before = harness.messages.len();
    let id = harness
        .wire
        .send_request("_acp-check/last", json!({}))
        .await?;
    harness.wait_for_response(&id).await?;
    // A response to a notification has an id that belongs to no request.
    let odd = harness
        .messages
        .iter()
        .skip(before)
        .find_map(|message| match message.envelope() {
            Some(Envelope::Response { id: answered, .. }) => {
                (*answered != id).then(|| answered.clone())
            }
            _ => None,
        });
    match odd {
        None => Ok(()),
        Some(id) => fail(format!(
            "after two notifications, the client sent a response with the unknown id {id}"
        )),
    }
}
