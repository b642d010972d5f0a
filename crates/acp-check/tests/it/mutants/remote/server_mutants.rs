//! Server mutants that communicate over HTTP.

use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use super::server::{ObservedRequest, ServerChange, ServerMutant, StreamKey};

const CONNECTION_ID_HEADER: &str = "acp-connection-id";
const SESSION_ID_HEADER: &str = "acp-session-id";

fn mutant(
    kills: &'static str,
    why: &'static str,
    what: &'static str,
    change: ServerChange,
) -> ServerMutant {
    ServerMutant {
        kills,
        why,
        what,
        change,
    }
}

/// Returns `true` if a request is a message on an existing connection.
fn is_message(seen: &ObservedRequest) -> bool {
    seen.method == Method::POST && seen.header(CONNECTION_ID_HEADER).is_some()
}

fn has_unknown_connection(seen: &ObservedRequest) -> bool {
    seen.header(CONNECTION_ID_HEADER) == Some("acp-check-no-such-connection")
}

/// Sends an event on its own stream, unchanged.
fn deliver_unchanged(key: &StreamKey, message: &Value) -> Vec<(StreamKey, String)> {
    vec![(key.clone(), message.to_string())]
}

/// Sends an event on the connection's stream.
fn deliver_to_connection_stream(key: &StreamKey, message: &Value) -> Vec<(StreamKey, String)> {
    vec![((key.0.clone(), None), message.to_string())]
}

