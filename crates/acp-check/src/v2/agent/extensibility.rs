//! Checks for an agent's custom methods, values, and metadata.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::agent_harness_v2::{text_prompt, update_type};
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail};
use crate::wire::ReceivedResponse;

checks! { V2 Agent "extensibility";
    1 Should "Unknown extension requests get error -32601." => rejects_unknown_request, shared;
    2 Should "Unknown extension notifications are ignored." => ignores_unknown_notification, shared_last;
    3 Must "Requests with arbitrary `_meta` are processed." => accepts_any_meta, fresh "sends `_meta` in `initialize`";
    4 Must "Custom update types start with `_`." => prefixes_custom_updates, shared;
    5 Must "Custom tool call kinds and statuses start with `_`." => prefixes_custom_values, shared;
    6 Must "Custom stop reasons start with `_`." => prefixes_custom_stop_reasons, shared;
    7 Must "Custom permission option kinds start with `_`." => prefixes_custom_option_kinds, shared;
    8 Must "Custom config option categories start with `_`." => prefixes_custom_categories, shared;
    9 Must "Custom content types start with `_`." => prefixes_custom_content, shared;
}

async fn rejects_unknown_request(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    match harness.request("_acp-check/no-such", json!({})).await? {
        ReceivedResponse::Error { code: -32601, .. } => Ok(()),
        ReceivedResponse::Error { code, .. } => fail(format!(
            "an unknown method got error {code}; expected -32601"
        )),
        ReceivedResponse::Result(_) => fail("an unknown method succeeded; expected an error"),
    }
}

async fn ignores_unknown_notification(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    harness
        .wire
        .send_notification("_acp-check/no-such", json!([1, {"two": null}]))
        .await?;
    harness
        .run_task_v2(&session, AgentTask::Answer)
        .await
        .map(drop)
}

/// Returns a `_meta` value with unusual types, under names that nobody else uses.
fn unusual_meta() -> Value {
    json!({"example.org/a": 1, "b": [null, {"c": "d"}], "": false, "traceparent": "none"})
}

async fn accepts_any_meta(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = harness.initialize_params();
    params["_meta"] = unusual_meta();
    harness.initialize_with(params).await?;
    harness.require_capability("/capabilities/session")?;
    let mut params = harness.session_params();
    params["_meta"] = unusual_meta();
    let opened = harness.open_session_with(params).await?;
    let session = opened["sessionId"].as_str().unwrap_or_default();
    let mut prompt = text_prompt(&harness.prompt_text(AgentTask::Answer));
    prompt[0]["_meta"] = unusual_meta();
    harness.run_prompt_v2(session, prompt).await.map(drop)
}

/// Requires that each value is in `known` or starts with `_`. `what` describes the values for error messages.
fn require_known_or_custom<'a>(
    what: &str,
    values: impl IntoIterator<Item = &'a Value>,
    known: &[&str],
) -> Result<(), CheckStop> {
    let mut names = values.into_iter().filter_map(Value::as_str);
    match names.find(|name| !known.contains(name) && !name.starts_with('_')) {
        Some(name) => fail(format!(
            "unknown {what} {name:?}; custom names must start with `_`"
        )),
        None => Ok(()),
    }
}

/// Makes the agent do several tasks, and returns all updates.
async fn collect_updates(harness: &mut AgentHarness) -> Result<Vec<Value>, CheckStop> {
    let session = harness.new_session_v2().await?;
    for task in [
        AgentTask::Answer,
        AgentTask::Read,
        AgentTask::Edit,
        AgentTask::Run,
        AgentTask::Plan,
    ] {
        harness.run_task_v2(&session, task).await?;
    }
    Ok(harness
        .updates()
        .map(|params| params["update"].clone())
        .collect())
}

async fn prefixes_custom_updates(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let updates = collect_updates(harness).await?;
    // A separate check reports the update types of version 1. The last line is newer than the draft.
    let known = [
        "user_message_chunk",
        "user_message",
        "agent_message_chunk",
        "agent_message",
        "agent_thought_chunk",
        "agent_thought",
        "state_update",
        "tool_call_content_chunk",
        "tool_call_update",
        "terminal_update",
        "terminal_output_chunk",
        "plan_update",
        "available_commands_update",
        "config_option_update",
        "session_info_update",
        "usage_update",
        "tool_call",
        "plan",
        "current_mode_update",
        "plan_removed",
        "notice",
        "compaction_update",
        "compaction_summary_chunk",
    ];
    require_known_or_custom(
        "update type",
        updates.iter().map(|update| &update["sessionUpdate"]),
        &known,
    )
}

async fn prefixes_custom_values(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let updates = collect_updates(harness).await?;
    let calls = || {
        updates
            .iter()
            .filter(|update| update_type(update) == "tool_call_update")
    };
    let kinds = [
        "read",
        "edit",
        "delete",
        "move",
        "search",
        "execute",
        "think",
        "fetch",
        "switch_mode",
        "other",
    ];
    require_known_or_custom("tool call kind", calls().map(|call| &call["kind"]), &kinds)?;
    let statuses = ["pending", "in_progress", "completed", "failed", "cancelled"];
    require_known_or_custom(
        "tool call status",
        calls().map(|call| &call["status"]),
        &statuses,
    )
}

async fn prefixes_custom_stop_reasons(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let updates = collect_updates(harness).await?;
    // The last value is newer than the draft.
    let known = [
        "end_turn",
        "max_tokens",
        "max_turn_requests",
        "refusal",
        "cancelled",
        "error",
    ];
    require_known_or_custom(
        "stop reason",
        updates.iter().map(|update| &update["stopReason"]),
        &known,
    )
}

async fn prefixes_custom_option_kinds(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    collect_updates(harness).await?;
    let options = harness
        .requests()
        .filter_map(|(_, params)| params["options"].as_array());
    let known = ["allow_once", "allow_always", "reject_once", "reject_always"];
    require_known_or_custom(
        "permission option kind",
        options.flatten().map(|option| &option["kind"]),
        &known,
    )
}

async fn prefixes_custom_categories(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/capabilities/session")?;
    let opened = harness.open_session().await?;
    let options = opened["configOptions"].as_array().into_iter().flatten();
    let known = ["mode", "model", "model_config", "thought_level"];
    require_known_or_custom(
        "category",
        options.map(|option| &option["category"]),
        &known,
    )
}

async fn prefixes_custom_content(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let updates = collect_updates(harness).await?;
    let spoken = updates.iter().filter(|update| {
        let kind = update_type(update);
        kind.contains("message") || kind.contains("thought")
    });
    let blocks = spoken.flat_map(|update| match &update["content"] {
        Value::Array(blocks) => blocks.iter().collect::<Vec<_>>(),
        block => vec![block],
    });
    let types = blocks.map(|block| &block["type"]);
    let known = ["text", "image", "audio", "resource_link", "resource"];
    require_known_or_custom("content type", types, &known)
}
