//! Checks for an agent's permission requests (Tool calls, section "Requesting Permission").

use serde_json::{Value, json};

use super::values::find_duplicate;
use crate::agent_harness::AgentHarness;
use crate::agent_harness_v2::AcceptedPrompt;
use crate::agent_harness_v2::reported_state;
use crate::check::checks;
use crate::host::PermissionReply;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};

checks! { V2 Agent "tool-calls";
    41 Must "A permission request has at least one option." => has_options, shared;
    42 Must "Permission option ids are unique." => has_unique_option_ids, shared;
    43 Should "A permission request has a human-readable title." => has_title, shared;
    44 Must "A permission request has the id of its session." => includes_session_id, shared;
    45 Should "While the agent waits for permission, its state is `requires_action`." => reports_requires_action, shared;
    46 Should "After a permission response, the state is `running` again." => reports_running_again, shared;
    47 Must "After permission is granted, the turn continues to its end." => continues_after_allow, shared;
    48 Must "A rejected tool call is not executed." => respects_rejection, shared;
    49 Must "An unknown outcome is not treated as approval." => rejects_unknown_outcome, shared;
    50 Must "A failed permission request is not treated as approval." => does_not_act_after_failure, shared;
}

/// Starts a turn that requests permission. Returns the accepted prompt, and the id and params of the request.
async fn wait_for_permission(
    harness: &mut AgentHarness,
) -> Result<(AcceptedPrompt, Value, Value), CheckStop> {
    let session = harness.new_session_v2().await?;
    harness.host.permission_reply = PermissionReply::Hold;
    let accepted = harness.begin_task_v2(&session, AgentTask::Edit).await?;
    match harness.wait_for_permission_v2(&accepted).await? {
        Some((id, params)) => Ok((accepted, id, params)),
        None => skip("the agent did not request permission"),
    }
}

async fn has_options(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, _, params) = wait_for_permission(harness).await?;
    let options = params["options"].as_array();
    require(options.is_some_and(|options| !options.is_empty()), || {
        "the permission request has no options".to_owned()
    })
}

async fn has_unique_option_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, _, params) = wait_for_permission(harness).await?;
    let options = params["options"].as_array().into_iter().flatten();
    match find_duplicate(options.map(|option| &option["optionId"])) {
        Some(id) => fail(format!("duplicate option id {id} in a permission request")),
        None => Ok(()),
    }
}

async fn has_title(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, _, params) = wait_for_permission(harness).await?;
    let title = params["title"].as_str().unwrap_or_default();
    require(!title.trim().is_empty(), || {
        "the title of the permission request is empty".to_owned()
    })
}

async fn includes_session_id(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    harness.host.permission_reply = PermissionReply::Hold;
    let accepted = harness.begin_task_v2(&session, AgentTask::Edit).await?;
    let Some((_, params)) = harness.wait_for_permission_v2(&accepted).await? else {
        return skip("the agent did not request permission");
    };
    require(params["sessionId"] == *session, || {
        format!(
            "the permission request is for session {}, not {session:?}",
            params["sessionId"]
        )
    })
}

/// Returns the last state reported since the prompt.
fn latest_state<'a>(harness: &'a AgentHarness, accepted: &'a AcceptedPrompt) -> Option<&'a str> {
    harness
        .updates_of_prompt_v2(accepted)
        .filter_map(reported_state)
        .last()
}

async fn reports_requires_action(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (accepted, _, _) = wait_for_permission(harness).await?;
    if latest_state(harness, &accepted) == Some("requires_action") {
        return Ok(());
    }
    // The state may also be reported after the request.
    harness
        .wait_until("a `state_update` with `requires_action`", |harness, _| {
            (latest_state(harness, &accepted) == Some("requires_action")).then_some(())
        })
        .await
}

fn allow_outcome(params: &Value) -> Value {
    let options = params["options"].as_array().into_iter().flatten();
    let mut allowing = options.filter(|option| {
        let kind = option["kind"].as_str();
        kind.is_some_and(|kind| kind.starts_with("allow"))
    });
    let id = allowing.next().map(|option| option["optionId"].clone());
    json!({"outcome": {"outcome": "selected", "optionId": id}})
}

async fn reports_running_again(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (accepted, id, params) = wait_for_permission(harness).await?;
    harness.host.permission_reply = PermissionReply::Allow;
    if latest_state(harness, &accepted) != Some("requires_action") {
        return skip("the agent does not report `requires_action`");
    }
    harness
        .wire
        .send_result(&id, allow_outcome(&params))
        .await?;
    let turn = harness.finish_turn_v2(&accepted).await?;
    let mut states = turn.updates.iter().filter_map(reported_state);
    states.find(|state| *state == "requires_action");
    let next = states.next();
    require(next == Some("running"), || {
        format!(
            "`requires_action` was followed by {}; expected `running`",
            next.unwrap_or("nothing")
        )
    })
}

async fn continues_after_allow(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (accepted, id, params) = wait_for_permission(harness).await?;
    harness.host.permission_reply = PermissionReply::Allow;
    harness
        .wire
        .send_result(&id, allow_outcome(&params))
        .await?;
    harness.finish_turn_v2(&accepted).await.map(drop)
}

async fn respects_rejection(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    harness.host.permission_reply = PermissionReply::Reject;
    let turn = harness.run_task_v2(&session, AgentTask::Edit).await?;
    let asked = turn
        .requests
        .iter()
        .any(|(method, _)| method == "session/request_permission");
    if !asked {
        return skip("the agent did not request permission");
    }
    harness.require_file_unchanged_v2()
}

async fn rejects_unknown_outcome(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (accepted, id, _) = wait_for_permission(harness).await?;
    harness.host.permission_reply = PermissionReply::Reject;
    let outcome = json!({"outcome": "_acp-check/perhaps", "optionId": "acp-check"});
    harness
        .wire
        .send_result(&id, json!({"outcome": outcome}))
        .await?;
    harness.finish_turn_v2(&accepted).await?;
    harness.require_file_unchanged_v2()
}

async fn does_not_act_after_failure(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (accepted, id, _) = wait_for_permission(harness).await?;
    harness.host.permission_reply = PermissionReply::Reject;
    harness
        .wire
        .send_error(&id, -32603, "Internal error")
        .await?;
    harness.finish_turn_v2(&accepted).await?;
    harness.require_file_unchanged_v2()
}
