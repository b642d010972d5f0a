//! Prompt lifecycle: a prompt is acknowledged, worked on, and the work ends.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::client_harness_v2::{WATCHED, said};
use crate::verdict::{CheckStop, fail};

checks! { V2 Client "prompt-lifecycle";
    101 Must "That a prompt was taken does not mean that the work is done: the client waits for its end." => waits;
    102 Must "An `idle` need not say why the work has ended." => no_reason;
    103 Should "A stop reason that the client does not know is no obstacle." => unknown_reason;
    104 Should "A state that the client does not know is no obstacle." => unknown_state;
    105 Should "An update of a kind that the client does not know is passed over, or shown in some way." => unknown_update;
    106 Must "Of a message that is told of whole, only the id is required." => message_by_id;
    107 Must "A message that was told of is changed: its content is replaced, cleared, and added to." => message_changed;
    108 Must "A chunk may be of a message that was not told of before." => chunk_first;
    109 Must "Of what a session is called, a part may be told, or that it is no more." => info_in_part;
}

async fn waits(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.prompted_v2().await?;
    play.accept_v2(&prompted).await?;
    let watching = async {
        while let Some(message) = play.next().await? {
            play.serve(&message).await?;
        }
        Ok::<(), CheckStop>(())
    };
    match tokio::time::timeout(WATCHED, watching).await {
        Err(_) => {}
        Ok(Ok(())) => return fail("it closed the connection when its prompt was acknowledged"),
        Ok(Err(stop)) => return Err(stop),
    }
    play.state_v2(&prompted, json!({"state": "running"}))
        .await?;
    play.alive_v2("the prompt was acknowledged").await?;
    play.idle_v2(&prompted, "end_turn").await
}

async fn no_reason(play: &mut ClientHarness) -> Result<(), CheckStop> {
    ends_with(play, json!({"state": "idle"})).await
}

async fn unknown_reason(play: &mut ClientHarness) -> Result<(), CheckStop> {
    ends_with(
        play,
        json!({"state": "idle", "stopReason": "_acp-check/tired"}),
    )
    .await
}

/// Ends the work in some way. A client that closes the connection then, as one that was to prompt once does, must
/// have begun to; the others answer still.
async fn ends_with(play: &mut ClientHarness, idle: Value) -> Result<(), CheckStop> {
    let prompted = play.working_v2().await?;
    let why = idle.to_string();
    play.state_v2(&prompted, idle).await?;
    let alive = play.alive_v2(&why).await;
    if let Err(CheckStop::Fail(_)) = alive {
        // Its input may be closed a moment before its output.
        let draining = async { while let Ok(Some(_)) = play.next().await {} };
        let _ = tokio::time::timeout(WATCHED, draining).await;
        if play.wire.has_ended() {
            return Ok(());
        }
    }
    alive
}

async fn unknown_state(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let update =
        json!({"sessionUpdate": "state_update", "state": "_acp-check/dreaming", "of": "sheep"});
    play.tolerates_v2("an unknown state", &[update]).await
}

async fn unknown_update(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let own = json!({"sessionUpdate": "_acp-check/weather", "sunny": true});
    let later = json!({"sessionUpdate": "weather_update", "sunny": [true]});
    play.tolerates_v2("an update of an unknown kind", &[own, later])
        .await
}

async fn message_by_id(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let kinds = ["user_message", "agent_message", "agent_thought"];
    let updates =
        kinds.map(|kind| json!({"sessionUpdate": kind, "messageId": format!("by-id-{kind}")}));
    play.tolerates_v2("a message with an id and nothing else", &updates)
        .await
}

async fn message_changed(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let whole = |content: Value| json!({"sessionUpdate": "agent_message", "messageId": "changed", "content": content});
    let mut chunk = said("added");
    chunk["messageId"] = json!("changed");
    let text = json!([{"type": "text", "text": "first"}]);
    let updates = [whole(text), chunk, whole(Value::Null), whole(json!([]))];
    play.tolerates_v2("a message that was replaced and cleared", &updates)
        .await
}

async fn chunk_first(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let content = json!({"type": "text", "text": "Hm."});
    let kinds = [
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
    ];
    let updates = kinds.map(|kind| {
        json!({"sessionUpdate": kind, "messageId": format!("first-{kind}"), "content": content})
    });
    play.tolerates_v2("a chunk of a new message", &updates)
        .await
}

async fn info_in_part(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let updates = [
        json!({"sessionUpdate": "session_info_update", "title": "Checked"}),
        json!({"sessionUpdate": "session_info_update", "updatedAt": "2026-08-01T12:00:00Z"}),
        json!({"sessionUpdate": "session_info_update", "title": null, "updatedAt": null}),
        json!({"sessionUpdate": "session_info_update"}),
    ];
    play.tolerates_v2("part of what a session is called", &updates)
        .await
}
