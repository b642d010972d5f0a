//! Session setup: opening, resuming and closing sessions.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require};

checks! { V2 Agent "session-setup";
    1 Must "Session ids are unique." => ids;
    2 Must "`session/new` works without MCP servers." => no_servers;
    3 Must "An agent with `session.additionalDirectories` accepts them in `session/new`." => more_directories;
    4 Must "An agent with the `session` capability supports `session/resume`." => resumes;
    5 Must "A resumed session accepts prompts." => continues_after_resume;
    6 Must "An agent with the `session` capability supports `session/close`." => closes;
    7 Must "`session/close` cancels the running turn." => ends_work;
    8 Must "Closing a session does not affect other sessions." => closes_one;
    9 Must "Every update has the id of its session." => names_session;
    10 Should "An MCP server with an unknown transport is ignored, or the request fails." => unknown_server;
}

async fn ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let first = harness.session_v2().await?;
    let second = harness.session_v2().await?;
    require(first != second, || {
        format!("duplicate session id {first:?}")
    })
}

async fn no_servers(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/capabilities/session")?;
    let params = json!({"cwd": harness.place().project()});
    harness.open_session_with(params).await.map(drop)
}

async fn more_directories(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/capabilities/session/additionalDirectories")?;
    let mut params = harness.session_params();
    let project = harness.place().project();
    params["additionalDirectories"] = json!([project.parent().unwrap_or(project)]);
    harness.open_session_with(params).await.map(drop)
}

async fn resumes(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.closed_session_v2().await?;
    let params = harness.resume_params(&session);
    harness.result("session/resume", params).await.map(drop)
}

async fn continues_after_resume(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.closed_session_v2().await?;
    let params = harness.resume_params(&session);
    harness.result("session/resume", params).await?;
    harness.turn_v2(&session, AgentTask::Answer).await.map(drop)
}

async fn closes(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.session_v2().await?;
    let params = json!({"sessionId": session});
    harness.result("session/close", params).await.map(drop)
}

async fn ends_work(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.session_v2().await?;
    ends_by(harness, &session, "session/close").await
}

/// Requires that the session's turn has ended when the agent has responded to `method`.
pub(crate) async fn ends_by(
    harness: &mut AgentHarness,
    session: &str,
    method: &str,
) -> Result<(), CheckStop> {
    harness.begin_task_v2(session, AgentTask::Long).await?;
    harness
        .until("some output of a long task", |_, message| {
            let kind = message.params()["update"]["sessionUpdate"].as_str();
            kind.is_some_and(|kind| kind.starts_with("agent_") || kind.starts_with("tool_call"))
                .then_some(())
        })
        .await?;
    harness
        .result(method, json!({"sessionId": session}))
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
            "it continued with `{}` after the response to `{method}`",
            params["update"]["sessionUpdate"]
                .as_str()
                .unwrap_or_default()
        )),
        None => Ok(()),
    }
}

async fn closes_one(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let first = harness.session_v2().await?;
    let second = harness.session_v2().await?;
    harness
        .result("session/close", json!({"sessionId": first}))
        .await?;
    harness.turn_v2(&second, AgentTask::Answer).await.map(drop)
}

async fn names_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let first = harness.session_v2().await?;
    let second = harness.session_v2().await?;
    harness.turn_v2(&second, AgentTask::Answer).await?;
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

async fn unknown_server(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/capabilities/session")?;
    let mut params = harness.session_params();
    params["mcpServers"] = json!([{"type": "_acp-check/pigeon", "name": "coo"}]);
    // It may succeed or fail, as long as it gets a response, and so does the next request.
    harness.request("session/new", params).await?;
    harness
        .request("_acp-check/alive", json!({}))
        .await
        .map(drop)
}
