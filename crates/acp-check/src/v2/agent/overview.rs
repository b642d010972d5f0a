//! Checks how an agent follows JSON-RPC 2.0.

use serde_json::json;

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::verdict::{CheckStop, fail, require};
use crate::wire::ReceivedResponse;
use acp_rules::schema::Envelope;

checks! { V2 Agent "overview";
    1 Must "Unknown methods get error -32601." => reports_method_not_found, shared;
    2 Must "A string id is unchanged in the response." => keeps_string_id, shared;
    3 Must "Notifications get no response." => ignores_notifications, shared_last;
    4 Must "All concurrent requests get a response." => handles_several_requests, shared;
}

async fn reports_method_not_found(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
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

async fn keeps_string_id(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let id = json!("acp-check-07");
    harness
        .wire
        .send(&json!({"jsonrpc": "2.0", "id": id, "method": "_acp-check/id", "params": {}}))
        .await?;
    harness
        .wait_until(
            "a response with the id \"acp-check-07\"",
            |_, message| match message.envelope() {
                Some(Envelope::Response { id: answered, .. }) => (*answered == id).then_some(()),
                _ => None,
            },
        )
        .await
}

async fn ignores_notifications(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    harness
        .wire
        .send_notification("session/cancel", json!({"sessionId": session}))
        .await?;
    harness
        .wire
        .send_notification("_acp-check/notification", json!({"any": "thing"}))
        .await?;
    let id = harness
        .wire
        .send_request("_acp-check/last", json!({}))
        .await?;
    // A response to a notification has an id that belongs to no request.
    let odd = harness
        .wait_until(
            &format!("a response to request {id}"),
            |_, message| match message.envelope() {
                Some(Envelope::Response { id: answered, .. }) if *answered == id => Some(None),
                Some(Envelope::Response { id: answered, .. }) => Some(Some(answered.clone())),
                _ => None,
            },
        )
        .await?;
    match odd {
        None => Ok(()),
        Some(id) => fail(format!(
            "after two notifications, the agent sent a response with the unknown id {id}"
        )),
    }
}

async fn handles_several_requests(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let mut open = Vec::new();
    for number in 0..16 {
        let params = json!({"number": number});
        open.push(
            harness
                .wire
                .send_request("_acp-check/several", params)
                .await?,
        );
    }
    let asked = open.len();
    let patience = harness.wire.timeout();
    let waiting = async {
        while !open.is_empty() {
            let Some(message) = harness.next().await? else {
                break;
            };
            if let Some(Envelope::Response { id, .. }) = message.envelope() {
                open.retain(|open| open != id);
            }
        }
        Ok(())
    };
    // Missing responses are reported below.
    if let Ok(stopped) = tokio::time::timeout(patience, waiting).await {
        stopped?;
    }
    require(open.is_empty(), || {
        format!("{} of {asked} requests got no response", open.len())
    })
}
