//! Checks for an agent's permission requests.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::host::PermissionReply;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};

checks! { V1 Agent "tool-calls";
    31 Must "Permission option ids are unique." => has_unique_options, shared;
    32 Should "A permission request has at least one option." => has_options, shared;
    33 Should "A permission request refers to a reported tool call." => refers_to_reported_call, shared;
    34 Must "A rejected tool call is not executed." => respects_rejection, shared;
    35 Should "An allowed tool call is executed." => runs_allowed_call, shared;
    36 Should "An allowed tool call is reported as in progress." => reports_progress_after_allow, shared;
    37 Should "A tool call that is cancelled during its permission request is not executed." => does_not_run_cancelled_call, shared;
    38 Must "A failed permission request leaves the session usable." => handles_error_response, shared;
    39 Should "A turn in which a permission request was rejected does not end with `cancelled`." => does_not_end_with_cancelled, shared;
}

const PERMISSION_METHOD: &str = "session/request_permission";

/// Makes the agent edit a file, and returns its permission requests. The turn may fail.
async fn permission_requests(harness: &mut AgentHarness) -> Result<Vec<Value>, CheckStop> {
    let session = harness.new_session().await?;
    harness.try_task(&session, AgentTask::Edit).await?;
    collect_permission_requests(harness)
}

/// Like `permission_requests`, but requires that the turn succeeds.
async fn permission_requests_of_turn(harness: &mut AgentHarness) -> Result<Vec<Value>, CheckStop> {
    let session = harness.new_session().await?;
    harness.run_task_or_skip(&session, AgentTask::Edit).await?;
    collect_permission_requests(harness)
}

fn collect_permission_requests(harness: &AgentHarness) -> Result<Vec<Value>, CheckStop> {
    let asked = harness
        .requests()
        .filter(|(method, _)| *method == PERMISSION_METHOD);
    let asked: Vec<Value> = asked.map(|(_, params)| params.clone()).collect();
    if asked.is_empty() {
        return skip("the agent did not request permission");
    }
    Ok(asked)
}

fn read_notes(harness: &AgentHarness) -> Result<String, CheckStop> {
    let file = harness.directory().file("notes.txt");
    std::fs::read_to_string(&file)
        .map_err(|e| CheckStop::Harness(format!("{}: {e}", file.display())))
}

async fn has_unique_options(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    for params in permission_requests(harness).await? {
        let options = params["options"].as_array().into_iter().flatten();
        let mut ids: Vec<&Value> = Vec::new();
        for option in options {
            let id = &option["optionId"];
            require(!ids.contains(&id), || format!("duplicate option id {id}"))?;
            ids.push(id);
        }
    }
    Ok(())
}

async fn has_options(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    for params in permission_requests(harness).await? {
        let some = params["options"]
            .as_array()
            .is_some_and(|options| !options.is_empty());
        require(some, || "a permission request has no options".to_owned())?;
    }
    Ok(())
}

async fn refers_to_reported_call(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    permission_requests(harness).await?;
    let mut known: Vec<&Value> = Vec::new();
    for message in &harness.messages {
        let params = message.params();
        if params["update"]["sessionUpdate"] == "tool_call" {
            known.push(&params["update"]["toolCallId"]);
        }
        let id = &params["toolCall"]["toolCallId"];
        require(
            message.method() != PERMISSION_METHOD || known.contains(&id),
            || format!("permission was requested for tool call {id}, which was not reported"),
        )?;
    }
    Ok(())
}

async fn respects_rejection(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.host.permission_reply = PermissionReply::Reject;
    let before = read_notes(harness)?;
    permission_requests(harness).await?;
    let after = read_notes(harness)?;
    require(before == after, || {
        format!("every permission was rejected, but the file was changed to {after:?}")
    })
}

async fn runs_allowed_call(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    permission_requests_of_turn(harness).await?;
    let after = read_notes(harness)?;
    require(after.contains("delta"), || {
        format!("every permission was granted, but the file still contains {after:?}")
    })
}

async fn reports_progress_after_allow(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let asked = permission_requests_of_turn(harness).await?;
    for params in &asked {
        let id = &params["toolCall"]["toolCallId"];
        let mut updates = harness.updates().map(|params| &params["update"]);
        let runs =
            updates.any(|update| &update["toolCallId"] == id && update["status"] == "in_progress");
        require(runs, || {
            format!("tool call {id} was allowed, but never reported as in progress")
        })?;
    }
    Ok(())
}

async fn does_not_run_cancelled_call(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let before = read_notes(harness)?;
    let (prompt, asked, _) = harness
        .wait_for_held_request(&session, AgentTask::Edit, PERMISSION_METHOD)
        .await?;
    harness.cancel(&session).await?;
    harness.host.permission_reply = PermissionReply::Cancel;
    let outcome = json!({"outcome": {"outcome": "cancelled"}});
    harness
        .respond_to_held_requests(asked, &json!({"result": outcome}))
        .await?;
    harness.prompt_response(&prompt).await?;
    let after = read_notes(harness)?;
    require(before == after, || {
        format!(
            "the turn was cancelled during a permission request, but the file was changed to {after:?}"
        )
    })
}

async fn handles_error_response(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let error = json!({"error": {"code": -32603, "message": "Internal error"}});
    harness
        .run_task_with_response(&session, AgentTask::Edit, PERMISSION_METHOD, error)
        .await?;
    harness
        .require_next_prompt(&session, "an error response to a permission request")
        .await
        .map(drop)
}

async fn does_not_end_with_cancelled(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.host.permission_reply = PermissionReply::Reject;
    let session = harness.new_session().await?;
    let turn = harness.run_task_or_skip(&session, AgentTask::Edit).await?;
    if !turn
        .requests
        .iter()
        .any(|(method, _)| method == PERMISSION_METHOD)
    {
        return skip("the agent did not request permission");
    }
    if turn.stop_reason == "cancelled" {
        return fail("permission was rejected, but the turn ended with `cancelled`");
    }
    Ok(())
}
