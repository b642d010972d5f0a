//! Clients that are wrong in what is the same in both versions.

use serde_json::{Value, json};

use crate::mutants::layer::{Mutant, Mutation, call_when, change_call, end_when, mutant};

/// The mutants of a version, `v1` or `v2`.
pub(crate) fn mutants(version: &str) -> Vec<Mutant> {
    let mut mutants = unsupported_method_mutants();
    mutants.extend(other_mutants());
    for mutant in &mut mutants {
        // The tests end before many of them are made.
        mutant.kills = format!("{version}/{}", mutant.kills).leak();
    }
    mutants
}

/// Calls a method as soon as it has a session.
fn call_in_session(method: &str, params: Value) -> impl Fn() -> Mutation + Send + Sync + use<> {
    let call = json!({"jsonrpc": "2.0", "id": "too-much", "method": method, "params": params});
    call_when(
        |passing| passing.answers && passing.method == "session/new",
        call,
    )
}

fn unsupported_method_mutants() -> Vec<Mutant> {
    let of_session = json!({"sessionId": "sess_check"});
    vec![
        mutant(
            "session-archive/101",
            "the client called `session/archive`, but the agent does not support `archive`",
            "the client archives without being offered to",
            call_in_session("session/archive", of_session.clone()),
        ),
        mutant(
            "session-archive/101",
            "the client called `session/unarchive`, but the agent does not support `archive`",
            "the client takes out of an archive that there is not",
            call_in_session("session/unarchive", of_session.clone()),
        ),
        mutant(
            "session-archive/102",
            "the client called `session/list` with `archived`",
            "the client asks for an archive that there is not",
            change_call("session/list", |params| params["archived"] = json!("only")),
        ),
        mutant(
            "session-status/101",
            "the client called `session/status`, but the agent does not support `status`",
            "the client asks for the status without being offered to",
            call_in_session("session/status", of_session),
        ),
        mutant(
            "auth-status/101",
            "the client called `auth/status`, but the agent does not support `auth.status`",
            "the client asks for the status without being offered to",
            call_in_session("auth/status", json!({})),
        ),
        mutant(
            "providers/101",
            "the client called `providers/list`, but the agent does not support `providers`",
            "the client looks for providers without being offered to",
            call_in_session("providers/list", json!({})),
        ),
        mutant(
            "system-prompt/101",
            "the client called `session/new` with a system prompt",
            "the client gives a system prompt without being offered to",
            open_with_system_prompt(
                json!({"mode": "append", "content": [{"type": "text", "text": "Hm."}]}),
            ),
        ),
    ]
}

/// Opens its sessions with this system prompt.
fn open_with_system_prompt(prompt: Value) -> impl Fn() -> Mutation + Send + Sync {
    change_call("session/new", move |params| {
        params["systemPrompt"] = prompt.clone();
    })
}

fn other_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "auth-status/102",
            "after an unknown authentication state",
            "the client ends at a state that it does not know",
            end_when(|message| message["params"]["state"] == "_acp-check/perhaps"),
        ),
        mutant(
            "auth-status/103",
            "after an authentication status update",
            "the client ends when it is told of a status",
            end_when(|message| message["method"] == "auth/status_update"),
        ),
        mutant(
            "providers/102",
            "the client called `providers/disable` for a required provider",
            "the client disables whatever there is",
            call_in_session("providers/disable", json!({"providerId": "main"})),
        ),
        mutant(
            "system-prompt/102",
            "the client called `session/new` with system prompt mode \"override\", which the agent does not support",
            "the client overrides without being offered to",
            open_with_system_prompt(
                json!({"mode": "override", "content": [{"type": "text", "text": "Hm."}]}),
            ),
        ),
        mutant(
            "system-prompt/103",
            "the client called `session/new` with the system prompt",
            "its system prompt is empty",
            open_with_system_prompt(json!({"mode": "append", "content": []})),
        ),
        mutant(
            "system-prompt/103",
            "the client called `session/new` with the system prompt",
            "its system prompt is an image",
            open_with_system_prompt(json!({"mode": "append", "content": [
                {"type": "image", "mimeType": "image/png", "data": "eA=="},
            ]})),
        ),
    ]
}
