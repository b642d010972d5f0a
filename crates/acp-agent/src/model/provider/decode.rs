//! Decodes responses in any wire format, without I/O.

use std::fmt;
use std::marker::PhantomData;

use acp::v1::StopReason;
use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::Value;

use crate::model::message::{OpaqueParts, ToolRequest};
use crate::model::step::{Step, TokenUsage};
use crate::sse::SseEvent;

/// The maximum length of an event excerpt in an error message, in characters.
const MAX_EXCERPT_CHARS: usize = 120;

/// The maximum number of parts in an event. An empty part takes up many times more memory than its JSON.
const MAX_PARTS: usize = 10_000;

/// Decodes a response, one event at a time.
pub(super) trait EventDecoder: Send {
    /// Decodes an event. The response is complete when this returns the steps from [`finish_stream`].
    ///
    /// # Errors
    /// The event reports an error, or is not valid in the format.
    fn decode(&mut self, event: &SseEvent) -> Result<Vec<DecodedPart>, DecodeError>;

    /// Handles a stream that ended without an end marker. Returns the final steps if the response is complete anyway.
    fn end_of_stream(&mut self) -> Option<Vec<DecodedPart>> {
        None
    }
}

/// A part of a response, as decoded from an event.
#[derive(Debug, PartialEq)]
pub(super) enum DecodedPart {
    Step(Step),
    /// The number of bytes that must be kept in memory until the response ends.
    BufferedBytes(usize),
    /// Opaque data from this response that the model expects back.
    OpaquePart(Value),
}

impl From<Step> for DecodedPart {
    fn from(step: Step) -> Self {
        Self::Step(step)
    }
}

/// Why a response could not be decoded.
#[derive(Debug, PartialEq)]
pub(super) enum DecodeError {
    /// The provider sent an error instead of an event.
    Reported(Value),
    /// The event is invalid in this format. Contains the reason and the start of the event.
    Malformed(String, String),
    /// The response ended for this reason, which means that it failed.
    UnexpectedEnd(String),
}

/// Parses the JSON of an event.
pub(super) fn parse_event<'a, T: Deserialize<'a>>(event: &'a SseEvent) -> Result<T, DecodeError> {
    serde_json::from_str(&event.data).map_err(|e| malformed_error(event, &e.to_string()))
}

/// Creates the error for an event that is invalid in its format.
pub(super) fn malformed_error(event: &SseEvent, why: &str) -> DecodeError {
    DecodeError::Malformed(
        why.to_owned(),
        event.data.chars().take(MAX_EXCERPT_CHARS).collect(),
    )
}

/// Deserializes a list of at most [`MAX_PARTS`] parts. `null` becomes an empty list.
pub(super) fn deserialize_parts<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct LenientParts<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for LenientParts<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MAX_PARTS} parts")
        }

        fn visit_none<E: Error>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
            deserializer.deserialize_seq(self)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut parts = Vec::new();
            while let Some(part) = list.next_element()? {
                if parts.len() == MAX_PARTS {
                    return Err(A::Error::invalid_length(MAX_PARTS + 1, &self));
                }
                parts.push(part);
            }
            Ok(parts)
        }
    }

    deserializer.deserialize_option(LenientParts(PhantomData))
}

/// The final state of a response.
pub(super) struct StreamEnd {
    /// Whether the response contains thoughts.
    pub(super) has_thought: bool,
    /// Opaque data that the model expects back.
    pub(super) opaque_parts: Value,
    pub(super) calls: Vec<ToolRequest>,
    pub(super) usage: Option<TokenUsage>,
    pub(super) stop: StopReason,
}

/// Returns the final steps of a response.
pub(super) fn finish_stream(end: StreamEnd) -> Vec<DecodedPart> {
    let mut all = Vec::with_capacity(end.calls.len() + 3);
    // Even an empty value is needed, because it shows which model made these thoughts and calls.
    if end.has_thought
        || !end.calls.is_empty()
        || end.opaque_parts.as_array().is_some_and(|s| !s.is_empty())
    {
        all.push(DecodedPart::OpaquePart(end.opaque_parts));
    }
    all.extend(end.calls.into_iter().map(Step::Call).map(DecodedPart::Step));
    all.extend(end.usage.map(Step::Usage).map(DecodedPart::Step));
    all.push(Step::Stop(end.stop).into());
    all
}

/// Returns a step with this text, or `None` if the text is empty.
pub(super) fn text_part(text: Option<String>) -> Option<DecodedPart> {
    let text = text.filter(|text| !text.is_empty());
    text.map(Step::Text).map(DecodedPart::Step)
}

/// Returns a step with this thought, or `None` if the thought is empty.
pub(super) fn thought_part(text: Option<String>) -> Option<DecodedPart> {
    let text = text.filter(|text| !text.is_empty());
    text.map(Step::Thought).map(DecodedPart::Step)
}

/// Returns the token count at this JSON pointer in the usage report.
pub(super) fn token_count(usage: &Value, pointer: &str) -> Option<u64> {
    usage.pointer(pointer).and_then(Value::as_u64)
}

impl OpaqueParts {
    /// Returns the JSON array as a slice, or an empty slice for any other value.
    pub(super) fn as_slice(&self) -> &[Value] {
        self.parts.as_array().map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Decodes these events. Each event is named after its `type`, if it has one.
    pub(in super::super) fn decode_events(
        decoder: &mut dyn EventDecoder,
        events: &[Value],
    ) -> Result<Vec<DecodedPart>, DecodeError> {
        let mut all = Vec::new();
        for event in events {
            let name = event.get("type").and_then(Value::as_str);
            let event = SseEvent {
                name: name.unwrap_or_default().to_owned(),
                data: event.to_string(),
            };
            all.extend(decoder.decode(&event)?);
        }
        Ok(all)
    }

    #[test]
    fn parts_of_an_event_are_limited() {
        #[derive(Debug, Deserialize)]
        struct PartsEvent {
            #[serde(default, deserialize_with = "deserialize_parts")]
            parts: Vec<Value>,
        }
        let count = |data: String| {
            let event = SseEvent {
                name: String::new(),
                data,
            };
            parse_event(&event).map(|event: PartsEvent| event.parts.len())
        };
        let many = |n: usize| format!("{{\"parts\":[{}{{}}]}}", "{},".repeat(n - 1));
        assert_eq!(count(many(1)), Ok(1));
        assert_eq!(count(many(MAX_PARTS)), Ok(MAX_PARTS));
        assert!(
            matches!(count(many(MAX_PARTS + 1)), Err(DecodeError::Malformed(why, _)) if why.contains("at most 10000"))
        );
        assert_eq!(count("{\"parts\":null}".to_owned()), Ok(0));
        assert_eq!(count("{}".to_owned()), Ok(0));
    }
}
