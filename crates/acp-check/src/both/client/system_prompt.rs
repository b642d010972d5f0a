//! Checks for the system prompts that a client sets for its sessions. Unstable.

use serde_json::{Value, json};

use super::steps::{serve_one_turn, session_capabilities_mut};
use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail, require};

checks! { V1 V2 Client "system-prompt";
    101 Must "A system prompt is sent only if the agent supports it." => sends_prompt_only_if_supported;
    102 Must "A system prompt uses append mode unless the agent supports override." => appends_unless_override_supported;
    103 Must "A system prompt is not empty and contains only text." => sends_only_text;
}

const OPENING_METHODS: &[&str] = &[
    "session/new",
    "session/load",
    "session/resume",
    "session/fork",
];

/// Returns the system prompts received from the client, each with the method of its request.
async fn received_system_prompts(
    harness: &mut ClientHarness,
) -> Result<Vec<(String, Value)>, CheckStop> {
    serve_one_turn(harness).await?;
    let opening = harness.messages.iter().filter(|message| {
        OPENING_METHODS.contains(&message.method()) && !message.params()["systemPrompt"].is_null()
    });
    let given = opening.map(|message| {
        let prompt = message.params()["systemPrompt"].clone();
        (message.method().to_owned(), prompt)
    });
    Ok(given.collect())
}

/// Like `received_system_prompts`, but acts as an agent that supports append mode.
async fn received_appended_prompts(
    harness: &mut ClientHarness,
) -> Result<Vec<(String, Value)>, CheckStop> {
    session_capabilities_mut(harness)["systemPrompt"] = json!({});
    received_system_prompts(harness).await
}

async fn sends_prompt_only_if_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    match received_system_prompts(harness).await?.first() {
        Some((method, _)) => fail(format!(
            "the client called `{method}` with a system prompt, but the agent does not support `systemPrompt`"
        )),
        None => Ok(()),
    }
}

async fn appends_unless_override_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    for (method, prompt) in received_appended_prompts(harness).await? {
        require(prompt["mode"] == "append", || {
            format!(
                "the client called `{method}` with system prompt mode {}, which the agent does not support",
                prompt["mode"]
            )
        })?;
    }
    Ok(())
}

async fn sends_only_text(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    for (method, prompt) in received_appended_prompts(harness).await? {
        let content = prompt["content"].as_array();
        let right = content.is_some_and(|content| {
            !content.is_empty() && content.iter().all(|block| block["type"] == "text")
        });
        require(right, || {
            format!("the client called `{method}` with the system prompt {prompt}")
        })?;
    }
    Ok(())
}
