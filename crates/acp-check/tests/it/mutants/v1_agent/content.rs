//! Wrong in content.

use serde_json::{Value, json};

use crate::mutants::changes::{drop_request_if, respond_instead};
use crate::mutants::layer::{
    Mutant, Mutation, apply_both, change_result, change_update, mutant, reject_request,
};

/// Whether a block of the prompt is such.
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

/// Prompts with such a block are refused.
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
            "the agent takes no text",
            reject_request("session/prompt", -32602),
        ),
        mutant(
            "v1/content/2",
            "\"resource_link\"",
            "the agent takes no links",
            reject_block(|block| block["type"] == "resource_link"),
        ),
        mutant(
            "v1/content/3",
            "\"resource_link\"",
            "the agent takes no titles of links",
            reject_block(|block| block["title"].is_string()),
        ),
        mutant(
            "v1/content/4",
            "\"image\"",
            "the agent supports images, and takes none",
            reject_block(|block| block["type"] == "image"),
        ),
        mutant(
            "v1/content/5",
            "\"audio\"",
            "the agent supports audio, and takes none",
            reject_block(|block| block["type"] == "audio"),
        ),
        mutant(
            "v1/content/6",
            "\"resource\"",
            "the agent takes no resources of text",
            reject_block(|block| block["resource"]["text"].is_string()),
        ),
        mutant(
            "v1/content/7",
            "\"resource\"",
            "the agent takes no resources of bytes",
            reject_block(|block| block["resource"]["blob"].is_string()),
        ),
        mutant(
            "v1/content/8",
            "the turn did not end",
            "the agent supports no images, and has no answer to them",
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
            "the agent has no answer to what it does not know",
            drop_request_if(
                "session/prompt",
                has_block(|block| block["type"] == "hologram"),
            ),
        ),
        mutant(
            "v1/content/10",
            "error -32602",
            "the agent takes no annotations",
            reject_block(|block| block["annotations"].is_object()),
        ),
        mutant(
            "v1/content/11",
            "error -32602",
            "the agent takes one block",
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
            "the agent shows an image's bytes as they are",
            change_update("agent_message_chunk", |update| {
                if update["content"]["type"] == "image" {
                    update["content"]["data"] = json!("\u{89}PNG");
                }
            }),
        ),
        mutant(
            "v1/content/13",
            "invalid MIME type \"png\"",
            "the agent tells an image's type by its ending",
            change_update("agent_message_chunk", |update| {
                if update["content"]["type"] == "image" {
                    update["content"]["mimeType"] = json!("png");
                }
            }),
        ),
        mutant(
            "v1/content/14",
            "messages of two turns",
            "all of its messages are one",
            change_update("agent_message_chunk", |update| {
                update["messageId"] = json!("message")
            }),
        ),
    ]
}
