//! Mutants that load, resume or close sessions incorrectly.

use serde_json::{Value, json};

use crate::mutants::changes::{reject_if, succeed_without_effect_if};
use crate::mutants::layer::{
    InterceptedMessage, LayerLine, Mutant, Mutation, change_result, drop_incoming, drop_outgoing,
    mutant, mutate_messages, reject_request,
};

const UNKNOWN_SESSION: &str = "acp-check-no-such-session";

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = load_mutants();
    mutants.extend(resume_mutants());
    mutants.extend(close_mutants());
    mutants
}

fn load_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-setup/20",
            "\"answer\" was not replayed as `user_message_chunk` before the response",
            "the agent does not replay the user's messages",
            drop_updates_of_kind("user_message_chunk"),
        ),
        mutant(
            "v1/session-setup/20",
            "`session/load` for an existing session failed with error -32002: no",
            "the agent loads no sessions",
            reject_request("session/load", -32002),
        ),
        mutant(
            "v1/session-setup/21",
            "\"Hello.\" was not replayed as `agent_message_chunk` before the response",
            "the agent does not replay its own messages",
            change_while_loading(
                |told| told["sessionUpdate"] = json!("agent_thought_chunk"),
                "agent_message_chunk",
            ),
        ),
        mutant(
            "v1/session-setup/22",
            "the agent's message was replayed before its prompt",
            "the agent replays the newest message first",
            reverse_replay,
        ),
        mutant(
            "v1/session-setup/23",
            "a `user_message_chunk` was sent after the response to `session/load`",
            "the agent continues the replay after its response",
            delay_replay,
        ),
        mutant(
            "v1/session-setup/24",
            "was loaded, but a `user_message_chunk` was sent for session \"old\"",
            "the agent replays updates with another session id",
            mutate_messages(|passing| {
                if let Some(message) = passing.message
                    && passing.said
                    && message["params"]["update"]["sessionUpdate"] == "user_message_chunk"
                {
                    message["params"]["sessionId"] = json!("old");
                }
            }),
        ),
        mutant(
            "v1/session-setup/25",
            "`session/prompt` failed with error",
            "the agent rejects prompts in loaded sessions",
            reject_later_prompts,
        ),
        mutant(
            "v1/session-setup/26",
            "`session/load` for an unknown session succeeded",
            "the agent loads unknown sessions",
            succeed_without_effect_if("session/load", |params| {
                params["sessionId"] == UNKNOWN_SESSION
            }),
        ),
        mutant(
            "v1/session-setup/27",
            "the agent does not support `session/load`, but the request succeeded",
            "the agent supports `session/load`, but does not advertise it",
            change_result("initialize", |result| {
                result["agentCapabilities"]["loadSession"] = json!(false);
            }),
        ),
    ]
}

fn resume_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-setup/28",
            "a `user_message_chunk` was sent before the response to `session/resume`",
            "the agent replays the history of a resumed session",
            mutate_messages(|passing| {
                if let Some(message) = passing.message
                    && !passing.said
                    && passing.method == "session/resume"
                {
                    message["method"] = json!("session/load");
                }
            }),
        ),
        mutant(
            "v1/session-setup/29",
            "`session/prompt` failed with error",
            "the agent rejects prompts in resumed sessions",
            reject_later_prompts,
        ),
        mutant(
            "v1/session-setup/30",
            "`session/resume` for an unknown session succeeded",
            "the agent resumes unknown sessions",
            succeed_without_effect_if("session/resume", |params| {
                params["sessionId"] == UNKNOWN_SESSION
            }),
        ),
        mutant(
            "v1/session-setup/31",
            "`session/resume` for an existing session failed with error -32602: no",
            "the agent requires MCP servers in `session/resume`",
            reject_if("session/resume", -32602, |params| {
                params.get("mcpServers").is_none()
            }),
        ),
        mutant(
            "v1/session-setup/32",
            "the agent does not support `session/resume`, but the request succeeded",
            "the agent supports `session/resume`, but does not advertise it",
            hide_session_capability("resume"),
        ),
    ]
}

