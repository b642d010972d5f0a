//! Wrong in system prompts.

use serde_json::{Value, json};

use crate::mutants::changes::{reject_if, set_field};
use crate::mutants::layer::{Mutant, Mutation, change_incoming, change_result, mutant};

pub(crate) fn mutants(version: &str) -> Vec<Mutant> {
    let mut mutants = vec![
        mutant(
            "system-prompt/1",
            "`session/new` failed with error -32602",
            "the agent offers to take system prompts, and takes none",
            reject_if("session/new", -32602, |params| {
                params["systemPrompt"].is_object()
            }),
        ),
        mutant(
            "system-prompt/4",
            "`session/new` failed with error -32602",
            "the agent offers to be overridden, and will not",
            reject_if("session/new", -32602, |params| {
                params["systemPrompt"]["mode"] == "override"
            }),
        ),
        mutant(
            "system-prompt/4",
            "succeeded; expected an error",
            "the agent can be overridden, and does not say so",
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
            "null is a system prompt to it, and a wrong one",
            reject_if("session/new", -32602, |params| {
                params.get("systemPrompt") == Some(&Value::Null)
            }),
        ),
        mutant(
            "system-prompt/7",
            "the system prompt says to remember 7351, but when asked for the number, the agent said",
            "the agent takes system prompts and forgets them",
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

/// Wrong in what is refused when a session is opened by `method`.
fn opening_mutants(method: &'static str, why: &'static str) -> [Mutant; 3] {
    [
        mutant(
            "system-prompt/3",
            why,
            "a mode that it does not know is to append to it",
            repair_system_prompt(method, |prompt| {
                if prompt["mode"] == "_acp-check/whisper" {
                    prompt["mode"] = json!("append");
                }
            }),
        ),
        mutant(
            "system-prompt/5",
            why,
            "the agent passes over what is no text",
            repair_system_prompt(method, |prompt| {
                let content = prompt["content"].as_array_mut().unwrap();
                content.retain(|block| block["type"] == "text");
            }),
        ),
        mutant(
            "system-prompt/5",
            why,
            "the agent passes over content that it does not know",
            repair_system_prompt(method, |prompt| {
                let content = prompt["content"].as_array_mut().unwrap();
                content.retain(|block| block["type"] != "_acp-check/smell");
            }),
        ),
    ]
}

/// Makes a system prompt right that is not.
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

/// Takes system prompts, and not when an old session is opened.
fn reopening_mutants(method: &'static str, why: &'static str) -> [Mutant; 1] {
    [mutant(
        "system-prompt/2",
        why,
        "the agent takes system prompts in new sessions alone",
        reject_if(method, -32602, |params| params["systemPrompt"].is_object()),
    )]
}
