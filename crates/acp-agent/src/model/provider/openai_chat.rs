//! The wire format of OpenAI's Chat Completions API, `POST /v1/chat/completions`, including the deviations of
//! compatible servers: Ollama, vLLM, LM Studio, llama.cpp, OpenRouter, DeepSeek and Mistral.

use acp::v1::StopReason;
use serde::Deserialize;
use serde_json::{Value, json};

use super::calls::CallAssembler;
use super::convert::{AssistantTurn, ProviderTurn, join_texts};
use super::decode::{
    DecodeError, DecodedPart, EventDecoder, StreamEnd, deserialize_parts, finish_stream,
    parse_event, text_part, thought_part, token_count,
};
use super::prompt::PromptPart;
use super::request::ModelRequest;
use crate::model::step::TokenUsage;
use crate::model::thought::ThoughtLevel;
use crate::sse::SseEvent;

/// Returns the body of a request to this API.
pub(super) fn request_body(request: &ModelRequest<'_>) -> Value {
    let mut messages = Vec::with_capacity(request.turns.len() + 1);
    if !request.instructions.trim().is_empty() {
        messages.push(json!({"role": "system", "content": request.instructions}));
    }
    for turn in &request.turns {
        add_turn(&mut messages, turn);
    }
    let mut body = json!({
        "model": request.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let function = json!({
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": false,
            });
            json!({"type": "function", "function": function})
        });
        body["tools"] = tools.collect();
    }
    if let Some(level) = request.thought {
        body["reasoning_effort"] = json!(reasoning_effort(level));
    }
    if let Some(most) = request.max_output {
        // OpenAI's reasoning models reject the older name, and many compatible servers do not know the newer one.
        let name = match is_reasoning_model(request.model) {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        body[name] = json!(most);
    }
    body
}

/// Returns `true` if this is the name of one of OpenAI's reasoning models.
pub(super) fn is_reasoning_model(name: &str) -> bool {
    let version = |prefix: &str| {
        let rest = name.strip_prefix(prefix)?;
        rest.chars().next()?.to_digit(10)
    };
    let thinks = version("gpt-").is_some_and(|major| major >= 5) || version("o").is_some();
    thinks && !name.contains("-chat")
}

/// Returns OpenAI's name for a thought level.
pub(super) fn reasoning_effort(level: ThoughtLevel) -> &'static str {
    match level {
        ThoughtLevel::Off => "none",
        ThoughtLevel::Low => "low",
        ThoughtLevel::Medium => "medium",
        ThoughtLevel::High => "high",
        ThoughtLevel::Max => "xhigh",
    }
}

fn add_turn(messages: &mut Vec<Value>, turn: &ProviderTurn<'_>) {
    match turn {
        ProviderTurn::User(parts) => {
            // Send a single string if possible, because the templates of some local models do not accept a list.
            let content = match join_texts(parts) {
                Some(text) => json!(text),
                None => parts.iter().map(to_part).collect(),
            };
            messages.push(json!({"role": "user", "content": content}));
        }
        ProviderTurn::Assistant(said) => messages.push(assistant_message(said)),
        ProviderTurn::Results(results) => messages.extend(results.iter().map(
            |result| json!({"role": "tool", "tool_call_id": result.id, "content": result.text}),
        )),
    }
}

fn to_part(part: &PromptPart<'_>) -> Value {
    match part {
        PromptPart::Text(text) => json!({"type": "text", "text": text}),
        PromptPart::Image { mime_type, data } => {
            let url = format!("data:{mime_type};base64,{data}");
            json!({"type": "image_url", "image_url": {"url": url}})
        }
    }
}

fn assistant_message(said: &AssistantTurn<'_>) -> Value {
    let mut message = json!({"role": "assistant", "content": said.text.unwrap_or_default()});
    if !said.calls.is_empty() {
        let calls = said.calls.iter().map(|call| {
            let function = json!({"name": call.tool, "arguments": call.arguments.to_string()});
            json!({"type": "function", "id": call.id, "function": function})
        });
        message["tool_calls"] = calls.collect();
    }
    // Some APIs with reasoning models require the thoughts, such as Kimi's and DeepSeek's.
    if let Some(thought) = said.thought {
        message["reasoning_content"] = json!(thought);
    }
    message
}

/// A decoder for responses from this API.
pub(super) struct ChatDecoder {
    calls: CallAssembler,
    has_thought: bool,
    has_refusal: bool,
    usage: Option<TokenUsage>,
    stop: Option<String>,
}

