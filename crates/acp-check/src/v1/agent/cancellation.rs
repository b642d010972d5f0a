//! Checks how an agent cancels turns.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::host::PermissionReply;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require};
use crate::wire::ReceivedResponse;

use super::prompt_turn::find_turn_update;

checks! { V1 Agent "prompt-turn";
    31 Must "A cancelled turn ends with stop reason `cancelled`." => cancels_turn, shared;
    32 Should "The agent stops promptly after `session/cancel`." => cancels_running_turn, shared;
    33 Must "A turn that is cancelled during a permission request ends with stop reason `cancelled`." => cancels_during_permission_request, shared;
    34 Must "A file request that fails because the turn was cancelled does not end the turn with an error." => cancels_while_reading_file, shared;
    35 Must "A terminal request that fails because the turn was cancelled does not end the turn with an error." => cancels_while_running_command, shared;
    36 Must "Remaining updates of a cancelled turn are sent before the response to its prompt." => sends_no_updates_after_response, shared;
    37 Must "After a cancelled turn, the session accepts another prompt." => remains_usable, shared;
    38 Must "`session/cancel` without a running turn has no effect, not even on the next turn." => ignores_cancel_without_turn, shared;
    39 Must "`session/cancel` for an unknown session is ignored." => ignores_unknown_session, shared;
    40 Must "A turn that is cancelled twice gets one response." => cancels_twice, shared;
    41 Must "If a turn is cancelled immediately after its prompt was sent, it ends with stop reason `cancelled`." => cancels_right_after_prompt, shared;
    42 Must "Cancelling a turn does not affect other sessions." => leaves_other_sessions, shared;
    43 Must "A prompt that is cancelled with `$/cancel_request` gets error -32800 or a valid response." => responds_to_cancelled_request, shared;
    44 Must "`$/cancel_request` for an unknown request is ignored." => ignores_unknown_request, shared;
    45 Must "`session/close` cancels the running turn." => cancels_on_close, shared;
}

async fn cancels_turn(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let prompt = harness.begin_long_turn(&session).await?;
    harness.cancel(&session).await?;
    harness.require_cancelled(&prompt).await
}

async fn cancels_running_turn(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let prompt = harness.begin_long_turn(&session).await?;
    harness.cancel(&session).await?;
    match harness.wait_for_response(&prompt).await {
        Err(CheckStop::Fail(why)) => fail(format!("after `session/cancel`: {why}")),
        response => response.map(drop),
    }
}

async fn cancels_during_permission_request(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let method = "session/request_permission";
    let session = harness.new_session().await?;
    let (prompt, asked, _) = harness
        .wait_for_held_request(&session, AgentTask::Edit, method)
        .await?;
    harness.cancel(&session).await?;
    harness.host.permission_reply = PermissionReply::Cancel;
    let outcome = json!({"outcome": {"outcome": "cancelled"}});
    harness
        .respond_to_held_requests(asked, &json!({"result": outcome}))
        .await?;
    harness.require_cancelled(&prompt).await
}

async fn cancels_while_reading_file(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    cancel_during_request(harness, AgentTask::Read, "fs/read_text_file").await
}

async fn cancels_while_running_command(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    cancel_during_request(harness, AgentTask::Run, "terminal/wait_for_exit").await
}

/// Cancels the turn while a request from the agent is pending, then responds to that request with an error.
async fn cancel_during_request(
    harness: &mut AgentHarness,
    task: AgentTask,
    method: &'static str,
) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let (prompt, asked, _) = harness
        .wait_for_held_request(&session, task, method)
        .await?;
    harness.cancel(&session).await?;
    // The agent may cancel its request as well, so give it time to do so.
    harness.drain_messages().await?;
    let error = json!({"error": {"code": -32800, "message": "Request cancelled"}});
    harness.respond_to_held_requests(asked, &error).await?;
    harness.require_cancelled(&prompt).await
}

async fn sends_no_updates_after_response(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let prompt = harness.begin_long_turn(&session).await?;
    harness.cancel(&session).await?;
    harness.wait_for_turn_response(&prompt).await?;
    let before = harness.messages.len();
    harness.drain_messages().await?;
    match find_turn_update(harness, &session, before) {
        Some(kind) => fail(format!(
            "`{kind}` was sent after the response to the cancelled prompt"
        )),
        None => Ok(()),
    }
}

