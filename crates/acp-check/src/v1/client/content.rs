//! Content: every type of block, in the agent's messages.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, require};

use super::steps::{sent, takes};

checks! { V1 Client "content";
    101 Must "Text may have annotations." => annotations;
    102 Must "Images are accepted." => image;
    103 Must "Audio is accepted." => audio;
    104 Must "Resource links are accepted." => link;
    105 Must "Embedded text and binary resources are accepted." => embedded;
    106 Should "Unknown content types are ignored." => unknown;
    107 Must "A prompt contains only content types the agent supports." => prompted;
}

/// Returns an update with a block.
fn said(block: Value) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": block})
}

async fn annotations(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let annotations = [
        json!({"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-02T03:04:05Z"}),
        json!({"audience": ["user", "assistant"]}),
        json!({"audience": null, "priority": null, "lastModified": null}),
        Value::Null,
    ];
    let blocks = annotations
        .map(|of| said(json!({"type": "text", "text": "With annotations.", "annotations": of})));
    takes(harness, "text with annotations", blocks).await
}

async fn image(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    // One transparent pixel.
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==";
    let blocks = [
        json!({"type": "image", "mimeType": "image/png", "data": pixel}),
        json!({"type": "image", "mimeType": "image/png", "data": pixel, "uri": "file:///pixel.png"}),
    ];
    takes(harness, "images", blocks.map(said)).await
}

async fn audio(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let block = json!({"type": "audio", "mimeType": "audio/wav", "data": "UklGRiQAAABXQVZF"});
    takes(harness, "sound", [said(block)]).await
}

async fn link(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let blocks = [
        json!({"type": "resource_link", "uri": "file:///notes.txt", "name": "notes.txt"}),
        json!({
            "type": "resource_link", "uri": "https://example.org/a?b=c#d", "name": "A page", "title": "A page",
            "description": "All about it", "mimeType": "text/html", "size": 1024,
        }),
        json!({"type": "resource_link", "uri": "example:1", "name": "x", "title": null, "size": null}),
    ];
    takes(harness, "links to resources", blocks.map(said)).await
}

async fn embedded(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let resources = [
        json!({"uri": "file:///notes.txt", "text": "alpha\n", "mimeType": "text/plain"}),
        json!({"uri": "file:///notes.txt", "text": "alpha\n", "mimeType": null}),
        json!({"uri": "file:///notes.bin", "blob": "AAEC"}),
    ];
    let blocks = resources.map(|of| said(json!({"type": "resource", "resource": of})));
    takes(harness, "embedded resources", blocks).await
}

async fn unknown(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let block = said(json!({"type": "smell", "data": "roses"}));
    takes(harness, "an unknown content type", [block]).await
}

async fn prompted(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.introduction["agentCapabilities"]["promptCapabilities"] = json!({"image": true});
    let prompted = harness.wait_for_prompt().await?;
    for params in sent(harness, "session/prompt") {
        for block in params["prompt"].as_array().into_iter().flatten() {
            let kind = block["type"].as_str().unwrap_or_default();
            require(matches!(kind, "text" | "resource_link" | "image"), || {
                format!(
                    "the agent supports text, links and images, but the prompt contains {kind:?}"
                )
            })?;
        }
    }
    harness.end_turn(&prompted, "end_turn").await
}
