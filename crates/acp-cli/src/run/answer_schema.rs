//! Answers that must be JSON, with `--output-schema`.

use std::path::Path;

use jsonschema::Validator;
use serde_json::Value;

use crate::exit::CommandExit;

/// The maximum size of a schema's file, in bytes.
const MAX_SCHEMA_BYTES: u64 = 1024 * 1024;

/// The maximum number of mistakes of an answer to tell the agent.
const MAX_MISTAKES: usize = 10;

/// The JSON Schema that the agent's answer must match.
pub(super) struct AnswerSchema {
    text: String,
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
            validator,
        })
    }

    /// Returns the prompt with a request to answer in this form.
    pub(super) fn extend_prompt(&self, prompt: &str) -> String {
        format!(
            "{prompt}\n\nEnd with a message that is a single JSON value and nothing else: no explanation and no code fence. It must match this JSON Schema:\n\n{}",
            self.text
        )
    }

    /// Returns the answer's value, or the prompt that asks for a better one.
    pub(super) fn check(&self, answer: &str) -> Result<Value, SchemaMismatch> {
        let value =
            parse_answer(answer).map_err(|e| SchemaMismatch(vec![format!("not JSON: {e}")]))?;
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
