//! The wire formats of the providers: what one is asked with, and how its answer is read. There is no I/O in them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use acp::v1::StopReason;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};
use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::Value;

use super::super::{Sealed, Step, ThoughtLevel, ToolRequest, ToolSpec, Usage};
use super::config::{Provider, Secret};
use super::convert::Turn;
use super::{anthropic_messages, gemini, openai_chat, openai_responses};
use crate::sse::SseEvent;

/// How much of an event is repeated in an error, in characters.
const GLIMPSE: usize = 120;

/// How many parts an event may have. Read, an empty one takes many times the bytes that it has as JSON.
const PARTS: usize = 10_000;

/// A wire format: what a request for an answer, and the answer, look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WireFormat {
    /// Anthropic's Messages.
    AnthropicMessages,
    /// OpenAI's Chat Completions, which many other servers speak.
    OpenAiChat,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Gemini's `generateContent`.
    Gemini,
}

impl WireFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::AnthropicMessages,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Gemini,
    ];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }

    /// Whose it is.
    #[must_use]
    pub fn provider(self) -> Provider {
        match self {
            Self::AnthropicMessages => Provider::Anthropic,
            Self::OpenAiChat | Self::OpenAiResponses => Provider::OpenAi,
            Self::Gemini => Provider::Gemini,
        }
    }

    /// Where a model is asked.
    pub(super) fn url(self, base: &Url, model: &str) -> Url {
        let path = match self {
            Self::AnthropicMessages => "messages".into(),
            Self::OpenAiChat => "chat/completions".into(),
            Self::OpenAiResponses => "responses".into(),
            Self::Gemini => Cow::Owned(format!("models/{model}:streamGenerateContent")),
        };
        let mut url = base.clone();
        url.set_path(&format!("{}{path}", base.path()));
        if self == Self::Gemini {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        url
    }

    /// The headers that it has, the key among them if there is one.
    pub(super) fn headers(self, key: Option<&Secret>) -> Result<HeaderMap, InvalidHeaderValue> {
        let mut headers = HeaderMap::new();
        if self == Self::AnthropicMessages {
            let version = HeaderValue::from_static(anthropic_messages::VERSION);
            headers.insert("anthropic-version", version);
        }
        let key = key.map_or("", Secret::reveal);
        // Some do not take a header for a key that has none.
        if key.is_empty() {
            return Ok(headers);
        }
        let (name, value) = match self {
            Self::AnthropicMessages => (HeaderName::from_static("x-api-key"), Cow::Borrowed(key)),
            Self::OpenAiChat | Self::OpenAiResponses => {
                (AUTHORIZATION, Cow::Owned(format!("Bearer {key}")))
            }
            Self::Gemini => (
                HeaderName::from_static("x-goog-api-key"),
                Cow::Borrowed(key),
            ),
        };
        let mut value = HeaderValue::from_str(&value)?;
        // It is not part of any `Debug` then.
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(headers)
    }

    /// What is asked.
    pub(super) fn body(self, asked: &ModelRequest<'_>) -> Value {
        match self {
            Self::AnthropicMessages => anthropic_messages::body(asked),
            Self::OpenAiChat => openai_chat::body(asked),
            Self::OpenAiResponses => openai_responses::body(asked),
            Self::Gemini => gemini::body(asked),
        }
    }

    /// What reads the answer. There were so many calls in the conversation before.
    pub(super) fn decoder(self, before: usize) -> Box<dyn Decoder> {
        match self {
            Self::AnthropicMessages => Box::new(anthropic_messages::AnthropicDecoder::new(before)),
            Self::OpenAiChat => Box::new(openai_chat::ChatDecoder::new(before)),
            Self::OpenAiResponses => Box::new(openai_responses::ResponsesDecoder::new(before)),
            Self::Gemini => Box::new(gemini::GeminiDecoder::new(before)),
        }
    }
}

/// The one that servers at other addresses speak, if nothing else is said of them.
impl From<Provider> for WireFormat {
    fn from(provider: Provider) -> Self {
        match provider {
            Provider::Anthropic => Self::AnthropicMessages,
            Provider::OpenAi => Self::OpenAiChat,
            Provider::Gemini => Self::Gemini,
        }
    }
}

