//! Prompt lifecycle: a prompt is acknowledged and worked on, and the turn ends.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::client_harness_v2::{WATCHED, said};
use crate::verdict::{CheckStop, fail};

checks! { V2 Client "prompt-lifecycle";
    101 Must "The client waits for `idle`, not only for the response to the prompt." => waits;
    102 Must "An `idle` without a stop reason is accepted." => no_reason;
    103 Should "Unknown stop reasons are accepted." => unknown_reason;
    104 Should "Unknown states are accepted." => unknown_state;
    105 Should "Unknown update types are accepted." => unknown_update;
    106 Must "A message with only an id is accepted." => message_by_id;
    107 Must "Message content can be replaced, cleared and appended to." => message_changed;
    108 Must "A chunk may start a new message." => chunk_first;
    109 Must "Session info updates may be partial, and may clear fields." => info_in_part;
}

async fn waits(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.prompted_v2().await?;
    harness.accept_v2(&prompted).await?;
    let watching = async {
        while let Some(message) = harness.next().await? {
            harness.serve(&message).await?;
        }
        Ok::<(), CheckStop>(())
    };
    match tokio::time::timeout(WATCHED, watching).await {
        Err(_) => {}
        Ok(Ok(())) => return fail("it closed the connection when its prompt was acknowledged"),
        Ok(Err(stop)) => return Err(stop),
    }
    harness
        .state_v2(&prompted, json!({"state": "running"}))
        .await?;
    harness.alive_v2("the prompt was acknowledged").await?;
    harness.idle_v2(&prompted, "end_turn").await
}

async fn no_reason(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    ends_with(harness, json!({"state": "idle"})).await
}

async fn unknown_reason(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    ends_with(
        harness,
        json!({"state": "idle", "stopReason": "_acp-check/tired"}),
    )
    .await
}

/// Ends the turn with `idle`. The client must still respond, or have started to close the connection, as a client
/// does that sends only one prompt.
async fn ends_with(harness: &mut ClientHarness, idle: Value) -> Result<(), CheckStop> {
    let prompted = harness.working_v2().await?;
    let why = idle.to_string();
    harness.state_v2(&prompted, idle).await?;
    let alive = harness.alive_v2(&why).await;
    if let Err(CheckStop::Fail(_)) = alive {
        // Its input may close slightly before its output.
        let draining = async { while let Ok(Some(_)) = harness.next().await {} };
        let _ = tokio::time::timeout(WATCHED, draining).await;
        if harness.wire.has_ended() {
            return Ok(());
        }
    }
    alive
}

async fn unknown_state(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let update =
        json!({"sessionUpdate": "state_update", "state": "_acp-check/dreaming", "of": "sheep"});
    harness.tolerates_v2("an unknown state", &[update]).await
}

async fn unknown_update(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let own = json!({"sessionUpdate": "_acp-check/weather", "sunny": true});
    let later = json!({"sessionUpdate": "weather_update", "sunny": [true]});
    harness
        .tolerates_v2("an unknown update type", &[own, later])
        .await
}

async fn message_by_id(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let kinds = ["user_message", "agent_message", "agent_thought"];
    let updates =
        kinds.map(|kind| json!({"sessionUpdate": kind, "messageId": format!("by-id-{kind}")}));
    harness
        .tolerates_v2("a message with only an id", &updates)
        .await
}

async fn message_changed(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let whole = |content: Value| json!({"sessionUpdate": "agent_message", "messageId": "changed", "content": content});
    let mut chunk = said("added");
    chunk["messageId"] = json!("changed");
    let text = json!([{"type": "text", "text": "first"}]);
    let updates = [whole(text), chunk, whole(Value::Null), whole(json!([]))];
    harness
        .tolerates_v2("a message that was replaced and cleared", &updates)
        .await
}

async fn chunk_first(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let content = json!({"type": "text", "text": "Hm."});
    let kinds = [
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
    ];
    let updates = kinds.map(|kind| {
        json!({"sessionUpdate": kind, "messageId": format!("first-{kind}"), "content": content})
    });
    harness
        .tolerates_v2("a chunk of a new message", &updates)
        .await
}

async fn info_in_part(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let updates = [
        json!({"sessionUpdate": "session_info_update", "title": "Checked"}),
        json!({"sessionUpdate": "session_info_update", "updatedAt": "2026-08-01T12:00:00Z"}),
        json!({"sessionUpdate": "session_info_update", "title": null, "updatedAt": null}),
        json!({"sessionUpdate": "session_info_update"}),
    ];
    harness
        .tolerates_v2("a partial session info update", &updates)
        .await
}
