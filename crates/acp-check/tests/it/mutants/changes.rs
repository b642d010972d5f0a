//! Changes that pages of mutants have in common: to what the peer says and hears, call by call.

use acp_check::{Check, CheckProcedure};
use serde_json::{Value, json};

use crate::mutants::layer::{LayerLine, Mutation, PassingMessage, mutate_messages};

/// Answers a call of `method` in the peer's place, by a `result` or an `error`, where `when` holds of its params.
pub(crate) fn respond_instead(
    method: &'static str,
    when: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
    answer: Value,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if passing.is_incoming(method)
            && let Some(call) = passing.message.take_if(|call| when(&call["params"]))
        {
            let mut answer = answer.clone();
            (answer["jsonrpc"], answer["id"]) = (json!("2.0"), call["id"].clone());
            passing.back.push(LayerLine::Json(answer));
        }
    })
}

/// Answers with an error the calls of `method` where `when` holds of their params.
pub(crate) fn reject_if(
    method: &'static str,
    code: i64,
    when: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    let error = json!({"code": code, "message": "no"});
    respond_instead(method, when, json!({"error": error}))
}

/// Says that it has carried out the calls of `method` where `when` holds of their params, and has not.
pub(crate) fn succeed_without_effect_if(
    method: &'static str,
    when: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    respond_instead(method, when, json!({"result": {}}))
}

/// Answers every call of `method` with this result instead of carrying it out.
pub(crate) fn respond_with(
    method: &'static str,
    result: Value,
) -> impl Fn() -> Mutation + Send + Sync {
    respond_instead(method, |_| true, json!({"result": result}))
}

/// Answers a call of the peer's own of `method` in the suite's place, which does not hear of it.
pub(crate) fn intercept_request(
    method: &'static str,
    result: Value,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if passing.is_outgoing(method)
            && let Some(call) = passing.message.take()
        {
            let answer = json!({"jsonrpc": "2.0", "id": call["id"], "result": result});
            passing.back.push(LayerLine::Json(answer));
        }
    })
}

/// Keeps a call of `method` from the peer where `when` holds of its params.
pub(crate) fn drop_request_if(
    method: &'static str,
    when: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if passing.is_incoming(method)
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
pub(crate) fn reject_after_first(method: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    change_after_first(method, |passing| {
        let id = passing.message.take().unwrap()["id"].clone();
        let error = json!({"code": -32603, "message": "no more"});
        let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
        passing.back.push(LayerLine::Json(answer));
    })
}

/// Keeps every call of `method` but the first from the peer.
pub(crate) fn deliver_only_first(method: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    change_after_first(method, |passing| *passing.message = None)
}

/// Changes every call of `method` that the peer hears, but the first.
fn change_after_first(
    method: &'static str,
    change: impl Fn(&mut PassingMessage<'_>) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        let change = change.clone();
        let mut heard = 0;
        Box::new(move |mut passing| {
            if passing.is_incoming(method) {
                heard += 1;
                if heard > 1 {
                    change(&mut passing);
                }
            }
        })
    }
}

/// Answers `method` with an error after all, when it has been carried out.
pub(crate) fn fail_after_success(method: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
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
pub(crate) fn change_incoming_result(
    method: &'static str,
    change: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    crate::mutants::layer::mutate_messages(move |passing| {
        if !passing.said
            && passing.answers
            && passing.method == method
            && let Some(result) = passing.message.as_mut().and_then(|m| m.get_mut("result"))
        {
            change(result);
        }
    })
}

/// Leaves out every update of these kinds of which `when` holds.
pub(crate) fn drop_updates_if(
    kinds: &'static [&'static str],
    when: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        let leave_out = passing.is_outgoing("session/update")
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
pub(crate) fn follow_update(
    next: impl Fn(&Value) -> Option<Value> + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if passing.is_outgoing("session/update")
            && let Some(message) = passing.message
            && let Some(update) = next(&message["params"]["update"])
        {
            let mut message = message.clone();
            message["params"]["update"] = update;
            passing.then.push(LayerLine::Json(message));
        }
    })
}

/// Sends an update behind each answer to `method`, for the session it was about.
pub(crate) fn send_update_after_response(
    method: &'static str,
    update: Value,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        let update = update.clone();
        let mut session = Value::Null;
        Box::new(move |passing| {
            if passing.is_incoming(method)
                && let Some(call) = &passing.message
            {
                session = call["params"]["sessionId"].clone();
            }
            if passing.said && passing.answers && passing.method == method {
                let params = json!({"sessionId": session, "update": update});
                let message =
                    json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
                passing.then.push(LayerLine::Json(message));
            }
        })
    }
}

/// Answers a notification, with an error.
pub(crate) fn respond_to_notification(method: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if passing.is_incoming(method) {
            let error = json!({"code": -32602, "message": "of what?"});
            let answer = json!({"jsonrpc": "2.0", "id": null, "error": error});
            passing.back.push(LayerLine::Json(answer));
        }
    })
}

/// The kind of the update that the peer sends, if it is one.
pub(crate) fn update_kind<'a>(passing: &'a PassingMessage<'_>) -> Option<&'a str> {
    let message = passing.message.as_ref().filter(|_| passing.said)?;
    message["params"]["update"]["sessionUpdate"].as_str()
}

