//! Hostile input: every line gets the response that it requires, and the connection continues.

mod answers;
mod beginning;
mod limits;
mod lines;
mod pipes;
mod sizes;

use acp::client::ClientSession;
use acp::v1::StopReason;
use serde_json::json;

use crate::common::{TestPeer, shown, soon};

/// Runs a turn, which must succeed.
pub(crate) async fn lives(session: &ClientSession, peer: &mut TestPeer) {
    let (id, turn) = peer.prompted(session, "still there?").await;
    peer.says(session.id().as_str(), "yes").await;
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    assert_eq!(
        soon("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(shown(session.thread()).last().unwrap(), "agent: yes");
}
