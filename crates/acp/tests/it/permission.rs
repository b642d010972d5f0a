//! Tests of the request that `Turn::ask` sends and of how it interprets the response.

use acp::agent::{PermissionAnswer, Turn};
use acp::v1::StopReason;
use serde_json::{Value, json};

use crate::common::{PromptAgent, TestPeer};

/// Returns the answer that the agent gets if the client responds with the given outcome.
async fn answer_for(outcome: Value) -> PermissionAnswer {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let agent = PromptAgent(move |turn: Turn, _| {
        let sender = sender.clone();
        async move {
            let call = turn.report_tool_call("Delete notes.txt").await?;
            sender.send(turn.ask(&call).await?).unwrap();
            Ok(StopReason::EndTurn)
        }
    });
    let (_conn, mut peer, session) = TestPeer::open_agent_session(agent).await;
    peer.send_prompt(1, &session, "go").await;
    let call = peer.expect_notification("session/update").await["update"].take();
    assert_eq!(call["title"], "Delete notes.txt");
    let (id, params) = peer.expect_request("session/request_permission").await;
    assert_eq!(params["toolCall"]["toolCallId"], call["toolCallId"]);
    // Some clients go by the id, and treat any id that is not the name of a kind as a rejection.
    let options = json!([
        {"optionId": "allow_once", "name": "Allow", "kind": "allow_once"},
        {"optionId": "reject_once", "name": "Reject", "kind": "reject_once"},
    ]);
    assert_eq!(params["options"], options);
    peer.answer(&id, json!({ "outcome": outcome })).await;
    peer.expect_result(1).await;
    let mut receiver = receiver;
    receiver.recv().await.unwrap()
}

#[tokio::test]
async fn only_the_offered_allow_option_allows() {
    let selected = |id: &str| json!({"outcome": "selected", "optionId": id});
    assert_eq!(
        answer_for(selected("allow_once")).await,
        PermissionAnswer::Allowed
    );
    assert_eq!(
        answer_for(selected("reject_once")).await,
        PermissionAnswer::Rejected
    );
    // Neither option was offered.
    assert_eq!(
        answer_for(selected("allow")).await,
        PermissionAnswer::Rejected
    );
    assert_eq!(
        answer_for(selected("allow_always")).await,
        PermissionAnswer::Rejected
    );
    let cancelled = json!({"outcome": "cancelled"});
    assert_eq!(answer_for(cancelled).await, PermissionAnswer::Cancelled);
}
