//! Mutants that mishandle content.

use serde_json::{Value, json};

use crate::mutants::changes::{drop_request_if, respond_instead};
use crate::mutants::layer::{
    Mutant, Mutation, apply_both, change_result, change_update, mutant, reject_request,
};

/// Returns a predicate for prompts that contain a block satisfying `block`.
fn has_block(
    block: impl Fn(&Value) -> bool + Clone + Send + Sync,
) -> impl Fn(&Value) -> bool + Clone + Send + Sync {
    move |params| {
        params["prompt"]
            .as_array()
            .into_iter()
            .flatten()
            .any(&block)
    }
}

/// Rejects prompts that contain a block satisfying `block`.
fn reject_block(
    block: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    let error = json!({"error": {"code": -32602, "message": "what is this?"}});
    respond_instead("session/prompt", has_block(block), error)
}

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = incoming_content_mutants();
    mutants.extend(outgoing_content_mutants());
    mutants
}

fn incoming_content_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/content/1",
            "error -32602",
            "the agent rejects text",
            reject_request("session/prompt", -32602),
        ),
        mutant(
            "v1/content/2",
            "\"resource_link\"",
            "the agent rejects resource links",
            reject_block(|block| block["type"] == "resource_link"),
        ),
        mutant(
            "v1/content/3",
            "\"resource_link\"",
            "the agent rejects resource links that have a title",
            reject_block(|block| block["title"].is_string()),
        ),
        mutant(
            "v1/content/4",
            "\"image\"",
            "the agent advertises images, but rejects them",
            reject_block(|block| block["type"] == "image"),
        ),
        mutant(
            "v1/content/5",
            "\"audio\"",
            "the agent advertises audio, but rejects it",
            reject_block(|block| block["type"] == "audio"),
        ),
        mutant(
            "v1/content/6",
            "\"resource\"",
            "the agent rejects text resources",
            reject_block(|block| block["resource"]["text"].is_string()),
        ),
        mutant(
            "v1/content/7",
            "\"resource\"",
            "the agent rejects binary resources",
            reject_block(|block| block["resource"]["blob"].is_string()),
        ),
        mutant(
            "v1/content/8",
            "the turn did not end",
            "the agent does not respond to a prompt with an unsupported image",
            apply_both(
                change_result("initialize", |result| {
                    result["agentCapabilities"]["promptCapabilities"]["image"] = json!(false);
                }),
                drop_request_if(
                    "session/prompt",
                    has_block(|block| block["type"] == "image"),
                ),
            ),
        ),
        mutant(
            "v1/content/9",
            "the turn did not end",
            "the agent does not respond to a prompt with unknown content",
            drop_request_if(
                "session/prompt",
                has_block(|block| block["type"] == "hologram"),
            ),
        ),
        mutant(
            "v1/content/10",
            "error -32602",
            "the agent rejects annotations",
            reject_block(|block| block["annotations"].is_object()),
        ),
        mutant(
            "v1/content/11",
            "error -32602",
            "the agent rejects a prompt with several blocks",
            respond_instead(
                "session/prompt",
                |params| {
                    params["prompt"]
                        .as_array()
                        .is_some_and(|blocks| blocks.len() > 1)
                },
                json!({"error": {"code": -32602, "message": "too many"}}),
            ),
        ),
    ]
}

fn outgoing_content_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/content/12",
            "invalid base64:",
            "the agent sends the bytes of an image without base64",
            change_update("agent_message_chunk", |update| {
                if update["content"]["type"] == "image" {
                    update["content"]["data"] = json!("\u{89}PNG");
                }
            }),
        ),
        mutant(
            "v1/content/13",
            "invalid MIME type \"png\"",
            "the agent sends a file extension as the MIME type",
            change_update("agent_message_chunk", |update| {
                if update["content"]["type"] == "image" {
                    update["content"]["mimeType"] = json!("png");
                }
            }),
        ),
        mutant(
            "v1/content/14",
            "messages of two turns",
            "the agent's messages all have the same id",
            change_update("agent_message_chunk", |update| {
                update["messageId"] = json!("message")
            }),
        ),
    ]
}
