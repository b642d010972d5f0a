//! Checks how a client cancels turns and individual requests.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::{ClientHarness, ReceivedPrompt};
use crate::client_harness_v2::text_update;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;
use acp_rules::schema::Envelope;

use super::permissions::permission_params;

checks! { V2 Client "prompt-lifecycle";
    131 Must "After the client cancels a turn, pending permission requests get `cancelled`." => cancels_pending_permissions;
    132 Should "Updates are accepted after the client cancels a turn." => accepts_later_updates;
    133 Must "A request cancelled with `$/cancel_request` still gets a response." => responds_to_cancelled_request;
    134 Must "`$/cancel_request` for an unknown request is ignored." => ignores_unknown_request;
}

/// Sends a message that asks the user to cancel the turn, and waits until the client does so. Skips the check if that
/// takes too long.
async fn request_cancel(
    harness: &mut ClientHarness,
    prompted: &ReceivedPrompt,
) -> Result<(), CheckStop> {
    harness
        .send_update(
            &prompted.session,
            text_update("Please cancel this turn now."),
        )
        .await?;
    match harness.wait_for_message("session/cancel").await {
        Ok((_, params)) => require(params["sessionId"] == *prompted.session, || {
            format!(
                "the client cancelled a turn in session {}, which it did not open",
                params["sessionId"]
            )
        }),
        Err(_) => skip("the client did not cancel the turn when asked to"),
    }
}

/// Returns the response to a request, if it has already arrived.
fn find_response(harness: &ClientHarness, asked: &Value) -> Option<ReceivedResponse> {
    harness
        .messages
        .iter()
        .find_map(|message| match message.envelope() {
            Some(Envelope::Response { id, result }) if id == asked => {
                Some(ReceivedResponse::from_result(result))
            }
            _ => None,
        })
}

async fn cancels_pending_permissions(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.begin_turn_v2().await?;
    // Use a request that no policy allows by itself, so that nothing answers it before the turn is cancelled.
    let mut params = permission_params(&prompted.session);
    params["options"] = json!([{"optionId": "later", "name": "Later", "kind": "_acp-check/wait"}]);
    let id = harness
        .wire
        .send_request("session/request_permission", params)
        .await?;
    request_cancel(harness, &prompted).await?;
    let response = match find_response(harness, &id) {
        Some(response) => response,
        None => harness.wait_for_response(&id).await?,
    };
    match response {
        ReceivedResponse::Result(result) if result["outcome"]["outcome"] == "cancelled" => Ok(()),
        ReceivedResponse::Result(result) => fail(format!(
            "the client cancelled the turn, but responded to the permission request with {}",
            result["outcome"]
        )),
        ReceivedResponse::Error { code, .. } => fail(format!(
            "the client cancelled the turn, but the permission request failed with error {code}"
        )),
    }
}

async fn accepts_later_updates(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.begin_turn_v2().await?;
    request_cancel(harness, &prompted).await?;
    let call =
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "late", "status": "cancelled"});
    harness.send_update(&prompted.session, call).await?;
    harness
        .require_responsive_v2("an update after `session/cancel`")
        .await?;
    harness.end_turn_v2(&prompted, "cancelled").await
}

async fn responds_to_cancelled_request(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.begin_turn_v2().await?;
    let params = permission_params(&prompted.session);
    let id = harness
        .wire
        .send_request("session/request_permission", params)
        .await?;
    harness
        .wire
        .send_notification("$/cancel_request", json!({"requestId": id}))
        .await?;
    harness.wait_for_response(&id).await.map(drop)
}

async fn ignores_unknown_request(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.begin_turn_v2().await?;
    harness
        .wire
        .send_notification(
            "$/cancel_request",
            json!({"requestId": "acp-check-nobodys"}),
        )
        .await?;
    harness
        .require_responsive_v2("`$/cancel_request` for an unknown request")
        .await
}
