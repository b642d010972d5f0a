//! System prompts that a client sets for its sessions. Unstable.

use serde_json::{Value, json};

use super::steps::{offer_for_sessions, used};
use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail, require};

checks! { V1 V2 Client "system-prompt";
    101 Must "A system prompt is sent only if the agent supports it." => sends_prompt_only_if_supported;
    102 Must "A system prompt uses append mode unless the agent supports override." => appends_unless_more_supported;
    103 Must "A system prompt is not empty and contains only text." => text;
}

const OPENING: &[&str] = &[
    "session/new",
    "session/load",
    "session/resume",
    "session/fork",
];

/// Returns the system prompts that the client has sent, and in which requests.
async fn received_prompts(harness: &mut ClientHarness) -> Result<Vec<(String, Value)>, CheckStop> {
    used(harness).await?;
    let opening = harness.messages.iter().filter(|message| {
        OPENING.contains(&message.method()) && !message.params()["systemPrompt"].is_null()
    });
    let given = opening.map(|message| {
        let prompt = message.params()["systemPrompt"].clone();
        (message.method().to_owned(), prompt)
    });
    Ok(given.collect())
}

/// Like `received_prompts`, for an agent that supports appended ones.
async fn received_appended_prompts(
    harness: &mut ClientHarness,
) -> Result<Vec<(String, Value)>, CheckStop> {
    offer_for_sessions(harness)["systemPrompt"] = json!({});
    received_prompts(harness).await
}

async fn sends_prompt_only_if_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    match received_prompts(harness).await?.first() {
        Some((method, _)) => fail(format!(
            "it called `{method}` with a system prompt, but the agent does not support `systemPrompt`"
        )),
        None => Ok(()),
    }
}

async fn appends_unless_more_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    for (method, prompt) in received_appended_prompts(harness).await? {
        require(prompt["mode"] == "append", || {
            format!(
                "it called `{method}` with system prompt mode {}, which the agent does not support",
                prompt["mode"]
            )
        })?;
    }
    Ok(())
}

async fn text(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    for (method, prompt) in received_appended_prompts(harness).await? {
        let content = prompt["content"].as_array();
        let right = content.is_some_and(|content| {
            !content.is_empty() && content.iter().all(|block| block["type"] == "text")
        });
        require(right, || {
            format!("it called `{method}` with the system prompt {prompt}")
        })?;
    }
    Ok(())
}
