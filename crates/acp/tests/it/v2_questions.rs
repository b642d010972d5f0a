//! What a version 2 client is told while the agent waits for the user, and afterwards.

use acp::agent::Turn;
use acp::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, StopReason, ToolCallUpdate,
};
use acp::{Agent, Connection, Limits, Options, Result};
use serde_json::{Value, json};

use crate::common::{PIPE, PromptAgent, TestPeer, pipes};

/// Returns a version 2 client whose prompt the agent is working on.
async fn in_turn(agent: impl Agent) -> (Connection, TestPeer, String) {
    let (transport, mut peer) = pipes(PIPE);
    let options = Options::from(Limits::default()).draft_version_2();
    let conn = acp::testing::start_agent(transport, agent, options);
    let params =
        json!({"protocolVersion": 2, "info": {"name": "c", "version": "1"}, "capabilities": {}});
    peer.ask("init", "initialize", params).await;
    assert_eq!(peer.result("init").await["protocolVersion"], 2);
    let session = peer.new_session().await;
    peer.prompt(1, &session, "go").await;
    peer.result(1).await;
    assert_eq!(update(&mut peer).await["sessionUpdate"], "user_message");
    state(&mut peer, "running").await;
    (conn, peer, session)
}

async fn update(peer: &mut TestPeer) -> Value {
    peer.notification("session/update").await["update"].take()
}

/// Expects a state update with this state.
async fn state(peer: &mut TestPeer, expected: &str) -> Value {
    let told = update(peer).await;
    assert_eq!(told["sessionUpdate"], "state_update", "{told}");
    assert_eq!(told["state"], expected, "{told}");
    told
}

/// Expects a permission request.
async fn question(peer: &mut TestPeer) -> Value {
    peer.request("session/request_permission").await.0
}

/// Expects the end of the turn with this stop reason.
async fn ends(peer: &mut TestPeer, reason: &str) {
    assert_eq!(state(peer, "idle").await["stopReason"], reason);
}

async fn ask(turn: &Turn, call: &str) -> Result<RequestPermissionOutcome> {
    let options = vec![PermissionOption::new(
        "y",
        "Yes",
        PermissionOptionKind::AllowOnce,
    )];
    turn.request_permission(ToolCallUpdate::new(call), options)
        .await
}

fn yes() -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": "y"}})
}

#[tokio::test(start_paused = true)]
async fn the_agent_continues_after_an_error_response() {
    let agent = PromptAgent(async |turn: Turn, _| {
        let refused = ask(&turn, "a").await;
        turn.message(&refused.unwrap_err().to_string()).await?;
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, _) = in_turn(agent).await;
    state(&mut peer, "requires_action").await;
    let id = question(&mut peer).await;
    peer.refuse(&id, -32603).await;
    state(&mut peer, "running").await;
    assert_eq!(
        update(&mut peer).await["sessionUpdate"],
        "agent_message_chunk"
    );
    ends(&mut peer, "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn the_agent_continues_after_an_invalid_response() {
    let agent = PromptAgent(async |turn: Turn, _| {
        assert!(ask(&turn, "a").await.is_err());
        turn.message("on").await?;
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, _) = in_turn(agent).await;
    state(&mut peer, "requires_action").await;
    let id = question(&mut peer).await;
    // An array in place of the object, with its only value.
    peer.answer(&id, json!([{"outcome": "selected", "optionId": "y"}]))
        .await;
    state(&mut peer, "running").await;
    assert_eq!(
        update(&mut peer).await["sessionUpdate"],
        "agent_message_chunk"
    );
    ends(&mut peer, "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn the_agent_continues_after_the_client_cancels_a_request() {
    let agent = PromptAgent(async |turn: Turn, _| {
        assert!(ask(&turn, "a").await.is_err());
        let outcome = ask(&turn, "b").await?;
        assert_eq!(outcome, RequestPermissionOutcome::cancelled());
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, _) = in_turn(agent).await;
    state(&mut peer, "requires_action").await;
    let id = question(&mut peer).await;
    peer.refuse(&id, -32800).await;
    state(&mut peer, "running").await;
    // Cancelled by the outcome.
    state(&mut peer, "requires_action").await;
    let id = question(&mut peer).await;
    peer.answer(&id, json!({"outcome": {"outcome": "cancelled"}}))
        .await;
    state(&mut peer, "running").await;
    ends(&mut peer, "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn the_agent_continues_after_dropping_a_question() {
    let agent = PromptAgent(async |turn: Turn, _| {
        let second = std::time::Duration::from_secs(1);
        let waited = tokio::time::timeout(second, ask(&turn, "a")).await;
        assert!(waited.is_err());
        turn.message("on").await?;
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, _) = in_turn(agent).await;
    state(&mut peer, "requires_action").await;
    let id = question(&mut peer).await;
    let withdrawn = peer.notification("$/cancel_request").await;
    assert_eq!(withdrawn, json!({"requestId": id}));
    state(&mut peer, "running").await;
    assert_eq!(
        update(&mut peer).await["sessionUpdate"],
        "agent_message_chunk"
    );
    ends(&mut peer, "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn the_agent_continues_after_the_last_of_several_answers() {
    let agent = PromptAgent(async |turn: Turn, _| {
        let second = std::time::Duration::from_secs(1);
        let (refused, dropped, answered) = tokio::join!(
            ask(&turn, "a"),
            tokio::time::timeout(second, ask(&turn, "b")),
            ask(&turn, "c"),
        );
        assert!(refused.is_err() && dropped.is_err() && answered.is_ok());
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, _) = in_turn(agent).await;
    state(&mut peer, "requires_action").await;
    let first = question(&mut peer).await;
    let second = question(&mut peer).await;
    let third = question(&mut peer).await;
    peer.refuse(&first, -32603).await;
    // The next message is about the second question, a second later, and is not a state.
    let withdrawn = peer.notification("$/cancel_request").await;
    assert_eq!(withdrawn, json!({"requestId": second}));
    peer.silence().await;
    peer.answer(&third, yes()).await;
    state(&mut peer, "running").await;
    ends(&mut peer, "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_does_not_continue() {
    let agent = PromptAgent(async |turn: Turn, _| {
        ask(&turn, "a").await?;
        Ok(StopReason::EndTurn)
    });
    let (_conn, mut peer, session) = in_turn(agent).await;
    state(&mut peer, "requires_action").await;
    question(&mut peer).await;
    peer.notify("session/cancel", json!({"sessionId": session}))
        .await;
    peer.notification("$/cancel_request").await;
    ends(&mut peer, "cancelled").await;
}
