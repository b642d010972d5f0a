//! Changes that pages of mutants have in common: to what the peer says and hears, call by call.

use serde_json::{Value, json};

use crate::layer::{Change, Line, Passing, change};

/// Answers a call of `method` in the peer's place, by a `result` or an `error`, where `when` holds of its params.
pub(crate) fn instead(
    method: &'static str,
    when: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
    answer: Value,
) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
        if passing.hears(method)
            && passing
                .message
                .as_ref()
                .is_some_and(|call| when(&call["params"]))
            && let Some(call) = passing.message.take()
        {
            let mut answer = answer.clone();
            (answer["jsonrpc"], answer["id"]) = (json!("2.0"), call["id"].clone());
            passing.back.push(Line::Json(answer));
        }
    })
}

/// Answers a call of the peer's own of `method` in the suite's place, which does not hear of it.
pub(crate) fn swallow(method: &'static str, result: Value) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
        if passing.says(method)
            && let Some(call) = passing.message.take()
        {
            let answer = json!({"jsonrpc": "2.0", "id": call["id"], "result": result});
            passing.back.push(Line::Json(answer));
        }
    })
}

/// Keeps a call of `method` from the peer where `when` holds of its params.
pub(crate) fn ignore(
    method: &'static str,
    when: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
        if passing.hears(method)
            && passing
                .message
                .as_ref()
                .is_some_and(|call| when(&call["params"]))
        {
            *passing.message = None;
        }
    })
}

/// Answers every call of `method` but the first with an error.
pub(crate) fn only_once(method: &'static str) -> impl Fn() -> Change + Send + Sync {
    counted(method, |passing| {
        let id = passing.message.take().unwrap()["id"].clone();
        let error = json!({"code": -32603, "message": "no more"});
        let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
        passing.back.push(Line::Json(answer));
    })
}

/// Keeps every call of `method` but the first from the peer.
pub(crate) fn heard_once(method: &'static str) -> impl Fn() -> Change + Send + Sync {
    counted(method, |passing| *passing.message = None)
}

/// Changes every call of `method` that the peer hears, but the first.
fn counted(
    method: &'static str,
    change: impl Fn(&mut Passing<'_>) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Change + Send + Sync {
    move || {
        let change = change.clone();
        let mut heard = 0;
        Box::new(move |mut passing| {
            if passing.hears(method) {
                heard += 1;
                if heard > 1 {
                    change(&mut passing);
                }
            }
        })
    }
}

/// Answers `method` with an error after all, when it has been carried out.
pub(crate) fn fails(method: &'static str) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
        if passing.said
            && passing.answers
            && passing.method == method
            && let Some(answer) = passing.message
        {
            let error = json!({"code": -32603, "message": "aborted"});
            *answer = json!({"jsonrpc": "2.0", "id": answer["id"], "error": error});
        }
    })
}

/// Changes the result of every answer to `method` before the peer hears it.
pub(crate) fn hears(
    method: &'static str,
    change: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Change + Send + Sync {
    crate::layer::change(move |passing| {
        if !passing.said
            && passing.answers
            && passing.method == method
            && let Some(result) = passing.message.as_mut().and_then(|m| m.get_mut("result"))
        {
            change(result);
        }
    })
}

/// Changes the params of every call of `method` before the peer hears it.
pub(crate) fn hears_call(
    method: &'static str,
    change: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Change + Send + Sync {
    crate::layer::change(move |passing| {
        if passing.hears(method)
            && let Some(params) = passing.message.as_mut().and_then(|m| m.get_mut("params"))
        {
            change(params);
        }
    })
}

/// Leaves out every update of these kinds of which `when` holds.
pub(crate) fn without_updates(
    kinds: &'static [&'static str],
    when: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
        let leave_out = passing.says("session/update")
            && passing.message.as_ref().is_some_and(|message| {
                let update = &message["params"]["update"];
                kinds.iter().any(|kind| update["sessionUpdate"] == *kind) && when(update)
            });
        if leave_out {
            *passing.message = None;
        }
    })
}

/// Sends another update behind each that `next` gives one for.
pub(crate) fn after_update(
    next: impl Fn(&Value) -> Option<Value> + Clone + Send + Sync + 'static,
) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
        if passing.says("session/update")
            && let Some(message) = passing.message
            && let Some(update) = next(&message["params"]["update"])
        {
            let mut message = message.clone();
            message["params"]["update"] = update;
            passing.then.push(Line::Json(message));
        }
    })
}

/// Sends an update behind each answer to `method`, for the session it was about.
pub(crate) fn late(method: &'static str, update: Value) -> impl Fn() -> Change + Send + Sync {
    move || {
        let update = update.clone();
        let mut session = Value::Null;
        Box::new(move |passing| {
            if passing.hears(method)
                && let Some(call) = &passing.message
            {
                session = call["params"]["sessionId"].clone();
            }
            if passing.said && passing.answers && passing.method == method {
                let params = json!({"sessionId": session, "update": update});
                let message =
                    json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
                passing.then.push(Line::Json(message));
            }
        })
    }
}

/// Answers a notification, with an error.
pub(crate) fn answered(method: &'static str) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
        if passing.hears(method) {
            let error = json!({"code": -32602, "message": "of what?"});
            let answer = json!({"jsonrpc": "2.0", "id": null, "error": error});
            passing.back.push(Line::Json(answer));
        }
    })
}
