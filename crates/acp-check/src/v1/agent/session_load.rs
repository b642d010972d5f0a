//! Checks how an agent opens existing sessions, with a replay (load) or without one (resume).

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::agent_harness::{QUIET_TIME, UNKNOWN_SESSION};
use crate::check::checks;
use crate::options::AgentTask;
use crate::turns::CheckTurn;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 Agent "session-setup";
    20 Must "Loading a session replays the user's messages." => replays_user_messages, shared;
    21 Must "Loading a session replays the agent's messages." => replays_agent_messages, shared;
    22 Must "Messages are replayed in their original order." => replays_in_order, shared;
    23 Must "The replay is complete before the response." => replays_before_response, shared;
    24 Must "Replayed updates have the id of the loaded session." => replays_loaded_session_only, shared;
    25 Must "A loaded session accepts prompts." => continues_after_load, shared;
    26 Should "Loading an unknown session fails." => rejects_loading_unknown_session, shared;
    27 Should "An agent that does not support `session/load` rejects it." => rejects_unsupported_load, shared;
    28 Must "Resuming a session replays nothing." => resume_replays_nothing, shared;
    29 Must "A resumed session accepts prompts." => continues_after_resume, shared;
    30 Should "Resuming an unknown session fails." => rejects_resuming_unknown_session, shared;
    31 Must "`session/resume` works without MCP servers." => resumes_without_servers, shared;
    32 Should "An agent that does not support `session/resume` rejects it." => rejects_unsupported_resume, shared;
}

const LOAD_CAPABILITY: &str = "/agentCapabilities/loadSession";
const RESUME_CAPABILITY: &str = "/agentCapabilities/sessionCapabilities/resume";
const CLOSE_CAPABILITY: &str = "/agentCapabilities/sessionCapabilities/close";

/// Opens a session, runs one turn, and closes the session if the agent supports that. Returns the session's id and the
/// turn. Skips the check unless the agent has the capability `offered`.
async fn create_closed_session(
    harness: &mut AgentHarness,
    offered: &str,
) -> Result<(String, CheckTurn), CheckStop> {
    harness.initialize().await?;
    harness.require_capability(offered)?;
    let session = harness.new_session().await?;
    let turn = harness.run_task(&session, AgentTask::Answer).await?;
    if harness.require_capability(CLOSE_CAPABILITY).is_ok() {
        harness
            .request_result("session/close", json!({"sessionId": session}))
            .await?;
    }
    Ok((session, turn))
}

/// Returns params for opening an existing session.
fn opening_params(harness: &AgentHarness, session: &str) -> Value {
    let mut params = harness.session_params();
    params["sessionId"] = json!(session);
    params
}

/// Opens an existing session, and returns the updates received before the response.
async fn open_existing(
    harness: &mut AgentHarness,
    method: &str,
    params: Value,
) -> Result<Vec<Value>, CheckStop> {
    let before = harness.messages.len();
    let id = harness.wire.send_request(method, params).await?;
    match harness.wait_for_turn_response(&id).await? {
        ReceivedResponse::Result(_) => Ok(harness.updates_since(before).cloned().collect()),
        // The specification does not say that a session that is open can be opened again.
        ReceivedResponse::Error { message, .. }
            if harness.require_capability(CLOSE_CAPABILITY).is_err() =>
        {
            skip(format!(
                "the agent cannot close sessions, and rejects opening a session that is already open: {message}"
            ))
        }
        ReceivedResponse::Error { code, message, .. } => fail(format!(
            "`{method}` for an existing session failed with error {code}: {message}"
        )),
    }
}

/// Loads a session that has one turn. Returns the session's id, the turn, and the replayed updates.
async fn load_session(
    harness: &mut AgentHarness,
) -> Result<(String, CheckTurn, Vec<Value>), CheckStop> {
    let (session, turn) = create_closed_session(harness, LOAD_CAPABILITY).await?;
    let params = opening_params(harness, &session);
    let replayed = open_existing(harness, "session/load", params).await?;
    Ok((session, turn, replayed))
}

fn update_kind(reported: &Value) -> &str {
    reported["update"]["sessionUpdate"]
        .as_str()
        .unwrap_or_default()
}

/// Returns `true` if an update is a chunk of a user or agent message.
fn is_message(reported: &&Value) -> bool {
    matches!(
        update_kind(reported),
        "user_message_chunk" | "agent_message_chunk"
    )
}

/// Returns `true` if an update replays part of the turn. Other updates may be sent at any time.
fn belongs_to_turn(reported: &Value, turn: &CheckTurn) -> bool {
    match update_kind(reported) {
        "user_message_chunk" => true,
        "agent_message_chunk" => {
            let said = text_of_kind([reported], "agent_message_chunk");
            !said.is_empty() && without_whitespace(&turn.text()).contains(&said)
        }
        _ => false,
    }
}

/// Returns the text of all updates of one type, without whitespace, because chunks may be split differently in a
/// replay.
fn text_of_kind<'a>(reported: impl IntoIterator<Item = &'a Value>, of: &str) -> String {
    let chunks = reported
        .into_iter()
        .filter(|reported| update_kind(reported) == of);
    let text: String = chunks
        .filter_map(|reported| reported["update"]["content"]["text"].as_str())
        .collect();
    without_whitespace(&text)
}

