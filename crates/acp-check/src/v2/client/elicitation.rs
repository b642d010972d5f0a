//! Checks how a client requests input from the user.

use serde_json::json;

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail, skip};
use crate::wire::ReceivedResponse;

checks! { V2 Client "elicitation";
    101 Must "The action for a form is `accept`, `decline` or `cancel`, or it starts with `_`." => responds_to_form;
    102 Must "An unknown elicitation mode is not accepted." => rejects_unknown_mode;
    103 Must "`elicitation/complete` for an unknown elicitation is ignored." => ignores_unknown_completion;
}

async fn responds_to_form(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.begin_turn_v2().await?;
    if !harness
        .capability("/capabilities/elicitation/form")
        .is_object()
    {
        return skip("the client does not support `elicitation.form`");
    }
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({
        "sessionId": prompted.session, "mode": "form", "message": "Who is it?", "requestedSchema": form,
    });
    let id = harness
        .wire
        .send_request("elicitation/create", params)
        .await?;
    let response = match harness.wait_for_response(&id).await {
        Ok(response) => response,
        Err(CheckStop::Fail(_)) if !harness.wire.has_ended() => {
            return skip("no response to the form");
        }
        Err(stop) => return Err(stop),
    };
    match response {
        ReceivedResponse::Error { code, message, .. } => fail(format!(
            "the elicitation failed with error {code}: {message}"
        )),
        ReceivedResponse::Result(result) => match result["action"].as_str() {
            Some("accept" | "decline" | "cancel") => Ok(()),
            Some(own) if own.starts_with('_') => Ok(()),
            _ => fail(format!(
                "invalid action {} in the response to the form",
                result["action"]
            )),
        },
    }
}

async fn rejects_unknown_mode(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.begin_turn_v2().await?;
    let params = json!({
        "sessionId": prompted.session, "mode": "_acp-check/telepathy", "message": "Think of a number.",
    });
    let id = harness
        .wire
        .send_request("elicitation/create", params)
        .await?;
    match harness.wait_for_response(&id).await {
        Ok(ReceivedResponse::Result(result)) if result["action"] == "accept" => {
            fail("the client responded with `accept` to an unknown elicitation mode")
        }
        Ok(_) => Ok(()),
        Err(CheckStop::Fail(_)) if !harness.wire.has_ended() => skip("no response in time"),
        Err(stop) => Err(stop),
    }
}

async fn ignores_unknown_completion(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.begin_turn_v2().await?;
    let params = json!({"elicitationId": "acp-check-nobodys"});
    harness
        .wire
        .send_notification("elicitation/complete", params)
        .await?;
    harness
        .require_responsive_v2("`elicitation/complete` for an unknown elicitation")
        .await
}
