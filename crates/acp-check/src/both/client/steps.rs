//! Steps shared by the checks of both protocol versions.

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use acp_rules::schema::SchemaVersion;

use crate::client_harness::{ClientHarness, ReceivedPrompt, SESSION_ID};
use crate::client_harness_v2::WATCH_TIME;
use crate::verdict::{CheckStop, fail};
use crate::wire::ReceivedMessage;

/// Returns the capability `name` in the agent's response to `initialize`, so that a check can change it.
pub(super) fn capability_mut<'a>(harness: &'a mut ClientHarness, name: &str) -> &'a mut Value {
    match harness.version() {
        SchemaVersion::V1 => &mut harness.initialize_result["agentCapabilities"][name],
        SchemaVersion::V2 => &mut harness.initialize_result["capabilities"][name],
    }
}

/// Returns the agent's session capabilities, so that a check can change them.
pub(super) fn session_capabilities_mut(harness: &mut ClientHarness) -> &mut Value {
    let name = match harness.version() {
        SchemaVersion::V1 => "sessionCapabilities",
        SchemaVersion::V2 => "session",
    };
    capability_mut(harness, name)
}

/// Waits for the client's first prompt. In version 2, also acknowledges it.
pub(super) async fn wait_for_prompt(
    harness: &mut ClientHarness,
) -> Result<ReceivedPrompt, CheckStop> {
    match harness.version() {
        SchemaVersion::V1 => harness.wait_for_prompt().await,
        SchemaVersion::V2 => harness.begin_turn_v2().await,
    }
}

/// Ends the turn of a prompt.
pub(super) async fn end_turn(
    harness: &mut ClientHarness,
    prompted: &ReceivedPrompt,
) -> Result<(), CheckStop> {
    match harness.version() {
        SchemaVersion::V1 => harness.end_turn(prompted, "end_turn").await,
        SchemaVersion::V2 => harness.end_turn_v2(prompted, "end_turn").await,
    }
}

/// Acts as an agent that lists one session and can resume it, until the first turn has ended and for a while longer.
/// Afterwards, `messages` contains the client's messages.
pub(super) async fn serve_one_turn(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let offered = session_capabilities_mut(harness);
    offered["list"] = json!({});
    offered["resume"] = json!({});
    let listed = json!({"sessions": [{"sessionId": SESSION_ID, "cwd": "/"}]});
    harness.results.insert("session/list", listed);
    harness.results.insert("session/resume", json!({}));
    let prompted = wait_for_prompt(harness).await?;
    end_turn(harness, &prompted).await?;
    let until = Instant::now() + WATCH_TIME;
    while let Ok(next) = timeout_at(until, harness.next()).await {
        let Some(message) = next? else {
            break;
        };
        if message.method() == "session/prompt" {
            let prompted = received_prompt(&message);
            if harness.version() == SchemaVersion::V2 {
                harness.accept_prompt_v2(&prompted).await?;
            }
            end_turn(harness, &prompted).await?;
        } else {
            harness.serve(&message).await?;
        }
    }
    Ok(())
}

/// Reads a prompt from a client message.
fn received_prompt(message: &ReceivedMessage) -> ReceivedPrompt {
    let params = message.params();
    ReceivedPrompt {
        id: message.0["id"].clone(),
        session: params["sessionId"].as_str().unwrap_or_default().to_owned(),
        prompt: params["prompt"].clone(),
    }
}

/// Requires that the client has not called any of these methods. `offered` is the required capability, which the agent
/// lacks.
pub(super) fn require_never_called(
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
