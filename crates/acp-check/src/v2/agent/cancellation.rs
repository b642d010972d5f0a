//! Checks how an agent cancels turns and individual requests.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::agent_harness_v2::AcceptedPrompt;
use crate::agent_harness_v2::{reported_state, update_type};
use crate::check::checks;
use crate::host::PermissionReply;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V2 Agent "prompt-lifecycle";
    31 Should "After `session/cancel`, the agent becomes idle." => becomes_idle, shared;
    32 Should "A cancelled turn ends with stop reason `cancelled`." => ends_with_cancelled, shared;
    33 Must "A prompt after a cancelled turn is processed." => accepts_next_prompt, shared;
    34 Must "A `session/cancel` sent while the agent is idle has no effect on the next turn." => ignores_cancel_while_idle, shared;
    35 Must "`session/cancel` for an unknown session is ignored." => ignores_unknown_session, shared;
    36 Must "Cancelling a turn does not affect other sessions." => leaves_other_sessions, shared;
    37 Should "A turn cancelled during a permission request ends with stop reason `cancelled`." => cancels_during_permission_request, shared;
    38 Must "A tool call is not executed if its permission request gets `cancelled`." => does_not_execute_cancelled_call, shared;
    39 Must "A request cancelled with `$/cancel_request` gets a result or error -32800." => responds_to_cancelled_request, shared;
    40 Must "`$/cancel_request` for an unknown request is ignored." => ignores_unknown_request, shared;
}

/// Starts a long turn, and waits until the agent is working. Skips the check if the turn ends before it can be
/// cancelled.
async fn start_long_prompt(
    harness: &mut AgentHarness,
    session: &str,
) -> Result<AcceptedPrompt, CheckStop> {
    let accepted = harness.begin_task_v2(session, AgentTask::Long).await?;
    harness
        .wait_until("some output from a long task", |_, message| {
            let update = &message.params()["update"];
            let output = update_type(update).starts_with("agent_")
                || update_type(update).starts_with("tool_call");
            output.then_some(())
        })
        .await?;
    harness.drain_messages().await?;
    if harness.finished_turn_v2(&accepted).is_some() {
        return skip(
            "the turn ended before it could be cancelled; use a longer task (--prompt-for long=TEXT)",
        );
    }
    Ok(accepted)
}

async fn cancel(harness: &mut AgentHarness, session: &str) -> Result<(), CheckStop> {
    harness
        .wire
        .send_notification("session/cancel", json!({"sessionId": session}))
        .await
}

async fn becomes_idle(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    let accepted = start_long_prompt(harness, &session).await?;
    cancel(harness, &session).await?;
    harness.finish_turn_v2(&accepted).await.map(drop)
}

async fn ends_with_cancelled(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    let accepted = start_long_prompt(harness, &session).await?;
    cancel(harness, &session).await?;
    let turn = harness.finish_turn_v2(&accepted).await?;
    require(turn.stop_reason == "cancelled", || {
        format!(
            "the turn was cancelled, but ended with stop reason {:?}",
            turn.stop_reason
        )
    })
}

async fn accepts_next_prompt(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    let accepted = start_long_prompt(harness, &session).await?;
    cancel(harness, &session).await?;
    harness.finish_turn_v2(&accepted).await?;
    let turn = harness.run_task_v2(&session, AgentTask::Answer).await?;
    require(turn.stop_reason != "cancelled", || {
        "the prompt after the cancelled prompt was cancelled too".to_owned()
    })
}

async fn ignores_cancel_while_idle(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    cancel(harness, &session).await?;
    let turn = harness.run_task_v2(&session, AgentTask::Answer).await?;
    require(turn.stop_reason != "cancelled", || {
        "the turn was cancelled by a `session/cancel` that was sent before its prompt".to_owned()
    })
}

async fn ignores_unknown_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    cancel(harness, "acp-check-nobodys").await?;
    harness
        .run_task_v2(&session, AgentTask::Answer)
        .await
        .map(drop)
}

async fn leaves_other_sessions(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let first = harness.new_session_v2().await?;
    let second = harness.new_session_v2().await?;
    let accepted = start_long_prompt(harness, &first).await?;
    cancel(harness, &second).await?;
    harness.wait_until_quiet().await?;
    // The turn may have ended by itself in the meantime.
    let cancelled = harness.updates_of_prompt_v2(&accepted).any(|update| {
        reported_state(update) == Some("idle") && update["stopReason"] == "cancelled"
    });
    require(!cancelled, || {
        "the turn was cancelled by a `session/cancel` for another session".to_owned()
    })
}

/// Starts a turn that requests permission, leaves that request pending, and returns its id.
async fn wait_for_permission(
    harness: &mut AgentHarness,
    session: &str,
) -> Result<(AcceptedPrompt, Value), CheckStop> {
    harness.host.permission_reply = PermissionReply::Hold;
    let accepted = harness.begin_task_v2(session, AgentTask::Edit).await?;
    let asked = harness.wait_for_permission_v2(&accepted).await?;
    match asked {
        Some((id, _)) => Ok((accepted, id)),
        None => skip("the agent did not request permission"),
    }
}

async fn cancels_during_permission_request(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    let (accepted, id) = wait_for_permission(harness, &session).await?;
    cancel(harness, &session).await?;
    // An agent may end its turn without waiting for the response, and the response may take a moment to arrive.
    harness.wait_until_quiet().await?;
    harness
        .wire
        .send_result(&id, json!({"outcome": {"outcome": "cancelled"}}))
        .await?;
    let turn = harness.finish_turn_v2(&accepted).await?;
    require(turn.stop_reason == "cancelled", || {
        format!(
            "the turn was cancelled, but ended with stop reason {:?}",
            turn.stop_reason
        )
    })
}

async fn does_not_execute_cancelled_call(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    let (accepted, id) = wait_for_permission(harness, &session).await?;
    cancel(harness, &session).await?;
    harness
        .wire
        .send_result(&id, json!({"outcome": {"outcome": "cancelled"}}))
        .await?;
    harness.finish_turn_v2(&accepted).await?;
    harness.require_file_unchanged_v2()
}

async fn responds_to_cancelled_request(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let id = harness
        .wire
        .send_request("_acp-check/cancelled", json!({}))
        .await?;
    harness
        .wire
        .send_notification("$/cancel_request", json!({"requestId": id}))
        .await?;
    match harness.wait_for_response(&id).await? {
        ReceivedResponse::Result(_) => Ok(()),
        // Agents do not know the method, so they may reject the request before it is cancelled.
        ReceivedResponse::Error {
            code: -32800 | -32601,
            ..
        } => Ok(()),
        ReceivedResponse::Error { code, .. } => fail(format!(
            "a cancelled request failed with error {code}; expected -32800"
        )),
    }
}

async fn ignores_unknown_request(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session_v2().await?;
    harness
        .wire
        .send_notification(
            "$/cancel_request",
            json!({"requestId": "acp-check-nobodys"}),
        )
        .await?;
    harness
        .run_task_v2(&session, AgentTask::Answer)
        .await
        .map(drop)
}
