//! Messages that the user sends by hand: checked, and on one line.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The error for text that is not a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandMessageError {
    /// The text is not a JSON object.
    #[error("not a JSON object: {0}")]
    Json(#[from] serde_json::Error),
    /// A field occurs twice.
    #[error("the field `{0}` occurs twice")]
    Duplicate(String),
    /// `jsonrpc` has another value than `"2.0"`.
    #[error("`jsonrpc` must be \"2.0\"")]
    Version,
    /// `method` is not a string.
    #[error("`method` must be a string")]
    Method,
    /// There is neither a `method` nor a response.
    #[error("a message needs a `method`, or an `id` with either `result` or `error`")]
    Kind,
}

/// A message to send by hand. Its fields are sent as the user wrote them, on one line.
#[derive(Debug)]
pub struct HandMessage {
    fields: Vec<(String, Box<RawValue>)>,
    needs_id: bool,
}

impl HandMessage {
    /// Checks the text of a message. A `method` with an `id`, or with `expects_response`, is a request. It gets an id of
    /// its own when it is sent, so that the response is never taken for that to another request.
    ///
    /// # Errors
    /// The text is not a JSON object, or cannot be a message.
    pub fn parse(text: &str, expects_response: bool) -> Result<Self, HandMessageError> {
        let HandFields(mut fields) = serde_json::from_str(text)?;
        for (at, (name, _)) in fields.iter().enumerate() {
            if fields.iter().take(at).any(|(other, _)| other == name) {
                return Err(HandMessageError::Duplicate(name.clone()));
            }
        }
        let field = |name: &str| {
            let field = fields.iter().find(|(other, _)| other == name);
            field.map(|(_, value)| value.get())
        };
        if let Some(version) = field("jsonrpc")
            && serde_json::from_str(version).ok() != Some("2.0".to_owned())
        {
            return Err(HandMessageError::Version);
        }
        let needs_id = match field("method") {
            Some(method) if serde_json::from_str::<String>(method).is_err() => {
                return Err(HandMessageError::Method);
            }
            Some(_) => expects_response || field("id").is_some(),
            None => {
                let is_one_of_two = field("result").is_some() != field("error").is_some();
                if field("id").is_none() || !is_one_of_two {
                    return Err(HandMessageError::Kind);
                }
                false
            }
        };
        fields.retain(|(name, _)| name != "jsonrpc" && !(needs_id && name == "id"));
        Ok(Self { fields, needs_id })
    }

    /// Returns `true` if the message is a request that gets an id when it is sent.
    pub(super) fn needs_id(&self) -> bool {
        self.needs_id
    }

    /// Returns the message on one line, without a line end.
    pub(super) fn to_line(&self, id: Option<&str>) -> Vec<u8> {
        let mut line = b"{\"jsonrpc\":\"2.0\"".to_vec();
        let mut push = |name: &str, value: &str| {
            line.push(b',');
            // Writing to memory cannot fail.
            let _ = serde_json::to_writer(&mut line, name);
            line.push(b':');
            // In JSON, line ends are only between tokens.
            let bytes = value.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r'));
            line.extend(bytes);
        };
        if let Some(id) = id {
            push("id", &serde_json::Value::from(id).to_string());
        }
        for (name, value) in &self.fields {
            push(name, value.get());
        }
        line.push(b'}');
        line
    }
}

/// The fields of an object, in their order.
struct HandFields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for HandFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = HandFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(HandFields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, expects_response: bool) -> Result<String, String> {
        let message = HandMessage::parse(text, expects_response).map_err(|e| e.to_string())?;
        let id = message.needs_id().then_some("x\"1");
        Ok(String::from_utf8(message.to_line(id)).unwrap())
    }

    #[test]
    fn message_is_on_one_line_and_otherwise_as_it_was_written() {
        let text = "{\n  \"method\": \"a/b\",\r\n \"params\": {\"n\": 1e400,\n\"t\": \"\\n 1\"},\n\"id\": 7}";
        assert_eq!(
            line(text, true).unwrap(),
            "{\"jsonrpc\":\"2.0\",\"id\":\"x\\\"1\",\"method\":\"a/b\",\"params\":{\"n\": 1e400,\"t\": \"\\n 1\"}}"
        );
        assert_eq!(line(text, false), line(text, true));
        let response = "{\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": null}\n";
        let expected = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":null}";
        assert_eq!(line(response, true).unwrap(), expected);
        assert_eq!(
            line("{\"method\":\"a\"}", false).unwrap(),
            "{\"jsonrpc\":\"2.0\",\"method\":\"a\"}"
        );
    }

    #[test]
    fn text_that_is_no_message_is_rejected() {
        for (text, expects_response, error) in [
            ("{\"method\": }", true, "not a JSON object: expected value"),
            ("[]", true, "not a JSON object: invalid type"),
            ("{} {}", true, "not a JSON object: trailing characters"),
            (
                "{\"method\":\"a\",\"method\":\"b\"}",
                true,
                "the field `method` occurs twice",
            ),
            ("{\"method\":\"a\",\"jsonrpc\":2}", true, "`jsonrpc` must"),
            ("{\"method\":1}", true, "`method` must"),
            ("{\"params\":{}}", false, "a message needs"),
            (
                "{\"id\":1,\"result\":1,\"error\":{}}",
                false,
                "a message needs",
            ),
        ] {
            let found = line(text, expects_response).unwrap_err();
            assert!(found.starts_with(error), "{text}: {found}");
        }
    }
}