pub(crate) fn mutants() -> Vec<ServerMutant> {
    [
        requests(),
        rejection_mutants(),
        streams(),
        session_load_mutants(),
        connection_mutants(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn requests() -> Vec<ServerMutant> {
    vec![
        mutant(
            "remote/requests/1",
            "`initialize` got status 201; expected 200",
            "it says that it has created something",
            ServerChange::Response(|seen, parts, _| {
                if seen.is("initialize") {
                    parts.status = StatusCode::CREATED;
                }
            }),
        ),
        mutant(
            "remote/requests/2",
            "the Content-Type of the response is `text/event-stream`",
            "it answers `initialize` with events, as MCP does",
            ServerChange::Response(|seen, parts, _| {
                if seen.is("initialize") {
                    let kind = HeaderValue::from_static("text/event-stream");
                    parts.headers.insert("content-type", kind);
                }
            }),
        ),
        mutant(
            "remote/requests/2",
            "the body is not the response to `initialize`: {}",
            "the body has no response",
            ServerChange::Response(|seen, _, body| {
                if seen.is("initialize") {
                    *body = b"{}".to_vec();
                }
            }),
        ),
        mutant(
            "remote/requests/3",
            "has no Acp-Connection-Id",
            "the id is not in the headers",
            ServerChange::Response(|_, parts, _| {
                parts.headers.remove(CONNECTION_ID_HEADER);
            }),
        ),
        mutant(
            "remote/requests/4",
            "`connectionId` is null",
            "the id is not in the result",
            ServerChange::Response(|seen, _, body| {
                if seen.is("initialize") {
                    let mut message: Value = serde_json::from_slice(body).unwrap();
                    let result = message["result"].as_object_mut().unwrap();
                    result.remove("connectionId");
                    *body = message.to_string().into_bytes();
                }
            }),
        ),
        mutant(
            "remote/requests/5",
            "two connections have the same id",
            "all connections have one id",
            ServerChange::Response(|_, parts, _| {
                let id = HeaderValue::from_static("the-only-one");
                parts.headers.insert(CONNECTION_ID_HEADER, id);
            }),
        ),
        mutant(
            "remote/requests/6",
            "`session/new` got status 200; expected 202",
            "requests get status 200",
            ServerChange::Response(|seen, parts, _| {
                if is_message(seen) {
                    parts.status = StatusCode::OK;
                }
            }),
        ),
        mutant(
            "remote/requests/6",
            "the body of the response to `session/new` is not empty: {}",
            "requests get a body",
            ServerChange::Response(|_, _, body| {
                if body.is_empty() {
                    *body = b"{}".to_vec();
                }
            }),
        ),
        mutant(
            "remote/requests/7",
            "`session/cancel` got status 204; expected 202",
            "notifications get status 204",
            ServerChange::Response(|seen, parts, _| {
                if seen.is("session/cancel") {
                    parts.status = StatusCode::NO_CONTENT;
                }
            }),
        ),
        mutant(
            "remote/requests/10",
            "got status 415; expected 200",
            "it compares the whole type of the body",
            ServerChange::Instead(|seen| {
                let kind = seen.header("content-type").unwrap_or_default();
                kind.contains(';').then_some(415)
            }),
        ),
        mutant(
            "remote/requests/16",
            "got status 406; expected 200",
            "it compares the whole header `Accept`",
            ServerChange::Instead(|seen| {
                let accept = seen.header("accept").unwrap_or_default();
                accept.contains(',').then_some(406)
            }),
        ),
        mutant(
            "remote/requests/22",
            "the server does not support HTTP/2",
            "it speaks only HTTP/1.1",
            ServerChange::Http1,
        ),
        mutant(
            "remote/requests/23",
            "the WebSocket upgrade got status 426; expected 101",
            "it has no WebSocket",
            ServerChange::Instead(|seen| seen.header("upgrade").map(|_| 426)),
        ),
    ]
}

fn set(headers: &mut HeaderMap, name: &'static str, value: &str) {
    headers.insert(name, HeaderValue::from_str(value).unwrap());
}

fn rejection_mutants() -> Vec<ServerMutant> {
    vec![
        mutant(
            "remote/requests/8",
            "got status 200; expected 415",
            "it does not look at the type of the body",
            ServerChange::Request(|seen, headers| {
                if seen.header("content-type").is_some() {
                    set(headers, "content-type", "application/json");
                }
            }),
        ),
        mutant(
            "remote/requests/9",
            "got status 200; expected 415",
            "it takes a missing type for JSON",
            ServerChange::Request(|seen, headers| {
                if seen.header("content-type").is_none() {
                    set(headers, "content-type", "application/json");
                }
            }),
        ),
        mutant(
            "remote/requests/11",
            "got status 404; expected 400",
            "a missing connection is an unknown one",
            ServerChange::Instead(|seen| {
                let is_missing =
                    seen.header(CONNECTION_ID_HEADER).is_none() && !seen.is("initialize");
                (seen.method == Method::POST && is_missing).then_some(404)
            }),
        ),
        mutant(
            "remote/requests/12",
            "got status 400; expected 404",
            "an unknown connection is an invalid request",
            ServerChange::Instead(|seen| {
                (has_unknown_connection(seen) && seen.method == Method::POST).then_some(400)
            }),
        ),
        mutant(
            "remote/requests/13",
            "`session/prompt` without `Acp-Session-Id` got status 202; expected 400",
            "it takes the session from the body",
            ServerChange::Request(|seen, headers| {
                if let Some(session) = seen.message["params"]["sessionId"].as_str() {
                    set(headers, SESSION_ID_HEADER, session);
                }
            }),
        ),
        mutant(
            "remote/requests/14",
            "a batch got status 202; expected 501",
            "it accepts batches",
            ServerChange::Instead(|seen| seen.message.is_array().then_some(202)),
        ),
        mutant(
            "remote/requests/15",
            "got status 200; expected 406",
            "it does not look at `Accept`",
            ServerChange::Request(|seen, headers| {
                if seen.method == Method::GET {
                    set(headers, "accept", "text/event-stream");
                }
            }),
        ),
        mutant(
            "remote/requests/17",
            "got status 404; expected 400",
            "a missing connection is an unknown one",
            ServerChange::Instead(|seen| {
                let is_missing = seen
                    .header(CONNECTION_ID_HEADER)
                    .or(seen.header("upgrade"))
                    .is_none();
                (seen.method == Method::GET && is_missing).then_some(404)
            }),
        ),
        mutant(
            "remote/requests/18",
            "got status 400; expected 404",
            "an unknown connection is an invalid request",
            ServerChange::Instead(|seen| {
                (has_unknown_connection(seen) && seen.method == Method::GET).then_some(400)
            }),
        ),
        mutant(
            "remote/requests/19",
            "got status 202; expected 400",
            "it ends nothing without complaint",
            ServerChange::Instead(|seen| {
                let is_missing = seen.header(CONNECTION_ID_HEADER).is_none();
                (seen.method == Method::DELETE && is_missing).then_some(202)
            }),
        ),
        mutant(
            "remote/requests/20",
            "got status 202; expected 404",
            "it ends unknown connections without complaint",
            ServerChange::Instead(|seen| {
                (has_unknown_connection(seen) && seen.method == Method::DELETE).then_some(202)
            }),
        ),
        mutant(
            "remote/requests/21",
            "a POST whose body is not JSON got status 500; expected 4xx",
            "it blames itself for what is not JSON",
            ServerChange::Instead(|seen| {
                (is_message(seen) && seen.message.is_null()).then_some(500)
            }),
        ),
    ]
}

fn streams() -> Vec<ServerMutant> {
    vec![
        mutant(
            "remote/streams/1",
            "the Content-Type of the connection's stream is `text/plain`",
            "the stream has another type",
            ServerChange::Response(|seen, parts, _| {
                if seen.method == Method::GET && seen.header(SESSION_ID_HEADER).is_none() {
                    let kind = HeaderValue::from_static("text/plain");
                    parts.headers.insert("content-type", kind);
                }
            }),
        ),
        mutant(
            "remote/streams/2",
            "GET for the session's stream got status 404",
            "sessions have no streams",
            ServerChange::Instead(|seen| {
                (seen.method == Method::GET && seen.header(SESSION_ID_HEADER).is_some())
                    .then_some(404)
            }),
        ),
        mutant(
            "remote/streams/3",
            "the response to `session/new` arrived on the stream of session",
            "it answers on any stream that is open",
            ServerChange::Event(|key, message, all| {
                let other = all.iter().find(|each| each.0 == key.0 && each.1.is_some());
                match other {
                    Some(other) if message["result"]["sessionId"].is_string() => {
                        deliver_unchanged(other, message)
                    }
                    _ => deliver_unchanged(key, message),
                }
            }),
        ),
        mutant(
            "remote/streams/4",
            "an update for the session arrived on the connection's stream",
            "updates arrive on the connection's stream",
            ServerChange::Event(|key, message, _| match message["method"].as_str() {
                Some("session/update") => deliver_to_connection_stream(key, message),
                _ => deliver_unchanged(key, message),
            }),
        ),
        mutant(
            "remote/streams/5",
            "the response to `session/prompt` arrived on the connection's stream",
            "prompts are answered on the connection's stream",
            ServerChange::Event(|key, message, _| match &message["result"]["stopReason"] {
                Value::Null => deliver_unchanged(key, message),
                _ => deliver_to_connection_stream(key, message),
            }),
        ),
        mutant(
            "remote/streams/6",
            "`session/request_permission` arrived on the connection's stream",
            "it asks on the connection's stream",
            ServerChange::Event(|key, message, _| match message["method"].as_str() {
                Some("session/request_permission") => deliver_to_connection_stream(key, message),
                _ => deliver_unchanged(key, message),
            }),
        ),
        mutant(
            "remote/streams/7",
            "`session/request_permission` got status 200; expected 202",
            "answers get status 200",
            ServerChange::Response(|seen, parts, _| {
                if is_message(seen) && seen.message.get("result").is_some() {
                    parts.status = StatusCode::OK;
                }
            }),
        ),
        mutant(
            "remote/streams/7",
            "after the response to `session/request_permission`: timed out",
            "answers do not reach the agent",
            ServerChange::Instead(|seen| seen.message.get("result").map(|_| 202)),
        ),
        mutant(
            "remote/streams/8",
            "the response to `session/prompt` arrived on the connection's stream",
            "cancelled prompts are answered on the connection's stream",
            ServerChange::Event(
                |key, message, _| match message["result"]["stopReason"].as_str() {
                    Some("cancelled") => deliver_to_connection_stream(key, message),
                    _ => deliver_unchanged(key, message),
                },
            ),
        ),
        mutant(
            "remote/streams/9",
            "an update for session",
            "updates arrive on the stream that was opened last",
            ServerChange::Event(|key, message, all| match message["method"].as_str() {
                Some("session/update") => deliver_unchanged(all.last().unwrap(), message),
                _ => deliver_unchanged(key, message),
            }),
        ),
        mutant(
            "remote/streams/10",
            "an event on the connection's stream is not JSON: \"hello\"",
            "it greets on the stream",
            ServerChange::Event(|key, message, _| {
                [
                    vec![(key.clone(), "hello".to_owned())],
                    deliver_unchanged(key, message),
                ]
                .concat()
            }),
        ),
        mutant(
            "remote/streams/10",
            "an event on the connection's stream is not a JSON-RPC message: [",
            "it sends batches",
            ServerChange::Event(|key, message, _| {
                let batch = json!([message]);
                [
                    deliver_unchanged(key, &batch),
                    deliver_unchanged(key, message),
                ]
                .concat()
            }),
        ),
        mutant(
            "remote/streams/13",
            "waiting for a response to request",
            "it loses responses",
            ServerChange::Event(|key, message, _| {
                let is_lost = message["error"]["code"] == -32601
                    && message["id"].as_u64().is_some_and(|id| id % 2 == 0);
                if is_lost {
                    Vec::new()
                } else {
                    deliver_unchanged(key, message)
                }
            }),
        ),
        mutant(
            "remote/streams/14",
            "GET for the session's stream got status 409",
            "a stream can be opened once",
            ServerChange::Instead(|seen| {
                let is_second = seen.method == Method::GET && seen.earlier > 0;
                (is_second && seen.header(SESSION_ID_HEADER).is_some()).then_some(409)
            }),
        ),
    ]
}

/// Returns `true` if a message is the response to `session/load`.
fn answers_load(message: &Value) -> bool {
    let result = &message["result"];
    result["configOptions"].is_array() && result.get("sessionId").is_none()
}

fn session_load_mutants() -> Vec<ServerMutant> {
    vec![
        mutant(
            "remote/streams/11",
            "a replayed update arrived on the connection's stream",
            "the history arrives on the connection's stream",
            ServerChange::Event(
                |key, message, _| match message["params"]["update"]["sessionUpdate"].as_str() {
                    Some("user_message_chunk") => deliver_to_connection_stream(key, message),
                    _ => deliver_unchanged(key, message),
                },
            ),
        ),
        mutant(
            "remote/streams/12",
            "waiting for a response to request",
            "`session/load` is not answered",
            ServerChange::Event(|key, message, _| {
                if answers_load(message) {
                    Vec::new()
                } else {
                    deliver_unchanged(key, message)
                }
            }),
        ),
    ]
}

fn connection_mutants() -> Vec<ServerMutant> {
    vec![
        mutant(
            "remote/connections/1",
            "DELETE got status 200; expected 202",
            "a DELETE gets status 200",
            ServerChange::Response(|seen, parts, _| {
                if seen.method == Method::DELETE {
                    parts.status = StatusCode::OK;
                }
            }),
        ),
        mutant(
            "remote/connections/2",
            "the connection's stream did not end within",
            "streams stay open",
            ServerChange::KeepStreams,
        ),
        mutant(
            "remote/connections/3",
            "a POST after DELETE got status 202; expected 404",
            "it accepts messages for connections that have ended",
            ServerChange::Response(|seen, parts, _| {
                if is_message(seen) {
                    parts.status = StatusCode::ACCEPTED;
                }
            }),
        ),
        mutant(
            "remote/connections/4",
            "two sessions have the same id",
            "there is one session",
            ServerChange::Event(|key, message, _| {
                let mut message = message.clone();
                if message["result"]["sessionId"].is_string() {
                    message["result"]["sessionId"] = json!("the-only-one");
                }
                deliver_unchanged(key, &message)
            }),
        ),
        mutant(
            "remote/connections/5",
            "received a message that belongs to another connection",
            "everybody hears everything",
            ServerChange::Event(|key, message, all| {
                let others = all.iter().filter(|each| each.0 != key.0);
                let copies = others.map(|other| (other.clone(), message.to_string()));
                [deliver_unchanged(key, message), copies.collect()].concat()
            }),
        ),
        mutant(
            "remote/connections/6",
            "`session/load` on a new connection failed",
            "sessions end with their connection",
            ServerChange::ForgetSessions,
        ),
    ]
}
