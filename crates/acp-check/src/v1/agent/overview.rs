//! Checks for JSON-RPC 2.0, and for requirements that apply to the params of all methods.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::agent_harness::{QUIET_TIME, UNKNOWN_METHOD, UNKNOWN_SESSION};
use crate::check::checks;
use crate::host::PermissionReply;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::{ReceivedMessage, ReceivedResponse};
use acp_rules::schema::Envelope;

checks! { V1 Agent "overview"
    fresh "sends `initialize` with an id of its own";
    1 Must "Every request gets exactly one response." => responds_once, shared;
    2 Must "A response has the id of its request, which may be a string." => accepts_string_id;
    3 Must "A string id stays a string, even if it looks like a number." => keeps_numeric_string_id;
    4 Must "Negative and large numbers are valid ids." => accepts_number_ids, shared_last;
    5 Must "A request with id null gets a response with id null." => responds_to_null_id, shared_last;
    6 Must "Concurrent requests each get their own response." => handles_many_requests, shared;
    7 Must "Client and agent request ids are independent." => separates_ids, shared_last;
    8 Must "Notifications get no response." => ignores_notifications, shared_last;
    9 Must "A notification with invalid params gets no response." => ignores_invalid_notification, shared_last;
    10 Should "Invalid JSON gets error -32700." => reports_parse_error, shared_last;
    11 Must "If the request id cannot be read, the error has id null." => reports_parse_error_with_null_id, shared_last;
    12 Should "JSON that is not a valid request gets error -32600." => rejects_invalid_request, shared_last;
    13 Must "Unknown methods get an error." => rejects_unknown_method, shared;
    14 Should "Unknown methods get error -32601." => reports_method_not_found, shared;
    15 Must "Requests with invalid params get a response." => responds_to_invalid_params, shared_last;
    16 Should "Invalid params get error -32602." => reports_invalid_params, shared_last;
    17 Must "Errors have an integer code and a message." => has_valid_error_object, shared_last;
    18 Must "A response has either a result or an error." => has_result_or_error;
    19 Must "Every message has `jsonrpc` set to `2.0`." => has_jsonrpc_version;
    20 Should "Responses to unknown requests are ignored." => ignores_stray_response, shared_last;
    21 Must "Every agent supports `session/new`, `session/prompt` and `session/cancel`." => supports_required_methods, shared;
    22 Must "Every path is absolute." => uses_absolute_paths, shared;
    23 Must "Line numbers start at 1." => starts_lines_at_one, shared;
}

async fn responds_once(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    for (method, params) in [
        (UNKNOWN_METHOD, json!({})),
        ("session/new", harness.session_params()),
    ] {
        let id = harness.wire.send_request(method, params).await?;
        harness.wait_for_response(&id).await?;
        let again = harness.collect(QUIET_TIME).await?;
        require(
            !again.iter().any(|message| is_response_to(message, &id)),
            || format!("the agent sent two responses to `{method}`"),
        )?;
    }
    Ok(())
}

/// Returns `true` if the message answers the request with the id `asked`.
fn is_response_to(message: &ReceivedMessage, asked: &Value) -> bool {
    matches!(message.envelope(), Some(Envelope::Response { id, .. }) if id == asked)
}

/// Sends a request with this id, and returns the whole response.
async fn send_request_with_id(
    harness: &mut AgentHarness,
    id: Value,
    method: &str,
) -> Result<Value, CheckStop> {
    let params = match method {
        "initialize" => harness.initialize_params(),
        _ => json!({}),
    };
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    harness.wire.send(&request).await?;
    harness
        .wait_until(&format!("a response with id {id}"), |_, message| {
            is_response_to(message, &id).then(|| message.0.clone())
        })
        .await
}

async fn accepts_string_id(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    send_request_with_id(harness, json!("first/of acp-check"), "initialize").await?;
    Ok(())
}

async fn keeps_numeric_string_id(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    send_request_with_id(harness, json!("17"), "initialize").await?;
    Ok(())
}

async fn accepts_number_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    // The second id is the largest integer that every language represents exactly.
    for id in [-7, 9_007_199_254_740_991_i64] {
        send_request_with_id(harness, json!(id), UNKNOWN_METHOD).await?;
    }
    Ok(())
}

async fn responds_to_null_id(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    send_request_with_id(harness, Value::Null, UNKNOWN_METHOD).await?;
    Ok(())
}

async fn handles_many_requests(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let mut asked = Vec::new();
    for _ in 0..20 {
        asked.push(harness.wire.send_request(UNKNOWN_METHOD, json!({})).await?);
    }
    harness.wait_for_responses(&asked).await?;
    Ok(())
}

