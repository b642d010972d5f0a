//! Mutants that handle content wrongly.

use serde_json::{Value, json};

use crate::mutants::changes::{ignore, instead};
use crate::mutants::layer::{Mutant, Mutation, answer, both, mutant, refuse, update};

/// Returns a predicate that is true for a prompt with a block that satisfies `block`.
fn has(
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

/// Rejects prompts with a block that satisfies `block`.
fn refuses(
    block: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    let error = json!({"error": {"code": -32602, "message": "what is this?"}});
    instead("session/prompt", has(block), error)
}

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = taken();
    mutants.extend(shown());
    mutants
}

fn taken() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/content/1",
            "error -32602",
            "the agent rejects text",
            refuse("session/prompt", -32602),
        ),
        mutant(
            "v1/content/2",
            "\"resource_link\"",
            "the agent rejects resource links",
            refuses(|block| block["type"] == "resource_link"),
        ),
        mutant(
            "v1/content/3",
            "\"resource_link\"",
            "the agent rejects resource links that have a title",
            refuses(|block| block["title"].is_string()),
        ),
        mutant(
            "v1/content/4",
            "\"image\"",
            "the agent advertises images, but rejects them",
            refuses(|block| block["type"] == "image"),
        ),
        mutant(
            "v1/content/5",
            "\"audio\"",
            "the agent advertises audio, but rejects it",
            refuses(|block| block["type"] == "audio"),
        ),
        mutant(
            "v1/content/6",
            "\"resource\"",
            "the agent rejects text resources",
            refuses(|block| block["resource"]["text"].is_string()),
        ),
        mutant(
            "v1/content/7",
            "\"resource\"",
            "the agent rejects binary resources",
            refuses(|block| block["resource"]["blob"].is_string()),
        ),
        mutant(
            "v1/content/8",
            "the turn did not end",
            "the agent does not respond to a prompt with an unsupported image",
            both(
                answer("initialize", |result| {
                    result["agentCapabilities"]["promptCapabilities"]["image"] = json!(false);
                }),
                ignore("session/prompt", has(|block| block["type"] == "image")),
            ),
        ),
        mutant(
            "v1/content/9",
            "the turn did not end",
            "the agent does not respond to a prompt with unknown content",
            ignore("session/prompt", has(|block| block["type"] == "hologram")),
        ),
        mutant(
            "v1/content/10",
            "error -32602",
            "the agent rejects annotations",
            refuses(|block| block["annotations"].is_object()),
        ),
        mutant(
            "v1/content/11",
            "error -32602",
            "the agent rejects a prompt with several blocks",
            instead(
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

fn shown() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/content/12",
            "invalid base64:",
            "the agent sends the bytes of an image without base64",
            update("agent_message_chunk", |update| {
                if update["content"]["type"] == "image" {
                    update["content"]["data"] = json!("\u{89}PNG");
                }
            }),
        ),
        mutant(
            "v1/content/13",
            "invalid MIME type \"png\"",
            "the agent sends a file extension as the MIME type",
            update("agent_message_chunk", |update| {
                if update["content"]["type"] == "image" {
                    update["content"]["mimeType"] = json!("png");
                }
            }),
        ),
        mutant(
            "v1/content/14",
            "messages of two turns",
            "the agent's messages all have the same id",
            update("agent_message_chunk", |update| {
                update["messageId"] = json!("message")
            }),
        ),
    ]
}
