//! Elicitation: the agent asks the person for input.

use serde_json::json;

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail, skip};
use crate::wire::ReceivedResponse;

checks! { V2 Client "elicitation";
    101 Must "A form is answered with `accept`, `decline` or `cancel`, or in a way of one's own that begins with `_`." => answers_form;
    102 Must "A way of asking that the client does not know is not taken for one that it knows: nothing is accepted." => unknown_mode;
    103 Must "That an elicitation is over may be told of one that the client does not know." => unknown_completed;
}

async fn answers_form(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.working_v2().await?;
    if !play
        .capability("/capabilities/elicitation/form")
        .is_object()
    {
        return skip("the client does not offer `elicitation.form`");
    }
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({
        "sessionId": prompted.session, "mode": "form", "message": "Who is it?", "requestedSchema": form,
    });
    let id = play.wire.ask("elicitation/create", params).await?;
    let answer = match play.answer(&id).await {
        Ok(answer) => answer,
        Err(CheckStop::Fail(_)) if !play.wire.has_ended() => {
            return skip("nobody has answered the form");
        }
        Err(stop) => return Err(stop),
    };
    match answer {
        ReceivedResponse::Error { code, message, .. } => fail(format!(
            "the form was answered with error {code}: {message}"
        )),
        ReceivedResponse::Result(result) => match result["action"].as_str() {
            Some("accept" | "decline" | "cancel") => Ok(()),
            Some(own) if own.starts_with('_') => Ok(()),
            _ => fail(format!(
                "the form was answered with the action {}",
                result["action"]
            )),
        },
    }
}

async fn unknown_mode(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.working_v2().await?;
    let params = json!({
        "sessionId": prompted.session, "mode": "_acp-check/telepathy", "message": "Think of a number.",
    });
    let id = play.wire.ask("elicitation/create", params).await?;
    match play.answer(&id).await {
        Ok(ReceivedResponse::Result(result)) if result["action"] == "accept" => {
            fail("asked in a way that it cannot know, it has answered `accept`")
        }
        Ok(_) => Ok(()),
        Err(CheckStop::Fail(_)) if !play.wire.has_ended() => skip("nobody has answered"),
        Err(stop) => Err(stop),
    }
}

async fn unknown_completed(play: &mut ClientHarness) -> Result<(), CheckStop> {
    play.working_v2().await?;
    let params = json!({"elicitationId": "acp-check-nobodys"});
    play.wire.notify("elicitation/complete", params).await?;
    play.alive_v2("the end of an elicitation that there is not")
        .await
}
