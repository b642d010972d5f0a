//! Checks how a client handles the content blocks in messages.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::CheckStop;

checks! { V2 Client "content";
    101 Should "Unknown content types are accepted." => accepts_unknown_type;
    102 Must "All content types are accepted in messages." => accepts_all_content_types;
}

fn message_chunk(content: Value) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "messageId": "content", "content": content})
}

async fn accepts_unknown_type(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let own = message_chunk(json!({"type": "_acp-check/smell", "of": "rain"}));
    let later = message_chunk(json!({"type": "smell", "of": ["rain"]}));
    harness
        .require_tolerance_v2("content of an unknown type", &[own, later])
        .await
}

async fn accepts_all_content_types(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let annotations = json!({"audience": ["user", "_acp-check/cat"], "priority": 0.5});
    let updates = [
        json!({"type": "text", "text": "**Hello**", "annotations": annotations}),
        json!({"type": "image", "mimeType": "image/png", "data": "eA=="}),
        json!({"type": "audio", "mimeType": "audio/wav", "data": "eA=="}),
        json!({"type": "resource_link", "name": "a", "uri": "file:///a"}),
        json!({"type": "resource", "resource": {"uri": "file:///a", "text": "a"}}),
        json!({"type": "resource", "resource": {"uri": "file:///a", "blob": "eA=="}}),
    ];
    harness
        .require_tolerance_v2("all types of content", &updates.map(message_chunk))
        .await
}
