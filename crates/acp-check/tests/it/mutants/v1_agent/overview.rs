//! Mutants that mishandle JSON-RPC messages.

use serde_json::{Value, json};

use crate::mutants::layer::{
    InterceptedMessage, LayerLine, Mutant, Mutation, change_call, change_update, drop_outgoing,
    mutant, mutate_messages, reject_request,
};

const UNKNOWN_METHOD: &str = "_acp-check/unknown";
const NONEXISTENT_METHOD: &str = "acp-check/nothing";

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = id_mutants();
    mutants.extend(response_mutants());
    mutants.extend(error_mutants());
    mutants.extend(params_mutants());
    mutants
}

fn id_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/overview/1",
            "the agent sent two responses to `_acp-check/unknown`",
            "the agent rejects every request twice",
            mutate_messages(|passing| {
                if passing.said && passing.answers && passing.method == UNKNOWN_METHOD {
                    repeat_message(passing);
                }
            }),
        ),
        mutant(
            "v1/overview/1",
            "the agent sent two responses to `session/new`",
            "the agent opens every session twice",
            mutate_messages(|passing| {
                if passing.said && passing.answers && passing.method == "session/new" {
                    repeat_message(passing);
                }
            }),
        ),
        mutant(
            "v1/overview/2",
            "waiting for a response with id \"first/of acp-check\"",
            "the agent responds to string ids with a number",
            change_response_id(
                |id| id.as_str().is_some_and(|id| id.contains('/')),
                |_| json!(1),
            ),
        ),
        mutant(
            "v1/overview/3",
            "waiting for a response with id \"17\"",
            "the agent turns an id that looks like a number into a number",
            change_response_id(Value::is_string, |id| {
                let number = id.as_str().and_then(|id| id.parse::<i64>().ok());
                number.map_or(id.clone(), |number| json!(number))
            }),
        ),
        mutant(
            "v1/overview/4",
            "waiting for a response with id -7",
            "the agent drops the sign of ids",
            change_response_id(Value::is_i64, |id| {
                json!(id.as_i64().unwrap_or_default().unsigned_abs())
            }),
        ),
        mutant(
            "v1/overview/4",
            "waiting for a response with id 9007199254740991",
            "the agent truncates ids to 32 bits",
            change_response_id(Value::is_u64, |id| {
                json!(id.as_u64().unwrap_or_default() & 0xffff_ffff)
            }),
        ),
        mutant(
            "v1/overview/5",
            "waiting for a response with id null",
            "the agent treats a request with a null id as a notification",
            mutate_messages(|passing| {
                let null = |message: &Value| message["id"].is_null();
                if passing.said && passing.answers && passing.message.as_ref().is_some_and(null) {
                    *passing.message = None;
                }
            }),
        ),
        mutant(
            "v1/overview/6",
            "waiting for responses to 20 requests",
            "the agent responds to only ten requests",
            || {
                let mut answered = 0;
                Box::new(move |passing: InterceptedMessage<'_>| {
                    if passing.said && passing.answers {
                        answered += 1;
                        if answered > 10 {
                            *passing.message = None;
                        }
                    }
                })
            },
        ),
        mutant(
            "v1/overview/7",
            "waiting for a response with id 1",
            "the agent treats a request with the id of its own request as the response",
            drop_colliding_ids,
        ),
    ]
}

fn response_mutants() -> Vec<Mutant> {
    let refused = |id: &Value| {
        let error = json!({"code": -32602, "message": "no"});
        LayerLine::Json(json!({"jsonrpc": "2.0", "id": id, "error": error}))
    };
    vec![
        mutant(
            "v1/overview/8",
            "the agent responded to the notification `session/cancel`, which has no id",
            "the agent responds to `session/cancel`",
            mutate_messages(move |passing| {
                if !passing.said && passing.method == "session/cancel" {
                    let done = json!({"jsonrpc": "2.0", "id": null, "result": {}});
                    passing.back.push(LayerLine::Json(done));
                }
            }),
        ),
        mutant(
            "v1/overview/8",
            "the agent responded to the notification `_acp-check/hello`, which has no id",
            "the agent rejects unknown notifications",
            mutate_messages(move |passing| {
                if !passing.said && passing.method == "_acp-check/hello" {
                    passing.back.push(refused(&Value::Null));
                }
            }),
        ),
        mutant(
            "v1/overview/9",
            "the agent responded to a notification whose `sessionId` is not a string, which has no id",
            "the agent rejects invalid notifications",
            mutate_messages(move |passing| {
                let broken = |message: &Value| message["params"]["sessionId"].is_object();
                if !passing.said
                    && passing.method == "session/cancel"
                    && passing.message.as_ref().is_some_and(broken)
                {
                    passing.back.push(refused(&Value::Null));
                }
            }),
        ),
        mutant(
            "v1/overview/15",
            "waiting for a response to request 1",
            "the agent ignores invalid requests",
            drop_outgoing("session/prompt", true),
        ),
        mutant(
            "v1/overview/18",
            "the response to `initialize` has both `result` and `error`",
            "the agent adds a null error to every result",
            change_response("initialize", |message| message["error"] = Value::Null),
        ),
        mutant(
            "v1/overview/18",
            "the error for an unknown method has both `result` and `error`",
            "the agent adds a null result to every error",
            change_response(NONEXISTENT_METHOD, |message| {
                message["result"] = Value::Null
            }),
        ),
        mutant(
            "v1/overview/19",
            "the response to `initialize` has `jsonrpc` null; expected \"2.0\"",
            "the agent omits the version of JSON-RPC",
            change_response("initialize", |message| {
                message.as_object_mut().unwrap().remove("jsonrpc");
            }),
        ),
        mutant(
            "v1/overview/20",
            "after responses to unknown requests",
            "the agent exits on a response to an unknown request",
            mutate_messages(|passing| {
                let unasked = |message: &Value| message["id"] == "nobody asked";
                if !passing.said && passing.message.as_ref().is_some_and(unasked) {
                    passing.back.push(LayerLine::End);
                }
            }),
        ),
        mutant(
            "v1/overview/21",
            "the agent does not support `session/prompt` (error -32601)",
            "the agent does not support prompts",
            reject_request("session/prompt", -32601),
        ),
        mutant(
            "v1/overview/21",
            "the agent does not support `session/new` (error -32601)",
            "the agent does not support sessions",
            reject_request("session/new", -32601),
        ),
    ]
}