fn without_whitespace(text: &str) -> String {
    text.split_whitespace().collect()
}

async fn replays_user_messages(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, _, replayed) = load_session(harness).await?;
    let said = harness.prompt_text(AgentTask::Answer);
    let text = text_of_kind(&replayed, "user_message_chunk");
    require(text.contains(&without_whitespace(&said)), || {
        format!("{said:?} was not replayed as `user_message_chunk` before the response")
    })
}

async fn replays_agent_messages(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, turn, replayed) = load_session(harness).await?;
    let said = turn.text();
    if said.trim().is_empty() {
        return skip("the agent sent no text");
    }
    let text = text_of_kind(&replayed, "agent_message_chunk");
    require(text.contains(&without_whitespace(&said)), || {
        format!("{said:?} was not replayed as `agent_message_chunk` before the response")
    })
}

async fn replays_in_order(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, turn, replayed) = load_session(harness).await?;
    let user = replayed
        .iter()
        .position(|reported| update_kind(reported) == "user_message_chunk");
    // Take the last message, because the agent may have sent something before the first prompt.
    let agent = replayed
        .iter()
        .rposition(|reported| update_kind(reported) == "agent_message_chunk");
    match (user, agent) {
        (Some(user), Some(agent)) if !turn.text().is_empty() => require(user < agent, || {
            "the agent's message was replayed before its prompt".to_owned()
        }),
        _ => skip("the prompt and the agent's message were not both replayed"),
    }
}

async fn replays_before_response(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, turn, _) = load_session(harness).await?;
    let before = harness.messages.len();
    harness.collect(QUIET_TIME).await?;
    let mut late = harness.updates_since(before);
    match late.find(|reported| reported["sessionId"] == session && belongs_to_turn(reported, &turn))
    {
        Some(reported) => fail(format!(
            "a `{}` was sent after the response to `session/load`",
            update_kind(reported)
        )),
        None => Ok(()),
    }
}

async fn replays_loaded_session_only(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, _, replayed) = load_session(harness).await?;
    for reported in replayed.iter().filter(is_message) {
        require(reported["sessionId"] == session, || {
            format!(
                "session {session:?} was loaded, but a `{}` was sent for session {}",
                update_kind(reported),
                reported["sessionId"]
            )
        })?;
    }
    Ok(())
}

async fn continues_after_load(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, _, _) = load_session(harness).await?;
    harness.run_task(&session, AgentTask::Answer).await?;
    Ok(())
}

/// Requires that opening an unknown session fails.
async fn require_unknown_rejected(
    harness: &mut AgentHarness,
    method: &str,
    offered: &str,
) -> Result<(), CheckStop> {
    harness.new_session().await?;
    harness.require_capability(offered)?;
    let params = opening_params(harness, UNKNOWN_SESSION);
    match harness.request(method, params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => fail(format!("`{method}` for an unknown session succeeded")),
    }
}

async fn rejects_loading_unknown_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_unknown_rejected(harness, "session/load", LOAD_CAPABILITY).await
}

async fn rejects_resuming_unknown_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_unknown_rejected(harness, "session/resume", RESUME_CAPABILITY).await
}

/// Requires that an unsupported method is rejected.
async fn require_unsupported_rejected(
    harness: &mut AgentHarness,
    method: &str,
    offered: &str,
) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    if harness.require_capability(offered).is_ok() {
        return skip(format!("the agent supports `{method}`"));
    }
    let params = opening_params(harness, &session);
    match harness.request(method, params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => fail(format!(
            "the agent does not support `{method}`, but the request succeeded"
        )),
    }
}

async fn rejects_unsupported_load(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_unsupported_rejected(harness, "session/load", LOAD_CAPABILITY).await
}

async fn rejects_unsupported_resume(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_unsupported_rejected(harness, "session/resume", RESUME_CAPABILITY).await
}

async fn resume_replays_nothing(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, turn) = create_closed_session(harness, RESUME_CAPABILITY).await?;
    let params = opening_params(harness, &session);
    let reported = open_existing(harness, "session/resume", params).await?;
    match reported
        .iter()
        .find(|reported| belongs_to_turn(reported, &turn))
    {
        Some(reported) => fail(format!(
            "a `{}` was sent before the response to `session/resume`",
            update_kind(reported)
        )),
        None => Ok(()),
    }
}

async fn continues_after_resume(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, _) = create_closed_session(harness, RESUME_CAPABILITY).await?;
    let params = opening_params(harness, &session);
    open_existing(harness, "session/resume", params).await?;
    harness.run_task(&session, AgentTask::Answer).await?;
    Ok(())
}

async fn resumes_without_servers(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, _) = create_closed_session(harness, RESUME_CAPABILITY).await?;
    let params = json!({"sessionId": session, "cwd": harness.directory().project()});
    open_existing(harness, "session/resume", params).await?;
    Ok(())
}