#[derive(Deserialize)]
struct ChatChunk {
    error: Option<Value>,
    #[serde(default, deserialize_with = "deserialize_parts")]
    choices: Vec<ChatChoice>,
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct ChatChoice {
    delta: Option<ChatDelta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChatDelta {
    content: Option<ChatContent>,
    /// The text of a refusal, which has a key of its own.
    refusal: Option<String>,
    /// The thoughts, in responses of DeepSeek, vLLM and llama.cpp.
    reasoning_content: Option<String>,
    /// The thoughts, in responses of Ollama and OpenRouter.
    reasoning: Option<String>,
    #[serde(default, deserialize_with = "deserialize_parts")]
    tool_calls: Vec<ChatToolCallDelta>,
}

/// The content of a message: a string or, from Mistral's reasoning models, a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum ChatContent {
    Text(String),
    Parts(Vec<ChatContentPart>),
}

#[derive(Deserialize)]
struct ChatContentPart {
    text: Option<String>,
    thinking: Option<ChatThinking>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ChatThinking {
    Text(String),
    Parts(Vec<ChatContentPart>),
}

/// A piece of a tool call.
#[derive(Deserialize)]
struct ChatToolCallDelta {
    #[serde(default)]
    index: u64,
    id: Option<String>,
    function: Option<ChatFunction>,
}

#[derive(Deserialize)]
struct ChatFunction {
    name: Option<String>,
    /// The arguments as a string. Some servers send an object instead.
    arguments: Option<Value>,
}

impl ChatDecoder {
    pub(super) fn new(before: usize) -> Self {
        Self {
            calls: CallAssembler::new(before),
            has_thought: false,
            has_refusal: false,
            usage: None,
            stop: None,
        }
    }

    fn add_delta(&mut self, delta: ChatDelta, decoded: &mut Vec<DecodedPart>) {
        let mut think = |text| {
            let before = decoded.len();
            decoded.extend(thought_part(text));
            self.has_thought |= decoded.len() > before;
        };
        think(delta.reasoning_content.or(delta.reasoning));
        match delta.content {
            Some(ChatContent::Text(text)) => decoded.extend(text_part(Some(text))),
            Some(ChatContent::Parts(parts)) => {
                for part in parts {
                    self.has_thought |= part.thinking.is_some();
                    match part.thinking {
                        Some(ChatThinking::Text(text)) => decoded.extend(thought_part(Some(text))),
                        Some(ChatThinking::Parts(parts)) => {
                            decoded.extend(
                                parts.into_iter().filter_map(|part| thought_part(part.text)),
                            );
                        }
                        None => decoded.extend(text_part(part.text)),
                    }
                }
            }
            None => {}
        }
        if let Some(refusal) = delta.refusal {
            self.has_refusal = true;
            decoded.extend(text_part(Some(refusal)));
        }
        for piece in delta.tool_calls {
            self.add_call_delta(piece, decoded);
        }
    }

    fn add_call_delta(&mut self, piece: ChatToolCallDelta, decoded: &mut Vec<DecodedPart>) {
        let Some(ChatFunction { name, arguments }) = piece.function else {
            return;
        };
        let id = piece.id.unwrap_or_else(|| format!("call_{}", piece.index));
        let tool = name.unwrap_or_default();
        let call = match self.calls.continued_call(&id, &tool) {
            Some(call) => call,
            None => {
                decoded.extend(self.calls.begin_call(id, tool));
                self.calls.len().saturating_sub(1)
            }
        };
        let written = match arguments {
            None | Some(Value::Null) => return,
            Some(Value::String(written)) => written,
            Some(whole) => whole.to_string(),
        };
        decoded.extend(self.calls.append_arguments(call, &written));
    }

    fn finish(&mut self) -> Result<Vec<DecodedPart>, DecodeError> {
        let stop = match self.stop.take().as_deref() {
            _ if self.has_refusal => StopReason::Refusal,
            Some("content_filter" | "refusal") => StopReason::Refusal,
            Some("length" | "max_tokens" | "model_length") => StopReason::MaxTokens,
            Some("error") => return Err(DecodeError::UnexpectedEnd("error".to_owned())),
            // New finish reasons may be added. In any case, the model has responded.
            _ => StopReason::EndTurn,
        };
        Ok(finish_stream(StreamEnd {
            has_thought: self.has_thought,
            opaque_parts: Value::Null,
            calls: self.calls.finish(),
            usage: self.usage,
            stop,
        }))
    }
}

/// Reads the token usage. Returns `None` if it contains no counts.
fn token_usage(usage: &Value) -> Option<TokenUsage> {
    let count = |name: &str| token_count(usage, name);
    let (input, output) = (count("/prompt_tokens"), count("/completion_tokens"));
    input.or(output)?;
    let thought = count("/completion_tokens_details/reasoning_tokens").unwrap_or(0);
    Some(TokenUsage {
        input: input.unwrap_or(0),
        output: output.unwrap_or(0).max(thought),
        thought,
        cache_read: count("/prompt_tokens_details/cached_tokens").unwrap_or(0),
        cache_write: 0,
    })
}

impl EventDecoder for ChatDecoder {
    fn decode(&mut self, event: &SseEvent) -> Result<Vec<DecodedPart>, DecodeError> {
        if event.data.trim() == "[DONE]" {
            return self.finish();
        }
        let chunk: ChatChunk = parse_event(event)?;
        if let Some(error) = chunk.error {
            return Err(DecodeError::Reported(error));
        }
        // Some servers report the usage with each chunk, most of them after the last one.
        self.usage = chunk.usage.as_ref().and_then(token_usage).or(self.usage);
        let mut decoded = Vec::new();
        let Some(choice) = chunk.choices.into_iter().next() else {
            return Ok(decoded);
        };
        if let Some(delta) = choice.delta {
            self.add_delta(delta, &mut decoded);
        }
        self.stop = choice.finish_reason.or(self.stop.take());
        Ok(decoded)
    }

