//! Checks how a client requests input from the user.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::{ClientHarness, ReceivedPrompt};
use crate::verdict::{CheckStop, fail, require, skip};

use super::steps::{
    has_capability, request_error, request_result, require_responsive,
    wait_for_prompt_with_capability,
};

checks! { V1 Client "elicitation";
    101 Must "A form is accepted, declined or cancelled." => responds_to_form;
    102 Must "An accepted form contains all required fields, with valid types, and no others." => fills_in_valid_values;
    103 May "`elicitation/complete` for an unknown elicitation is ignored." => ignores_unknown_completion;
    104 Should "`elicitation/create` fails if the client does not support it." => rejects_unsupported_form;
    105 Must "A form with an optional field of unknown type still gets a response." => responds_despite_unknown_field;
}

const FORM_CAPABILITY: &str = "/clientCapabilities/elicitation/form";

async fn request_form(
    harness: &mut ClientHarness,
    prompted: &ReceivedPrompt,
    schema: Value,
) -> Result<Value, CheckStop> {
    let params = json!({
        "sessionId": prompted.session, "mode": "form", "message": "What should it be called?",
        "requestedSchema": schema,
    });
    // A user may have to answer the form. Without a user, it is declined or cancelled.
    request_result(harness, "elicitation/create", params).await
}

fn sample_form() -> Value {
    json!({
        "type": "object", "title": "A name", "required": ["name", "days", "loud"],
        "properties": {
            "name": {"type": "string", "title": "Name", "minLength": 1},
            "days": {"type": "integer", "minimum": 1, "maximum": 30},
            "loud": {"type": "boolean", "default": false},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        },
    })
}

async fn responds_to_form(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, FORM_CAPABILITY).await?;
    let response = request_form(harness, &prompted, sample_form()).await?;
    let action = response["action"].as_str().unwrap_or_default();
    let known = ["accept", "decline", "cancel"].contains(&action) || action.starts_with('_');
    require(known, || {
        format!("unknown action in the response: {response}")
    })?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn fills_in_valid_values(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, FORM_CAPABILITY).await?;
    let response = request_form(harness, &prompted, sample_form()).await?;
    if response["action"] != "accept" {
        return skip(format!(
            "the form was not accepted: the action is {}",
            response["action"]
        ));
    }
    let content = &response["content"];
    let right = content["name"]
        .as_str()
        .is_some_and(|name| !name.is_empty())
        && content["days"]
            .as_i64()
            .is_some_and(|days| (1..=30).contains(&days))
        && content["loud"].is_boolean()
        && (content["size"].is_null() || content["size"] == "s" || content["size"] == "l");
    require(right, || {
        format!("the form was submitted with invalid content: {content}")
    })?;
    let properties = ["name", "days", "loud", "size"];
    let mut fields = content
        .as_object()
        .into_iter()
        .flat_map(|fields| fields.keys());
    if let Some(other) = fields.find(|field| !properties.contains(&field.as_str())) {
        return fail(format!(
            "the response contains the field {other:?}, which is not in the form"
        ));
    }
    harness.end_turn(&prompted, "end_turn").await
}

async fn ignores_unknown_completion(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    harness
        .wire
        .send_notification("elicitation/complete", json!({"elicitationId": "nobodys"}))
        .await?;
    require_responsive(harness, "`elicitation/complete` for an unknown elicitation").await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn rejects_unsupported_form(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    if has_capability(harness, FORM_CAPABILITY)
        || has_capability(harness, "/clientCapabilities/elicitation")
    {
        return skip("the client supports elicitation");
    }
    let params = json!({
        "sessionId": prompted.session, "mode": "form", "message": "What?", "requestedSchema": sample_form(),
    });
    request_error(
        harness,
        "elicitation/create",
        params,
        "`elicitation/create`, which the client does not support,",
    )
    .await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn responds_despite_unknown_field(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, FORM_CAPABILITY).await?;
    let mut schema = sample_form();
    schema["properties"]["color"] = json!({"type": "_example.org/color", "title": "Color"});
    // Any response is valid, including an error.
    let params = json!({
        "sessionId": prompted.session, "mode": "form", "message": "Which one?", "requestedSchema": schema,
    });
    harness.request("elicitation/create", params).await?;
    harness.end_turn(&prompted, "end_turn").await
}
