//! Mutants that open existing sessions, or close sessions, wrongly.

use serde_json::{Value, json};

use crate::mutants::changes::{pretend_if, refuse_if};
use crate::mutants::layer::{
    LayerLine, Mutant, Mutation, PassingMessage, answer, change, mutant, refuse, unheard, withhold,
};

const NONE: &str = "acp-check-no-such-session";

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = loaded();
    mutants.extend(resumed());
    mutants.extend(closed());
    mutants
}

fn loaded() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-setup/20",
            "\"answer\" was not replayed as `user_message_chunk` before the response",
            "the agent does not replay the user's messages",
            without("user_message_chunk"),
        ),
        mutant(
            "v1/session-setup/20",
            "`session/load` of an existing session failed with error -32002: no",
            "the agent loads no sessions",
            refuse("session/load", -32002),
        ),
        mutant(
            "v1/session-setup/21",
            "\"Hello.\" was not replayed as `agent_message_chunk` before the response",
            "the agent does not replay its own messages",
            in_load(
                |told| told["sessionUpdate"] = json!("agent_thought_chunk"),
                "agent_message_chunk",
            ),
        ),
        mutant(
            "v1/session-setup/22",
            "the agent's message was replayed before its prompt",
            "the agent replays the newest message first",
            backwards,
        ),
        mutant(
            "v1/session-setup/23",
            "a `user_message_chunk` was sent after the response to `session/load`",
            "the agent continues the replay after its response",
            late,
        ),
        mutant(
            "v1/session-setup/24",
            "was loaded, but a `user_message_chunk` was sent for session \"old\"",
            "the agent replays updates with another session id",
            change(|passing| {
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
            only_first_prompt,
        ),
        mutant(
            "v1/session-setup/26",
            "`session/load` of an unknown session succeeded",
            "the agent loads unknown sessions",
            pretend_if("session/load", |params| params["sessionId"] == NONE),
        ),
        mutant(
            "v1/session-setup/27",
            "the agent does not support `session/load`, but the request succeeded",
            "the agent supports `session/load`, but does not advertise it",
            answer("initialize", |result| {
                result["agentCapabilities"]["loadSession"] = json!(false);
            }),
        ),
    ]
}

fn resumed() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-setup/28",
            "a `user_message_chunk` was sent before the response to `session/resume`",
            "the agent replays the history of a resumed session",
            change(|passing| {
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
            only_first_prompt,
        ),
        mutant(
            "v1/session-setup/30",
            "`session/resume` of an unknown session succeeded",
            "the agent resumes unknown sessions",
            pretend_if("session/resume", |params| params["sessionId"] == NONE),
        ),
        mutant(
            "v1/session-setup/31",
            "`session/resume` of an existing session failed with error -32602: no",
            "the agent requires MCP servers in `session/resume`",
            refuse_if("session/resume", -32602, |params| {
                params.get("mcpServers").is_none()
            }),
        ),
        mutant(
            "v1/session-setup/32",
            "the agent does not support `session/resume`, but the request succeeded",
            "the agent supports `session/resume`, but does not advertise it",
            not_said("resume"),
        ),
    ]
}

fn closed() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-setup/40",
            "`session/close` failed with error -32603: no",
            "the agent closes no sessions",
            refuse("session/close", -32603),
        ),
        mutant(
            "v1/session-setup/41",
            "waiting for responses to 2 requests",
            "the agent does not respond to the prompt of a closed session",
            withhold("session/prompt", true),
        ),
        mutant(
            "v1/session-setup/41",
            "waiting for responses to 2 requests",
            "the agent waits for the end of the turn before it closes the session",
            unheard("session/close", false),
        ),
        mutant(
            "v1/session-setup/42",
            "the turn ended with \"refusal\"; expected \"cancelled\"",
            "the agent ends the turn of a closed session with `refusal`",
            answer("session/prompt", |result| {
                result["stopReason"] = json!("refusal")
            }),
        ),
        mutant(
            "v1/session-setup/43",
            "`session/prompt` failed with error",
            "the agent closes all sessions at once",
            all_closed,
        ),
        mutant(
            "v1/session-setup/44",
            "the agent does not support `session/close`, but the request succeeded",
            "the agent supports `session/close`, but does not advertise it",
            not_said("close"),
        ),
    ]
}

/// Does not advertise a session capability that the agent supports.
pub(super) fn not_said(capability: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    answer("initialize", move |result| {
        let sessions = &mut result["agentCapabilities"]["sessionCapabilities"];
        sessions.as_object_mut().unwrap().remove(capability);
    })
}

/// Drops updates of one type.
fn without(kind: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    change(move |passing| {
        let of_kind = |message: &Value| message["params"]["update"]["sessionUpdate"] == kind;
        if passing.said && passing.message.as_ref().is_some_and(of_kind) {
            *passing.message = None;
        }
    })
}

/// Changes the updates of one type that are sent while a session is loaded.
fn in_load(
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

/// Holds back the replayed updates. `order` sends them with the response.
fn replayed(order: fn(&mut PassingMessage<'_>, Vec<LayerLine>)) -> Mutation {
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

fn backwards() -> Mutation {
    replayed(|passing, kept| {
        let answer = passing.message.take().map(LayerLine::Json);
        passing.then.extend(kept.into_iter().rev().chain(answer));
    })
}

fn late() -> Mutation {
    replayed(|passing, kept| passing.then.extend(kept))
}

/// Rejects all prompts except the first.
fn only_first_prompt() -> Mutation {
    let mut prompts = 0;
    Box::new(move |passing: PassingMessage<'_>| {
        if !passing.said && passing.method == "session/prompt" {
            prompts += 1;
            if prompts > 1 {
                no_such_session(passing);
            }
        }
    })
}

/// Rejects all prompts after a session was closed.
fn all_closed() -> Mutation {
    let mut closed = false;
    Box::new(move |passing: PassingMessage<'_>| {
        closed |= passing.method == "session/close";
        if closed && !passing.said && passing.method == "session/prompt" {
            no_such_session(passing);
        }
    })
}

fn no_such_session(passing: PassingMessage<'_>) {
    if let Some(message) = passing.message.take() {
        let error = json!({"code": -32002, "message": "no such session"});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
        passing.back.push(LayerLine::Json(answer));
    }
}
