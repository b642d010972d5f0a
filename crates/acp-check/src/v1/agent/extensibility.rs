//! Checks how an agent handles `_meta` and custom methods.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::agent_harness::UNKNOWN_METHOD;
use crate::check::checks;
use crate::host::PermissionReply;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use acp_rules::schema::{Envelope, Schema, SchemaFaultKind, SchemaVersion};

checks! { V1 Agent "extensibility";
    1 Must "`session/new` accepts any `_meta`." => accepts_session_meta, shared;
    2 Must "Prompts and content blocks accept any `_meta`." => accepts_prompt_meta, shared;
    3 Must "Responses to the agent may contain any `_meta`." => accepts_response_meta, shared;
    4 Must "A request whose method starts with `_` gets a response." => responds_to_extension, shared;
    5 Should "Unknown extension methods get error -32601." => rejects_unknown_extension, shared;
    6 Should "Unknown extension notifications are ignored." => ignores_unknown_extension, shared_last;
    7 Should "Unknown notifications are ignored." => ignores_unknown_notification, shared_last;
    8 Should "Unknown fields are ignored." => ignores_unknown_fields, shared;
    9 Must "Custom methods of the agent start with `_`." => prefixes_custom_methods, shared;
    10 Must "The agent adds no custom fields to types that the specification defines." => adds_no_custom_fields, fresh "judges all messages, including the response to `initialize`";
}

/// Returns a `_meta` value that contains many types, under a name that nobody else uses.
fn arbitrary_meta() -> Value {
    json!({
        "acp-check.example/list": [null, 1.5, {"deep": [[]]}],
        "acp-check.example/text": "Žluťoučký 😀",
        "progressToken": {"not": "a token"},
        "": false,
    })
}

async fn accepts_session_meta(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let mut params = harness.session_params();
    params["_meta"] = arbitrary_meta();
    harness.open_session_with(params).await?;
    Ok(())
}

async fn accepts_prompt_meta(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let text = harness.prompt_text(AgentTask::Answer);
    let annotations = json!({"_meta": arbitrary_meta()});
    let block = json!({"type": "text", "text": text, "annotations": annotations, "_meta": arbitrary_meta()});
    let params = json!({"sessionId": session, "prompt": [block], "_meta": arbitrary_meta()});
    let id = harness.wire.send_request("session/prompt", params).await?;
    let response = harness.wait_for_turn_response(&id).await?;
    harness.read_turn(&session, response, 0)?;
    Ok(())
}

async fn accepts_response_meta(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.host.permission_reply = PermissionReply::Hold;
    let session = harness.new_session().await?;
    let text = harness.prompt_text(AgentTask::Edit);
    let prompt = harness.begin_prompt(&session, &text).await?;
    let mut asked = false;
    loop {
        let what = "a permission request or the end of the turn";
        let (held, response) = harness
            .wait_until_in_turn(what, |harness, message| {
                let ended = match message.envelope() {
                    Some(Envelope::Response { id, result }) if *id == prompt => {
                        Some(crate::wire::ReceivedResponse::from_result(result))
                    }
                    _ => None,
                };
                let held = harness.held_requests.first().cloned();
                (held.is_some() || ended.is_some()).then_some((held, ended))
            })
            .await?;
        if let Some((id, _, params)) = held {
            asked = true;
            harness.held_requests.clear();
            let option = &params["options"][0]["optionId"];
            let outcome =
                json!({"outcome": "selected", "optionId": option, "_meta": arbitrary_meta()});
            let result = json!({"outcome": outcome, "_meta": arbitrary_meta()});
            harness.wire.send_result(&id, result).await?;
        }
        match response {
            Some(_) if !asked => return skip("the agent did not request permission"),
            Some(response) => return harness.read_turn(&session, response, 0).map(drop),
            None => {}
        }
    }
}

async fn responds_to_extension(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness
        .request(UNKNOWN_METHOD, json!({"any": "thing"}))
        .await?;
    Ok(())
}

async fn rejects_unknown_extension(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    match harness
        .request(UNKNOWN_METHOD, json!({"any": "thing"}))
        .await?
        .code()
    {
        Some(-32601) => Ok(()),
        Some(code) => fail(format!(
            "`{UNKNOWN_METHOD}` failed with error {code}; expected -32601"
        )),
        None => fail(format!("`{UNKNOWN_METHOD}` succeeded; expected an error")),
    }
}

async fn ignores_unknown_extension(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness
        .wire
        .send_notification("_acp-check/hello", json!({"any": "thing"}))
        .await?;
    harness
        .require_responsive("the notification `_acp-check/hello`")
        .await
}

async fn ignores_unknown_notification(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness
        .wire
        .send_notification("session/acp-check", json!({"any": "thing"}))
        .await?;
    harness
        .require_responsive("the unknown notification `session/acp-check`")
        .await
}

async fn ignores_unknown_fields(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let mut params = harness.session_params();
    params["acpCheckLater"] = json!({"any": "thing"});
    let session = harness.open_session_with(params).await?;
    let text = harness.prompt_text(AgentTask::Answer);
    let block = json!({"type": "text", "text": text, "acpCheckLater": 1});
    let session = session["sessionId"].as_str().unwrap_or_default().to_owned();
    harness.run_prompt(&session, json!([block])).await?;
    Ok(())
}

async fn prefixes_custom_methods(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let text = harness.prompt_text(AgentTask::Read);
    let prompt = harness.begin_prompt(&session, &text).await?;
    let schema = Schema::for_version(SchemaVersion::V1);
    let mut foreign = None;
    harness
        .wait_until_in_turn("the end of the turn", |_, message| {
            let method = message.method();
            if !method.is_empty() && !method.starts_with('_') && schema.method(method).is_none() {
                foreign.get_or_insert_with(|| method.to_owned());
            }
            let ends = matches!(
                message.envelope(), Some(Envelope::Response { id, .. }) if *id == prompt
            );
            ends.then_some(())
        })
        .await?;
    let asked = harness.requests().map(|(method, _)| method);
    let mut foreign = foreign
        .as_deref()
        .into_iter()
        .chain(asked.filter(|method| !method.starts_with('_') && schema.method(method).is_none()));
    match foreign.next() {
        Some(method) => fail(format!(
            "the agent sent `{method}`, which is not in the specification and does not start with `_`"
        )),
        None => Ok(()),
    }
}

async fn adds_no_custom_fields(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    for task in [AgentTask::Answer, AgentTask::Read] {
        harness.run_task(&session, task).await?;
    }
    let mut faults = harness.wire.faults();
    let added = faults.find(|fault| fault.kind == SchemaFaultKind::UnknownField);
    require(added.is_none(), || {
        added.map(ToString::to_string).unwrap_or_default()
    })
}
