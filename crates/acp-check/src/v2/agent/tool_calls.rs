//! Checks how an agent reports tool calls, including their progress, output and embedded terminals.

use std::collections::HashMap;

use serde_json::Value;

use super::values::is_base64;
use crate::agent_harness::AgentHarness;
use crate::agent_harness_v2::update_type;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};

checks! { V2 Agent "tool-calls";
    1 Should "A finished tool call does not return to pending or in progress." => advances_status, shared;
    2 Must "Tool calls of different turns have different ids." => has_unique_ids, shared;
    3 Should "Content chunks refer to an announced tool call." => sends_chunks_for_known_calls, shared;
    4 Must "Each terminal output chunk is valid base64." => sends_valid_base64, shared;
    5 Should "Terminal output refers to an announced terminal." => sends_output_for_known_terminals, shared;
    6 Should "A terminal embedded in a tool call is announced." => embeds_known_terminals, shared;
}

/// Makes the agent do several tasks that use tools, and returns all updates.
async fn collect_updates(harness: &mut AgentHarness) -> Result<Vec<Value>, CheckStop> {
    let session = harness.new_session_v2().await?;
    let mut updates = Vec::new();
    for task in [AgentTask::Read, AgentTask::Edit, AgentTask::Run] {
        updates.extend(harness.run_task_v2(&session, task).await?.updates);
    }
    Ok(updates)
}

fn updates_of_kind<'a>(updates: &'a [Value], of: &'static str) -> impl Iterator<Item = &'a Value> {
    updates
        .iter()
        .filter(move |update| update_type(update) == of)
}

fn is_final(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

async fn advances_status(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let updates = collect_updates(harness).await?;
    let mut ended: HashMap<&str, &str> = HashMap::new();
    for update in updates_of_kind(&updates, "tool_call_update") {
        let (Some(id), Some(status)) = (update["toolCallId"].as_str(), update["status"].as_str())
        else {
            continue;
        };
        match (ended.get(id), status) {
            (Some(before), "pending" | "in_progress") => {
                return fail(format!(
                    "tool call {id:?} changed from {before} to {status}"
                ));
            }
            (_, status) if is_final(status) => {
                ended.insert(id, status);
            }
            _ => {}
        }
    }
    require_calls(&updates)
}

fn require_calls(updates: &[Value]) -> Result<(), CheckStop> {
    match updates_of_kind(updates, "tool_call_update").next() {
        Some(_) => Ok(()),
        None => skip("the agent reported no tool call"),
    }
}

async fn has_unique_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    let mut turns = Vec::new();
    for _ in 0..2 {
        turns.push(
            harness
                .run_task_v2(&session, AgentTask::Read)
                .await?
                .updates,
        );
    }
    let [first, second] = turns.as_slice() else {
        return Err(CheckStop::Harness(
            "internal error: expected two turns".to_owned(),
        ));
    };
    require_calls(first)?;
    // Calls of the first turn may still get updates. A violation is a call that starts in the second turn with the id
    // of a call that has ended.
    let ended = |update: &&Value| is_final(update["status"].as_str().unwrap_or_default());
    let begins = |update: &&Value| update["title"].is_string() && !ended(update);
    let mut accepted = updates_of_kind(second, "tool_call_update").filter(begins);
    let again = accepted.find(|update| {
        let id = &update["toolCallId"];
        let mut before = updates_of_kind(first, "tool_call_update").filter(ended);
        before.any(|before| before["toolCallId"] == *id)
    });
    match again {
        Some(update) => fail(format!(
            "tool call id {} was used in two turns",
            update["toolCallId"]
        )),
        None => Ok(()),
    }
}

async fn sends_chunks_for_known_calls(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let updates = collect_updates(harness).await?;
    let (mut known, mut seen) = (Vec::new(), false);
    for update in &updates {
        let id = &update["toolCallId"];
        match update_type(update) {
            "tool_call_update" => known.push(id),
            "tool_call_content_chunk" => {
                seen = true;
                require(known.contains(&id), || {
                    format!("content was sent for tool call {id}, which was not announced")
                })?;
            }
            _ => {}
        }
    }
    if seen {
        Ok(())
    } else {
        skip("the agent sent no tool call content in chunks")
    }
}

/// Makes the agent run a command, and returns all updates. Skips the check if the agent reports no terminal.
async fn collect_terminal_updates(harness: &mut AgentHarness) -> Result<Vec<Value>, CheckStop> {
    let session = harness.new_session_v2().await?;
    let updates = harness.run_task_v2(&session, AgentTask::Run).await?.updates;
    let of_terminal = |update: &Value| update_type(update).starts_with("terminal_");
    if updates.iter().any(of_terminal) || embedded_terminals(&updates).next().is_some() {
        Ok(updates)
    } else {
        skip("the agent reported no terminal")
    }
}

/// Returns the ids of the terminals embedded in tool calls.
fn embedded_terminals(updates: &[Value]) -> impl Iterator<Item = &Value> {
    let lists = updates
        .iter()
        .filter_map(|update| update["content"].as_array());
    let terminals = lists
        .flatten()
        .filter(|content| content["type"] == "terminal");
    terminals.map(|content| &content["terminalId"])
}

async fn sends_valid_base64(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let updates = collect_terminal_updates(harness).await?;
    for update in &updates {
        let data = match update_type(update) {
            "terminal_output_chunk" => &update["data"],
            "terminal_update" => &update["output"]["data"],
            _ => continue,
        };
        if let Some(data) = data.as_str().filter(|data| !is_base64(data)) {
            return fail(format!("terminal output {data:?} is not valid base64"));
        }
    }
    Ok(())
}

async fn sends_output_for_known_terminals(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let updates = collect_terminal_updates(harness).await?;
    let mut known = Vec::new();
    for update in &updates {
        let id = &update["terminalId"];
        match update_type(update) {
            "terminal_update" => known.push(id),
            "terminal_output_chunk" => require(known.contains(&id), || {
                format!("output was sent for terminal {id}, which was not announced")
            })?,
            _ => {}
        }
    }
    Ok(())
}

async fn embeds_known_terminals(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let updates = collect_terminal_updates(harness).await?;
    let reported: Vec<&Value> = updates_of_kind(&updates, "terminal_update")
        .chain(updates_of_kind(&updates, "terminal_output_chunk"))
        .map(|update| &update["terminalId"])
        .collect();
    match embedded_terminals(&updates).find(|id| !reported.contains(id)) {
        Some(id) => fail(format!(
            "a tool call embeds terminal {id}, which was not announced"
        )),
        None => Ok(()),
    }
}