async fn separates_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.host.permission_reply = PermissionReply::Hold;
    let session = harness.new_session().await?;
    let text = harness.prompt_text(AgentTask::Edit);
    let prompt = harness.begin_prompt(&session, &text).await?;
    let what = "a permission request or the end of the turn";
    let held = harness
        .wait_until_in_turn(what, |harness, message| {
            match harness.held_requests.first() {
                Some(held) => Some(Some(held.clone())),
                None => is_response_to(message, &prompt).then_some(None),
            }
        })
        .await?;
    let Some((theirs, _, params)) = held else {
        return skip("the agent sent no request");
    };
    if theirs == prompt {
        // The two ids are the same, and both requests must still get a response.
        harness
            .require_responsive("the agent sent a request with the same id as the prompt")
            .await?;
    } else {
        send_request_with_id(harness, theirs.clone(), UNKNOWN_METHOD).await?;
    }
    let chosen = json!({"outcome": "selected", "optionId": params["options"][0]["optionId"]});
    harness
        .wire
        .send_result(&theirs, json!({"outcome": chosen}))
        .await?;
    harness.wait_for_turn_response(&prompt).await?;
    Ok(())
}

/// Requires that none of the messages is a response. `to` describes the message that must not be answered.
fn require_no_response(received: &[ReceivedMessage], to: &str) -> Result<(), CheckStop> {
    let response = received
        .iter()
        .find(|message| matches!(message.envelope(), Some(Envelope::Response { .. })));
    match response {
        Some(message) => fail(format!(
            "the agent responded to {to}, which has no id: {}",
            message.0
        )),
        None => Ok(()),
    }
}

async fn ignores_notifications(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    for (method, params) in [
        ("session/cancel", json!({"sessionId": session})),
        ("_acp-check/hello", json!({})),
    ] {
        harness.wire.send_notification(method, params).await?;
        let received = harness.collect(QUIET_TIME).await?;
        require_no_response(&received, &format!("the notification `{method}`"))?;
    }
    Ok(())
}

async fn ignores_invalid_notification(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let params = json!({"sessionId": {"not": "a string"}});
    harness
        .wire
        .send_notification("session/cancel", params)
        .await?;
    let received = harness.collect(QUIET_TIME).await?;
    require_no_response(
        &received,
        "a notification whose `sessionId` is not a string",
    )
}

