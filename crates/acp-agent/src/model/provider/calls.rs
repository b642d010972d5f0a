//! Tool calls, out of the pieces in which they come.

use genai::chat::ToolCall;
use serde_json::{Value, json};

use super::super::ToolRequest;
use super::config::Provider;

/// The calls of a round so far.
pub(super) struct Calls {
    provider: Provider,
    /// How many calls there were before, in all rounds.
    before: usize,
    open: Vec<Open>,
}

/// What a piece has added.
pub(super) struct Added {
    /// To which call, counted from 0.
    pub(super) call: usize,
    /// Its tool, if it is the first piece of its call.
    pub(super) begins: Option<String>,
    /// What its arguments have grown by, as JSON.
    pub(super) written: String,
}

struct Open {
    id: String,
    tool: String,
    /// Its arguments, as far as they have come.
    written: String,
    /// Its arguments, if they came as a value.
    whole: Option<Value>,
}

impl Calls {
    pub(super) fn new(provider: Provider, before: usize) -> Self {
        Self {
            provider,
            before,
            open: Vec::new(),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Takes a piece.
    pub(super) fn add(&mut self, piece: ToolCall) -> Added {
        let Value::String(written) = piece.fn_arguments else {
            // It is all of a call.
            let whole = piece.fn_arguments;
            let written = match &whole {
                Value::Null => String::new(),
                whole => whole.to_string(),
            };
            return self.begin(piece.call_id, piece.fn_name, written, Some(whole));
        };
        let (at, written) = match self.provider {
            // Each piece has all that came so far.
            Provider::Anthropic => {
                let at = self.open.iter().position(|call| call.id == piece.call_id);
                let before = at.and_then(|at| self.open.get(at));
                let before = before.map_or(0, |call| call.written.len());
                let more = written.get(before..).unwrap_or_default();
                (at, more.to_owned())
            }
            Provider::OpenAi | Provider::Gemini => {
                (self.goes_on(&piece.call_id, &piece.fn_name), written)
            }
        };
        match at.and_then(|at| self.open.get_mut(at).map(|call| (at, call))) {
            Some((at, call)) => {
                call.written.push_str(&written);
                Added {
                    call: at,
                    begins: None,
                    written,
                }
            }
            None => self.begin(piece.call_id, piece.fn_name, written, None),
        }
    }

    fn begin(&mut self, id: String, tool: String, written: String, whole: Option<Value>) -> Added {
        let added = Added {
            call: self.open.len(),
            begins: Some(tool.clone()),
            written: written.clone(),
        };
        self.open.push(Open {
            id,
            tool,
            // A value is not kept twice.
            written: whole.as_ref().map_or(written, |_| String::new()),
            whole,
        });
        added
    }

    /// The call that this is a further piece of. OpenAI names a call only in its first piece; the number that all
    /// of them have is given in the place of the name then. Some who imitate it name all pieces, and some number all
    /// calls alike.
    fn goes_on(&self, id: &str, tool: &str) -> Option<usize> {
        let named = self.open.iter().position(|call| call.id == id);
        match named {
            // A second call that nobody has told apart from the first.
            Some(at) if !tool.is_empty() && self.open.get(at).is_some_and(Open::is_whole) => None,
            Some(at) => Some(at),
            None if !tool.is_empty() => None,
            None => {
                let number = id.strip_prefix("call_").and_then(|n| n.parse().ok());
                let last = self.open.len().checked_sub(1);
                number.filter(|n| *n < self.open.len()).or(last)
            }
        }
    }

    /// The calls, all of them come. The names that the model gave them are kept where they tell them apart.
    pub(super) fn finish(self) -> Vec<ToolRequest> {
        let mut calls: Vec<ToolRequest> = Vec::with_capacity(self.open.len());
        for open in self.open {
            let arguments = open.arguments();
            let n = self.before + calls.len();
            let id = match self.provider {
                // It names none; what it would be asked about by this name it is not.
                Provider::Gemini if open.id.is_empty() || open.id.starts_with("call#") => {
                    format!("call#{}#{n}", open.tool)
                }
                _ if open.id.is_empty() || calls.iter().any(|call| call.id == open.id) => {
                    format!("call_{n}")
                }
                _ => open.id,
            };
            calls.push(ToolRequest::new(id, open.tool, arguments));
        }
        calls
    }
}

impl Open {
    fn is_whole(&self) -> bool {
        serde_json::from_str::<Value>(&self.written).is_ok_and(|written| written.is_object())
    }

    /// An object, or what was written that is none.
    fn arguments(&self) -> Value {
        match &self.whole {
            Some(Value::Null) => return json!({}),
            Some(whole @ Value::Object(_)) => return whole.clone(),
            Some(other) => return Value::String(other.to_string()),
            None => {}
        }
        if self.written.trim().is_empty() {
            return json!({});
        }
        match serde_json::from_str(&self.written) {
            Ok(object @ Value::Object(_)) => object,
            _ => Value::String(self.written.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(
        provider: Provider,
        pieces: &[(&str, &str, Value)],
    ) -> Vec<(String, String, Value)> {
        let mut calls = Calls::new(provider, 7);
        for (id, tool, arguments) in pieces {
            calls.add(ToolCall {
                call_id: (*id).to_owned(),
                fn_name: (*tool).to_owned(),
                fn_arguments: arguments.clone(),
                thought_signatures: None,
            });
        }
        let calls = calls.finish().into_iter();
        calls
            .map(|call| (call.id, call.tool, call.arguments))
            .collect()
    }

    fn call(id: &str, tool: &str, arguments: Value) -> (String, String, Value) {
        (id.to_owned(), tool.to_owned(), arguments)
    }

    #[test]
    fn pieces_of_parallel_calls_find_their_call() {
        let pieces = [
            ("x", "read", json!("")),
            ("y", "list", json!("")),
            ("call_0", "", json!("{\"path\":")),
            ("call_1", "", json!("{}")),
            ("call_0", "", json!("\"a\"}")),
        ];
        assert_eq!(
            gathered(Provider::OpenAi, &pieces),
            [
                call("x", "read", json!({"path": "a"})),
                call("y", "list", json!({}))
            ]
        );
    }

    #[test]
    fn what_each_piece_adds_is_known_as_it_comes() {
        for provider in [Provider::Anthropic, Provider::OpenAi] {
            let mut calls = Calls::new(provider, 0);
            let mut added = |id: &str, tool: &str, arguments: &str| {
                let added = calls.add(ToolCall {
                    call_id: id.to_owned(),
                    fn_name: tool.to_owned(),
                    fn_arguments: json!(arguments),
                    thought_signatures: None,
                });
                (added.call, added.begins, added.written)
            };
            let first = || Some("read".to_owned());
            assert_eq!(added("x", "read", ""), (0, first(), String::new()));
            assert_eq!(added("x", "", "{\"a\""), (0, None, "{\"a\"".to_owned()));
            let rest = match provider {
                Provider::Anthropic => "{\"a\":1}",
                _ => ":1}",
            };
            assert_eq!(added("x", "", rest), (0, None, ":1}".to_owned()));
            assert_eq!(added("y", "read", ""), (1, first(), String::new()));
        }
    }

    #[test]
    fn those_who_number_all_calls_alike_or_repeat_names_are_understood() {
        let pieces = [
            ("call_0", "read", json!("{\"path\":\"a\"}")),
            ("call_0", "read", json!("{\"path\":\"b\"}")),
        ];
        let calls = gathered(Provider::OpenAi, &pieces);
        assert_eq!(calls[0], call("call_0", "read", json!({"path": "a"})));
        assert_eq!(calls[1], call("call_8", "read", json!({"path": "b"})));
        let pieces = [
            ("x", "read", json!("{\"pa")),
            ("x", "read", json!("th\":\"a\"}")),
        ];
        assert_eq!(
            gathered(Provider::OpenAi, &pieces),
            [call("x", "read", json!({"path": "a"}))]
        );
    }

    #[test]
    fn what_is_no_object_is_kept_as_it_was_written() {
        let pieces = [
            ("x", "read", json!("{\"path\": ")),
            ("y", "list", json!("[1]")),
        ];
        let calls = gathered(Provider::OpenAi, &pieces);
        assert_eq!(calls[0].2, json!("{\"path\": "));
        assert_eq!(calls[1].2, json!("[1]"));
        let pieces = [
            ("x", "read", json!("")),
            ("x", "read", json!("{\"a\"")),
            ("x", "read", json!("{\"a\":1}")),
        ];
        assert_eq!(
            gathered(Provider::Anthropic, &pieces),
            [call("x", "read", json!({"a": 1}))]
        );
    }

    #[test]
    fn calls_that_have_no_names_get_some() {
        let pieces = [
            ("call#read#0", "read", json!({"path": "a"})),
            ("call#read#0", "read", json!({"path": "b"})),
        ];
        let calls = gathered(Provider::Gemini, &pieces);
        assert_eq!(calls[0].0, "call#read#7");
        assert_eq!(calls[1].0, "call#read#8");
    }
}
