//! The wire format of Gemini's `generateContent` API: `POST /v1beta/models/NAME:streamGenerateContent`.

use acp::v1::StopReason;
use serde::Deserialize;
use serde_json::{Value, json};

use super::calls::CallAssembler;
use super::convert::{AssistantTurn, CallResult, ProviderTurn, join_texts};
use super::decode::{
    DecodeError, DecodedPart, EventDecoder, StreamEnd, deserialize_parts, finish_stream,
    parse_event, text_part, thought_part, token_count,
};
use super::prompt::PromptPart;
use super::request::ModelRequest;
use crate::model::step::TokenUsage;
use crate::model::thought::ThoughtLevel;
use crate::sse::SseEvent;

/// Sent in place of a signature for calls that another model made.
const PLACEHOLDER_SIGNATURE: &str = "skip_thought_signature_validator";

/// Returns the body of a request to this API.
pub(super) fn request_body(request: &ModelRequest<'_>) -> Value {
    let third = request.model.contains("gemini-3");
    let contents: Vec<Value> = request
        .turns
        .iter()
        .map(|turn| to_content(turn, third))
        .collect();
    let mut body = json!({ "contents": contents });
    if !request.instructions.trim().is_empty() {
        body["systemInstruction"] = json!({"parts": [{"text": request.instructions}]});
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "parametersJsonSchema": tool.parameters,
            })
        });
        body["tools"] = json!([{"functionDeclarations": tools.collect::<Value>()}]);
    }
    let mut config = json!({});
    if let Some(most) = request.max_output {
        config["maxOutputTokens"] = json!(most);
    }
    if let Some(thinking) = thinking_config(request.model, request.thought) {
        config["thinkingConfig"] = thinking;
    }
    body["generationConfig"] = config;
    body
}

/// Returns the thinking config for a model that can think: its level or budget, and a request to send its thoughts.
fn thinking_config(model: &str, level: Option<ThoughtLevel>) -> Option<Value> {
    let without = ["gemini-1", "gemini-2.0", "gemma"];
    let thinks = !without.iter().any(|old| model.starts_with(old));
    let mut config = json!({});
    if thinks {
        config["includeThoughts"] = json!(true);
    }
    let by_level = ["gemini-3", "gemma-4"]
        .iter()
        .any(|new| model.contains(new));
    match level {
        None => {}
        Some(level) if by_level => {
            let level = match level {
                // These models cannot turn thinking off.
                ThoughtLevel::Off => None,
                ThoughtLevel::Low => Some("LOW"),
                ThoughtLevel::Medium => Some("MEDIUM"),
                ThoughtLevel::High | ThoughtLevel::Max => Some("HIGH"),
            };
            if let Some(level) = level {
                config["thinkingLevel"] = json!(level);
            }
        }
        Some(level) => {
            config["thinkingBudget"] = json!(match level {
                ThoughtLevel::Off => 0,
                ThoughtLevel::Low => 1000,
                ThoughtLevel::Medium => 8000,
                ThoughtLevel::High | ThoughtLevel::Max => 24_000,
            });
        }
    }
    config
        .as_object()
        .is_some_and(|config| !config.is_empty())
        .then_some(config)
}

fn to_content(turn: &ProviderTurn<'_>, third: bool) -> Value {
    match turn {
        ProviderTurn::User(parts) => json!({"role": "user", "parts": prompt_content(parts)}),
        ProviderTurn::Assistant(said) => {
            json!({"role": "model", "parts": assistant_content(said, third)})
        }
        ProviderTurn::Results(results) => {
            json!({"role": "user", "parts": results.iter().map(to_result).collect::<Value>()})
        }
    }
}

