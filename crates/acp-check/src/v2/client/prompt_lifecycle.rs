//! Checks for a client's turns, from the acknowledged prompt to the end of the turn.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::client_harness_v2::{WATCH_TIME, text_update};
use crate::verdict::{CheckStop, fail};

checks! { V2 Client "prompt-lifecycle";
    101 Must "The client waits for `idle`, not just for the response to the prompt." => waits_for_idle;
    102 Must "An `idle` without a stop reason is accepted." => accepts_missing_stop_reason;
    103 Should "Unknown stop reasons are accepted." => accepts_unknown_stop_reason;
    104 Should "Unknown states are accepted." => accepts_unknown_state;
    105 Should "Unknown update types are accepted." => accepts_unknown_update;
    106 Must "A message with only an id is accepted." => accepts_message_with_id_only;
    107 Must "Message content can be replaced, cleared and appended to." => accepts_changed_message;
    108 Must "A chunk may start a new message." => accepts_chunk_of_new_message;
    109 Must "Session info updates may be partial, and may clear fields." => accepts_partial_session_info;
}

async fn waits_for_idle(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt_v2().await?;
    harness.accept_prompt_v2(&prompted).await?;
    let watching = async {
        while let Some(message) = harness.next().await? {
            harness.serve(&message).await?;
        }
        Ok::<(), CheckStop>(())
    };
    match tokio::time::timeout(WATCH_TIME, watching).await {
        Err(_) => {}
        Ok(Ok(())) => {
            return fail("the client closed the connection when its prompt was acknowledged");
        }
        Ok(Err(stop)) => return Err(stop),
    }
    harness
        .send_state_v2(&prompted, json!({"state": "running"}))
        .await?;
    harness
        .require_responsive_v2("the prompt was acknowledged")
        .await?;
    harness.end_turn_v2(&prompted, "end_turn").await
}

async fn accepts_missing_stop_reason(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_idle_accepted(harness, json!({"state": "idle"})).await
}

async fn accepts_unknown_stop_reason(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_idle_accepted(
        harness,
        json!({"state": "idle", "stopReason": "_acp-check/tired"}),
    )
    .await
}

/// Ends the turn with the update `idle`. The client must then still respond to requests, or close the connection, as a
/// client that sends only one prompt does.
async fn require_idle_accepted(harness: &mut ClientHarness, idle: Value) -> Result<(), CheckStop> {
    let prompted = harness.begin_turn_v2().await?;
    let why = idle.to_string();
    harness.send_state_v2(&prompted, idle).await?;
    let alive = harness.require_responsive_v2(&why).await;
    if let Err(CheckStop::Fail(_)) = alive {
        // The client's input may close slightly before its output.
        let draining = async { while let Ok(Some(_)) = harness.next().await {} };
        let _ = tokio::time::timeout(WATCH_TIME, draining).await;
        if harness.wire.has_ended() {
            return Ok(());
        }
    }
    alive
}

async fn accepts_unknown_state(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let update =
        json!({"sessionUpdate": "state_update", "state": "_acp-check/dreaming", "of": "sheep"});
    harness
        .require_tolerance_v2("an unknown state", &[update])
        .await
}

async fn accepts_unknown_update(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let own = json!({"sessionUpdate": "_acp-check/weather", "sunny": true});
    let later = json!({"sessionUpdate": "weather_update", "sunny": [true]});
    harness
        .require_tolerance_v2("an unknown update type", &[own, later])
        .await
}

async fn accepts_message_with_id_only(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let kinds = ["user_message", "agent_message", "agent_thought"];
    let updates =
        kinds.map(|kind| json!({"sessionUpdate": kind, "messageId": format!("by-id-{kind}")}));
    harness
        .require_tolerance_v2("a message with only an id", &updates)
        .await
}

async fn accepts_changed_message(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let whole = |content: Value| json!({"sessionUpdate": "agent_message", "messageId": "changed", "content": content});
    let mut chunk = text_update("added");
    chunk["messageId"] = json!("changed");
    let text = json!([{"type": "text", "text": "first"}]);
    let updates = [whole(text), chunk, whole(Value::Null), whole(json!([]))];
    harness
        .require_tolerance_v2("a message that was replaced and cleared", &updates)
        .await
}

async fn accepts_chunk_of_new_message(harness: &mut ClientHarness) -> Result<(), CheckStop> {
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
        .require_tolerance_v2("a chunk of a new message", &updates)
        .await
}

async fn accepts_partial_session_info(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let updates = [
        json!({"sessionUpdate": "session_info_update", "title": "Checked"}),
        json!({"sessionUpdate": "session_info_update", "updatedAt": "2026-08-01T12:00:00Z"}),
        json!({"sessionUpdate": "session_info_update", "title": null, "updatedAt": null}),
        json!({"sessionUpdate": "session_info_update"}),
    ];
    harness
        .require_tolerance_v2("a partial session info update", &updates)
        .await
}
