//! Selects the request writer and the response decoder for a wire format.

use serde_json::Value;

use super::decode::EventDecoder;
use super::request::ModelRequest;
use super::wire_format::WireFormat;
use super::{anthropic_messages, gemini, openai_chat, openai_responses};

impl WireFormat {
    /// Returns the body of a request in this wire format.
    pub(super) fn request_body(self, request: &ModelRequest<'_>) -> Value {
        match self {
            Self::AnthropicMessages => anthropic_messages::request_body(request),
            Self::OpenAiChat => openai_chat::request_body(request),
            Self::OpenAiResponses => openai_responses::request_body(request),
            Self::Gemini => gemini::request_body(request),
        }
    }

    /// Creates a decoder for responses in this wire format. `before` is the number of tool calls in the conversation so
    /// far.
    pub(super) fn decoder(self, before: usize) -> Box<dyn EventDecoder> {
        match self {
            Self::AnthropicMessages => Box::new(anthropic_messages::AnthropicDecoder::new(before)),
            Self::OpenAiChat => Box::new(openai_chat::ChatDecoder::new(before)),
            Self::OpenAiResponses => Box::new(openai_responses::ResponsesDecoder::new(before)),
            Self::Gemini => Box::new(gemini::GeminiDecoder::new(before)),
        }
    }
}
