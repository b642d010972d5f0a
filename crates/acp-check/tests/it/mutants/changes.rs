//! Changes to the messages that a peer sends and receives. Each is used by several mutants.

use acp_check::{Check, CheckProcedure};
use serde_json::{Value, json};

use crate::mutants::layer::{InterceptedMessage, LayerLine, Mutation, mutate_messages};

/// Responds to calls to `method` on the peer's behalf, with a `result` or an `error`, if `when` is true for the params.
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

/// Responds with an error to calls to `method` if `when` is true for the params.
pub(crate) fn reject_if(
    method: &'static str,
    code: i64,
    when: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    let error = json!({"code": code, "message": "no"});
    respond_instead(method, when, json!({"error": error}))
}

/// Responds to calls to `method` with success, but without executing them, if `when` is true for the params.
pub(crate) fn succeed_without_effect_if(
    method: &'static str,
    when: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    respond_instead(method, when, json!({"result": {}}))
}

/// Responds to every call to `method` with this result instead of executing it.
pub(crate) fn respond_with(
    method: &'static str,
    result: Value,
) -> impl Fn() -> Mutation + Send + Sync {
    respond_instead(method, |_| true, json!({"result": result}))
}

/// Responds to the peer's calls to `method` on the suite's behalf. The suite does not receive them.
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

/// Drops calls to `method` before the peer receives them, if `when` is true for the params.
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

/// Responds with an error to every call to `method` except the first.
pub(crate) fn reject_after_first(method: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    change_after_first(method, |passing| {
        let id = passing.message.take().unwrap()["id"].clone();
        let error = json!({"code": -32603, "message": "no more"});
        let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
        passing.back.push(LayerLine::Json(answer));
    })
}

/// Drops every call to `method` but the first before the peer receives it.
pub(crate) fn deliver_only_first(method: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    change_after_first(method, |passing| *passing.message = None)
}

/// Changes every call to `method` except the first before the peer receives it.
fn change_after_first(
    method: &'static str,
    change: impl Fn(&mut InterceptedMessage<'_>) + Clone + Send + Sync + 'static,
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

/// Responds to `method` with an error, even though the peer has executed it.
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

/// Changes the result of every response to `method` before the peer receives it.
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

/// Drops every update of these types for which `when` is true.
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

/// Sends another update after each update for which `next` returns one.
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

/// Sends an update after each response to `method`, for the session in the request.
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

/// Responds to a notification with an error.
pub(crate) fn respond_to_notification(method: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if passing.is_incoming(method) {
            let error = json!({"code": -32602, "message": "of what?"});
            let answer = json!({"jsonrpc": "2.0", "id": null, "error": error});
            passing.back.push(LayerLine::Json(answer));
        }
    })
}

/// Returns the type of the update that the peer sends, if the message is an update.
pub(crate) fn update_kind<'a>(passing: &'a InterceptedMessage<'_>) -> Option<&'a str> {
    let message = passing.message.as_ref().filter(|_| passing.said)?;
    message["params"]["update"]["sessionUpdate"].as_str()
}

/// Returns the state that the peer reports, if the message reports one.
pub(crate) fn reported_state<'a>(passing: &'a InterceptedMessage<'_>) -> Option<&'a str> {
    let message = passing.message.as_ref().filter(|_| passing.said)?;
    message["params"]["update"]["state"].as_str()
}

/// Returns a line that responds to the request in `message`.
pub(crate) fn result_line(message: &Value, result: Value) -> LayerLine {
    let mut answer = json!({"jsonrpc": "2.0", "id": message["id"]});
    answer["result"] = result;
    LayerLine::Json(answer)
}

fn error_line(message: &Value, code: i64) -> LayerLine {
    let error = json!({"code": code, "message": "no"});
    LayerLine::Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
}

/// Drops everything that the peer sends after it has received a message that satisfies the predicate.
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

/// Rejects calls to one method after the peer has received a call to another.
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

/// Changes the responses that the peer receives.
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

/// Drops the updates that satisfy the predicate.
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

/// Sends additional messages after each update that satisfies the predicate. The function receives the params of the
/// update.
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

/// Changes the code of the peer's error responses to a method.
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

/// Replaces the peer's error responses to a method with a result.
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

/// Changes the id of the peer's response if the id is a string.
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

/// Responds to notifications.
pub(crate) fn respond_to_notifications() -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(|passing| {
        let notification = |message: &Value| message.get("id").is_none();
        if !passing.said && passing.message.as_ref().is_some_and(notification) {
            let answer = json!({"jsonrpc": "2.0", "id": null, "result": {}});
            passing.back.push(LayerLine::Json(answer));
        }
    })
}

/// Makes the peer send an additional call after it has received a message that satisfies the predicate.
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

/// Sets a field of an object, or removes the field if there is no value.
pub(crate) fn set_field(object: &mut Value, field: &str, value: Option<Value>) {
    match (object, value) {
        (Value::Object(fields), Some(value)) => drop(fields.insert(field.to_owned(), value)),
        (Value::Object(fields), None) => drop(fields.remove(field)),
        _ => {}
    }
}

/// Repeats the first item of a list.
pub(crate) fn duplicate_first(list: &mut Value) {
    if let Some(items) = list.as_array_mut()
        && let Some(first) = items.first().cloned()
    {
        items.push(first);
    }
}

/// Drops everything that the peer sends after it has received a message that contains this text.
pub(crate) fn fall_silent_at(text: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    fall_silent_after(move |message| message.to_string().contains(text))
}

/// Returns the id of the check for a shape.
pub(crate) fn find_shape_id(checks: &[Check], shape: &str, variant: Option<&str>) -> &'static str {
    let check = checks.iter().find(|check| match check.procedure {
        CheckProcedure::Shape(shaped) => shaped.shape == shape && shaped.variant == variant,
        _ => false,
    });
    let check = check.unwrap_or_else(|| panic!("{shape} {variant:?} has no check"));
    // Leaking is fine, because the tests end before there are many of these.
    check.id().leak()
}