impl fmt::Display for WireFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a model is asked, before it is written in a format.
pub(super) struct ModelRequest<'a> {
    /// The model's name.
    pub(super) model: &'a str,
    pub(super) instructions: &'a str,
    pub(super) turns: Vec<Turn<'a>>,
    pub(super) tools: &'a [ToolSpec],
    pub(super) thought: Option<ThoughtLevel>,
    pub(super) max_output: Option<u32>,
    /// It was in the middle of calling tools, and what it thought before is lost.
    pub(super) lacks_thoughts: bool,
    /// What the server has said it does not take.
    pub(super) refused: UnsupportedParameters,
}

/// What not every server and account takes of a request. It is left out once that was said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UnsupportedParameters {
    /// Summaries of thoughts.
    pub(super) summary: bool,
    /// Thoughts that are encrypted.
    pub(super) encrypted: bool,
}

impl UnsupportedParameters {
    /// Takes up what the server says about a request. Gives whether there is something to leave out now.
    pub(super) fn learn(&mut self, parameter: &str) -> bool {
        let refused = match parameter {
            "reasoning.summary" => &mut self.summary,
            "include" => &mut self.encrypted,
            _ => return false,
        };
        !std::mem::replace(refused, true)
    }
}

/// Reads an answer, event by event.
pub(super) trait Decoder: Send {
    /// Takes an event. The answer is over with the steps that [`finish`] makes.
    ///
    /// # Errors
    /// It is an error, or no event of the format.
    fn event(&mut self, event: &SseEvent) -> Result<Vec<Decoded>, DecodeError>;

    /// Takes that no more events come, though none has said that the answer is over. Gives the end of it if all of it
    /// has come even so.
    fn cut(&mut self) -> Option<Vec<Decoded>> {
        None
    }
}

/// What an event says.
#[derive(Debug, PartialEq)]
pub(super) enum Decoded {
    Step(Step),
    /// So many bytes that are kept until the answer is over.
    Kept(usize),
    /// What the model wants to see again of this answer.
    Sealed(Value),
}

impl From<Step> for Decoded {
    fn from(step: Step) -> Self {
        Self::Step(step)
    }
}

/// Why an answer cannot be read on.
#[derive(Debug, PartialEq)]
pub(super) enum DecodeError {
    /// The provider reports an error in the place of an event.
    Reported(Value),
    /// The event is not one of the format. Why, and its beginning.
    Malformed(String, String),
    /// The answer ended with this reason, which is a failure.
    Ended(String),
}

/// Reads the JSON of an event.
pub(super) fn parse<'a, T: Deserialize<'a>>(event: &'a SseEvent) -> Result<T, DecodeError> {
    serde_json::from_str(&event.data).map_err(|e| malformed(event, &e.to_string()))
}

/// An event that is none of its format.
pub(super) fn malformed(event: &SseEvent, why: &str) -> DecodeError {
    DecodeError::Malformed(why.to_owned(), event.data.chars().take(GLIMPSE).collect())
}

/// Reads a list of no more than [`PARTS`]; `null` is one of none.
pub(super) fn parts<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Parts<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Parts<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {PARTS} parts")
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
                if parts.len() == PARTS {
                    return Err(A::Error::invalid_length(PARTS + 1, &self));
                }
                parts.push(part);
            }
            Ok(parts)
        }
    }

    deserializer.deserialize_option(Parts(PhantomData))
}

/// What comes at the end of an answer.
pub(super) struct Finish {
    /// Whether it has thought aloud.
    pub(super) thought: bool,
    /// What it wants to see again.
    pub(super) sealed: Value,
    pub(super) calls: Vec<ToolRequest>,
    pub(super) usage: Option<Usage>,
    pub(super) stop: StopReason,
}

