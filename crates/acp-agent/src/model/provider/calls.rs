//! Assembles tool calls from streamed pieces.

use serde_json::{Value, json};

use super::decode::DecodedPart;
use crate::model::message::ToolRequest;
use crate::model::step::Step;

/// Assembles the tool calls of a round from pieces that arrive one by one.
pub(super) struct CallAssembler {
    /// The number of calls in earlier rounds.
    finished_count: usize,
    partial_calls: Vec<PartialCall>,
}

struct PartialCall {
    id: String,
    tool: String,
    /// The JSON text of the arguments received so far.
    arguments_text: String,
    /// The arguments, if they arrived as a single JSON value.
    complete_arguments: Option<Value>,
}

impl CallAssembler {
    pub(super) fn new(before: usize) -> Self {
        Self {
            finished_count: before,
            partial_calls: Vec::new(),
        }
    }

    /// Returns the number of calls in this round.
    pub(super) fn len(&self) -> usize {
        self.partial_calls.len()
    }

    /// Generates an id for the next call, for wire formats whose calls have no ids.
    pub(super) fn generate_id(&self, tool: &str) -> String {
        format!(
            "call#{tool}#{}",
            self.finished_count + self.partial_calls.len()
        )
    }

    /// Starts a call whose arguments will follow in pieces.
    pub(super) fn begin_call(&mut self, id: String, tool: String) -> Vec<DecodedPart> {
        let call = self.partial_calls.len();
        let names = DecodedPart::BufferedBytes(id.len());
        self.partial_calls.push(PartialCall {
            id,
            tool: tool.clone(),
            arguments_text: String::new(),
            complete_arguments: None,
        });
        vec![Step::CallStarted { call, tool }.into(), names]
    }

    /// Adds a call that arrived in one piece.
    pub(super) fn push_complete(
        &mut self,
        id: String,
        tool: String,
        arguments: Value,
    ) -> Vec<DecodedPart> {
        let call = self.partial_calls.len();
        let mut parts = self.begin_call(id, tool);
        match arguments {
            // This is the text of the arguments, which has not been parsed.
            Value::String(written) => parts.extend(self.append_arguments(call, &written)),
            whole => {
                if !whole.is_null() {
                    let arguments = whole.to_string();
                    parts.push(Step::CallDelta { call, arguments }.into());
                }
                if let Some(open) = self.partial_calls.last_mut() {
                    // The value is stored here, so do not store its text as well.
                    open.complete_arguments = Some(whole);
                }
            }
        }
        parts
    }

    /// Appends text to the arguments of a call. Calls are counted from 0.
    pub(super) fn append_arguments(&mut self, call: usize, more: &str) -> Option<DecodedPart> {
        let open = self
            .partial_calls
            .get_mut(call)
            .filter(|_| !more.is_empty())?;
        open.arguments_text.push_str(more);
        let arguments = more.to_owned();
        Some(Step::CallDelta { call, arguments }.into())
    }

    /// Returns `true` if no part of a call's arguments has arrived yet.
    pub(super) fn has_no_arguments(&self, call: usize) -> bool {
        let open = self.partial_calls.get(call);
        open.is_some_and(|open| open.arguments_text.is_empty() && open.complete_arguments.is_none())
    }

    /// Returns the call that a piece with this id belongs to. OpenAI sends a call's id and tool only in its first
    /// piece. For later pieces, `id` is `call_` followed by the call's number. Some compatible servers repeat the id in
    /// every piece, and some use the same number for all calls.
    pub(super) fn continued_call(&self, id: &str, tool: &str) -> Option<usize> {
        let named = self.partial_calls.iter().position(|call| call.id == id);
        match named {
            // This is a second call to which the server gave the id of the first.
            Some(at)
                if !tool.is_empty()
                    && self
                        .partial_calls
                        .get(at)
                        .is_some_and(PartialCall::is_complete) =>
            {
                None
            }
            Some(at) => Some(at),
            None if !tool.is_empty() => None,
            None => {
                let number = id.strip_prefix("call_").and_then(|n| n.parse().ok());
                let last = self.partial_calls.len().checked_sub(1);
                number.filter(|n| *n < self.partial_calls.len()).or(last)
            }
        }
    }

    /// Returns all calls once the response is complete. Keeps the model's ids if they are unique.
    pub(super) fn finish(&mut self) -> Vec<ToolRequest> {
        let open = std::mem::take(&mut self.partial_calls);
        let mut calls: Vec<ToolRequest> = Vec::with_capacity(open.len());
        for open in open {
            let arguments = open.arguments();
            let taken = open.id.is_empty() || calls.iter().any(|call| call.id == open.id);
            let id = match taken {
                true => format!("call_{}", self.finished_count + calls.len()),
                false => open.id,
            };
            calls.push(ToolRequest::new(id, open.tool, arguments));
        }
        calls
    }
}

impl PartialCall {
    fn is_complete(&self) -> bool {
        serde_json::from_str::<Value>(&self.arguments_text).is_ok_and(|written| written.is_object())
    }