fn close_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-setup/40",
            "`session/close` failed with error -32603: no",
            "the agent closes no sessions",
            reject_request("session/close", -32603),
        ),
        mutant(
            "v1/session-setup/41",
            "waiting for responses to 2 requests",
            "the agent does not respond to the prompt of a closed session",
            drop_outgoing("session/prompt", true),
        ),
        mutant(
            "v1/session-setup/41",
            "waiting for responses to 2 requests",
            "the agent waits for the end of the turn before it closes the session",
            drop_incoming("session/close", false),
        ),
        mutant(
            "v1/session-setup/42",
            "the turn ended with \"refusal\"; expected \"cancelled\"",
            "the agent ends the turn of a closed session with `refusal`",
            change_result("session/prompt", |result| {
                result["stopReason"] = json!("refusal")
            }),
        ),
        mutant(
            "v1/session-setup/43",
            "`session/prompt` failed with error",
            "the agent closes all sessions at once",
            reject_prompts_after_close,
        ),
        mutant(
            "v1/session-setup/44",
            "the agent does not support `session/close`, but the request succeeded",
            "the agent supports `session/close`, but does not advertise it",
            hide_session_capability("close"),
        ),
    ]
}

/// Hides a session capability that the agent supports.
pub(super) fn hide_session_capability(
    capability: &'static str,
) -> impl Fn() -> Mutation + Send + Sync {
    change_result("initialize", move |result| {
        let sessions = &mut result["agentCapabilities"]["sessionCapabilities"];
        sessions.as_object_mut().unwrap().remove(capability);
    })
}

/// Drops updates of one type.
fn drop_updates_of_kind(kind: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        let of_kind = |message: &Value| message["params"]["update"]["sessionUpdate"] == kind;
        if passing.said && passing.message.as_ref().is_some_and(of_kind) {
            *passing.message = None;
        }
    })
}

/// Changes updates of one type while a session is being loaded.
fn change_while_loading(
    how: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
    kind: &'static str,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        let how = how.clone();
        let mut loading = false;
        Box::new(move |passing: InterceptedMessage<'_>| {
            if passing.method == "session/load" {
                loading = !passing.said;
            }
            if loading
                && passing.said
                && let Some(message) = passing.message
                && message["params"]["update"]["sessionUpdate"] == kind
            {
                how(&mut message["params"]["update"]);
            }
        })
    }
}

/// Holds back replayed updates until the response to `session/load`, then lets `order` send them.
fn reorder_replay(order: fn(&mut InterceptedMessage<'_>, Vec<LayerLine>)) -> Mutation {
    let mut loading = false;
    let mut kept = Vec::new();
    Box::new(move |mut passing: InterceptedMessage<'_>| {
        let answer = passing.method == "session/load" && passing.said;
        if passing.method == "session/load" {
            loading = !passing.said;
        }
        if answer {
            order(&mut passing, std::mem::take(&mut kept));
        } else if loading && passing.said && passing.method == "session/update" {
            kept.extend(passing.message.take().map(LayerLine::Json));
        }
    })
}

fn reverse_replay() -> Mutation {
    reorder_replay(|passing, kept| {
        let answer = passing.message.take().map(LayerLine::Json);
        passing.then.extend(kept.into_iter().rev().chain(answer));
    })
}

fn delay_replay() -> Mutation {
    reorder_replay(|passing, kept| passing.then.extend(kept))
}

/// Rejects all prompts except the first.
fn reject_later_prompts() -> Mutation {
    let mut prompts = 0;
    Box::new(move |passing: InterceptedMessage<'_>| {
        if !passing.said && passing.method == "session/prompt" {
            prompts += 1;
            if prompts > 1 {
                respond_session_not_found(passing);
            }
        }
    })
}

/// Rejects all prompts after a session has been closed.
fn reject_prompts_after_close() -> Mutation {
    let mut closed = false;
    Box::new(move |passing: InterceptedMessage<'_>| {
        closed |= passing.method == "session/close";
        if closed && !passing.said && passing.method == "session/prompt" {
            respond_session_not_found(passing);
        }
    })
}

fn respond_session_not_found(passing: InterceptedMessage<'_>) {
    if let Some(message) = passing.message.take() {
        let error = json!({"code": -32002, "message": "no such session"});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
        passing.back.push(LayerLine::Json(answer));
    }
}
