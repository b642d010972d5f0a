//! Checks how an agent reports tool calls.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedMessage;

checks! { V1 Agent "tool-calls";
    1 Should "Every tool use is reported as a tool call." => reports_tool_calls, shared;
    2 Must "Tool call ids are unique within a session." => has_unique_ids, shared;
    3 Should "A tool call is reported before its updates." => reports_call_before_updates, shared;
    4 Must "A completed or failed tool call stays in that status." => keeps_final_status, shared;
    5 Should "A running tool call does not return to `pending`." => does_not_return_to_pending, shared;
    6 Should "When a turn ends normally, its tool calls are completed or failed." => finishes_tool_calls, shared;
    7 Must "Paths in tool call locations and diffs are absolute." => uses_absolute_paths, shared;
    8 Must "Line numbers in locations start at 1." => starts_lines_at_one, shared;
    9 Should "A diff has the old and new text of the file." => sends_accurate_diffs, shared;
    10 Should "An embedded terminal was created with `terminal/create`." => embeds_created_terminals, shared;
    11 Must "A terminal is embedded in a tool call before it is released." => embeds_before_release, shared;
}

/// Makes the agent do several tasks that use tools, and returns all of its messages. Skips the check if the agent
/// reports no tool call.
pub(super) async fn run_tool_tasks(
    harness: &mut AgentHarness,
    tasks: &[AgentTask],
) -> Result<Vec<ReceivedMessage>, CheckStop> {
    let session = harness.new_session().await?;
    for task in tasks {
        harness.try_task(&session, *task).await?;
    }
    if call_updates(&harness.messages).next().is_none() {
        return skip("the agent reported no tool call");
    }
    Ok(harness.messages.clone())
}

/// Returns the updates about tool calls, in order. The flag is `true` for an update that starts a new call.
fn call_updates(messages: &[ReceivedMessage]) -> impl Iterator<Item = (bool, &Value)> {
    let updates = messages
        .iter()
        .filter(|message| message.method() == "session/update");
    updates.filter_map(|message| {
        let update = &message.params()["update"];
        match update["sessionUpdate"].as_str() {
            Some("tool_call") => Some((true, update)),
            Some("tool_call_update") => Some((false, update)),
            _ => None,
        }
    })
}

fn call_id(update: &Value) -> &str {
    update["toolCallId"].as_str().unwrap_or_default()
}

fn is_final(status: &str) -> bool {
    matches!(status, "completed" | "failed")
}

/// Returns all status changes. Each has the tool call's id, its previous status (`pending` for a new call), and its new
/// status.
fn status_changes(messages: &[ReceivedMessage]) -> Vec<(String, String, String)> {
    let mut statuses: HashMap<&str, &str> = HashMap::new();
    let mut changes = Vec::new();
    for (new, update) in call_updates(messages) {
        let id = call_id(update);
        let after = match update["status"].as_str() {
            Some(status) => status,
            None if new => "pending",
            None => continue,
        };
        let known = statuses.insert(id, after).filter(|_| !new);
        let before = known.unwrap_or("pending");
        changes.push((id.to_owned(), before.to_owned(), after.to_owned()));
    }
    changes
}

async fn reports_tool_calls(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let turn = harness.run_task_or_skip(&session, AgentTask::Read).await?;
    let used = turn
        .requests
        .iter()
        .any(|(method, _)| method.starts_with("fs/"));
    if turn.updates_of_type("tool_call").next().is_some() {
        return Ok(());
    }
    if used {
        fail("the agent read a file, but reported no tool call")
    } else {
        skip("the client saw no sign that the agent used a tool")
    }
}

async fn has_unique_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let tasks = [
        AgentTask::Read,
        AgentTask::Read,
        AgentTask::Edit,
        AgentTask::Run,
    ];
    let messages = run_tool_tasks(harness, &tasks).await?;
    let mut finished: HashSet<&str> = HashSet::new();
    for (new, update) in call_updates(&messages) {
        let id = call_id(update);
        // A call that is announced again before it has finished is a repetition.
        require(!(new && finished.contains(id)), || {
            format!("the id {id:?} of a finished tool call was reused")
        })?;
        if update["status"].as_str().is_some_and(is_final) {
            finished.insert(id);
        }
    }
    Ok(())
}

async fn reports_call_before_updates(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let messages = run_tool_tasks(harness, &[AgentTask::Read, AgentTask::Edit]).await?;
    let mut known: HashSet<&str> = HashSet::new();
    for (new, update) in call_updates(&messages) {
        let id = call_id(update);
        if new {
            known.insert(id);
        }
        require(known.contains(id), || {
            format!("tool call {id:?} was updated, but never reported with `tool_call`")
        })?;
    }
    Ok(())
}

async fn keeps_final_status(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let messages =
        run_tool_tasks(harness, &[AgentTask::Read, AgentTask::Edit, AgentTask::Run]).await?;
    let wrong = status_changes(&messages);
    let mut wrong = wrong
        .iter()
        .filter(|(_, before, after)| is_final(before) && before != after);
    match wrong.next() {
        Some((id, before, after)) => fail(format!(
            "tool call {id:?} changed from {before:?} to {after:?}"
        )),
        None => Ok(()),
    }
}