    /// Returns the arguments as an object. If the model wrote anything else, returns its text as a string.
    fn arguments(&self) -> Value {
        match &self.complete_arguments {
            Some(Value::Null) => return json!({}),
            Some(whole @ Value::Object(_)) => return whole.clone(),
            Some(other) => return Value::String(other.to_string()),
            None => {}
        }
        if self.arguments_text.trim().is_empty() {
            return json!({});
        }
        match serde_json::from_str(&self.arguments_text) {
            Ok(object @ Value::Object(_)) => object,
            _ => Value::String(self.arguments_text.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finish_calls(mut calls: CallAssembler) -> Vec<(String, String, Value)> {
        let calls = calls.finish().into_iter();
        calls
            .map(|call| (call.id, call.tool, call.arguments))
            .collect()
    }

    /// Assembles calls from these pieces, as OpenAI sends them.
    fn assemble_calls(pieces: &[(&str, &str, &str)]) -> Vec<(String, String, Value)> {
        let mut calls = CallAssembler::new(7);
        for (id, tool, arguments) in pieces {
            let call = calls.continued_call(id, tool).unwrap_or_else(|| {
                calls.begin_call((*id).to_owned(), (*tool).to_owned());
                calls.len() - 1
            });
            calls.append_arguments(call, arguments);
        }
        finish_calls(calls)
    }

    fn expected_call(id: &str, tool: &str, arguments: Value) -> (String, String, Value) {
        (id.to_owned(), tool.to_owned(), arguments)
    }

    #[test]
    fn interleaved_argument_deltas_are_assigned_to_their_calls() {
        let pieces = [
            ("x", "read", ""),
            ("y", "list", ""),
            ("call_0", "", "{\"path\":"),
            ("call_1", "", "{}"),
            ("call_0", "", "\"a\"}"),
        ];
        assert_eq!(
            assemble_calls(&pieces),
            [
                expected_call("x", "read", json!({"path": "a"})),
                expected_call("y", "list", json!({}))
            ]
        );
    }

    #[test]
    fn each_delta_reports_only_the_new_text() {
        let mut calls = CallAssembler::new(0);
        let begins = |call| {
            DecodedPart::Step(Step::CallStarted {
                call,
                tool: "read".to_owned(),
            })
        };
        let writes = |call, arguments: &str| {
            let arguments = arguments.to_owned();
            DecodedPart::Step(Step::CallDelta { call, arguments })
        };
        let begin = |calls: &mut CallAssembler, id: &str| {
            calls.begin_call(id.to_owned(), "read".to_owned())
        };
        assert_eq!(begin(&mut calls, "x")[0], begins(0));
        assert!(calls.has_no_arguments(0));
        assert_eq!(calls.append_arguments(0, ""), None);
        assert_eq!(
            calls.append_arguments(0, "{\"a\""),
            Some(writes(0, "{\"a\""))
        );
        assert_eq!(begin(&mut calls, "y")[0], begins(1));
        assert_eq!(calls.append_arguments(0, ":1}"), Some(writes(0, ":1}")));
        assert!(!calls.has_no_arguments(0) && calls.has_no_arguments(1));
        assert_eq!(calls.append_arguments(2, "lost"), None);
        let whole = calls.push_complete("z".to_owned(), "read".to_owned(), json!({"a": 1}));
        assert_eq!(
            (&whole[0], &whole[2]),
            (&begins(2), &writes(2, "{\"a\":1}"))
        );
        assert_eq!(
            finish_calls(calls),
            [
                expected_call("x", "read", json!({"a": 1})),
                expected_call("y", "read", json!({})),
                expected_call("z", "read", json!({"a": 1}))
            ]
        );
    }

    #[test]
    fn calls_with_equal_indexes_or_repeated_names_are_distinguished() {
        let pieces = [
            ("call_0", "read", "{\"path\":\"a\"}"),
            ("call_0", "read", "{\"path\":\"b\"}"),
        ];
        let calls = assemble_calls(&pieces);
        assert_eq!(
            calls[0],
            expected_call("call_0", "read", json!({"path": "a"}))
        );
        assert_eq!(
            calls[1],
            expected_call("call_8", "read", json!({"path": "b"}))
        );
        let pieces = [("x", "read", "{\"pa"), ("x", "read", "th\":\"a\"}")];
        assert_eq!(
            assemble_calls(&pieces),
            [expected_call("x", "read", json!({"path": "a"}))]
        );
    }

    #[test]
    fn non_object_arguments_are_kept_as_text() {
        let pieces = [("x", "read", "{\"path\": "), ("y", "list", "[1]")];
        let calls = assemble_calls(&pieces);
        assert_eq!(calls[0].2, json!("{\"path\": "));
        assert_eq!(calls[1].2, json!("[1]"));
        let mut calls = CallAssembler::new(0);
        calls.push_complete("x".to_owned(), "read".to_owned(), json!([1]));
        calls.push_complete("y".to_owned(), "read".to_owned(), Value::Null);
        let calls = finish_calls(calls);
        assert_eq!((&calls[0].2, &calls[1].2), (&json!("[1]"), &json!({})));
    }

    #[test]
    fn calls_without_ids_get_generated_ids() {
        let mut calls = CallAssembler::new(7);
        for path in ["a", "b"] {
            let id = calls.generate_id("read");
            calls.push_complete(id, "read".to_owned(), json!({ "path": path }));
        }
        let calls = finish_calls(calls);
        assert_eq!(calls[0].0, "call#read#7");
        assert_eq!(calls[1].0, "call#read#8");
    }
}