fn prompt_content(parts: &[PromptPart<'_>]) -> Value {
    if let Some(text) = join_texts(parts) {
        return json!([{ "text": text }]);
    }
    let parts = parts.iter().map(|part| match part {
        PromptPart::Text(text) => json!({ "text": text }),
        PromptPart::Image { mime_type, data } => {
            json!({"inline_data": {"mime_type": mime_type, "data": data}})
        }
    });
    parts.collect()
}

/// Returns the content of one round of the model. Each part contains its signature.
fn assistant_content(said: &AssistantTurn<'_>, third: bool) -> Value {
    let signature = |call: Option<usize>| {
        let mut sealed = said.opaque_parts.iter();
        let call = call.map(|call| json!(call));
        sealed
            .find(|part| part.get("call") == call.as_ref())
            .and_then(|part| part.get("signature"))
    };
    let text = said.text.map(|text| {
        let mut part = json!({ "text": text });
        if let Some(signature) = signature(None) {
            part["thoughtSignature"] = signature.clone();
        }
        part
    });
    let calls = said.calls.iter().enumerate().map(|(n, call)| {
        let mut part = json!({"functionCall": {"name": call.tool, "args": call.arguments}});
        if let Some(id) = provider_id(&call.id) {
            part["functionCall"]["id"] = json!(id);
        }
        if let Some(signature) = signature(Some(n)) {
            part["thoughtSignature"] = signature.clone();
        } else if third && n == 0 {
            // Gemini 3 rejects a first call without a signature.
            part["thoughtSignature"] = json!(PLACEHOLDER_SIGNATURE);
        }
        part
    });
    text.into_iter().chain(calls).collect()
}

fn to_result(result: &CallResult<'_>) -> Value {
    let response = json!({"name": result.tool, "content": result.text});
    let mut part = json!({"functionResponse": {"name": result.tool, "response": response}});
    if let Some(id) = provider_id(&result.id) {
        part["functionResponse"]["id"] = json!(id);
    }
    part
}

/// Returns the provider's id for a call, or `None` if the id was generated here. Calls without an id are matched by
/// order.
fn provider_id(id: &str) -> Option<&str> {
    Some(id).filter(|id| !id.starts_with("call#"))
}

/// A decoder for responses from this API.
pub(super) struct GeminiDecoder {
    calls: CallAssembler,
    /// The parts that contain signatures of calls, as they must be sent back.
    signed_parts: Vec<Value>,
    /// The last signature of a part that is not a call.
    signature: Option<String>,
    has_thought: bool,
    usage: Option<TokenUsage>,
}

#[derive(Deserialize)]
struct GeminiEvent {
    error: Option<Value>,
    #[serde(default, deserialize_with = "deserialize_parts")]
    candidates: Vec<GeminiCandidate>,
    #[serde(rename = "promptFeedback")]
    feedback: Option<PromptFeedback>,
    #[serde(rename = "usageMetadata")]
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct PromptFeedback {
    #[serde(rename = "blockReason")]
    block: Option<String>,
}

#[derive(Deserialize)]
struct GeminiCandidate {
    content: Option<GeminiContent>,
    #[serde(rename = "finishReason")]
    finish: Option<String>,
}

#[derive(Deserialize)]
struct GeminiContent {
    #[serde(default, deserialize_with = "deserialize_parts")]
    parts: Vec<GeminiPart>,
}

#[derive(Deserialize)]
struct GeminiPart {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    #[serde(rename = "thoughtSignature")]
    signature: Option<String>,
    #[serde(rename = "functionCall")]
    call: Option<FunctionCall>,
}

#[derive(Deserialize)]
struct FunctionCall {
    id: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    args: Value,
}

impl GeminiDecoder {
    pub(super) fn new(before: usize) -> Self {
        Self {
            calls: CallAssembler::new(before),
            signed_parts: Vec::new(),
            signature: None,
            has_thought: false,
            usage: None,
        }
    }

    fn add_part(&mut self, piece: GeminiPart, decoded: &mut Vec<DecodedPart>) {
        if let Some(signature) = &piece.signature {
            decoded.push(DecodedPart::BufferedBytes(signature.len()));
        }
        if let Some(call) = piece.call {
            if let Some(signature) = piece.signature {
                let n = self.calls.len();
                self.signed_parts
                    .push(json!({"call": n, "signature": signature}));
            }
            let id = call.id.filter(|id| !id.is_empty());
            let id = id.unwrap_or_else(|| self.calls.generate_id(&call.name));
            decoded.extend(self.calls.push_complete(id, call.name, call.args));
            return;
        }
        self.signature = piece.signature.or(self.signature.take());
        if piece.thought {
            self.has_thought = true;
            decoded.extend(thought_part(piece.text));
        } else {
            decoded.extend(text_part(piece.text));
        }
    }

    fn finish(&mut self, stop: StopReason) -> Vec<DecodedPart> {
        let last = self.signature.take();
        let text = last.map(|signature| json!({ "signature": signature }));
        finish_stream(StreamEnd {
            has_thought: self.has_thought,
            opaque_parts: self.signed_parts.drain(..).chain(text).collect(),
            calls: self.calls.finish(),
            usage: self.usage,
            stop,
        })
    }
}

/// Reads the token usage. Gemini does not count thoughts as output, so they are added here.
fn token_usage(usage: &Value) -> TokenUsage {
    let count = |name: &str| token_count(usage, name).unwrap_or(0);
    let thought = count("/thoughtsTokenCount");
    let prompt = count("/promptTokenCount");
    TokenUsage {
        input: prompt.saturating_add(count("/toolUsePromptTokenCount")),
        output: count("/candidatesTokenCount").saturating_add(thought),
        thought,
        cache_read: count("/cachedContentTokenCount"),
        cache_write: 0,
    }
}

impl EventDecoder for GeminiDecoder {
    fn decode(&mut self, event: &SseEvent) -> Result<Vec<DecodedPart>, DecodeError> {
        let read: GeminiEvent = parse_event(event)?;
        if let Some(error) = read.error {
            return Err(DecodeError::Reported(error));
        }
        if let Some(usage) = read.usage {
            self.usage = Some(token_usage(&usage));
        }
        // The prompt was blocked, so there is no response.
        if read
            .feedback
            .is_some_and(|feedback| feedback.block.is_some())
        {
            return Ok(self.finish(StopReason::Refusal));
        }
        let mut decoded = Vec::new();
        let Some(candidate) = read.candidates.into_iter().next() else {
            return Ok(decoded);
        };
        for piece in candidate
            .content
            .into_iter()
            .flat_map(|content| content.parts)
        {
            self.add_part(piece, &mut decoded);
        }
        let Some(reason) = candidate.finish else {
            return Ok(decoded);
        };
        let stop = match reason.as_str() {
            "MAX_TOKENS" => StopReason::MaxTokens,
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => StopReason::Refusal,
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
                return Err(DecodeError::UnexpectedEnd(reason));
            }
            // New finish reasons may be added. In any case, the model has responded.
            _ => StopReason::EndTurn,
        };
        decoded.extend(self.finish(stop));
        Ok(decoded)
    }
}

#[cfg(test)]
mod tests {
    use super::super::convert::PriorCall;
    use super::*;
    use crate::model::message::ToolRequest;
    use crate::model::provider::decode::tests::decode_events;
    use crate::model::step::Step;

    fn candidate_event(parts: Value) -> Value {
        json!({"candidates": [{"content": {"role": "model", "parts": parts}}]})
    }

    #[test]
    fn parts_become_steps_and_signatures_stay_with_their_parts() {
        let decoded = decode_events(
            &mut GeminiDecoder::new(3),
            &[
                candidate_event(json!([{"text": "Hm", "thought": true}])),
                candidate_event(json!([{"text": "Yes", "thoughtSignature": "of the text"}])),
                candidate_event(json!([
                    {"functionCall": {"name": "read", "args": {"n": 1}}, "thoughtSignature": "of the call"},
                    {"functionCall": {"id": "mine", "name": "list"}}])),
                json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 10,
                    "cachedContentTokenCount": 4, "candidatesTokenCount": 5, "thoughtsTokenCount": 2}}),
            ],
        );
        let decoded: Vec<DecodedPart> = decoded
            .unwrap()
            .into_iter()
            .filter(|decoded| !matches!(decoded, DecodedPart::BufferedBytes(_)))
            .collect();
        let begins = |call, tool: &str| Step::CallStarted {
            call,
            tool: tool.to_owned(),
        };
        let arguments = "{\"n\":1}".to_owned();
        let usage = TokenUsage {
            input: 10,
            output: 7,
            thought: 2,
            cache_read: 4,
            ..TokenUsage::default()
        };
        let expected: Vec<DecodedPart> = vec![
            Step::Thought("Hm".to_owned()).into(),
            Step::Text("Yes".to_owned()).into(),
            begins(0, "read").into(),
            Step::CallDelta { call: 0, arguments }.into(),
            begins(1, "list").into(),
            DecodedPart::OpaquePart(json!([
                {"call": 0, "signature": "of the call"}, {"signature": "of the text"}])),
            Step::Call(ToolRequest::new("call#read#3", "read", json!({"n": 1}))).into(),
            Step::Call(ToolRequest::new("mine", "list", json!({}))).into(),
            Step::Usage(usage).into(),
            Step::Stop(StopReason::EndTurn).into(),
        ];
        assert_eq!(decoded, expected);
    }

    #[test]
    fn finish_reasons_are_mapped_to_stop_reasons() {
        let ends = |event: Value| decode_events(&mut GeminiDecoder::new(0), &[event]);
        let stop = |reason| ends(json!({"candidates": [{"finishReason": reason}]}));
        let only = |stop| Ok(vec![DecodedPart::Step(Step::Stop(stop))]);
        assert_eq!(stop("MAX_TOKENS"), only(StopReason::MaxTokens));
        assert_eq!(stop("SAFETY"), only(StopReason::Refusal));
        assert_eq!(stop("OTHER"), only(StopReason::EndTurn));
        let malformed = "MALFORMED_FUNCTION_CALL";
        assert_eq!(
            stop(malformed),
            Err(DecodeError::UnexpectedEnd(malformed.to_owned()))
        );
        let blocked = json!({"promptFeedback": {"blockReason": "OTHER"}});
        assert_eq!(ends(blocked), only(StopReason::Refusal));
        let error = json!({"code": 503});
        assert_eq!(
            ends(json!({ "error": error })),
            Err(DecodeError::Reported(error))
        );
        // This event counts tokens before the model has responded.
        assert_eq!(ends(json!({"usageMetadata": {}})), Ok(vec![]));
    }

    #[test]
    fn signed_parts_are_sent_back_with_their_signatures() {
        let sealed = [
            json!({"call": 1, "signature": "of the call"}),
            json!({"signature": "of the text"}),
        ];
        let arguments = json!({});
        let call = |id: &str| PriorCall {
            id: id.to_owned(),
            tool: "read",
            arguments: std::borrow::Cow::Borrowed(&arguments),
        };
        let mut said = AssistantTurn {
            text: Some("Yes"),
            thought: None,
            calls: vec![call("call#read#0"), call("mine")],
            opaque_parts: &sealed,
            is_current_turn: true,
        };
        let parts = assistant_content(&said, false);
        assert_eq!(parts[0]["thoughtSignature"], "of the text");
        assert_eq!(
            parts[1],
            json!({"functionCall": {"name": "read", "args": {}}})
        );
        assert_eq!(parts[2]["thoughtSignature"], "of the call");
        assert_eq!(parts[2]["functionCall"]["id"], "mine");
        said.opaque_parts = &[];
        let parts = assistant_content(&said, true);
        assert_eq!(parts[1]["thoughtSignature"], PLACEHOLDER_SIGNATURE);
        assert_eq!(parts[2].get("thoughtSignature"), None);
    }

    #[test]
    fn thinking_config_depends_on_the_model_generation() {
        let told = |name, level| thinking_config(name, level).unwrap_or_default();
        let thoughts = json!({"includeThoughts": true});
        assert_eq!(told("gemini-2.5-pro", None), thoughts);
        let high = Some(ThoughtLevel::High);
        assert_eq!(told("gemini-2.5-pro", high)["thinkingBudget"], 24_000);
        assert_eq!(
            told("gemini-3.1-pro-preview", high)["thinkingLevel"],
            "HIGH"
        );
        assert_eq!(told("gemini-3-flash", Some(ThoughtLevel::Off)), thoughts);
        assert_eq!(told("gemini-2.0-flash", None), Value::Null);
    }
}
