//! Steps that checks share. They do the same in either protocol version.

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use acp_rules::schema::SchemaVersion;

use crate::client_harness::{ClientHarness, ReceivedPrompt, SESSION};
use crate::client_harness_v2::WATCHED;
use crate::verdict::{CheckStop, fail};
use crate::wire::ReceivedMessage;

/// Returns the capability `name` in the agent's response to `initialize`, to be changed.
pub(super) fn offer<'a>(harness: &'a mut ClientHarness, name: &str) -> &'a mut Value {
    match harness.version() {
        SchemaVersion::V1 => &mut harness.introduction["agentCapabilities"][name],
        SchemaVersion::V2 => &mut harness.introduction["capabilities"][name],
    }
}

/// Returns the agent's session capabilities, to be changed.
pub(super) fn offer_for_sessions(harness: &mut ClientHarness) -> &mut Value {
    let name = match harness.version() {
        SchemaVersion::V1 => "sessionCapabilities",
        SchemaVersion::V2 => "session",
    };
    offer(harness, name)
}

/// Waits for the client's first prompt. In version 2, accepts it as well.
pub(super) async fn prompted(harness: &mut ClientHarness) -> Result<ReceivedPrompt, CheckStop> {
    match harness.version() {
        SchemaVersion::V1 => harness.wait_for_prompt().await,
        SchemaVersion::V2 => harness.working_v2().await,
    }
}

/// Ends the turn of a prompt.
pub(super) async fn end(
    harness: &mut ClientHarness,
    prompted: &ReceivedPrompt,
) -> Result<(), CheckStop> {
    match harness.version() {
        SchemaVersion::V1 => harness.end_turn(prompted, "end_turn").await,
        SchemaVersion::V2 => harness.idle_v2(prompted, "end_turn").await,
    }
}

/// Acts as an agent that lists one session and can resume it, until the first turn has ended and for a while after
/// that. What the client sent is then in `messages`.
pub(super) async fn used(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let offered = offer_for_sessions(harness);
    offered["list"] = json!({});
    offered["resume"] = json!({});
    let listed = json!({"sessions": [{"sessionId": SESSION, "cwd": "/"}]});
    harness.answers.insert("session/list", listed);
    harness.answers.insert("session/resume", json!({}));
    let prompted = prompted(harness).await?;
    end(harness, &prompted).await?;
    let until = Instant::now() + WATCHED;
    while let Ok(next) = timeout_at(until, harness.next()).await {
        let Some(message) = next? else {
            break;
        };
        if message.method() == "session/prompt" {
            let prompted = received_prompt(&message);
            if harness.version() == SchemaVersion::V2 {
                harness.accept_v2(&prompted).await?;
            }
            end(harness, &prompted).await?;
        } else {
            harness.serve(&message).await?;
        }
    }
    Ok(())
}

/// Reads a prompt from a message.
fn received_prompt(message: &ReceivedMessage) -> ReceivedPrompt {
    let params = message.params();
    ReceivedPrompt {
        id: message.0["id"].clone(),
        session: params["sessionId"].as_str().unwrap_or_default().to_owned(),
        prompt: params["prompt"].clone(),
    }
}

/// Requires that the client has called none of these methods. `offered` is the capability that the agent lacks.
pub(super) fn never_called(
    harness: &ClientHarness,
    methods: &[&str],
    offered: &str,
) -> Result<(), CheckStop> {
    let mut called = harness.messages.iter().map(|message| message.method());
    match called.find(|called| methods.contains(called)) {
        Some(method) => fail(format!(
            "the client called `{method}`, but the agent does not support `{offered}`"
        )),
        None => Ok(()),
    }
}
