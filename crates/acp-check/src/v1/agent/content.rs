//! Checks how an agent handles content in prompts and in its own messages.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, skip};
use crate::wire::ReceivedResponse;

checks! { V1 Agent "content";
    1 Must "Every agent accepts text in prompts." => accepts_text, shared;
    2 Must "Every agent accepts resource links in prompts." => accepts_link, shared;
    3 Must "Resource links with all optional fields are accepted." => accepts_full_link, shared;
    4 Must "An agent with the `image` capability accepts images in prompts." => accepts_image, shared;
    5 Must "An agent with the `audio` capability accepts audio in prompts." => accepts_audio, shared;
    6 Must "An agent with the `embeddedContext` capability accepts text resources in prompts." => accepts_text_resource, shared;
    7 Must "An agent with the `embeddedContext` capability accepts binary resources in prompts." => accepts_blob_resource, shared;
    8 Must "A prompt with unsupported content gets a response and leaves the session usable." => handles_unsupported_content, shared;
    9 Must "A prompt with an unknown content type gets a response and leaves the session usable." => handles_unknown_type, fresh "sends messages that are invalid";
    10 Must "Content with annotations is accepted." => accepts_annotations, shared;
    11 Must "A prompt with several content blocks is accepted." => accepts_several_blocks, shared;
    12 Must "Image, audio and resource data sent by the agent is valid base64." => sends_valid_base64, shared;
    13 Must "MIME types sent by the agent have a type and a subtype." => sends_valid_mime_types, shared;
    14 Must "`messageId` is unique within a session." => has_unique_message_ids, shared;
}

/// A one-pixel image.
const PIXEL_PNG_BASE64: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP4z8DwHwAFAAH/VscvDQAAAABJRU5ErkJggg==";

/// An audio clip of four samples.
const SOUND_WAV_BASE64: &str =
    "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQgAAAAAAAAAAAAAAA==";

fn image_block() -> Value {
    json!({"type": "image", "mimeType": "image/png", "data": PIXEL_PNG_BASE64})
}

fn audio_block() -> Value {
    json!({"type": "audio", "mimeType": "audio/wav", "data": SOUND_WAV_BASE64})
}

/// Requires that the agent accepts a prompt that ends with `block`.
async fn require_accepted(harness: &mut AgentHarness, block: Value) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let text = json!({"type": "text", "text": harness.prompt_text(AgentTask::Answer)});
    let kind = block["type"].clone();
    match harness.run_prompt(&session, json!([text, block])).await {
        Err(CheckStop::Fail(why)) => {
            fail(format!("after a prompt with content of type {kind}: {why}"))
        }
        turn => turn.map(drop),
    }
}

async fn accepts_text(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    harness
        .run_task(&session, AgentTask::Answer)
        .await
        .map(drop)
}

fn notes_uri(harness: &AgentHarness) -> String {
    format!("file://{}", harness.directory().file("notes.txt").display())
}

async fn accepts_link(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let uri = notes_uri(harness);
    require_accepted(
        harness,
        json!({"type": "resource_link", "name": "notes.txt", "uri": uri}),
    )
    .await
}

async fn accepts_full_link(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let link = json!({
        "type": "resource_link",
        "name": "notes.txt",
        "uri": notes_uri(harness),
        "title": "Notes",
        "description": "Three letters",
        "mimeType": "text/plain",
        "size": 17,
        "annotations": {"audience": ["assistant"], "priority": 0.5, "lastModified": "2026-01-31T12:00:00Z"},
    });
    require_accepted(harness, link).await
}

async fn accepts_image(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/agentCapabilities/promptCapabilities/image")?;
    require_accepted(harness, image_block()).await
}

async fn accepts_audio(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/agentCapabilities/promptCapabilities/audio")?;
    require_accepted(harness, audio_block()).await
}

async fn accepts_text_resource(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/agentCapabilities/promptCapabilities/embeddedContext")?;
    let resource = json!({"uri": notes_uri(harness), "mimeType": "text/plain", "text": "alpha\n"});
    require_accepted(harness, json!({"type": "resource", "resource": resource})).await
}

async fn accepts_blob_resource(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/agentCapabilities/promptCapabilities/embeddedContext")?;
    let resource = json!({"uri": notes_uri(harness), "mimeType": "text/plain", "blob": "YWxwaGEK"});
    require_accepted(harness, json!({"type": "resource", "resource": resource})).await
}

async fn handles_unsupported_content(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let offered = harness.capability("/agentCapabilities/promptCapabilities");
    let block = if offered["image"] != true {
        image_block()
    } else if offered["audio"] != true {
        audio_block()
    } else {
        return skip("the agent supports every content type");
    };
    require_response(harness, block, "unsupported content").await
}

async fn handles_unknown_type(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let block = json!({"type": "hologram", "data": PIXEL_PNG_BASE64});
    require_response(harness, block, "an unknown content type").await
}

