//! Answers that must be JSON, with `--output-schema`.

use std::path::Path;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::exit::CommandExit;

/// The maximum size of a schema's file, in bytes.
const MAX_SCHEMA_BYTES: u64 = 1024 * 1024;

/// The name of the tool with which an agent gives its answer.
pub(super) const TOOL_NAME: &str = "submit_answer";

/// The beginning of the name of the tool's server.
pub(super) const SERVER_PREFIX: &str = "acp_answer_";

/// The argument of the tool that contains an answer that is not an object.
const ANSWER_FIELD: &str = "answer";

/// The maximum number of mistakes of an answer to tell the agent.
const MAX_MISTAKES: usize = 10;

/// The JSON Schema that the agent's answer must match.
pub(super) struct AnswerSchema {
    text: String,
    schema: Value,
    validator: Validator,
}

impl AnswerSchema {
    /// Reads a schema from a file.
    pub(super) fn read(file: &Path) -> Result<Self, CommandExit> {
        let invalid =
            |why: String| CommandExit::usage(format!("--output-schema {}: {why}", file.display()));
        let size = std::fs::metadata(file)
            .map_err(|e| invalid(e.to_string()))?
            .len();
        if size > MAX_SCHEMA_BYTES {
            return Err(invalid(format!(
                "too large (limit: {MAX_SCHEMA_BYTES} bytes)"
            )));
        }
        let text = std::fs::read_to_string(file).map_err(|e| invalid(e.to_string()))?;
        let schema: Value = serde_json::from_str(&text).map_err(|e| invalid(e.to_string()))?;
        let validator = jsonschema::validator_for(&schema)
            .map_err(|e| invalid(format!("invalid JSON Schema: {e}")))?;
        Ok(Self {
            text: text.trim().to_owned(),
            schema,
            validator,
        })
    }

    /// Returns the prompt with a request to answer in this form. Agents that `have_tool` may not use MCP servers, so they
    /// are told both ways.
    pub(super) fn extend_prompt(&self, prompt: &str, have_tool: bool) -> String {
        let tool = match have_tool {
            true => format!(
                "When you have the answer, call the tool `{TOOL_NAME}` of the MCP server whose name begins with `{SERVER_PREFIX}`, and then end your turn. Only if you do not have this tool: "
            ),
            false => String::new(),
        };
        let end = if have_tool { "end" } else { "End" };
        format!(
            "{prompt}\n\n{tool}{end} with a message that is a single JSON value and nothing else: no explanation and no code fence. The answer must match this JSON Schema:\n\n{}",
            self.text
        )
    }

    /// Returns the schema of a tool's arguments that contain the answer. They must be an object, so any other answer is
    /// the value of [`ANSWER_FIELD`].
    pub(super) fn tool_schema(&self) -> Map<String, Value> {
        if let (false, Value::Object(schema)) = (self.is_wrapped(), &self.schema) {
            return schema.clone();
        }
        let mut inner = self.schema.clone();
        let mut outer = Map::new();
        outer.insert("type".to_owned(), "object".into());
        if let Value::Object(inner) = &mut inner {
            // References such as `#/$defs/item` begin at the root.
            for definitions in ["$schema", "$defs", "definitions"] {
                if let Some(value) = inner.remove(definitions) {
                    outer.insert(definitions.to_owned(), value);
                }
            }
        }
        outer.insert("properties".to_owned(), json!({ ANSWER_FIELD: inner }));
        outer.insert("required".to_owned(), json!([ANSWER_FIELD]));
        outer.insert("additionalProperties".to_owned(), false.into());
        outer
    }

    /// Returns `true` if the answer is not itself the arguments of the tool. Some providers reject the schema of a tool that
    /// combines other schemas at its root.
    fn is_wrapped(&self) -> bool {
        let is_combined = ["allOf", "anyOf", "oneOf", "not", "if", "$ref"]
            .iter()
            .any(|keyword| self.schema.get(keyword).is_some());
        is_combined || self.schema.get("type").is_none_or(|kind| kind != "object")
    }

    /// Returns the answer in a tool's arguments.
    pub(super) fn check_arguments(&self, mut arguments: Value) -> Result<Value, SchemaMismatch> {
        if !self.is_wrapped() {
            return self.check_value(arguments);
        }
        let answer = arguments.get_mut(ANSWER_FIELD).map(Value::take);
        match answer {
            Some(answer) => self.check_value(answer),
            None => Err(SchemaMismatch(vec![format!("`{ANSWER_FIELD}` is missing")])),
        }
    }

