//! Checks how an agent opens, resumes and closes sessions.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require};

checks! { V2 Agent "session-setup";
    1 Must "Session ids are unique." => has_unique_ids, shared;
    2 Must "`session/new` works without MCP servers." => opens_without_servers, shared;
    3 Must "An agent with `session.additionalDirectories` accepts additional directories in `session/new`." => accepts_additional_directories, shared;
    4 Must "An agent with the `session` capability supports `session/resume`." => supports_resume, shared;
    5 Must "A resumed session accepts prompts." => continues_after_resume, shared;
    6 Must "An agent with the `session` capability supports `session/close`." => supports_close, shared;
    7 Must "`session/close` cancels the running turn." => cancels_on_close, shared;
    8 Must "Closing a session does not affect other sessions." => leaves_other_sessions, shared;
    9 Must "Every update has the id of its session." => includes_session_id, shared;
    10 Should "An MCP server with an unknown transport is ignored, or the request fails." => handles_unknown_server, fresh "sends messages that are invalid";
}

async fn has_unique_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let first = harness.new_session_v2().await?;
    let second = harness.new_session_v2().await?;
    require(first != second, || {
        format!("duplicate session id {first:?}")
    })
}

async fn opens_without_servers(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/capabilities/session")?;
    let params = json!({"cwd": harness.directory().project()});
    harness.open_session_with(params).await.map(drop)
}

async fn accepts_additional_directories(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/capabilities/session/additionalDirectories")?;
    let mut params = harness.session_params();
    let project = harness.directory().project();
    params["additionalDirectories"] = json!([project.parent().unwrap_or(project)]);
    harness.open_session_with(params).await.map(drop)
}

async fn supports_resume(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_closed_session_v2().await?;
    let params = harness.resume_params(&session);
    harness
        .request_result("session/resume", params)
        .await
        .map(drop)
}

async fn continues_after_resume(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_closed_session_v2().await?;
    let params = harness.resume_params(&session);
    harness.request_result("session/resume", params).await?;
    harness
        .run_task_v2(&session, AgentTask::Answer)
        .await
        .map(drop)
}

async fn supports_close(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    let params = json!({"sessionId": session});
    harness
        .request_result("session/close", params)
        .await
        .map(drop)
}

async fn cancels_on_close(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    require_turn_ended(harness, &session, "session/close").await
}

/// Starts a long turn, calls `method`, and requires that the turn has ended by the time the response arrives.
pub(crate) async fn require_turn_ended(
    harness: &mut AgentHarness,
    session: &str,
    method: &str,
) -> Result<(), CheckStop> {
    harness.begin_task_v2(session, AgentTask::Long).await?;
    harness
        .wait_until("some output from a long task", |_, message| {
            let kind = message.params()["update"]["sessionUpdate"].as_str();
            kind.is_some_and(|kind| kind.starts_with("agent_") || kind.starts_with("tool_call"))
                .then_some(())
        })
        .await?;
    harness
        .request_result(method, json!({"sessionId": session}))
        .await?;
    let before = harness.messages.len();
    harness.wait_until_quiet().await?;
    let after = harness.updates_since(before);
    let mut spoken = after.filter(|params| {
        let update = &params["update"];
        params["sessionId"] == *session
            && (update["sessionUpdate"] == "agent_message_chunk"
                || update["status"] == "in_progress")
    });
    match spoken.next() {
        Some(params) => fail(format!(
            "the agent continued with `{}` after the response to `{method}`",
            params["update"]["sessionUpdate"]
                .as_str()
                .unwrap_or_default()
        )),
        None => Ok(()),
    }
}

async fn leaves_other_sessions(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let first = harness.new_session_v2().await?;
    let second = harness.new_session_v2().await?;
    harness
        .request_result("session/close", json!({"sessionId": first}))
        .await?;
    harness
        .run_task_v2(&second, AgentTask::Answer)
        .await
        .map(drop)
}

async fn includes_session_id(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let first = harness.new_session_v2().await?;
    let second = harness.new_session_v2().await?;
    harness.run_task_v2(&second, AgentTask::Answer).await?;
    let known = |id: &str| id == first || id == second;
    let strange = |params: &&Value| !params["sessionId"].as_str().is_some_and(known);
    match harness.updates().find(strange) {
        Some(params) => fail(format!(
            "an update is for session {}, which was not opened",
            params["sessionId"]
        )),
        None => Ok(()),
    }
}

async fn handles_unknown_server(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/capabilities/session")?;
    let mut params = harness.session_params();
    params["mcpServers"] = json!([{"type": "_acp-check/pigeon", "name": "coo"}]);
    // The request may succeed or fail, as long as it gets a response, and so may the next request.
    harness.request("session/new", params).await?;
    harness
        .request("_acp-check/alive", json!({}))
        .await
        .map(drop)
}
