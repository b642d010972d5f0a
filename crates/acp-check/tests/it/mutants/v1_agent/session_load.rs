//! Wrong in how old sessions are opened, and how open ones are closed.

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
            "the agent replays nothing of the user's",
            without("user_message_chunk"),
        ),
        mutant(
            "v1/session-setup/20",
            "`session/load` of an existing session failed with error -32002: no",
            "the agent loads nothing",
            refuse("session/load", -32002),
        ),
        mutant(
            "v1/session-setup/21",
            "\"Hello.\" was not replayed as `agent_message_chunk` before the response",
            "the agent replays nothing of its own",
            in_load(
                |told| told["sessionUpdate"] = json!("agent_thought_chunk"),
                "agent_message_chunk",
            ),
        ),
        mutant(
            "v1/session-setup/22",
            "the agent's message was replayed before its prompt",
            "the agent replays the newest first",
            backwards,
        ),
        mutant(
            "v1/session-setup/23",
            "a `user_message_chunk` was sent after the response to `session/load`",
            "the agent goes on replaying after its answer",
            late,
        ),
        mutant(
            "v1/session-setup/24",
            "was loaded, but a `user_message_chunk` was sent for session \"old\"",
            "the agent replays under a name of its own",
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
            "the agent loads sessions to look at",
            only_first_prompt,
        ),
        mutant(
            "v1/session-setup/26",
            "`session/load` of an unknown session succeeded",
            "the agent loads whatever is asked for",
            pretend_if("session/load", |params| params["sessionId"] == NONE),
        ),
        mutant(
            "v1/session-setup/27",
            "the agent does not support `session/load`, but the request succeeded",
            "the agent loads without having said that it can",
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
            "the agent loads when it should resume",
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
            "the agent resumes sessions to look at",
            only_first_prompt,
        ),
        mutant(
            "v1/session-setup/30",
            "`session/resume` of an unknown session succeeded",
            "the agent resumes whatever is asked for",
            pretend_if("session/resume", |params| params["sessionId"] == NONE),
        ),
        mutant(
            "v1/session-setup/31",
            "`session/resume` of an existing session failed with error -32602: no",
            "the agent wants to know the MCP servers, though there be none",
            refuse_if("session/resume", -32602, |params| {
                params.get("mcpServers").is_none()
            }),
        ),
        mutant(
            "v1/session-setup/32",
            "the agent does not support `session/resume`, but the request succeeded",
            "the agent resumes without having said that it can",
            not_said("resume"),
        ),
    ]
}

fn closed() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-setup/40",
            "`session/close` failed with error -32603: no",
            "the agent closes nothing",
            refuse("session/close", -32603),
        ),
        mutant(
            "v1/session-setup/41",
            "waiting for responses to 2 requests",
            "the agent forgets the prompt of a session that is closed",
            withhold("session/prompt", true),
        ),
        mutant(
            "v1/session-setup/41",
            "waiting for responses to 2 requests",
            "the agent waits for the turn before it closes a session",
            unheard("session/close", false),
        ),
        mutant(
            "v1/session-setup/42",
            "the turn ended with \"refusal\"; expected \"cancelled\"",
            "the agent takes a session that is closed for one that it refuses",
            answer("session/prompt", |result| {
                result["stopReason"] = json!("refusal")
            }),
        ),
        mutant(
            "v1/session-setup/43",
            "`session/prompt` failed with error",
            "the agent closes all when it closes one",
            all_closed,
        ),
        mutant(
            "v1/session-setup/44",
            "the agent does not support `session/close`, but the request succeeded",
            "the agent closes without having said that it can",
            not_said("close"),
        ),
    ]
}

/// Has a capability of sessions, and does not say so.
pub(super) fn not_said(capability: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    answer("initialize", move |result| {
        let sessions = &mut result["agentCapabilities"]["sessionCapabilities"];
        sessions.as_object_mut().unwrap().remove(capability);
    })
}

/// Says nothing of a kind.
fn without(kind: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    change(move |passing| {
        let of_kind = |message: &Value| message["params"]["update"]["sessionUpdate"] == kind;
        if passing.said && passing.message.as_ref().is_some_and(of_kind) {
            *passing.message = None;
        }
    })
}

/// Changes the updates of a kind that come while a session is loaded.
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

/// What is replayed is held back, and what `held` makes of it comes with the answer.
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

/// Refuses all prompts but the first.
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

/// Refuses all prompts once a session was closed.
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
