//! Checks for an agent's turns, from the prompt to the stop reason.

use acp_wire::v1::StopReason;
use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 Agent "prompt-turn";
    1 Must "The response to a prompt has a valid stop reason." => has_valid_stop_reason, shared;
    2 Must "All output of a turn is sent with `session/update` before the response to the prompt." => sends_output_before_response, shared;
    3 Should "No updates of a turn are sent after the response to its prompt." => sends_no_updates_after_response, shared;
    4 Must "Every update has the id of its session." => sends_session_id_in_updates, shared;
    5 Must "Every request that the agent sends during a turn includes the session id of the turn." => sends_session_id_in_requests, shared;
    6 Must "After a turn, the session accepts another prompt." => accepts_second_prompt, shared;
    7 Should "A turn has the context of the previous turns." => uses_history, shared;
    8 Must "Only turns that the client cancelled end with `cancelled`." => does_not_end_with_cancelled, shared;
    9 Must "An empty prompt gets a response and leaves the session usable." => responds_to_empty_prompt, shared;
    10 Should "A prompt for an unknown session fails." => rejects_unknown_session, shared;
    11 Must "Concurrent prompts in two sessions each get a response, and their updates arrive in the right session." => supports_concurrent_turns, shared;
    12 Should "A long turn does not block other sessions." => does_not_block_other_sessions, shared;
    13 Must "Every prompt gets a response, even if it is sent during a running turn." => responds_to_second_prompt, shared;
}

/// The types of updates that belong to a turn. Others, such as usage updates, may be sent at any time.
pub(super) const TURN_UPDATE_TYPES: [&str; 5] = [
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
];

async fn has_valid_stop_reason(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let turn = harness.run_task(&session, AgentTask::Answer).await?;
    let known: Vec<&str> = StopReason::KNOWN.iter().map(StopReason::as_str).collect();
    require(known.contains(&turn.stop_reason.as_str()), || {
        let expected = known.join(", ");
        format!(
            "invalid stop reason {:?}; expected one of {expected}",
            turn.stop_reason
        )
    })
}

async fn sends_output_before_response(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let turn = harness
        .run_task_or_skip(&session, AgentTask::Answer)
        .await?;
    if turn.stop_reason != "end_turn" {
        return skip(format!("the turn ended with {:?}", turn.stop_reason));
    }
    let reported = TURN_UPDATE_TYPES
        .iter()
        .any(|kind| turn.updates_of_type(kind).next().is_some());
    require(reported, || "the turn ended without any output".to_owned())
}

/// Returns the type of the first update that belongs to a turn of this session, skipping the first `after` messages.
pub(super) fn find_turn_update(
    harness: &AgentHarness,
    session: &str,
    after: usize,
) -> Option<String> {
    let of_session = harness.updates_since(after);
    let mut kinds = of_session
        .filter(|params| params["sessionId"] == session)
        .filter_map(|params| params["update"]["sessionUpdate"].as_str());
    kinds
        .find(|kind| TURN_UPDATE_TYPES.contains(kind))
        .map(str::to_owned)
}

async fn sends_no_updates_after_response(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    harness
        .run_task_or_skip(&session, AgentTask::Answer)
        .await?;
    let before = harness.messages.len();
    harness.drain_messages().await?;
    match find_turn_update(harness, &session, before) {
        Some(kind) => fail(format!(
            "`{kind}` was sent after the response to the prompt"
        )),
        None => Ok(()),
    }
}

async fn sends_session_id_in_updates(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    harness
        .run_task_or_skip(&session, AgentTask::Answer)
        .await?;
    let other = harness
        .updates()
        .find(|params| params["sessionId"] != session.as_str());
    match other {
        Some(params) => fail(format!(
            "an update is for session {}, but the only session is {session:?}",
            params["sessionId"]
        )),
        None => Ok(()),
    }
}

/// Returns `true` if the method's params include a `sessionId`.
fn is_session_method(method: &str) -> bool {
    method == "session/request_permission"
        || method.starts_with("fs/")
        || method.starts_with("terminal/")
}

