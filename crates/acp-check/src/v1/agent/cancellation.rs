//! Prompt turn: what cancels one, and what comes of it.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::host::PermissionReply;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require};
use crate::wire::ReceivedResponse;

use super::prompt_turn::of_a_turn;

checks! { V1 Agent "prompt-turn";
    31 Must "A cancelled turn ends with stop reason `cancelled`." => cancels_turn;
    32 Should "The agent stops promptly after `session/cancel`." => cancels_running_turn;
    33 Must "A turn cancelled during a permission request ends with stop reason `cancelled`." => cancels_while_asking;
    34 Must "A file request that fails because of a cancel does not end the turn with an error." => cancels_while_reading_file;
    35 Must "A terminal request that fails because of a cancel does not end the turn with an error." => cancels_while_running_command;
    36 Must "Remaining updates of a cancelled turn are sent before the response to its prompt." => nothing_afterwards;
    37 Must "After a cancelled turn, the session accepts another prompt." => remains_usable;
    38 Must "`session/cancel` without a running turn has no effect, not even on the next turn." => nothing_to_cancel;
    39 Must "`session/cancel` for an unknown session is ignored." => unknown_session;
    40 Must "A turn cancelled twice gets one response." => cancels_twice;
    41 Must "A turn cancelled immediately after its prompt ends with stop reason `cancelled`." => cancels_right_after_prompt;
    42 Must "Cancelling a turn does not affect other sessions." => other_session;
    43 Must "A prompt cancelled with `$/cancel_request` gets error -32800 or a valid response." => request_cancelled;
    44 Must "`$/cancel_request` for an unknown request is ignored." => unknown_request;
    45 Must "`session/close` cancels the running turn." => cancels_on_close;
}

async fn cancels_turn(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let prompt = play.long_turn(&session).await?;
    play.cancel(&session).await?;
    play.ends_cancelled(&prompt).await
}

async fn cancels_running_turn(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let prompt = play.long_turn(&session).await?;
    play.cancel(&session).await?;
    match play.answer(&prompt).await {
        Err(CheckStop::Fail(why)) => fail(format!("after `session/cancel`: {why}")),
        answer => answer.map(drop),
    }
}

async fn cancels_while_asking(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let method = "session/request_permission";
    let session = play.session().await?;
    let (prompt, asked, _) = play.until_asked(&session, AgentTask::Edit, method).await?;
    play.cancel(&session).await?;
    play.host.permission = PermissionReply::Cancel;
    let outcome = json!({"outcome": {"outcome": "cancelled"}});
    play.answer_open(asked, &json!({"result": outcome})).await?;
    play.ends_cancelled(&prompt).await
}

async fn cancels_while_reading_file(play: &mut AgentHarness) -> Result<(), CheckStop> {
    cancelled_while(play, AgentTask::Read, "fs/read_text_file").await
}

async fn cancels_while_running_command(play: &mut AgentHarness) -> Result<(), CheckStop> {
    cancelled_while(play, AgentTask::Run, "terminal/wait_for_exit").await
}

/// Cancels while a request of the agent's is open, which then fails.
async fn cancelled_while(
    play: &mut AgentHarness,
    task: AgentTask,
    method: &'static str,
) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let (prompt, asked, _) = play.until_asked(&session, task, method).await?;
    play.cancel(&session).await?;
    // Time for the agent to cancel its request as well, which it may.
    play.hush().await?;
    let error = json!({"error": {"code": -32800, "message": "Request cancelled"}});
    play.answer_open(asked, &error).await?;
    play.ends_cancelled(&prompt).await
}

async fn nothing_afterwards(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let prompt = play.long_turn(&session).await?;
    play.cancel(&session).await?;
    play.turn_answer(&prompt).await?;
    let before = play.messages.len();
    play.hush().await?;
    match of_a_turn(play, &session, before) {
        Some(kind) => fail(format!(
            "`{kind}` was sent after the response to the cancelled prompt"
        )),
        None => Ok(()),
    }
}

