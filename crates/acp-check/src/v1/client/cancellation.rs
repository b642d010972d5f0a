//! Checks how a client cancels individual requests with `$/cancel_request`.

use serde_json::json;

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, require, skip};

use super::steps::{
    WAIT_REQUEST_TEXT, add_context, require_responsive, wait_for_optional_message_after_turns,
    wait_for_response,
};
use super::terminals::CheckTerminal;

checks! { V1 Client "cancellation";
    101 Must "A permission request cancelled by the agent still gets a response." => responds_to_cancelled_permission_request;
    102 Must "A cancelled `terminal/wait_for_exit` still gets a response." => responds_to_cancelled_terminal_wait;
    103 May "`$/cancel_request` for an unknown request is ignored." => ignores_cancel_of_unknown_request;
    104 Should "A client cancels only its own requests." => cancels_only_own_requests;
}

async fn responds_to_cancelled_permission_request(
    harness: &mut ClientHarness,
) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    let params = json!({
        "sessionId": prompted.session,
        "toolCall": {"toolCallId": "cancelled", "title": WAIT_REQUEST_TEXT, "kind": "other", "status": "pending"},
        "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}],
    });
    let id = harness
        .wire
        .send_request("session/request_permission", params)
        .await?;
    harness
        .wire
        .send_notification("$/cancel_request", json!({"requestId": id}))
        .await?;
    add_context("`$/cancel_request`", harness.wait_for_response(&id).await)?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn responds_to_cancelled_terminal_wait(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, "exec sleep 60", json!({})).await?;
    let id = harness
        .wire
        .send_request("terminal/wait_for_exit", terminal.params())
        .await?;
    harness
        .wire
        .send_notification("$/cancel_request", json!({"requestId": id}))
        .await?;
    // The client may also wait for the exit of the command, which comes when the command is killed.
    let killed = harness
        .wire
        .send_request("terminal/kill", terminal.params())
        .await?;
    for id in [id, killed] {
        add_context("`$/cancel_request`", wait_for_response(harness, &id).await)?;
    }
    terminal.finish(harness).await
}

async fn ignores_cancel_of_unknown_request(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    for id in [json!(99_999), json!("nobodys"), prompted.id.clone()] {
        harness
            .wire
            .send_notification("$/cancel_request", json!({"requestId": id}))
            .await?;
    }
    require_responsive(harness, "`$/cancel_request` for an unknown request").await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn cancels_only_own_requests(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    // Do not respond to the list. Some clients cancel it when they no longer need it.
    harness.initialize_result["agentCapabilities"]["sessionCapabilities"] = json!({"list": {}});
    let prompted = harness.wait_for_prompt().await?;
    harness.end_turn(&prompted, "end_turn").await?;
    if wait_for_optional_message_after_turns(harness, "session/list")
        .await?
        .is_none()
    {
        return skip("the client sent no request that could be cancelled");
    }
    let cancelled = wait_for_optional_message_after_turns(harness, "$/cancel_request").await?;
    let Some((_, params)) = cancelled else {
        return skip("the client cancelled no request");
    };
    let asked = |m: &crate::wire::ReceivedMessage| {
        !m.method().is_empty() && !m.0["id"].is_null() && m.0["id"] == params["requestId"]
    };
    require(harness.messages.iter().any(asked), || {
        format!(
            "the client cancelled request {}, which it did not send",
            params["requestId"]
        )
    })
}
