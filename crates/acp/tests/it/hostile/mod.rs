//! Tests of hostile input. Every line gets the response that it requires, and the connection continues.

mod answers;
mod beginning;
mod limits;
mod lines;
mod pipes;
mod sizes;

use acp::client::ClientSession;
use acp::v1::StopReason;
use serde_json::json;

use crate::common::{TestPeer, thread_lines, with_timeout};

/// Runs a turn that must succeed.
pub(crate) async fn assert_alive(session: &ClientSession, peer: &mut TestPeer) {
    let (id, turn) = peer.start_prompt(session, "still there?").await;
    peer.send_text(session.id().as_str(), "yes").await;
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    assert_eq!(
        with_timeout("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(thread_lines(session.thread()).last().unwrap(), "agent: yes");
}
