//! Client mutants for the parts of the protocol that both versions share.

use serde_json::{Value, json};

use crate::mutants::layer::{Mutant, Mutation, call_when, change_call, end_when, mutant};

/// Returns the mutants of a version, `v1` or `v2`.
pub(crate) fn mutants(version: &str) -> Vec<Mutant> {
    let mut mutants = unsupported_method_mutants();
    mutants.extend(other_mutants());
    for mutant in &mut mutants {
        // Leaking is fine, because the tests end before there are many of these.
        mutant.kills = format!("{version}/{}", mutant.kills).leak();
    }
    mutants
}

/// Calls a method once a session is open.
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
            "the client archives a session although the agent does not support that",
            call_in_session("session/archive", of_session.clone()),
        ),
        mutant(
            "session-archive/101",
            "the client called `session/unarchive`, but the agent does not support `archive`",
            "the client unarchives a session although the agent does not support that",
            call_in_session("session/unarchive", of_session.clone()),
        ),
        mutant(
            "session-archive/102",
            "the client called `session/list` with `archived`",
            "the client requests archived sessions although the agent does not support archiving",
            change_call("session/list", |params| params["archived"] = json!("only")),
        ),
        mutant(
            "session-status/101",
            "the client called `session/status`, but the agent does not support `status`",
            "the client requests a session's status although the agent does not support that",
            call_in_session("session/status", of_session),
        ),
        mutant(
            "auth-status/101",
            "the client called `auth/status`, but the agent does not support `auth.status`",
            "the client requests the authentication status although the agent does not support that",
            call_in_session("auth/status", json!({})),
        ),
        mutant(
            "providers/101",
            "the client called `providers/list`, but the agent does not support `providers`",
            "the client lists providers although the agent does not support them",
            call_in_session("providers/list", json!({})),
        ),
        mutant(
            "system-prompt/101",
            "the client called `session/new` with a system prompt",
            "the client sends a system prompt although the agent does not support them",
            open_with_system_prompt(
                json!({"mode": "append", "content": [{"type": "text", "text": "Hm."}]}),
            ),
        ),
    ]
}

/// Opens sessions with this system prompt.
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
            "the client exits on an unknown authentication state",
            end_when(|message| message["params"]["state"] == "_acp-check/perhaps"),
        ),
        mutant(
            "auth-status/103",
            "after an authentication status update",
            "the client exits on an authentication status update",
            end_when(|message| message["method"] == "auth/status_update"),
        ),
        mutant(
            "providers/102",
            "the client called `providers/disable` for a required provider",
            "the client disables required providers",
            call_in_session("providers/disable", json!({"providerId": "main"})),
        ),
        mutant(
            "system-prompt/102",
            "the client called `session/new` with system prompt mode \"override\", which the agent does not support",
            "the client uses override mode although the agent does not support it",
            open_with_system_prompt(
                json!({"mode": "override", "content": [{"type": "text", "text": "Hm."}]}),
            ),
        ),
        mutant(
            "system-prompt/103",
            "the client called `session/new` with the system prompt",
            "the client sends an empty system prompt",
            open_with_system_prompt(json!({"mode": "append", "content": []})),
        ),
        mutant(
            "system-prompt/103",
            "the client called `session/new` with the system prompt",
            "the client sends an image as a system prompt",
            open_with_system_prompt(json!({"mode": "append", "content": [
                {"type": "image", "mimeType": "image/png", "data": "eA=="},
            ]})),
        ),
    ]
}