async fn sends_session_id_in_requests(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    for task in [AgentTask::Read, AgentTask::Edit, AgentTask::Run] {
        harness.try_task(&session, task).await?;
    }
    let mut asked = harness
        .requests()
        .filter(|(method, _)| is_session_method(method))
        .peekable();
    if asked.peek().is_none() {
        return skip("the agent sent no requests");
    }
    match asked.find(|(_, params)| params["sessionId"] != session.as_str()) {
        Some((method, params)) => fail(format!(
            "`{method}` is for session {}, but the only session is {session:?}",
            params["sessionId"]
        )),
        None => Ok(()),
    }
}

async fn accepts_second_prompt(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    harness
        .run_task_or_skip(&session, AgentTask::Answer)
        .await?;
    harness
        .require_next_prompt(&session, "the first turn")
        .await
        .map(drop)
}

async fn uses_history(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    harness
        .run_task_or_skip(&session, AgentTask::Remember)
        .await?;
    let said = harness
        .run_task_or_skip(&session, AgentTask::Recall)
        .await?
        .text();
    require(said.contains("7351"), || {
        format!("the agent was asked to remember and repeat 7351, but answered {said:?}")
    })
}

async fn does_not_end_with_cancelled(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let turn = harness
        .run_task_or_skip(&session, AgentTask::Answer)
        .await?;
    require(turn.stop_reason != "cancelled", || {
        "the stop reason is \"cancelled\", but the turn was not cancelled".to_owned()
    })
}

async fn responds_to_empty_prompt(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let params = json!({"sessionId": session, "prompt": []});
    let prompt = harness.wire.send_request("session/prompt", params).await?;
    // The agent may accept or reject it.
    harness.wait_for_turn_response(&prompt).await?;
    harness
        .require_next_prompt(&session, "an empty prompt")
        .await
        .map(drop)
}

async fn rejects_unknown_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.new_session().await?;
    let prompt = harness
        .begin_prompt("sess_nobody_has_opened", "Hello")
        .await?;
    match harness.wait_for_turn_response(&prompt).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(result) => fail(format!(
            "a prompt for an unknown session succeeded with {result}"
        )),
    }
}

async fn supports_concurrent_turns(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let first = harness.new_session().await?;
    let second = harness.new_session().await?;
    let text = harness.prompt_text(AgentTask::Answer);
    let mut prompts: Vec<(String, Value)> = Vec::new();
    for session in [first, second] {
        let prompt = harness.begin_prompt(&session, &text).await?;
        prompts.push((session, prompt));
    }
    for (session, prompt) in &prompts {
        let response = harness.prompt_response(prompt).await?;
        let turn = harness.read_turn(session, response, 0)?;
        let reported = TURN_UPDATE_TYPES
            .iter()
            .any(|kind| turn.updates_of_type(kind).next().is_some());
        require(reported || turn.stop_reason != "end_turn", || {
            format!(
                "the prompt in session {session:?}, one of two concurrent prompts, ended without an update"
            )
        })?;
    }
    Ok(())
}

async fn does_not_block_other_sessions(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let busy = harness.new_session().await?;
    let other = harness.new_session().await?;
    let prompt = harness.begin_long_turn(&busy).await?;
    let turn = harness.run_task(&other, AgentTask::Answer).await;
    harness.cancel(&busy).await?;
    match turn {
        Err(CheckStop::Fail(why)) => fail(format!(
            "while a turn was running in another session: {why}"
        )),
        turn => {
            turn?;
            harness.prompt_response(&prompt).await.map(drop)
        }
    }
}

async fn responds_to_second_prompt(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let text = harness.prompt_text(AgentTask::Answer);
    let first = harness.begin_prompt(&session, &text).await?;
    let second = harness.begin_prompt(&session, &text).await?;
    for prompt in [first, second] {
        // The agent may queue the second prompt, reject it, or end the first turn.
        harness.prompt_response(&prompt).await?;
    }
    Ok(())
}
