//! Checks how an agent closes sessions.

use serde_json::json;

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;
use acp_rules::schema::Envelope;

checks! { V1 Agent "session-setup";
    40 Must "An open session can be closed." => closes_session, shared;
    41 Must "A turn that is running when its session is closed gets a response." => responds_to_prompt_of_closed_session, shared;
    42 Must "A turn that is running when its session is closed ends with `cancelled`." => cancels_turn_of_closed_session, shared;
    43 Must "Closing a session does not affect other sessions." => leaves_other_sessions, shared;
    44 Should "An agent that does not support `session/close` rejects it." => rejects_unsupported_close, shared;
}

const CLOSE_CAPABILITY: &str = "/agentCapabilities/sessionCapabilities/close";

async fn open_session(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    harness.initialize().await?;
    harness.require_capability(CLOSE_CAPABILITY)?;
    harness.new_session().await
}

async fn closes_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = open_session(harness).await?;
    harness
        .request_result("session/close", json!({"sessionId": session}))
        .await?;
    Ok(())
}

/// Closes a session during a turn, and returns the response to the prompt.
async fn close_during_turn(harness: &mut AgentHarness) -> Result<ReceivedResponse, CheckStop> {
    let session = open_session(harness).await?;
    let text = harness.prompt_text(AgentTask::Long);
    let prompt = harness.begin_prompt(&session, &text).await?;
    let runs = harness
        .wait_until_in_turn("the beginning of a turn", |_, message| {
            let kind = message.params()["update"]["sessionUpdate"].as_str();
            match message.envelope() {
                Some(Envelope::Response { id, .. }) if *id == prompt => Some(false),
                _ => matches!(
                    kind,
                    Some("agent_message_chunk" | "agent_thought_chunk" | "tool_call")
                )
                .then_some(true),
            }
        })
        .await?;
    if !runs {
        return skip("the turn ended before the session could be closed");
    }
    let close = harness
        .wire
        .send_request("session/close", json!({"sessionId": session}))
        .await?;
    let mut answers = harness.wait_for_responses(&[prompt, close]).await?;
    Ok(answers.swap_remove(0))
}

async fn responds_to_prompt_of_closed_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    close_during_turn(harness).await?;
    Ok(())
}

async fn cancels_turn_of_closed_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    match close_during_turn(harness).await? {
        ReceivedResponse::Result(result) => {
            let reason = result["stopReason"].as_str().unwrap_or_default();
            // The turn may have ended at that moment.
            require(matches!(reason, "cancelled" | "end_turn"), || {
                format!("the turn ended with {reason:?}; expected \"cancelled\"")
            })
        }
        ReceivedResponse::Error { code, message, .. } => fail(format!(
            "the prompt failed with error {code}: {message}; expected \"cancelled\""
        )),
    }
}

async fn leaves_other_sessions(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let other = open_session(harness).await?;
    let session = harness.new_session().await?;
    harness
        .request_result("session/close", json!({"sessionId": session}))
        .await?;
    harness.run_task(&other, AgentTask::Answer).await?;
    Ok(())
}

async fn rejects_unsupported_close(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    if harness.require_capability(CLOSE_CAPABILITY).is_ok() {
        return skip("the agent supports `session/close`");
    }
    let params = json!({"sessionId": session});
    match harness.request("session/close", params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => {
            fail("the agent does not support `session/close`, but the request succeeded")
        }
    }
}
