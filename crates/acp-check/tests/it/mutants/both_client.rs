//! Clients that are wrong in what is the same in both versions.

use serde_json::{Value, json};

use crate::mutants::layer::{Mutant, Mutation, call, ends_at, mutant, says_at};

/// The mutants of a version, `v1` or `v2`.
pub(crate) fn mutants(version: &str) -> Vec<Mutant> {
    let mut mutants = unoffered();
    mutants.extend(others());
    for mutant in &mut mutants {
        // The tests end before many of them are made.
        mutant.kills = format!("{version}/{}", mutant.kills).leak();
    }
    mutants
}

/// Calls a method as soon as it has a session.
fn calls(method: &str, params: Value) -> impl Fn() -> Mutation + Send + Sync + use<> {
    let call = json!({"jsonrpc": "2.0", "id": "too-much", "method": method, "params": params});
    says_at(
        |passing| passing.answers && passing.method == "session/new",
        call,
    )
}

fn unoffered() -> Vec<Mutant> {
    let of_session = json!({"sessionId": "sess_check"});
    vec![
        mutant(
            "session-archive/101",
            "it called `session/archive`, but the agent does not support `archive`",
            "it archives without being offered to",
            calls("session/archive", of_session.clone()),
        ),
        mutant(
            "session-archive/101",
            "it called `session/unarchive`, but the agent does not support `archive`",
            "it takes out of an archive that there is not",
            calls("session/unarchive", of_session.clone()),
        ),
        mutant(
            "session-archive/102",
            "it called `session/list` with `archived`",
            "it asks for an archive that there is not",
            call("session/list", |params| params["archived"] = json!("only")),
        ),
        mutant(
            "session-status/101",
            "it called `session/status`, but the agent does not support `status`",
            "it asks for the status without being offered to",
            calls("session/status", of_session),
        ),
        mutant(
            "auth-status/101",
            "it called `auth/status`, but the agent does not support `auth.status`",
            "it asks for the status without being offered to",
            calls("auth/status", json!({})),
        ),
        mutant(
            "providers/101",
            "it called `providers/list`, but the agent does not support `providers`",
            "it looks for providers without being offered to",
            calls("providers/list", json!({})),
        ),
        mutant(
            "system-prompt/101",
            "it called `session/new` with a system prompt",
            "it gives a system prompt without being offered to",
            prompts(json!({"mode": "append", "content": [{"type": "text", "text": "Hm."}]})),
        ),
    ]
}

/// Opens its sessions with this system prompt.
fn prompts(prompt: Value) -> impl Fn() -> Mutation + Send + Sync {
    call("session/new", move |params| {
        params["systemPrompt"] = prompt.clone();
    })
}

fn others() -> Vec<Mutant> {
    vec![
        mutant(
            "auth-status/102",
            "after an unknown authentication state",
            "it ends at a state that it does not know",
            ends_at(|message| message["params"]["state"] == "_acp-check/perhaps"),
        ),
        mutant(
            "auth-status/103",
            "after an authentication status update",
            "it ends when it is told of a status",
            ends_at(|message| message["method"] == "auth/status_update"),
        ),
        mutant(
            "providers/102",
            "it called `providers/disable` for a required provider",
            "it disables whatever there is",
            calls("providers/disable", json!({"providerId": "main"})),
        ),
        mutant(
            "system-prompt/102",
            "it called `session/new` with system prompt mode \"override\", which the agent does not support",
            "it overrides without being offered to",
            prompts(json!({"mode": "override", "content": [{"type": "text", "text": "Hm."}]})),
        ),
        mutant(
            "system-prompt/103",
            "it called `session/new` with the system prompt",
            "its system prompt is empty",
            prompts(json!({"mode": "append", "content": []})),
        ),
        mutant(
            "system-prompt/103",
            "it called `session/new` with the system prompt",
            "its system prompt is an image",
            prompts(json!({"mode": "append", "content": [
                {"type": "image", "mimeType": "image/png", "data": "eA=="},
            ]})),
        ),
    ]
}
