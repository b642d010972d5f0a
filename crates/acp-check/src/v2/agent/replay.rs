//! Checks how an agent replays a session's history (Session setup, section "Resuming Sessions").

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::agent_harness_v2::update_type;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require};
use crate::wire::ReceivedResponse;

checks! { V2 Agent "session-setup";
    21 Should "With `replayFrom` set to `start`, user and agent messages are replayed from the beginning." => replays_messages, shared;
    22 Should "The replay is complete before the response to `session/resume`." => replays_before_response, shared;
    23 Should "Without `replayFrom`, nothing is replayed." => replays_nothing, shared;
    24 Should "A null `replayFrom` is treated as absent." => treats_null_replay_from_as_absent, shared;
    25 Should "An unknown `replayFrom` fails." => rejects_unknown_start, shared;
    26 Must "Replayed user and agent messages have different ids." => separates_ids, shared;
}

/// Returns `true` if an update belongs to a session's history.
fn is_history_update(update: &Value) -> bool {
    let kind = update_type(update);
    kind.starts_with("user_message")
        || kind.starts_with("agent_")
        || kind.starts_with("tool_call")
        || kind.starts_with("terminal_")
        || kind == "plan_update"
}

/// Returns the updates of messages of one type, such as `user_message` or `agent_message`.
fn messages_of_type<'a>(updates: &'a [Value], of: &'static str) -> impl Iterator<Item = &'a Value> {
    updates
        .iter()
        .filter(move |update| update_type(update).starts_with(of))
}

/// Resumes a closed session that has one turn. Returns the history updates that arrive before the response, and those
/// that arrive after it.
async fn resume_session(
    harness: &mut AgentHarness,
    replay_from: Option<Value>,
) -> Result<(Vec<Value>, Vec<Value>), CheckStop> {
    let session = harness.new_closed_session_v2().await?;
    let mut params = harness.resume_params(&session);
    if let Some(from) = replay_from {
        params["replayFrom"] = from;
    }
    let past = |harness: &AgentHarness, since: usize| -> Vec<Value> {
        let updates = harness.updates_since(since).map(|params| &params["update"]);
        updates
            .filter(|update| is_history_update(update))
            .cloned()
            .collect()
    };
    let before = harness.messages.len();
    harness.request_result("session/resume", params).await?;
    let (reported, answered) = (past(harness, before), harness.messages.len());
    harness.wait_until_quiet().await?;
    Ok((reported, past(harness, answered)))
}

fn replay_from_start() -> Option<Value> {
    Some(json!({"type": "start"}))
}

async fn replays_messages(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (mut reported, late) = resume_session(harness, replay_from_start()).await?;
    reported.extend(late);
    for (of, side) in [("user_message", "user"), ("agent_message", "agent")] {
        require(messages_of_type(&reported, of).next().is_some(), || {
            format!("no {side} messages were replayed")
        })?;
    }
    let said = Value::from(reported).to_string();
    let asked = json!(harness.prompt_text(AgentTask::Answer)).to_string();
    require(said.contains(asked.trim_matches('"')), || {
        "the replayed prompt differs from the original".to_owned()
    })
}

async fn replays_before_response(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, late) = resume_session(harness, replay_from_start()).await?;
    match late.first() {
        Some(update) => fail(format!(
            "`{}` was sent after the response",
            update_type(update)
        )),
        None => Ok(()),
    }
}

async fn require_no_replay(
    harness: &mut AgentHarness,
    replay_from: Option<Value>,
) -> Result<(), CheckStop> {
    let (reported, late) = resume_session(harness, replay_from).await?;
    match reported.iter().chain(&late).next() {
        Some(update) => fail(format!(
            "the agent replayed `{}`, although no replay was requested",
            update_type(update)
        )),
        None => Ok(()),
    }
}

async fn replays_nothing(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_no_replay(harness, None).await
}

async fn treats_null_replay_from_as_absent(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_no_replay(harness, Some(Value::Null)).await
}

async fn rejects_unknown_start(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_closed_session_v2().await?;
    let mut params = harness.resume_params(&session);
    params["replayFrom"] = json!({"type": "_acp-check/yesterday"});
    match harness.request("session/resume", params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => {
            fail("the agent resumed the session despite an unknown `replayFrom`")
        }
    }
}

async fn separates_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (mut reported, late) = resume_session(harness, replay_from_start()).await?;
    reported.extend(late);
    for said in messages_of_type(&reported, "user_message") {
        let id = &said["messageId"];
        let same = |other: &&Value| !id.is_null() && other["messageId"] == *id;
        if messages_of_type(&reported, "agent_").any(|other| same(&other)) {
            return fail(format!(
                "a user message and an agent message have the same id {id}"
            ));
        }
    }
    Ok(())
}
