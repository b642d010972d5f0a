//! Checks whole messages: the JSON-RPC envelope and its content.

use std::fmt;

use acp_wire::{Method, MethodKind, Sender};
use serde_json::{Map, Value};

use super::fault::{SchemaFault, SchemaFaultKind};
use super::shapes::Schema;

/// The direction in which a message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the client to the agent.
    ToAgent,
    /// From the agent to the client.
    ToClient,
}

impl Direction {
    /// Returns the other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::ToAgent => Self::ToClient,
            Self::ToClient => Self::ToAgent,
        }
    }

    /// Returns the side that sends in this direction: `client` or `agent`.
    #[must_use]
    pub fn sender(self) -> &'static str {
        match self {
            Self::ToAgent => "client",
            Self::ToClient => "agent",
        }
    }

    fn can_send(self, method: &Method) -> bool {
        match method.sender {
            Sender::Either => true,
            Sender::Client => self == Self::ToAgent,
            Sender::Agent => self == Self::ToClient,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ToAgent => "client to agent",
            Self::ToClient => "agent to client",
        })
    }
}

/// The parts of a JSON-RPC message: its method, id, params or result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Envelope<'a> {
    /// A message with a method and an id.
    Request {
        /// The id of the request, as JSON.
        id: &'a Value,
        /// The name of the method.
        method: &'a str,
        /// The message's params, if present.
        params: Option<&'a Value>,
    },
    /// A message with a method and no id.
    Notification {
        /// The name of the method.
        method: &'a str,
        /// The message's params, if present.
        params: Option<&'a Value>,
    },
    /// A message with an id and no method.
    Response {
        /// The id of the request, as JSON.
        id: &'a Value,
        /// The `result`, or the `error`.
        result: Result<&'a Value, &'a Value>,
    },
}

impl<'a> Envelope<'a> {
    /// Reads a message as tolerantly as possible. Returns `None` if it is not a request, a notification or a response.
    #[must_use]
    pub fn parse(message: &'a Value) -> Option<Self> {
        let fields = message.as_object()?;
        let params = fields.get("params");
        match (
            fields.get("method").and_then(Value::as_str),
            fields.get("id"),
        ) {
            (Some(method), Some(id)) => Some(Self::Request { id, method, params }),
            (Some(method), None) => Some(Self::Notification { method, params }),
            (None, Some(id)) => {
                let error = fields.get("error").filter(|error| !error.is_null());
                let result = match (error, fields.get("result")) {
                    (Some(error), _) => Err(error),
                    (None, Some(result)) => Ok(result),
                    (None, None) => return None,
                };
                Some(Self::Response { id, result })
            }
            (None, None) => None,
        }
    }

    /// Returns the method, or `None` for a response.
    #[must_use]
    pub fn method(&self) -> Option<&'a str> {
        match self {
            Self::Request { method, .. } | Self::Notification { method, .. } => Some(method),
            Self::Response { .. } => None,
        }
    }

    /// Returns the session id in the params or result, if any.
    #[must_use]
    pub fn session(&self) -> Option<&'a str> {
        let carried = match self {
            Self::Request { params, .. } | Self::Notification { params, .. } => *params,
            Self::Response { result, .. } => result.ok(),
        };
        carried?.get("sessionId")?.as_str()
    }
}

