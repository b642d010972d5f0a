//! Tests of the state updates sent to a version 2 client while the agent waits for the user, and afterward.

use acp::agent::Turn;
use acp::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, StopReason, ToolCallUpdate,
};
use acp::{Agent, Connection, Limits, Options, Result};
use serde_json::{Value, json};

use crate::common::{PIPE_CAPACITY, PromptAgent, TestPeer, connect_pipes};

/// Returns a version 2 client during a turn.
async fn begin_turn(agent: impl Agent) -> (Connection, TestPeer, String) {
    let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
    let options = Options::from(Limits::default()).draft_version_2();
    let conn = acp::testing::start_agent(transport, agent, options);
    let params =
        json!({"protocolVersion": 2, "info": {"name": "c", "version": "1"}, "capabilities": {}});
    peer.send_request("init", "initialize", params).await;
    assert_eq!(peer.expect_result("init").await["protocolVersion"], 2);
    let session = peer.new_session().await;
    peer.send_prompt(1, &session, "go").await;
    peer.expect_result(1).await;
    assert_eq!(
        next_update(&mut peer).await["sessionUpdate"],
        "user_message"
    );
    expect_state(&mut peer, "running").await;
    (conn, peer, session)
}

async fn next_update(peer: &mut TestPeer) -> Value {
    peer.expect_notification("session/update").await["update"].take()
}

/// Expects a state update with the given state.
async fn expect_state(peer: &mut TestPeer, expected: &str) -> Value {
    let told = next_update(peer).await;
    assert_eq!(told["sessionUpdate"], "state_update", "{told}");
    assert_eq!(told["state"], expected, "{told}");
    told
}

/// Expects a permission request.
async fn expect_permission_request(peer: &mut TestPeer) -> Value {
    peer.expect_request("session/request_permission").await.0
}

/// Expects the turn to end with the given stop reason.
async fn expect_turn_end(peer: &mut TestPeer, reason: &str) {
    assert_eq!(expect_state(peer, "idle").await["stopReason"], reason);
}

async fn ask_user(turn: &Turn, call: &str) -> Result<RequestPermissionOutcome> {
    let options = vec![PermissionOption::new(
        "y",
        "Yes",
        PermissionOptionKind::AllowOnce,
    )];
    turn.request_permission(ToolCallUpdate::new(call), options)
        .await
}

fn allow_response() -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": "y"}})
}

#[tokio::test(start_paused = true)]
async fn the_agent_continues_after_an_error_response() {
    let agent = PromptAgent(async |turn: Turn, _| {
        let refused = ask_user(&turn, "a").await;
        turn.send_message(&refused.unwrap_err().to_string()).await?;
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, _) = begin_turn(agent).await;
    expect_state(&mut peer, "requires_action").await;
    let id = expect_permission_request(&mut peer).await;
    peer.send_error(&id, -32603).await;
    expect_state(&mut peer, "running").await;
    assert_eq!(
        next_update(&mut peer).await["sessionUpdate"],
        "agent_message_chunk"
    );
    expect_turn_end(&mut peer, "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn the_agent_continues_after_an_invalid_response() {
    let agent = PromptAgent(async |turn: Turn, _| {
        assert!(ask_user(&turn, "a").await.is_err());
        turn.send_message("on").await?;
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, _) = begin_turn(agent).await;
    expect_state(&mut peer, "requires_action").await;
    let id = expect_permission_request(&mut peer).await;
    // An array in place of the object, with its only value.
    peer.answer(&id, json!([{"outcome": "selected", "optionId": "y"}]))
        .await;
    expect_state(&mut peer, "running").await;
    assert_eq!(
        next_update(&mut peer).await["sessionUpdate"],
        "agent_message_chunk"
    );
    expect_turn_end(&mut peer, "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn the_agent_continues_after_the_client_cancels_a_request() {
    let agent = PromptAgent(async |turn: Turn, _| {
        assert!(ask_user(&turn, "a").await.is_err());
        let outcome = ask_user(&turn, "b").await?;
        assert_eq!(outcome, RequestPermissionOutcome::cancelled());
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, _) = begin_turn(agent).await;
    expect_state(&mut peer, "requires_action").await;
    let id = expect_permission_request(&mut peer).await;
    peer.send_error(&id, -32800).await;
    expect_state(&mut peer, "running").await;
    // Cancelled by the outcome.
    expect_state(&mut peer, "requires_action").await;
    let id = expect_permission_request(&mut peer).await;
    peer.answer(&id, json!({"outcome": {"outcome": "cancelled"}}))
        .await;
    expect_state(&mut peer, "running").await;
    expect_turn_end(&mut peer, "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn the_agent_continues_after_dropping_a_question() {
    let agent = PromptAgent(async |turn: Turn, _| {
        let second = std::time::Duration::from_secs(1);
        let waited = tokio::time::timeout(second, ask_user(&turn, "a")).await;
        assert!(waited.is_err());
        turn.send_message("on").await?;
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, _) = begin_turn(agent).await;
    expect_state(&mut peer, "requires_action").await;
    let id = expect_permission_request(&mut peer).await;
    let withdrawn = peer.expect_notification("$/cancel_request").await;
    assert_eq!(withdrawn, json!({"requestId": id}));
    expect_state(&mut peer, "running").await;
    assert_eq!(
        next_update(&mut peer).await["sessionUpdate"],
        "agent_message_chunk"
    );
    expect_turn_end(&mut peer, "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn the_agent_continues_after_the_last_of_several_answers() {
    let agent = PromptAgent(async |turn: Turn, _| {
        let second = std::time::Duration::from_secs(1);
        let (refused, dropped, answered) = tokio::join!(
            ask_user(&turn, "a"),
            tokio::time::timeout(second, ask_user(&turn, "b")),
            ask_user(&turn, "c"),
        );
        assert!(refused.is_err() && dropped.is_err() && answered.is_ok());
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, _) = begin_turn(agent).await;
    expect_state(&mut peer, "requires_action").await;
    let first = expect_permission_request(&mut peer).await;
    let second = expect_permission_request(&mut peer).await;
    let third = expect_permission_request(&mut peer).await;
    peer.send_error(&first, -32603).await;
    // The next message is about the second question, a second later, and is not a state.
    let withdrawn = peer.expect_notification("$/cancel_request").await;
    assert_eq!(withdrawn, json!({"requestId": second}));
    peer.expect_silence().await;
    peer.answer(&third, allow_response()).await;
    expect_state(&mut peer, "running").await;
    expect_turn_end(&mut peer, "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_does_not_continue() {
    let agent = PromptAgent(async |turn: Turn, _| {
        ask_user(&turn, "a").await?;
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, session) = begin_turn(agent).await;
    expect_state(&mut peer, "requires_action").await;
    expect_permission_request(&mut peer).await;
    peer.notify("session/cancel", json!({"sessionId": session}))
        .await;
    peer.expect_notification("$/cancel_request").await;
    expect_turn_end(&mut peer, "cancelled").await;
}
