//! Checks for subagents, which are sessions that an agent starts for parts of its work. Unstable.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use acp_rules::schema::SchemaVersion;

use super::steps::{require_shape, run_task};
use crate::agent_harness::AgentHarness;
use crate::agent_harness_v2::update_type;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};

// Version 2 has no capability for subagents, because every client shows them.
checks! { V1 Agent "subagents"
    fresh "declares other capabilities in `initialize`";
    1 Must "Subagent updates are sent only to clients that support subagents." => announces_only_if_supported;
}

checks! { V1 V2 Agent "subagents"
    fresh "declares other capabilities in `initialize`";
    2 Must "A subagent is announced before any of its updates are sent." => announces_before_updates;
    3 Must "A subagent has exactly one parent, and is not its own parent." => has_one_parent;
    4 Must "Subagent updates match the schema." => matches_schema;
}

/// Asks the agent to start a subagent. Returns the session's id and all of its updates.
async fn run_delegation(
    harness: &mut AgentHarness,
    offers: bool,
) -> Result<(String, Vec<Value>), CheckStop> {
    let mut params = harness.initialize_params();
    if offers && harness.version() == SchemaVersion::V1 {
        params["clientCapabilities"]["subagents"] = json!({});
    }
    harness.initialize_with(params).await?;
    // Other checks test whether sessions open and turns end properly.
    let not_done = |stop| match stop {
        CheckStop::Fail(why) => CheckStop::Skip(format!("the agent did not do the task: {why}")),
        stop => stop,
    };
    let session = harness.new_session().await.map_err(not_done)?;
    let done = run_task(harness, &session, AgentTask::Delegate).await;
    done.map_err(not_done)?;
    harness.wait_until_quiet().await?;
    let updates: Vec<Value> = harness.updates().cloned().collect();
    Ok((session, updates))
}

/// Like `run_delegation`, but skips the check unless the agent announces a subagent.
async fn announced_sessions(harness: &mut AgentHarness) -> Result<(String, Vec<Value>), CheckStop> {
    let (session, updates) = run_delegation(harness, true).await?;
    if updates.iter().any(is_announcement) {
        Ok((session, updates))
    } else {
        skip("the agent announced no subagent")
    }
}

fn is_announcement(reported: &Value) -> bool {
    update_type(&reported["update"]) == "subagent_update"
}

/// Returns the ids of all sessions mentioned in an update: the session that it is for, and the sender and recipient of
/// a message.
fn mentioned_session_ids(reported: &Value) -> impl Iterator<Item = &str> {
    let update = &reported["update"];
    let passed = ["senderSessionId", "recipientSessionId"].map(|name| &update[name]);
    [&reported["sessionId"]]
        .into_iter()
        .chain(passed)
        .filter_map(Value::as_str)
}

async fn announces_only_if_supported(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, updates) = run_delegation(harness, false).await?;
    let of_subagents = |reported: &&Value| {
        matches!(
            update_type(&reported["update"]),
            "subagent_update" | "session_message" | "session_message_chunk"
        )
    };
    match updates.iter().find(of_subagents) {
        Some(reported) => fail(format!(
            "the agent sent `{}` to a client that does not support `subagents`",
            update_type(&reported["update"])
        )),
        None => Ok(()),
    }
}

async fn announces_before_updates(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, updates) = announced_sessions(harness).await?;
    let mut known = BTreeSet::from([session.as_str()]);
    for reported in &updates {
        if let Some(unknown) =
            mentioned_session_ids(reported).find(|session| !known.contains(session))
        {
            return fail(format!(
                "`{}` refers to session {unknown:?}, which was not announced",
                update_type(&reported["update"])
            ));
        }
        if is_announcement(reported) {
            known.extend(reported["update"]["sessionId"].as_str());
        }
    }
    Ok(())
}

async fn has_one_parent(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, updates) = announced_sessions(harness).await?;
    let announcements: Vec<(&Value, &Value)> = updates
        .iter()
        .filter(|reported| is_announcement(reported))
        .map(|reported| (&reported["sessionId"], &reported["update"]["sessionId"]))
        .collect();
    for (parent, child) in &announcements {
        require(*child != *parent && **child != *session, || {
            format!("session {child} is announced as its own subagent")
        })?;
    }
    for (parent, child) in &announcements {
        let other = announcements
            .iter()
            .find(|(other, same)| same == child && other != parent);
        if let Some((other, _)) = other {
            return fail(format!(
                "subagent {child} is announced by both {parent} and {other}"
            ));
        }
    }
    Ok(())
}

async fn matches_schema(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, updates) = announced_sessions(harness).await?;
    for reported in &updates {
        let shape = match update_type(&reported["update"]) {
            "subagent_update" => "SubagentUpdate",
            "session_message" => "SessionMessage",
            "session_message_chunk" => "SessionMessageChunk",
            _ => continue,
        };
        let mut update = reported["update"].clone();
        if let Some(fields) = update.as_object_mut() {
            fields.remove("sessionUpdate");
        }
        require_shape(harness, shape, &update)?;
    }
    Ok(())
}