async fn remains_usable(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let prompt = play.long_turn(&session).await?;
    play.cancel(&session).await?;
    play.turn_answer(&prompt).await?;
    play.goes_on(&session, "a cancelled turn").await.map(drop)
}

async fn nothing_to_cancel(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    play.cancel(&session).await?;
    play.goes_on(&session, "a `session/cancel` without a turn")
        .await
        .map(drop)
}

async fn unknown_session(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    play.cancel("sess_nobody_has_opened").await?;
    let what = "a `session/cancel` for an unknown session";
    play.goes_on(&session, what).await?;
    require_no_response(play, what)
}

/// No answer has come that is none to a request.
fn require_no_response(play: &AgentHarness, what: &str) -> Result<(), CheckStop> {
    require(play.answers_to(&Value::Null).is_empty(), || {
        format!("{what} got a response, but notifications never do")
    })
}

async fn cancels_twice(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let prompt = play.long_turn(&session).await?;
    play.cancel(&session).await?;
    play.cancel(&session).await?;
    play.turn_answer(&prompt).await?;
    play.goes_on(&session, "a turn cancelled twice").await?;
    let answers = play.answers_to(&prompt).len();
    require(answers == 1, || {
        format!("the prompt cancelled twice got {answers} responses")
    })
}

async fn cancels_right_after_prompt(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    // Only of an agent whose turns can take long is it known that this one was not over.
    let prompt = play.long_turn(&session).await?;
    play.cancel(&session).await?;
    play.turn_answer(&prompt).await?;
    let text = play.text_for(AgentTask::Long);
    let prompt = play.begin_prompt(&session, &text).await?;
    play.cancel(&session).await?;
    match play.ends_cancelled(&prompt).await {
        Err(CheckStop::Fail(why)) => fail(format!("cancelled immediately after its prompt: {why}")),
        ended => ended,
    }
}

async fn other_session(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let first = play.session().await?;
    let second = play.session().await?;
    let cancelled = play.long_turn(&first).await?;
    let other = play.long_turn(&second).await?;
    play.cancel(&first).await?;
    play.end_of(&cancelled).await?;
    play.hush().await?;
    let ended = play.answers_to(&other).into_iter().next();
    if let Some(ReceivedResponse::Result(result)) = ended
        && result["stopReason"] == "cancelled"
    {
        return fail("the turn of the other session was cancelled, too");
    }
    play.cancel(&second).await?;
    play.end_of(&other).await.map(drop)
}

async fn request_cancelled(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let prompt = play.long_turn(&session).await?;
    let params = json!({"requestId": prompt});
    play.wire.notify("$/cancel_request", params).await?;
    play.hush().await?;
    if play.answers_to(&prompt).is_empty() {
        // It may go on with what it does.
        play.cancel(&session).await?;
    }
    match play.end_of(&prompt).await? {
        ReceivedResponse::Result(result) => require(result["stopReason"].is_string(), || {
            format!("the response to the prompt has no stop reason: {result}")
        }),
        ReceivedResponse::Error { code: -32800, .. } => Ok(()),
        ReceivedResponse::Error { code, message, .. } => {
            fail(format!("the prompt failed with error {code}: {message}"))
        }
    }
}

async fn unknown_request(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    let params = json!({"requestId": "nobody-has-asked"});
    play.wire.notify("$/cancel_request", params).await?;
    let what = "a `$/cancel_request` for an unknown request";
    play.goes_on(&session, what).await?;
    require_no_response(play, what)
}

async fn cancels_on_close(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = play.session().await?;
    play.require_capability("/agentCapabilities/sessionCapabilities/close")?;
    let prompt = play.long_turn(&session).await?;
    play.result("session/close", json!({"sessionId": session}))
        .await?;
    play.ends_cancelled(&prompt).await
}
