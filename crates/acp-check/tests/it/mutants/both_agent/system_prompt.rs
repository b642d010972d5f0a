//! Mutants that handle system prompts incorrectly.

use serde_json::{Value, json};

use crate::mutants::changes::{reject_if, set_field};
use crate::mutants::layer::{Mutant, Mutation, change_incoming, change_result, mutant};

pub(crate) fn mutants(version: &str) -> Vec<Mutant> {
    let mut mutants = vec![
        mutant(
            "system-prompt/1",
            "`session/new` failed with error -32602",
            "the agent advertises system prompts, but rejects them",
            reject_if("session/new", -32602, |params| {
                params["systemPrompt"].is_object()
            }),
        ),
        mutant(
            "system-prompt/4",
            "`session/new` failed with error -32602",
            "the agent advertises override mode, but rejects it",
            reject_if("session/new", -32602, |params| {
                params["systemPrompt"]["mode"] == "override"
            }),
        ),
        mutant(
            "system-prompt/4",
            "succeeded; expected an error",
            "the agent accepts override mode, but does not advertise it",
            change_result("initialize", |result| {
                for offered in [
                    "/agentCapabilities/sessionCapabilities",
                    "/capabilities/session",
                ] {
                    if let Some(offered) = result.pointer_mut(offered) {
                        offered["systemPrompt"] = json!({});
                    }
                }
            }),
        ),
        mutant(
            "system-prompt/6",
            "`session/new` failed with error -32602",
            "the agent rejects a null system prompt",
            reject_if("session/new", -32602, |params| {
                params.get("systemPrompt") == Some(&Value::Null)
            }),
        ),
        mutant(
            "system-prompt/7",
            "the system prompt says to remember 7351, but when asked for the number, the agent answered",
            "the agent accepts system prompts, but ignores them",
            change_incoming("session/new", |params| {
                set_field(params, "systemPrompt", None)
            }),
        ),
    ];
    mutants.extend(opening_mutants("session/new", "`session/new` with"));
    mutants.extend(opening_mutants("session/resume", "`session/resume` with"));
    mutants.extend(opening_mutants("session/fork", "`session/fork` with"));
    mutants.extend(reopening_mutants(
        "session/resume",
        "`session/resume` failed with error",
    ));
    mutants.extend(reopening_mutants(
        "session/fork",
        "`session/fork` failed with error",
    ));
    if version == "v1" {
        mutants.extend(opening_mutants("session/load", "`session/load` with"));
        mutants.extend(reopening_mutants(
            "session/load",
            "`session/load` failed with error",
        ));
    }
    mutants
}

/// Returns mutants that accept invalid system prompts when a session is opened with `method`.
fn opening_mutants(method: &'static str, why: &'static str) -> [Mutant; 3] {
    [
        mutant(
            "system-prompt/3",
            why,
            "the agent treats an unknown mode as `append`",
            repair_system_prompt(method, |prompt| {
                if prompt["mode"] == "_acp-check/whisper" {
                    prompt["mode"] = json!("append");
                }
            }),
        ),
        mutant(
            "system-prompt/5",
            why,
            "the agent ignores content that is not text",
            repair_system_prompt(method, |prompt| {
                let content = prompt["content"].as_array_mut().unwrap();
                content.retain(|block| block["type"] == "text");
            }),
        ),
        mutant(
            "system-prompt/5",
            why,
            "the agent ignores unknown content",
            repair_system_prompt(method, |prompt| {
                let content = prompt["content"].as_array_mut().unwrap();
                content.retain(|block| block["type"] != "_acp-check/smell");
            }),
        ),
    ]
}

/// Turns an invalid system prompt into a valid one.
fn repair_system_prompt(
    method: &'static str,
    change: fn(&mut Value),
) -> impl Fn() -> Mutation + Send + Sync {
    change_incoming(method, move |params| {
        if params["systemPrompt"].is_object() {
            change(&mut params["systemPrompt"]);
        }
    })
}

/// Returns a mutant that rejects system prompts when it opens an existing session.
fn reopening_mutants(method: &'static str, why: &'static str) -> [Mutant; 1] {
    [mutant(
        "system-prompt/2",
        why,
        "the agent accepts system prompts only in new sessions",
        reject_if(method, -32602, |params| params["systemPrompt"].is_object()),
    )]
}