async fn remains_usable(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let prompt = harness.begin_long_turn(&session).await?;
    harness.cancel(&session).await?;
    harness.wait_for_turn_response(&prompt).await?;
    harness
        .require_next_prompt(&session, "a cancelled turn")
        .await
        .map(drop)
}

async fn ignores_cancel_without_turn(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    harness.cancel(&session).await?;
    harness
        .require_next_prompt(&session, "a `session/cancel` without a running turn")
        .await
        .map(drop)
}

async fn ignores_unknown_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    harness.cancel("sess_nobody_has_opened").await?;
    let what = "a `session/cancel` for an unknown session";
    harness.require_next_prompt(&session, what).await?;
    require_no_response(harness, what)
}

/// Requires that the agent has not responded to a notification.
fn require_no_response(harness: &AgentHarness, what: &str) -> Result<(), CheckStop> {
    require(harness.responses_to(&Value::Null).is_empty(), || {
        format!("{what} got a response, but notifications must not get responses")
    })
}

async fn cancels_twice(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let prompt = harness.begin_long_turn(&session).await?;
    harness.cancel(&session).await?;
    harness.cancel(&session).await?;
    harness.wait_for_turn_response(&prompt).await?;
    harness
        .require_next_prompt(&session, "a turn that was cancelled twice")
        .await?;
    let answers = harness.responses_to(&prompt).len();
    require(answers == 1, || {
        format!("the prompt that was cancelled twice got {answers} responses")
    })
}

async fn cancels_right_after_prompt(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    // It is certain that this turn had not ended only if the agent's turns can take long.
    let prompt = harness.begin_long_turn(&session).await?;
    harness.cancel(&session).await?;
    harness.wait_for_turn_response(&prompt).await?;
    let text = harness.prompt_text(AgentTask::Long);
    let prompt = harness.begin_prompt(&session, &text).await?;
    harness.cancel(&session).await?;
    match harness.require_cancelled(&prompt).await {
        Err(CheckStop::Fail(why)) => fail(format!(
            "after cancelling a turn immediately after its prompt was sent: {why}"
        )),
        ended => ended,
    }
}

async fn leaves_other_sessions(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let first = harness.new_session().await?;
    let second = harness.new_session().await?;
    let cancelled = harness.begin_long_turn(&first).await?;
    let other = harness.begin_long_turn(&second).await?;
    harness.cancel(&first).await?;
    harness.prompt_response(&cancelled).await?;
    harness.drain_messages().await?;
    let ended = harness.responses_to(&other).into_iter().next();
    if let Some(ReceivedResponse::Result(result)) = ended
        && result["stopReason"] == "cancelled"
    {
        return fail("the turn in the other session was cancelled too");
    }
    harness.cancel(&second).await?;
    harness.prompt_response(&other).await.map(drop)
}

async fn responds_to_cancelled_request(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let prompt = harness.begin_long_turn(&session).await?;
    let params = json!({"requestId": prompt});
    harness
        .wire
        .send_notification("$/cancel_request", params)
        .await?;
    harness.drain_messages().await?;
    if harness.responses_to(&prompt).is_empty() {
        // The agent may continue with its work.
        harness.cancel(&session).await?;
    }
    match harness.prompt_response(&prompt).await? {
        ReceivedResponse::Result(result) => require(result["stopReason"].is_string(), || {
            format!("the response to the prompt has no stop reason: {result}")
        }),
        ReceivedResponse::Error { code: -32800, .. } => Ok(()),
        ReceivedResponse::Error { code, message, .. } => {
            fail(format!("the prompt failed with error {code}: {message}"))
        }
    }
}

async fn ignores_unknown_request(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let params = json!({"requestId": "nobody-has-asked"});
    harness
        .wire
        .send_notification("$/cancel_request", params)
        .await?;
    let what = "a `$/cancel_request` for an unknown request";
    harness.require_next_prompt(&session, what).await?;
    require_no_response(harness, what)
}

async fn cancels_on_close(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    harness.require_capability("/agentCapabilities/sessionCapabilities/close")?;
    let prompt = harness.begin_long_turn(&session).await?;
    harness
        .request_result("session/close", json!({"sessionId": session}))
        .await?;
    harness.require_cancelled(&prompt).await
}