/// The steps with which an answer is over.
pub(super) fn finish(end: Finish) -> Vec<Decoded> {
    let mut all = Vec::with_capacity(end.calls.len() + 3);
    // Also where there is nothing in it: whether another model has thought this is to be known.
    if end.thought || !end.calls.is_empty() || end.sealed.as_array().is_some_and(|s| !s.is_empty())
    {
        all.push(Decoded::Sealed(end.sealed));
    }
    all.extend(end.calls.into_iter().map(Step::Call).map(Decoded::Step));
    all.extend(end.usage.map(Step::Usage).map(Decoded::Step));
    all.push(Step::Stop(end.stop).into());
    all
}

/// A text, unless it is empty.
pub(super) fn said(text: Option<String>) -> Option<Decoded> {
    let text = text.filter(|text| !text.is_empty());
    text.map(Step::Text).map(Decoded::Step)
}

/// A thought, unless it is empty.
pub(super) fn thought(text: Option<String>) -> Option<Decoded> {
    let text = text.filter(|text| !text.is_empty());
    text.map(Step::Thought).map(Decoded::Step)
}

/// A number of tokens somewhere in what was used.
pub(super) fn tokens(usage: &Value, pointer: &str) -> Option<u64> {
    usage.pointer(pointer).and_then(Value::as_u64)
}

impl Sealed {
    /// What was sealed, part by part.
    pub(super) fn list(&self) -> &[Value] {
        self.parts.as_array().map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What a decoder makes of these events, each with its name if it has one.
    pub(in super::super) fn read(
        decoder: &mut dyn Decoder,
        events: &[Value],
    ) -> Result<Vec<Decoded>, DecodeError> {
        let mut all = Vec::new();
        for event in events {
            let name = event.get("type").and_then(Value::as_str);
            let event = SseEvent {
                name: name.unwrap_or_default().to_owned(),
                data: event.to_string(),
            };
            all.extend(decoder.event(&event)?);
        }
        Ok(all)
    }

    #[test]
    fn an_event_has_no_more_parts_than_it_may() {
        #[derive(Debug, Deserialize)]
        struct Event {
            #[serde(default, deserialize_with = "parts")]
            parts: Vec<Value>,
        }
        let count = |data: String| {
            let event = SseEvent {
                name: String::new(),
                data,
            };
            parse(&event).map(|event: Event| event.parts.len())
        };
        let many = |n: usize| format!("{{\"parts\":[{}{{}}]}}", "{},".repeat(n - 1));
        assert_eq!(count(many(1)), Ok(1));
        assert_eq!(count(many(PARTS)), Ok(PARTS));
        assert!(
            matches!(count(many(PARTS + 1)), Err(DecodeError::Malformed(why, _)) if why.contains("at most 10000"))
        );
        assert_eq!(count("{\"parts\":null}".to_owned()), Ok(0));
        assert_eq!(count("{}".to_owned()), Ok(0));
    }

    #[test]
    fn each_format_has_its_address_and_its_way_to_show_a_key() {
        let base = Url::parse("http://a.test/v1/?api-version=2").unwrap();
        let key = Secret::new("sk-1");
        for (format, url, header, value) in [
            (
                WireFormat::AnthropicMessages,
                "http://a.test/v1/messages?api-version=2",
                "x-api-key",
                "sk-1",
            ),
            (
                WireFormat::OpenAiChat,
                "http://a.test/v1/chat/completions?api-version=2",
                "authorization",
                "Bearer sk-1",
            ),
            (
                WireFormat::OpenAiResponses,
                "http://a.test/v1/responses?api-version=2",
                "authorization",
                "Bearer sk-1",
            ),
            (
                WireFormat::Gemini,
                "http://a.test/v1/models/m:streamGenerateContent?api-version=2&alt=sse",
                "x-goog-api-key",
                "sk-1",
            ),
        ] {
            assert_eq!(format.url(&base, "m").as_str(), url);
            let headers = format.headers(Some(&key)).unwrap();
            assert_eq!(headers[header], value);
            assert!(!format!("{headers:?}").contains("sk-1"), "{headers:?}");
            assert!(!format.headers(None).unwrap().contains_key(header));
        }
    }
}