async fn reports_parse_error(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness
        .wire
        .send_line(br#"{"jsonrpc": "2.0", "id":"#)
        .await?;
    let response = harness
        .wait_until("a response to invalid JSON", |_, message| {
            match message.envelope() {
                Some(Envelope::Response { result, .. }) => {
                    Some(ReceivedResponse::from_result(result))
                }
                _ => None,
            }
        })
        .await?;
    require(response.code() == Some(-32700), || match response.code() {
        Some(code) => format!("the agent responded to invalid JSON with error {code}"),
        None => "the agent responded to invalid JSON with a result".to_owned(),
    })
}

async fn reports_parse_error_with_null_id(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness
        .wire
        .send_line(br#"{"jsonrpc": "2.0", "id":"#)
        .await?;
    let asked = harness.wire.send_request(UNKNOWN_METHOD, json!({})).await?;
    let mut error = None;
    harness
        .wait_until(&format!("a response to request {asked}"), |_, message| {
            if let Some(Envelope::Response { id, result: Err(_) }) = message.envelope()
                && *id != asked
            {
                error = Some(id.clone());
            }
            is_response_to(message, &asked).then_some(())
        })
        .await?;
    match error {
        None => skip("the agent does not respond to invalid JSON"),
        Some(Value::Null) => Ok(()),
        Some(id) => fail(format!(
            "the agent responded to invalid JSON with id {id}; expected null"
        )),
    }
}

async fn rejects_invalid_request(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let odd = json!({"jsonrpc": "2.0", "id": "odd", "method": 1});
    harness.wire.send(&odd).await?;
    let code = harness
        .wait_until(
            "a response to a request whose method is a number",
            |_, m| match m.envelope() {
                Some(Envelope::Response { id, result }) if id.is_null() || *id == "odd" => {
                    Some(ReceivedResponse::from_result(result).code())
                }
                _ => None,
            },
        )
        .await?;
    require(code == Some(-32600), || match code {
        Some(code) => {
            format!("a request whose method is a number got error {code}; expected -32600")
        }
        None => "a request whose method is a number succeeded; expected an error".to_owned(),
    })
}

async fn rejects_unknown_method(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    match harness.request("acp-check/nothing", json!({})).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => fail("`acp-check/nothing` succeeded; expected an error"),
    }
}

async fn reports_method_not_found(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let code = harness
        .request("acp-check/nothing", json!({}))
        .await?
        .code();
    require(code == Some(-32601), || match code {
        Some(code) => format!("`acp-check/nothing` failed with error {code}; expected -32601"),
        None => "`acp-check/nothing` succeeded; expected an error".to_owned(),
    })
}

/// Sends a prompt with invalid params.
async fn send_invalid_prompt(harness: &mut AgentHarness) -> Result<ReceivedResponse, CheckStop> {
    harness.initialize().await?;
    let params = json!({"sessionId": {"not": "a string"}, "prompt": "not a list"});
    harness.request("session/prompt", params).await
}

async fn responds_to_invalid_params(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    send_invalid_prompt(harness).await?;
    Ok(())
}

async fn reports_invalid_params(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let code = send_invalid_prompt(harness).await?.code();
    if code == Some(-32601) {
        return skip("the agent does not support `session/prompt`");
    }
    require(code == Some(-32602), || match code {
        Some(code) => {
            format!(
                "a prompt whose `sessionId` is an object failed with error {code}; expected -32602"
            )
        }
        None => "a prompt whose `sessionId` is an object succeeded; expected an error".to_owned(),
    })
}

async fn has_valid_error_object(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let message = send_request_with_id(harness, json!("error"), "acp-check/nothing").await?;
    let error = &message["error"];
    require(error["code"].is_i64(), || {
        format!("the error has no integer `code`: {error}")
    })?;
    require(error["message"].is_string(), || {
        format!("the error has no string `message`: {error}")
    })
}

async fn has_result_or_error(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let right = send_request_with_id(harness, json!("right"), "initialize").await?;
    let wrong = send_request_with_id(harness, json!("wrong"), "acp-check/nothing").await?;
    require(right.get("error").is_none(), || {
        "the response to `initialize` has both `result` and `error`".to_owned()
    })?;
    require(wrong.get("result").is_none(), || {
        "the error for an unknown method has both `result` and `error`".to_owned()
    })
}

async fn has_jsonrpc_version(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    for method in ["initialize", UNKNOWN_METHOD] {
        let message = send_request_with_id(harness, json!(method), method).await?;
        require(message["jsonrpc"] == "2.0", || {
            let said = &message["jsonrpc"];
            format!("the response to `{method}` has `jsonrpc` {said}; expected \"2.0\"")
        })?;
    }
    Ok(())
}

async fn ignores_stray_response(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness
        .wire
        .send_result(&json!("nobody asked"), json!({}))
        .await?;
    harness
        .wire
        .send_error(&json!(4711), -32603, "nobody asked")
        .await?;
    harness
        .require_responsive("responses to unknown requests")
        .await
}

async fn supports_required_methods(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let params = harness.session_params();
    let opened = harness.request("session/new", params).await?;
    let prompt = json!([{"type": "text", "text": harness.prompt_text(AgentTask::Answer)}]);
    let session = match &opened {
        ReceivedResponse::Result(opened) => opened["sessionId"].clone(),
        // The agent may require a login first, but it has the method.
        ReceivedResponse::Error { .. } => json!(UNKNOWN_SESSION),
    };
    let params = json!({"sessionId": session, "prompt": prompt});
    let id = harness.wire.send_request("session/prompt", params).await?;
    let prompted = harness.wait_for_turn_response(&id).await?;
    for (method, response) in [("session/new", opened), ("session/prompt", prompted)] {
        require(response.code() != Some(-32601), || {
            format!("the agent does not support `{method}` (error -32601)")
        })?;
    }
    Ok(())
}

/// Makes the agent read a file, edit it and run a command. Returns every value of `field` in the locations, diffs and
/// requests that the agent sends.
async fn reported_values(harness: &mut AgentHarness, field: &str) -> Result<Vec<Value>, CheckStop> {
    let session = harness.new_session().await?;
    for task in [AgentTask::Read, AgentTask::Edit, AgentTask::Run] {
        // Even a turn that fails has reported something.
        if let Err(CheckStop::Harness(why)) = harness.run_task(&session, task).await {
            return Err(CheckStop::Harness(why));
        }
    }
    let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let updates = harness.updates().map(|params| &params["update"]);
    let asked = harness.requests().map(|(_, params)| &params["toolCall"]);
    let calls: Vec<&Value> = updates.chain(asked).collect();
    let locations = calls.iter().flat_map(|call| list(&call["locations"]));
    let diffs = calls.iter().flat_map(|call| list(&call["content"]));
    let diffs = diffs.filter(|content| content["type"] == "diff");
    let requests = harness.requests().filter(|(method, _)| {
        method.starts_with("fs/") || (field == "path" && *method == "terminal/create")
    });
    let requests = requests.map(|(method, params)| match method {
        "terminal/create" => json!({"path": params["cwd"]}),
        _ => params.clone(),
    });
    let places = locations.chain(diffs).chain(requests);
    let said = places.map(|place| place[field].clone());
    Ok(said.filter(|said| !said.is_null()).collect())
}

async fn uses_absolute_paths(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let paths = reported_values(harness, "path").await?;
    if paths.is_empty() {
        return skip("the agent sent no path");
    }
    for path in paths {
        let absolute = path.as_str().is_some_and(|path| {
            let drive = path.get(1..3).is_some_and(|at| at == ":\\" || at == ":/");
            path.starts_with(['/', '\\']) || drive
        });
        require(absolute, || format!("{path} is not an absolute path"))?;
    }
    Ok(())
}

async fn starts_lines_at_one(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let lines = reported_values(harness, "line").await?;
    if lines.is_empty() {
        return skip("the agent sent no line number");
    }
    for line in lines {
        require(line.as_u64().is_some_and(|line| line > 0), || {
            format!("the agent sent line {line}, but lines start at 1")
        })?;
    }
    Ok(())
}
