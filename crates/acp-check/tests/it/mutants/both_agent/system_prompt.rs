//! Wrong in system prompts.

use serde_json::{Value, json};

use crate::mutants::changes::{refuse_if, set};
use crate::mutants::layer::{Mutant, Mutation, answer, hear, mutant};

pub(crate) fn mutants(version: &str) -> Vec<Mutant> {
    let mut mutants = vec![
        mutant(
            "system-prompt/1",
            "`session/new` failed with error -32602",
            "the agent offers to take system prompts, and takes none",
            refuse_if("session/new", -32602, |params| {
                params["systemPrompt"].is_object()
            }),
        ),
        mutant(
            "system-prompt/4",
            "`session/new` failed with error -32602",
            "the agent offers to be overridden, and will not",
            refuse_if("session/new", -32602, |params| {
                params["systemPrompt"]["mode"] == "override"
            }),
        ),
        mutant(
            "system-prompt/4",
            "succeeded; expected an error",
            "the agent can be overridden, and does not say so",
            answer("initialize", |result| {
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
            refuse_if("session/new", -32602, |params| {
                params.get("systemPrompt") == Some(&Value::Null)
            }),
        ),
        mutant(
            "system-prompt/7",
            "the system prompt says to remember 7351, but when asked for the number, the agent said",
            "the agent takes system prompts and forgets them",
            hear("session/new", |params| set(params, "systemPrompt", None)),
        ),
    ];
    mutants.extend(opening("session/new", "`session/new` with"));
    mutants.extend(opening("session/resume", "`session/resume` with"));
    mutants.extend(opening("session/fork", "`session/fork` with"));
    mutants.extend(old("session/resume", "`session/resume` failed with error"));
    mutants.extend(old("session/fork", "`session/fork` failed with error"));
    if version == "v1" {
        mutants.extend(opening("session/load", "`session/load` with"));
        mutants.extend(old("session/load", "`session/load` failed with error"));
    }
    mutants
}

/// Wrong in what is refused when a session is opened by `method`.
fn opening(method: &'static str, why: &'static str) -> [Mutant; 3] {
    [
        mutant(
            "system-prompt/3",
            why,
            "a mode that it does not know is to append to it",
            forgives(method, |prompt| {
                if prompt["mode"] == "_acp-check/whisper" {
                    prompt["mode"] = json!("append");
                }
            }),
        ),
        mutant(
            "system-prompt/5",
            why,
            "the agent passes over what is no text",
            forgives(method, |prompt| {
                let content = prompt["content"].as_array_mut().unwrap();
                content.retain(|block| block["type"] == "text");
            }),
        ),
        mutant(
            "system-prompt/5",
            why,
            "the agent passes over content that it does not know",
            forgives(method, |prompt| {
                let content = prompt["content"].as_array_mut().unwrap();
                content.retain(|block| block["type"] != "_acp-check/smell");
            }),
        ),
    ]
}

/// Makes a system prompt right that is not.
fn forgives(method: &'static str, change: fn(&mut Value)) -> impl Fn() -> Mutation + Send + Sync {
    hear(method, move |params| {
        if params["systemPrompt"].is_object() {
            change(&mut params["systemPrompt"]);
        }
    })
}

/// Takes system prompts, and not when an old session is opened.
fn old(method: &'static str, why: &'static str) -> [Mutant; 1] {
    [mutant(
        "system-prompt/2",
        why,
        "the agent takes system prompts in new sessions alone",
        refuse_if(method, -32602, |params| params["systemPrompt"].is_object()),
    )]
}