    /// Treats a stream that ends after a finish reason as complete, because not all servers send `[DONE]`.
    fn end_of_stream(&mut self) -> Option<Vec<DecodedPart>> {
        let whole = self.has_refusal || self.stop.as_ref().is_some_and(|stop| stop != "error");
        whole.then(|| self.finish().ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::ToolRequest;
    use crate::model::provider::decode::tests::decode_events;
    use crate::model::step::Step;

    fn delta_event(delta: Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}], "usage": null})
    }

    fn finish_event(reason: &str) -> Value {
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    }

    fn finish_decoder(answer: &mut ChatDecoder) -> Vec<DecodedPart> {
        let event = SseEvent {
            name: String::new(),
            data: "[DONE]".to_owned(),
        };
        answer.decode(&event).unwrap()
    }

    #[test]
    fn chunks_become_steps() {
        let mut answer = ChatDecoder::new(0);
        let mut decoded = decode_events(
            &mut answer,
            &[
                delta_event(json!({"role": "assistant", "content": "", "refusal": null})),
                delta_event(json!({"reasoning": "Hm"})),
                delta_event(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "."}]}]})),
                delta_event(json!({"content": "Yes"})),
                delta_event(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{"}}]})),
                delta_event(json!({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}, {"index": 1, "id": "b",
                    "function": {"name": "list", "arguments": {"n": 1}}}]})),
                finish_event("tool_calls"),
                json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5,
                    "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2}}}),
            ],
        )
        .unwrap();
        decoded.extend(finish_decoder(&mut answer));
        decoded.retain(|decoded| !matches!(decoded, DecodedPart::BufferedBytes(_)));
        let begins = |call, tool: &str| Step::CallStarted {
            call,
            tool: tool.to_owned(),
        };
        let writes = |call, arguments: &str| Step::CallDelta {
            call,
            arguments: arguments.to_owned(),
        };
        let usage = TokenUsage {
            input: 10,
            output: 5,
            thought: 2,
            cache_read: 4,
            ..TokenUsage::default()
        };
        let expected: Vec<DecodedPart> = vec![
            Step::Thought("Hm".to_owned()).into(),
            Step::Thought(".".to_owned()).into(),
            Step::Text("Yes".to_owned()).into(),
            begins(0, "read").into(),
            writes(0, "{").into(),
            writes(0, "}").into(),
            begins(1, "list").into(),
            writes(1, "{\"n\":1}").into(),
            DecodedPart::OpaquePart(Value::Null),
            Step::Call(ToolRequest::new("a", "read", json!({}))).into(),
            Step::Call(ToolRequest::new("b", "list", json!({"n": 1}))).into(),
            Step::Usage(usage).into(),
            Step::Stop(StopReason::EndTurn).into(),
        ];
        assert_eq!(decoded, expected);
    }

    #[test]
    fn stream_is_complete_only_with_a_finish_reason() {
        let mut answer = ChatDecoder::new(0);
        assert_eq!(answer.end_of_stream(), None);
        decode_events(&mut answer, &[finish_event("length")]).unwrap();
        let stop = DecodedPart::Step(Step::Stop(StopReason::MaxTokens));
        assert_eq!(answer.end_of_stream(), Some(vec![stop]));
        let mut answer = ChatDecoder::new(0);
        decode_events(&mut answer, &[finish_event("error")]).unwrap();
        assert_eq!(answer.end_of_stream(), None);
        let error = json!({"message": "busy"});
        let fault = decode_events(&mut answer, &[json!({ "error": error })]);
        assert_eq!(fault, Err(DecodeError::Reported(error)));
    }

    #[test]
    fn reasoning_models_are_recognized_by_name() {
        for name in ["gpt-5", "gpt-5.4-mini", "gpt-6", "o3", "o4-mini"] {
            assert!(is_reasoning_model(name), "{name}");
        }
        for name in [
            "gpt-4.1",
            "gpt-4o",
            "gpt-5-chat-latest",
            "gpt-oss:20b",
            "qwen3",
            "olmo",
        ] {
            assert!(!is_reasoning_model(name), "{name}");
        }
    }
}