    /// Returns the answer's value, or the prompt that asks for a better one.
    pub(super) fn check(&self, answer: &str) -> Result<Value, SchemaMismatch> {
        let value =
            parse_answer(answer).map_err(|e| SchemaMismatch(vec![format!("not JSON: {e}")]))?;
        self.check_value(value)
    }

    fn check_value(&self, value: Value) -> Result<Value, SchemaMismatch> {
        let mistakes: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(MAX_MISTAKES)
            .map(|error| match error.instance_path().to_string() {
                at if at.is_empty() => error.to_string(),
                at => format!("{at}: {error}"),
            })
            .collect();
        match mistakes.is_empty() {
            true => Ok(value),
            false => Err(SchemaMismatch(mistakes)),
        }
    }
}

/// What is wrong with an answer.
#[derive(Debug)]
pub(super) struct SchemaMismatch(Vec<String>);

impl SchemaMismatch {
    /// Returns the prompt that asks for a valid answer.
    pub(super) fn prompt(&self) -> String {
        format!(
            "Your last message does not match the JSON Schema:\n\n{}\n\nSend the corrected JSON value and nothing else.",
            self.0.join("\n")
        )
    }

    /// Returns the text for an agent that has called the tool.
    pub(super) fn tool_error(&self) -> String {
        format!(
            "The answer does not match the schema:\n\n{}\n\nCorrect it and call the tool again.",
            self.0.join("\n")
        )
    }

    pub(super) fn to_text(&self) -> String {
        self.0.join("; ")
    }
}

/// Parses an answer. Many models put JSON into a code fence, whatever they are told.
fn parse_answer(answer: &str) -> serde_json::Result<Value> {
    let answer = answer.trim();
    let fenced = answer
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'))
        .map(|(_language, text)| text);
    serde_json::from_str(fenced.unwrap_or(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> AnswerSchema {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        AnswerSchema::read(file.path()).unwrap()
    }

    #[test]
    fn arguments_of_the_tool_are_always_a_plain_object() {
        for (text, is_wrapped) in [
            (r#"{"type": "object", "required": ["a"]}"#, false),
            (r#"{"type": "array"}"#, true),
            (r#"{"type": ["object", "null"]}"#, true),
            (r#"{"type": "object", "anyOf": [{}]}"#, true),
            (r##"{"$ref": "#/$defs/a", "$defs": {"a": {}}}"##, true),
            ("{}", true),
            ("true", true),
        ] {
            let schema = schema(text);
            let tool = schema.tool_schema();
            assert_eq!(tool["type"], "object", "{text}");
            let is_inside = tool
                .get("properties")
                .is_some_and(|it| it.get(ANSWER_FIELD).is_some());
            assert_eq!(is_inside, is_wrapped, "{text}");
            for keyword in ["anyOf", "$ref"] {
                assert!(!tool.contains_key(keyword), "{text}");
            }
        }
    }

    #[test]
    fn answer_is_found_in_the_arguments() {
        let list = schema(r#"{"type": "array"}"#);
        let answer = list.check_arguments(json!({"answer": [1]})).unwrap();
        assert_eq!(answer, json!([1]));
        for arguments in [json!({"answer": 1}), json!({}), json!({"a": [1]})] {
            assert!(list.check_arguments(arguments).is_err());
        }
        let object = schema(r#"{"type": "object", "required": ["a"]}"#);
        let answer = object.check_arguments(json!({"a": 1})).unwrap();
        assert_eq!(answer, json!({"a": 1}));
        assert!(object.check_arguments(json!({"answer": {"a": 1}})).is_err());
    }

    #[test]
    fn fence_around_the_whole_answer_is_removed() {
        for answer in ["[1]", " [1]\n", "```json\n[1]\n```", "```\n[1]\n```\n"] {
            assert_eq!(
                parse_answer(answer).unwrap(),
                serde_json::json!([1]),
                "{answer:?}"
            );
        }
        for answer in ["", "text [1]", "```json\n[1]\n``` more", "[1] [2]"] {
            assert!(parse_answer(answer).is_err(), "{answer:?}");
        }
    }
}
