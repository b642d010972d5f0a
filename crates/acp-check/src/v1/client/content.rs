//! Checks how a client handles every type of content block from the agent.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, require};

use super::steps::{require_updates_accepted, sent_params};

checks! { V1 Client "content";
    101 Must "Text may have annotations." => accepts_annotations;
    102 Must "Images are accepted." => accepts_image;
    103 Must "Audio is accepted." => accepts_audio;
    104 Must "Resource links are accepted." => accepts_link;
    105 Must "Embedded text and binary resources are accepted." => accepts_embedded_resource;
    106 Should "Unknown content types are ignored." => ignores_unknown_type;
    107 Must "A prompt contains only content types the agent supports." => sends_supported_content;
}

/// Returns an agent message chunk with this block.
fn message_chunk(block: Value) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": block})
}

async fn accepts_annotations(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let annotations = [
        json!({"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-02T03:04:05Z"}),
        json!({"audience": ["user", "assistant"]}),
        json!({"audience": null, "priority": null, "lastModified": null}),
        Value::Null,
    ];
    let blocks = annotations.map(|of| {
        message_chunk(json!({"type": "text", "text": "With annotations.", "annotations": of}))
    });
    require_updates_accepted(harness, "text with annotations", blocks).await
}

async fn accepts_image(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    // An image of one transparent pixel.
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==";
    let blocks = [
        json!({"type": "image", "mimeType": "image/png", "data": pixel}),
        json!({"type": "image", "mimeType": "image/png", "data": pixel, "uri": "file:///pixel.png"}),
    ];
    require_updates_accepted(harness, "images", blocks.map(message_chunk)).await
}

async fn accepts_audio(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let block = json!({"type": "audio", "mimeType": "audio/wav", "data": "UklGRiQAAABXQVZF"});
    require_updates_accepted(harness, "sound", [message_chunk(block)]).await
}

async fn accepts_link(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let blocks = [
        json!({"type": "resource_link", "uri": "file:///notes.txt", "name": "notes.txt"}),
        json!({
            "type": "resource_link", "uri": "https://example.org/a?b=c#d", "name": "A page", "title": "A page",
            "description": "All about it", "mimeType": "text/html", "size": 1024,
        }),
        json!({"type": "resource_link", "uri": "example:1", "name": "x", "title": null, "size": null}),
    ];
    require_updates_accepted(harness, "links to resources", blocks.map(message_chunk)).await
}

async fn accepts_embedded_resource(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let resources = [
        json!({"uri": "file:///notes.txt", "text": "alpha\n", "mimeType": "text/plain"}),
        json!({"uri": "file:///notes.txt", "text": "alpha\n", "mimeType": null}),
        json!({"uri": "file:///notes.bin", "blob": "AAEC"}),
    ];
    let blocks = resources.map(|of| message_chunk(json!({"type": "resource", "resource": of})));
    require_updates_accepted(harness, "embedded resources", blocks).await
}

async fn ignores_unknown_type(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let block = message_chunk(json!({"type": "smell", "data": "roses"}));
    require_updates_accepted(harness, "an unknown content type", [block]).await
}

async fn sends_supported_content(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.initialize_result["agentCapabilities"]["promptCapabilities"] = json!({"image": true});
    let prompted = harness.wait_for_prompt().await?;
    for params in sent_params(harness, "session/prompt") {
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