fn error_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/overview/10",
            "with error -32603",
            "the agent uses an internal error for invalid JSON",
            change_code(-32700, -32603),
        ),
        mutant(
            "v1/overview/10",
            "waiting for a response to invalid JSON",
            "the agent ignores invalid JSON",
            drop_error(-32700),
        ),
        mutant(
            "v1/overview/11",
            "the agent responded to invalid JSON with id 0; expected null",
            "the agent's error for invalid JSON has a numeric id",
            mutate_messages(|passing| {
                if let Some(message) = passing.message
                    && passing.said
                    && message["error"]["code"] == -32700
                {
                    message["id"] = json!(0);
                }
            }),
        ),
        mutant(
            "v1/overview/12",
            "got error -32700",
            "the agent uses the error code for invalid JSON for an invalid request",
            change_code(-32600, -32700),
        ),
        mutant(
            "v1/overview/13",
            "`acp-check/nothing` succeeded; expected an error",
            "the agent returns a result for unknown methods",
            change_response(NONEXISTENT_METHOD, |message| {
                *message = json!({"jsonrpc": "2.0", "id": message["id"], "result": {}});
            }),
        ),
        mutant(
            "v1/overview/14",
            "with error -32600",
            "the agent uses the error code for an invalid request for an unknown method",
            change_code(-32601, -32600),
        ),
        mutant(
            "v1/overview/16",
            "with error -32603",
            "the agent uses a wrong error code for invalid params",
            change_code(-32602, -32603),
        ),
        mutant(
            "v1/overview/17",
            "the error has no integer `code`",
            "the agent's error codes are strings",
            change_response(NONEXISTENT_METHOD, |message| {
                message["error"]["code"] = json!("not found");
            }),
        ),
        mutant(
            "v1/overview/17",
            "the error has no string `message`",
            "the agent's errors have no message",
            change_response(NONEXISTENT_METHOD, |message| {
                message["error"].as_object_mut().unwrap().remove("message");
            }),
        ),
    ]
}

fn params_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/overview/22",
            "\"notes.txt\" is not an absolute path",
            "the agent reports locations with relative paths",
            change_locations(|location| location["path"] = json!("notes.txt")),
        ),
        mutant(
            "v1/overview/22",
            "\"./notes.txt\" is not an absolute path",
            "the agent requests files by relative paths",
            change_call("fs/read_text_file", |params| {
                params["path"] = json!("./notes.txt");
            }),
        ),
        mutant(
            "v1/overview/23",
            "the agent sent line 0, but lines start at 1",
            "the agent counts lines from 0",
            change_locations(|location| location["line"] = json!(0)),
        ),
    ]
}

fn repeat_message(passing: &mut InterceptedMessage<'_>) {
    let again = passing.message.clone();
    passing.then.extend(again.map(LayerLine::Json));
}

/// Changes the entire response to `method`, not just its result.
pub(super) fn change_response(
    method: &'static str,
    how: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if passing.said
            && passing.answers
            && passing.method == method
            && let Some(message) = passing.message
        {
            how(message);
        }
    })
}

/// Changes the ids of the responses to requests whose id satisfies `which`.
fn change_response_id(
    which: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
    to: impl Fn(&Value) -> Value + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if passing.said
            && passing.answers
            && let Some(message) = passing.message
            && which(&message["id"])
        {
            message["id"] = to(&message["id"]);
        }
    })
}

/// Replaces the error code `from` with `to`.
pub(super) fn change_code(from: i64, to: i64) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if passing.said
            && let Some(message) = passing.message
            && message["error"]["code"] == from
        {
            message["error"]["code"] = json!(to);
        }
    })
}

/// Drops errors with this code.
fn drop_error(code: i64) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        let of_code = |message: &Value| message["error"]["code"] == code;
        if passing.said && passing.message.as_ref().is_some_and(of_code) {
            *passing.message = None;
        }
    })
}

/// Changes the locations of tool calls.
fn change_locations(
    how: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    change_update("tool_call", move |call| {
        let locations = call.get_mut("locations");
        for location in locations
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            how(location);
        }
    })
}

/// Drops client requests that reuse the id of a pending agent request.
fn drop_colliding_ids() -> Mutation {
    let mut own = Vec::new();
    Box::new(move |passing| {
        let id = passing
            .message
            .as_ref()
            .map(|message| message["id"].clone());
        let Some(id) = id.filter(|id| !id.is_null()) else {
            return;
        };
        match (passing.said, passing.answers) {
            (true, false) if passing.method == "session/request_permission" => own.push(id),
            (false, false) if own.contains(&id) => *passing.message = None,
            _ => {}
        }
    })
}
