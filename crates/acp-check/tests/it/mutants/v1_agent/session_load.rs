//! Wrong in how old sessions are opened, and how open ones are closed.

use serde_json::{Value, json};

use crate::mutants::changes::{reject_if, succeed_without_effect_if};
use crate::mutants::layer::{
    LayerLine, Mutant, Mutation, PassingMessage, change_result, drop_incoming, drop_outgoing,
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
            "the agent replays nothing of the user's",
            drop_updates_of_kind("user_message_chunk"),
        ),
        mutant(
            "v1/session-setup/20",
            "`session/load` of an existing session failed with error -32002: no",
            "the agent loads nothing",
            reject_request("session/load", -32002),
        ),
        mutant(
            "v1/session-setup/21",
            "\"Hello.\" was not replayed as `agent_message_chunk` before the response",
            "the agent replays nothing of its own",
            change_while_loading(
                |told| told["sessionUpdate"] = json!("agent_thought_chunk"),
                "agent_message_chunk",
            ),
        ),
        mutant(
            "v1/session-setup/22",
            "the agent's message was replayed before its prompt",
            "the agent replays the newest first",
            reverse_replay,
        ),
        mutant(
            "v1/session-setup/23",
            "a `user_message_chunk` was sent after the response to `session/load`",
            "the agent goes on replaying after its answer",
            delay_replay,
        ),
        mutant(
            "v1/session-setup/24",
            "was loaded, but a `user_message_chunk` was sent for session \"old\"",
            "the agent replays under a name of its own",
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
            "the agent loads sessions to look at",
            reject_later_prompts,
        ),
        mutant(
            "v1/session-setup/26",
            "`session/load` of an unknown session succeeded",
            "the agent loads whatever is asked for",
            succeed_without_effect_if("session/load", |params| {
                params["sessionId"] == UNKNOWN_SESSION
            }),
        ),
        mutant(
            "v1/session-setup/27",
            "the agent does not support `session/load`, but the request succeeded",
            "the agent loads without having said that it can",
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
            "the agent loads when it should resume",
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
            "the agent resumes sessions to look at",
            reject_later_prompts,
        ),
        mutant(
            "v1/session-setup/30",
            "`session/resume` of an unknown session succeeded",
            "the agent resumes whatever is asked for",
            succeed_without_effect_if("session/resume", |params| {
                params["sessionId"] == UNKNOWN_SESSION
            }),
        ),
        mutant(
            "v1/session-setup/31",
            "`session/resume` of an existing session failed with error -32602: no",
            "the agent wants to know the MCP servers, though there be none",
            reject_if("session/resume", -32602, |params| {
                params.get("mcpServers").is_none()
            }),
        ),
        mutant(
            "v1/session-setup/32",
            "the agent does not support `session/resume`, but the request succeeded",
            "the agent resumes without having said that it can",
            hide_session_capability("resume"),
        ),
    ]
}

fn close_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-setup/40",
            "`session/close` failed with error -32603: no",
            "the agent closes nothing",
            reject_request("session/close", -32603),
        ),
        mutant(
            "v1/session-setup/41",
            "waiting for responses to 2 requests",
            "the agent forgets the prompt of a session that is closed",
            drop_outgoing("session/prompt", true),
        ),
        mutant(
            "v1/session-setup/41",
            "waiting for responses to 2 requests",
            "the agent waits for the turn before it closes a session",
            drop_incoming("session/close", false),
        ),
        mutant(
            "v1/session-setup/42",
            "the turn ended with \"refusal\"; expected \"cancelled\"",
            "the agent takes a session that is closed for one that it refuses",
            change_result("session/prompt", |result| {
                result["stopReason"] = json!("refusal")
            }),
        ),
        mutant(
            "v1/session-setup/43",
            "`session/prompt` failed with error",
            "the agent closes all when it closes one",
            reject_prompts_after_close,
        ),
        mutant(
            "v1/session-setup/44",
            "the agent does not support `session/close`, but the request succeeded",
            "the agent closes without having said that it can",
            hide_session_capability("close"),
        ),
    ]
}

/// Has a capability of sessions, and does not say so.
pub(super) fn hide_session_capability(
    capability: &'static str,
) -> impl Fn() -> Mutation + Send + Sync {
    change_result("initialize", move |result| {
        let sessions = &mut result["agentCapabilities"]["sessionCapabilities"];
        sessions.as_object_mut().unwrap().remove(capability);
    })
}

/// Says nothing of a kind.
fn drop_updates_of_kind(kind: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        let of_kind = |message: &Value| message["params"]["update"]["sessionUpdate"] == kind;
        if passing.said && passing.message.as_ref().is_some_and(of_kind) {
            *passing.message = None;
        }
    })
}

/// Changes the updates of a kind that come while a session is loaded.
fn change_while_loading(
    how: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
    kind: &'static str,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        let how = how.clone();
        let mut loading = false;
        Box::new(move |passing: PassingMessage<'_>| {
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

/// What is replayed is held back, and what `held` makes of it comes with the answer.
fn reorder_replay(order: fn(&mut PassingMessage<'_>, Vec<LayerLine>)) -> Mutation {
    let mut loading = false;
    let mut kept = Vec::new();
    Box::new(move |mut passing: PassingMessage<'_>| {
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

/// Refuses all prompts but the first.
fn reject_later_prompts() -> Mutation {
    let mut prompts = 0;
    Box::new(move |passing: PassingMessage<'_>| {
        if !passing.said && passing.method == "session/prompt" {
            prompts += 1;
            if prompts > 1 {
                respond_no_such_session(passing);
            }
        }
    })
}

/// Refuses all prompts once a session was closed.
fn reject_prompts_after_close() -> Mutation {
    let mut closed = false;
    Box::new(move |passing: PassingMessage<'_>| {
        closed |= passing.method == "session/close";
        if closed && !passing.said && passing.method == "session/prompt" {
            respond_no_such_session(passing);
        }
    })
}

fn respond_no_such_session(passing: PassingMessage<'_>) {
    if let Some(message) = passing.message.take() {
        let error = json!({"code": -32002, "message": "no such session"});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
        passing.back.push(LayerLine::Json(answer));
    }
}
