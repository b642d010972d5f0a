//! More ways to make a right peer wrong.

use acp_check::suite::{Check, Play};
use serde_json::{Value, json};

use crate::layer::{Change, Line, Passing, change};

/// Whether it is a call that the peer hears, of that method.
pub(crate) fn hears(passing: &Passing<'_>, method: &str) -> bool {
    !passing.said && !passing.answers && passing.method == method
}

/// The kind of the update that the peer sends, if it is one.
pub(crate) fn kind<'a>(passing: &'a Passing<'_>) -> Option<&'a str> {
    let message = passing.message.as_ref().filter(|_| passing.said)?;
    message["params"]["update"]["sessionUpdate"].as_str()
}

/// The state that the peer tells of, if it tells of one.
pub(crate) fn state<'a>(passing: &'a Passing<'_>) -> Option<&'a str> {
    let message = passing.message.as_ref().filter(|_| passing.said)?;
    message["params"]["update"]["state"].as_str()
}

/// An answer to the request in `message`.
pub(crate) fn result(message: &Value, result: Value) -> Line {
    let mut answer = json!({"jsonrpc": "2.0", "id": message["id"]});
    answer["result"] = result;
    Line::Json(answer)
}

fn error(message: &Value, code: i64) -> Line {
    let error = json!({"code": code, "message": "no"});
    Line::Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
}

/// From a message on that the peer hears it says nothing more.
pub(crate) fn silent_after(
    heard: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Change + Send + Sync {
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

/// Refuses the requests that the peer hears and that are so.
pub(crate) fn refuse_if(
    method: &'static str,
    refused: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
        let params = |message: &Value| refused(&message["params"]);
        if hears(passing, method) && passing.message.as_ref().is_some_and(params) {
            let message = passing.message.take().unwrap_or_default();
            passing.back.push(error(&message, -32603));
        }
    })
}

/// Refuses a method from the time on when the peer has heard another.
pub(crate) fn refuse_after(
    first: &'static str,
    method: &'static str,
) -> impl Fn() -> Change + Send + Sync {
    move || {
        let mut begun = false;
        Box::new(move |passing| {
            if begun && hears(&passing, method) {
                let message = passing.message.take().unwrap_or_default();
                passing.back.push(error(&message, -32603));
            } else {
                begun |= hears(&passing, first);
            }
        })
    }
}

/// Says that it has carried out the requests that are so, and has not.
pub(crate) fn pretend(
    method: &'static str,
    pretended: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
        let params = |message: &Value| pretended(&message["params"]);
        if hears(passing, method) && passing.message.as_ref().is_some_and(params) {
            let message = passing.message.take().unwrap_or_default();
            passing.back.push(result(&message, json!({})));
        }
    })
}

/// Changes the params of what the peer hears.
pub(crate) fn hear(
    method: &'static str,
    with: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
        if hears(passing, method)
            && let Some(params) = passing.message.as_mut().and_then(|m| m.get_mut("params"))
        {
            with(params);
        }
    })
}

/// Changes the answers that the peer hears, whatever is in them.
pub(crate) fn hear_answer(
    method: &'static str,
    with: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
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
pub(crate) fn without(
    left_out: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
        let is_so = |message: &Value| left_out(&message["params"]["update"]);
        if kind(passing).is_some() && passing.message.as_ref().is_some_and(is_so) {
            *passing.message = None;
        }
    })
}

/// Says something more after each update that is so. It is given the params of that.
pub(crate) fn then_says(
    after: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
    says: impl Fn(&Value) -> Value + Clone + Send + Sync + 'static,
) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
        if kind(passing).is_some()
            && let Some(message) = passing.message
            && after(&message["params"]["update"])
        {
            passing.then.push(Line::Json(says(&message["params"])));
        }
    })
}

/// Changes the code of the errors that the peer answers to a method.
pub(crate) fn other_code(method: &'static str, code: i64) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
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
pub(crate) fn no_error(
    method: &'static str,
    with: fn() -> Value,
) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
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
pub(crate) fn other_id() -> impl Fn() -> Change + Send + Sync {
    change(|passing| {
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
pub(crate) fn answers_notifications() -> impl Fn() -> Change + Send + Sync {
    change(|passing| {
        let notification = |message: &Value| message.get("id").is_none();
        if !passing.said && passing.message.as_ref().is_some_and(notification) {
            let answer = json!({"jsonrpc": "2.0", "id": null, "result": {}});
            passing.back.push(Line::Json(answer));
        }
    })
}

/// Calls something of its own after it has heard what is so.
pub(crate) fn calls_after(
    heard: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
    call: impl Fn() -> Value + Clone + Send + Sync + 'static,
) -> impl Fn() -> Change + Send + Sync {
    change(move |passing| {
        if !passing.said && passing.message.as_ref().is_some_and(&heard) {
            passing.back.push(Line::Json(call()));
        }
    })
}

/// Sets a field of an object; without a value it is taken out.
pub(crate) fn set(object: &mut Value, field: &str, value: Option<Value>) {
    match (object, value) {
        (Value::Object(fields), Some(value)) => drop(fields.insert(field.to_owned(), value)),
        (Value::Object(fields), None) => drop(fields.remove(field)),
        _ => {}
    }
}

/// The first item of a list, once more.
pub(crate) fn twice(list: &mut Value) {
    if let Some(items) = list.as_array_mut()
        && let Some(first) = items.first().cloned()
    {
        items.push(first);
    }
}

/// From a message on in which there is this text the peer says nothing more.
pub(crate) fn silent_at(text: &'static str) -> impl Fn() -> Change + Send + Sync {
    silent_after(move |message| message.to_string().contains(text))
}

/// The id of the check of a shape.
pub(crate) fn shape_id(checks: &[Check], shape: &str, variant: Option<&str>) -> &'static str {
    let check = checks.iter().find(|check| match check.play {
        Play::Shape(shaped) => shaped.shape == shape && shaped.variant == variant,
        _ => false,
    });
    let check = check.unwrap_or_else(|| panic!("{shape} {variant:?} has no check"));
    // The tests end before many of them are made.
    check.id().leak()
}