/// Sends a prompt with `block`. Requires that the agent responds with a result or an error, and that the session
/// remains usable.
async fn require_response(
    harness: &mut AgentHarness,
    block: Value,
    what: &str,
) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let text = json!({"type": "text", "text": harness.prompt_text(AgentTask::Answer)});
    let params = json!({"sessionId": session, "prompt": [text, block]});
    let prompt = harness.wire.send_request("session/prompt", params).await?;
    harness.wait_for_turn_response(&prompt).await?;
    harness.require_next_prompt(&session, what).await.map(drop)
}

async fn accepts_annotations(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let annotations = json!({"audience": ["user", "assistant"], "priority": 1, "lastModified": "2026-01-31T12:00:00Z"});
    let text = json!({"type": "text", "text": harness.prompt_text(AgentTask::Answer), "annotations": annotations});
    let session = harness.new_session().await?;
    harness.run_prompt(&session, json!([text])).await.map(drop)
}

async fn accepts_several_blocks(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let text = json!({"type": "text", "text": harness.prompt_text(AgentTask::Answer)});
    let more = json!({"type": "text", "text": "\n"});
    harness
        .run_prompt(&session, json!([text, more, more]))
        .await
        .map(drop)
}

/// Returns the content blocks that an update contains.
fn content_blocks(update: &Value) -> Vec<&Value> {
    match &update["content"] {
        Value::Array(items) => items
            .iter()
            .filter(|item| item["type"] == "content")
            .map(|item| &item["content"])
            .collect(),
        block => vec![block],
    }
}

/// Tries to make the agent send non-text content, by sending it an image and making it use a tool.
async fn request_non_text_content(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    if harness.capability("/agentCapabilities/promptCapabilities/image") == &json!(true) {
        let text = json!({"type": "text", "text": harness.prompt_text(AgentTask::Answer)});
        let prompt = json!({"sessionId": session, "prompt": [text, image_block()]});
        let prompt = harness.wire.send_request("session/prompt", prompt).await?;
        // Another check tests whether the image is accepted.
        if let ReceivedResponse::Error { .. } = harness.wait_for_turn_response(&prompt).await? {
            harness.wire.add_note("the image was rejected");
        }
    }
    harness.try_task(&session, AgentTask::Read).await.map(drop)
}

async fn sends_valid_base64(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    request_non_text_content(harness).await?;
    let blocks = harness
        .updates()
        .flat_map(|params| content_blocks(&params["update"]));
    let data = blocks.filter_map(|block| {
        block["data"]
            .as_str()
            .or(block["resource"]["blob"].as_str())
    });
    let data: Vec<&str> = data.collect();
    if data.is_empty() {
        return skip("the agent sent no image, audio or binary resource");
    }
    match data.iter().find(|data| !is_base64(data)) {
        Some(wrong) => {
            let begin: String = wrong.chars().take(40).collect();
            fail(format!("invalid base64: {begin:?}"))
        }
        None => Ok(()),
    }
}

/// Returns `true` if `data` is base64, with or without padding.
fn is_base64(data: &str) -> bool {
    let digits = data.trim_end_matches('=');
    let padding = data.len() - digits.len();
    digits
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '+' || c == '/')
        && digits.len() % 4 != 1
        && (padding == 0 || (padding <= 2 && data.len().is_multiple_of(4)))
}

async fn sends_valid_mime_types(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    request_non_text_content(harness).await?;
    let blocks = harness
        .updates()
        .flat_map(|params| content_blocks(&params["update"]));
    let types = blocks.filter_map(|block| {
        block["mimeType"]
            .as_str()
            .or(block["resource"]["mimeType"].as_str())
    });
    let types: Vec<&str> = types.collect();
    if types.is_empty() {
        return skip("the agent sent no MIME type");
    }
    let whole = |mime: &str| {
        let (kind, rest) = mime.split_once('/').unwrap_or_default();
        !kind.trim().is_empty() && !rest.trim().is_empty()
    };
    match types.iter().find(|mime| !whole(mime)) {
        Some(wrong) => fail(format!("invalid MIME type {wrong:?}")),
        None => Ok(()),
    }
}

async fn has_unique_message_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    let ids = |turn: &crate::turns::CheckTurn| -> Vec<Value> {
        let pieces = turn.updates_of_type("agent_message_chunk");
        pieces
            .map(|piece| piece["messageId"].clone())
            .filter(Value::is_string)
            .collect()
    };
    let first = ids(&harness
        .run_task_or_skip(&session, AgentTask::Answer)
        .await?);
    let second = ids(&harness
        .run_task_or_skip(&session, AgentTask::Answer)
        .await?);
    if first.is_empty() || second.is_empty() {
        return skip("the agent's messages have no ids");
    }
    match second.iter().find(|id| first.contains(id)) {
        Some(id) => fail(format!(
            "messages of two turns have the same `messageId` {id}"
        )),
        None => Ok(()),
    }
}