impl Schema {
    /// Checks a message that was sent in `direction`, and returns its faults. For a response, `asked` is the method of
    /// the request, if known.
    #[must_use]
    pub fn check_message(
        &self,
        direction: Direction,
        message: &Value,
        asked: Option<&str>,
    ) -> Vec<SchemaFault> {
        let Some(fields) = message.as_object() else {
            let what = match message {
                Value::Array(_) => "a batch, which the protocol does not support",
                _ => "not an object",
            };
            return vec![envelope_fault(format!("the message is {what}"))];
        };
        let mut faults = self.check_envelope(fields);
        match Envelope::parse(message) {
            Some(Envelope::Request { method, params, .. }) => {
                self.check_call(direction, MethodKind::Request, method, params, &mut faults);
            }
            Some(Envelope::Notification { method, params }) => {
                let kind = MethodKind::Notification;
                self.check_call(direction, kind, method, params, &mut faults);
            }
            Some(Envelope::Response { result, .. }) => match result {
                Err(error) => faults.extend(self.check_value("Error", error, "error")),
                Ok(result) => {
                    let known = asked.and_then(|method| self.method(method));
                    if let Some(method) = known.filter(|method| method.unstable.is_none())
                        && let Some(shape) = method.result
                    {
                        faults.extend(self.check_value(shape, result, "result"));
                    }
                }
            },
            None => {}
        }
        faults
    }

    fn check_call(
        &self,
        direction: Direction,
        kind: MethodKind,
        name: &str,
        params: Option<&Value>,
        faults: &mut Vec<SchemaFault>,
    ) {
        let Some(method) = self.method(name) else {
            if !name.starts_with('_') {
                faults.push(envelope_fault(format!(
                    "unknown method {name:?}; names of custom methods must start with `_`"
                )));
            }
            return;
        };
        if method.unstable.is_some() {
            return;
        }
        if !direction.can_send(method) {
            let sender = direction.sender();
            let why = format!("the {sender} must not send {name:?}");
            faults.push(envelope_fault(why));
            return;
        }
        match (method.kind, kind) {
            (MethodKind::Request, MethodKind::Notification) => {
                let why = format!("{name:?} is a request, but has no id");
                faults.push(envelope_fault(why));
            }
            (MethodKind::Notification, MethodKind::Request) => {
                let why = format!("{name:?} is a notification, but has an id");
                faults.push(envelope_fault(why));
            }
            _ => {}
        }
        let empty = Value::Object(Map::new());
        // Params can be absent if the method does not require any of their fields.
        faults.extend(self.check_value(method.params, params.unwrap_or(&empty), "params"));
    }

    fn check_envelope(&self, fields: &Map<String, Value>) -> Vec<SchemaFault> {
        let mut faults = Vec::new();
        let has = |name: &str| fields.contains_key(name);
        match fields.get("jsonrpc") {
            Some(Value::String(version)) if version == "2.0" => {}
            Some(other) => faults.push(envelope_fault(format!(
                "`jsonrpc` must be \"2.0\", but is {other}"
            ))),
            None => faults.push(envelope_fault("`jsonrpc` is missing".to_owned())),
        }
        if let Some(id) = fields.get("id") {
            faults.extend(self.check_value("RequestId", id, "id"));
        }
        let known: &[&str] = if has("method") {
            if !fields.get("method").is_some_and(Value::is_string) {
                faults.push(envelope_fault("`method` must be a string".to_owned()));
            }
            if has("result") || has("error") {
                let why = "the message has `method` as well as `result` or `error`";
                faults.push(envelope_fault(why.to_owned()));
            }
            &["jsonrpc", "id", "method", "params", "result", "error"]
        } else {
            match (has("result"), has("error")) {
                (true, true) => {
                    let why = "the response has both `result` and `error`";
                    faults.push(envelope_fault(why.to_owned()));
                }
                (false, false) => {
                    let why = "the message has no `method`, `result` or `error`";
                    faults.push(envelope_fault(why.to_owned()));
                }
                _ if !has("id") => {
                    faults.push(envelope_fault("the response has no `id`".to_owned()))
                }
                _ => {}
            }
            &["jsonrpc", "id", "result", "error"]
        };
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            faults.push(SchemaFault {
                path: name.clone(),
                kind: SchemaFaultKind::UnknownField,
            });
        }
        faults
    }
}

