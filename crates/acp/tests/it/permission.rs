//! What `Turn::ask` sends, and how it interprets the response.

use acp::agent::{PermissionAnswer, Turn};
use acp::v1::StopReason;
use serde_json::{Value, json};

use crate::common::{PromptAgent, TestPeer};

/// Returns the agent's answer if the client responds with this outcome.
async fn told(outcome: Value) -> PermissionAnswer {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let agent = PromptAgent(move |turn: Turn, _| {
        let sender = sender.clone();
        async move {
            let call = turn.tool_call("Delete notes.txt").await?;
            sender.send(turn.ask(&call).await?).unwrap();
            Ok(StopReason::EndTurn)
        }
    });
    let (_conn, mut peer, session) = TestPeer::in_session(agent).await;
    peer.prompt(1, &session, "go").await;
    let call = peer.notification("session/update").await["update"].take();
    assert_eq!(call["title"], "Delete notes.txt");
    let (id, params) = peer.request("session/request_permission").await;
    assert_eq!(params["toolCall"]["toolCallId"], call["toolCallId"]);
    // Some clients go by the id, and treat any id that is not the name of a kind as a rejection.
    let options = json!([
        {"optionId": "allow_once", "name": "Allow", "kind": "allow_once"},
        {"optionId": "reject_once", "name": "Reject", "kind": "reject_once"},
    ]);
    assert_eq!(params["options"], options);
    peer.answer(&id, json!({ "outcome": outcome })).await;
    peer.result(1).await;
    let mut receiver = receiver;
    receiver.recv().await.unwrap()
}

#[tokio::test]
async fn only_the_allow_option_allows() {
    let selected = |id: &str| json!({"outcome": "selected", "optionId": id});
    assert_eq!(
        told(selected("allow_once")).await,
        PermissionAnswer::Allowed
    );
    assert_eq!(
        told(selected("reject_once")).await,
        PermissionAnswer::Rejected
    );
    // Neither option was offered.
    assert_eq!(told(selected("allow")).await, PermissionAnswer::Rejected);
    assert_eq!(
        told(selected("allow_always")).await,
        PermissionAnswer::Rejected
    );
    let cancelled = json!({"outcome": "cancelled"});
    assert_eq!(told(cancelled).await, PermissionAnswer::Cancelled);
}