/// The state that the peer tells of, if it tells of one.
pub(crate) fn reported_state<'a>(passing: &'a PassingMessage<'_>) -> Option<&'a str> {
    let message = passing.message.as_ref().filter(|_| passing.said)?;
    message["params"]["update"]["state"].as_str()
}

/// An answer to the request in `message`.
pub(crate) fn result_line(message: &Value, result: Value) -> LayerLine {
    let mut answer = json!({"jsonrpc": "2.0", "id": message["id"]});
    answer["result"] = result;
    LayerLine::Json(answer)
}

fn error_line(message: &Value, code: i64) -> LayerLine {
    let error = json!({"code": code, "message": "no"});
    LayerLine::Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
}

/// From a message on that the peer hears it says nothing more.
pub(crate) fn fall_silent_after(
    heard: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        let (heard, mut silent) = (heard.clone(), false);
        Box::new(move |passing| {
            if !passing.said && passing.message.as_ref().is_some_and(&heard) {
                silent = true;
            }
            if silent && passing.said {
                *passing.message = None;
            }
        })
    }
}

/// Refuses a method from the time on when the peer has heard another.
pub(crate) fn reject_after(
    first: &'static str,
    method: &'static str,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        let mut begun = false;
        Box::new(move |passing| {
            if begun && passing.is_incoming(method) {
                let message = passing.message.take().unwrap_or_default();
                passing.back.push(error_line(&message, -32603));
            } else {
                begun |= passing.is_incoming(first);
            }
        })
    }
}

/// Changes the answers that the peer hears, whatever is in them.
pub(crate) fn change_incoming_response(
    method: &'static str,
    with: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if !passing.said
            && passing.answers
            && passing.method == method
            && let Some(message) = passing.message
        {
            with(message);
        }
    })
}

/// Keeps back the updates that are so.
pub(crate) fn drop_outgoing_updates(
    left_out: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        let is_so = |message: &Value| left_out(&message["params"]["update"]);
        if update_kind(passing).is_some() && passing.message.as_ref().is_some_and(is_so) {
            *passing.message = None;
        }
    })
}

/// Says something more after each update that is so. It is given the params of that.
pub(crate) fn send_after_update(
    after: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
    says: impl Fn(&Value) -> Value + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if update_kind(passing).is_some()
            && let Some(message) = passing.message
            && after(&message["params"]["update"])
        {
            passing.then.push(LayerLine::Json(says(&message["params"])));
        }
    })
}

/// Changes the code of the errors that the peer answers to a method.
pub(crate) fn change_error_code(
    method: &'static str,
    code: i64,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if passing.said
            && passing.answers
            && passing.method == method
            && let Some(message) = passing.message
            && message["error"].is_object()
        {
            message["error"]["code"] = json!(code);
        }
    })
}

/// Answers a method with a result where it is an error.
pub(crate) fn replace_error(
    method: &'static str,
    with: fn() -> Value,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if passing.said
            && passing.answers
            && passing.method == method
            && let Some(message) = passing.message
            && message["error"].is_object()
        {
            *message = json!({"jsonrpc": "2.0", "id": message["id"], "result": with()});
        }
    })
}

/// Answers with another id where the id is a string.
pub(crate) fn change_string_id() -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(|passing| {
        if passing.said
            && passing.answers
            && let Some(message) = passing.message
            && message["id"].is_string()
        {
            message["id"] = json!(7);
        }
    })
}

/// Answers notifications.
pub(crate) fn respond_to_notifications() -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(|passing| {
        let notification = |message: &Value| message.get("id").is_none();
        if !passing.said && passing.message.as_ref().is_some_and(notification) {
            let answer = json!({"jsonrpc": "2.0", "id": null, "result": {}});
            passing.back.push(LayerLine::Json(answer));
        }
    })
}

/// Calls something of its own after it has heard what is so.
pub(crate) fn call_after(
    heard: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
    call: impl Fn() -> Value + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if !passing.said && passing.message.as_ref().is_some_and(&heard) {
            passing.back.push(LayerLine::Json(call()));
        }
    })
}

/// Sets a field of an object; without a value it is taken out.
pub(crate) fn set_field(object: &mut Value, field: &str, value: Option<Value>) {
    match (object, value) {
        (Value::Object(fields), Some(value)) => drop(fields.insert(field.to_owned(), value)),
        (Value::Object(fields), None) => drop(fields.remove(field)),
        _ => {}
    }
}

/// The first item of a list, once more.
pub(crate) fn duplicate_first(list: &mut Value) {
    if let Some(items) = list.as_array_mut()
        && let Some(first) = items.first().cloned()
    {
        items.push(first);
    }
}

/// From a message on in which there is this text the peer says nothing more.
pub(crate) fn fall_silent_at(text: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    fall_silent_after(move |message| message.to_string().contains(text))
}

/// The id of the check of a shape.
pub(crate) fn find_shape_id(checks: &[Check], shape: &str, variant: Option<&str>) -> &'static str {
    let check = checks.iter().find(|check| match check.procedure {
        CheckProcedure::Shape(shaped) => shaped.shape == shape && shaped.variant == variant,
        _ => false,
    });
    let check = check.unwrap_or_else(|| panic!("{shape} {variant:?} has no check"));
    // The tests end before many of them are made.
    check.id().leak()
}