fn envelope_fault(why: String) -> SchemaFault {
    SchemaFault {
        path: String::new(),
        kind: SchemaFaultKind::Envelope(why),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::version::SchemaVersion;

    fn fault_texts(direction: Direction, message: &Value, asked: Option<&str>) -> Vec<String> {
        let schema = Schema::for_version(SchemaVersion::V1);
        let faults = schema.check_message(direction, message, asked);
        faults.iter().map(ToString::to_string).collect()
    }

    fn update_message(update: Value) -> Value {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
    }

    #[test]
    fn valid_messages_have_no_faults() {
        let answer = json!({"jsonrpc": "2.0", "id": 0, "result": {
            "protocolVersion": 1,
            "agentCapabilities": {"loadSession": true, "sessionCapabilities": {"fork": {}}},
            "authMethods": [{"id": "a", "name": "A"}, {"type": "terminal", "id": "t", "name": "T", "env": {"A": "1"}}],
            "_meta": {"any": "thing"},
        }});
        let none = Vec::<String>::new();
        assert_eq!(
            fault_texts(Direction::ToClient, &answer, Some("initialize")),
            none
        );
        let call = update_message(
            json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "t", "content": [
                {"type": "diff", "path": "/a", "oldText": null, "newText": "x"},
                {"type": "content", "content": {"type": "resource", "resource": {"uri": "file:///a", "blob": "eA=="}}},
            ]}),
        );
        assert_eq!(fault_texts(Direction::ToClient, &call, None), none);
        let error =
            json!({"jsonrpc": "2.0", "id": "x", "error": {"code": -31000, "message": "no"}});
        assert_eq!(fault_texts(Direction::ToClient, &error, None), none);
        let own = json!({"jsonrpc": "2.0", "id": "x", "method": "_mine/own", "params": [1]});
        assert_eq!(fault_texts(Direction::ToAgent, &own, None), none);
    }

    #[test]
    fn fault_is_reported_at_its_path() {
        let wrong = update_message(
            json!({"sessionUpdate": "tool_call", "toolCallId": 1, "kind": "lunch", "mine": 1, "content": [
                {"type": "diff", "path": "a", "newText": "x"},
                {"type": "content", "content": {"type": "text"}},
                {"type": "nothing"},
            ]}),
        );
        assert_eq!(
            fault_texts(Direction::ToClient, &wrong, None),
            [
                "`params.update.toolCallId` must be a string, but is 1",
                "`params.update.title` is missing",
                "`params.update.kind` must be one of \"read\", \"edit\", \"delete\", \"move\", \"search\", \
                 \"execute\", \"think\", \"fetch\", \"switch_mode\", \"other\", but is \"lunch\"",
                "`params.update.content[0].path` must be an absolute path, but is \"a\"",
                "`params.update.content[1].content.text` is missing",
                "`params.update.content[2].type` must be one of \"content\", \"diff\", \"terminal\", but is \"nothing\"",
                "`params.update.mine` is not in the specification; custom fields belong in `_meta`",
            ]
        );
    }

    #[test]
    fn invalid_envelopes_are_reported() {
        let both = json!({"id": 1.5, "result": {}, "error": {"code": 1, "message": ""}, "more": 1});
        assert_eq!(
            fault_texts(Direction::ToClient, &both, None),
            [
                "`jsonrpc` is missing",
                "`id` must be null or an integer or a string, but is 1.5",
                "the response has both `result` and `error`",
                "`more` is not in the specification; custom fields belong in `_meta`",
            ]
        );
        let direction = json!({"jsonrpc": "2.0", "id": 1, "method": "session/cancel", "params": {"sessionId": "s"}});
        assert_eq!(
            fault_texts(Direction::ToClient, &direction, None),
            ["the agent must not send \"session/cancel\""]
        );
        assert_eq!(
            fault_texts(Direction::ToAgent, &direction, None),
            ["\"session/cancel\" is a notification, but has an id"]
        );
        assert_eq!(
            fault_texts(Direction::ToAgent, &json!([]), None),
            ["the message is a batch, which the protocol does not support"]
        );
        let unknown = json!({"jsonrpc": "2.0", "method": "session/lunch"});
        assert_eq!(fault_texts(Direction::ToAgent, &unknown, None).len(), 1);
    }
}