async fn does_not_return_to_pending(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let messages = run_tool_tasks(harness, &[AgentTask::Read, AgentTask::Edit]).await?;
    let back = status_changes(&messages);
    let mut back = back
        .iter()
        .filter(|(_, before, after)| before == "in_progress" && after == "pending");
    match back.next() {
        Some((id, ..)) => fail(format!(
            "tool call {id:?} changed from \"in_progress\" to \"pending\""
        )),
        None => Ok(()),
    }
}

async fn finishes_tool_calls(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let turn = harness.run_task_or_skip(&session, AgentTask::Read).await?;
    if turn.stop_reason != "end_turn" || call_updates(&harness.messages).next().is_none() {
        return skip("no turn with a tool call ended normally");
    }
    let mut last: HashMap<String, String> = HashMap::new();
    for (id, _, after) in status_changes(&harness.messages) {
        last.insert(id, after);
    }
    match last.iter().find(|(_, status)| !is_final(status)) {
        Some((id, status)) => fail(format!(
            "the turn ended, but tool call {id:?} is still {status:?}"
        )),
        None => Ok(()),
    }
}

/// Returns the items of the field `list` in all updates about tool calls.
fn listed_items<'a>(
    messages: &'a [ReceivedMessage],
    list: &'a str,
) -> impl Iterator<Item = &'a Value> {
    call_updates(messages)
        .flat_map(move |(_, update)| update[list].as_array().into_iter().flatten())
}

/// Returns the diffs of all tool calls.
fn diffs_in(messages: &[ReceivedMessage]) -> impl Iterator<Item = &Value> {
    listed_items(messages, "content").filter(|content| content["type"] == "diff")
}

async fn uses_absolute_paths(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let messages = run_tool_tasks(harness, &[AgentTask::Read, AgentTask::Edit]).await?;
    let places = listed_items(&messages, "locations").chain(diffs_in(&messages));
    let paths: Vec<&str> = places.filter_map(|place| place["path"].as_str()).collect();
    if paths.is_empty() {
        return skip("no tool call has a location or a diff");
    }
    match paths
        .iter()
        .find(|path| !std::path::Path::new(path).is_absolute())
    {
        Some(path) => fail(format!("{path:?} is not an absolute path")),
        None => Ok(()),
    }
}

async fn starts_lines_at_one(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let messages = run_tool_tasks(harness, &[AgentTask::Read, AgentTask::Edit]).await?;
    let lines: Vec<u64> = listed_items(&messages, "locations")
        .filter_map(|location| location["line"].as_u64())
        .collect();
    if lines.is_empty() {
        return skip("no tool call has a location with a line");
    }
    require(!lines.contains(&0), || {
        "a location has line 0, but lines start at 1".to_owned()
    })
}

async fn sends_accurate_diffs(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let file = harness.directory().file("notes.txt");
    let read = || {
        std::fs::read_to_string(&file)
            .map_err(|e| CheckStop::Harness(format!("{}: {e}", file.display())))
    };
    let before = read()?;
    let messages = run_tool_tasks(harness, &[AgentTask::Edit]).await?;
    let after = read()?;
    let path = file.display().to_string();
    let of_file = diffs_in(&messages).filter(|diff| diff["path"] == path.as_str());
    // The last diff is the one that was applied.
    let Some(diff) = of_file.last().filter(|_| before != after) else {
        return skip("no tool call changed the file and sent a diff");
    };
    let within = |name: &str, text: &str| {
        diff[name]
            .as_str()
            .is_some_and(|part| text.contains(part.trim()))
    };
    require(within("oldText", &before), || {
        let old = &diff["oldText"];
        format!("the file contained {before:?}, but the diff has the old text {old}")
    })?;
    require(within("newText", &after), || {
        let new = &diff["newText"];
        format!("the file contains {after:?}, but the diff has the new text {new}")
    })
}

/// Returns the ids of the terminals that this message embeds in a tool call.
fn embedded_terminals(message: &ReceivedMessage) -> impl Iterator<Item = &str> {
    let content = message.params()["update"]["content"].as_array();
    let shown = content
        .into_iter()
        .flatten()
        .filter(|content| content["type"] == "terminal");
    shown.filter_map(|content| content["terminalId"].as_str())
}

async fn embeds_created_terminals(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let messages = run_tool_tasks(harness, &[AgentTask::Run]).await?;
    let shown: Vec<&str> = messages.iter().flat_map(embedded_terminals).collect();
    if shown.is_empty() {
        return skip("no tool call embedded a terminal");
    }
    match shown.iter().find(|id| {
        !harness
            .host
            .created_terminals
            .iter()
            .any(|created| created == *id)
    }) {
        Some(id) => fail(format!("terminal {id:?} was embedded, but never created")),
        None => Ok(()),
    }
}

async fn embeds_before_release(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let messages = run_tool_tasks(harness, &[AgentTask::Run]).await?;
    let mut seen: HashSet<&str> = HashSet::new();
    let mut released: HashSet<&str> = HashSet::new();
    for message in &messages {
        if message.method() == "terminal/release" {
            released.extend(message.params()["terminalId"].as_str());
        }
        for id in embedded_terminals(message) {
            let first = seen.insert(id);
            require(!(first && released.contains(id)), || {
                format!("terminal {id:?} was first embedded after it was released")
            })?;
        }
    }
    if seen.is_empty() {
        return skip("no tool call embedded a terminal");
    }
    Ok(())
}
