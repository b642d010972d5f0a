//! The wire format of Anthropic's Messages API: `POST /v1/messages`.

use acp::v1::StopReason;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::calls::CallAssembler;
use super::convert::{AssistantTurn, CallResult, ProviderTurn, join_texts};
use super::decode::{
    DecodeError, DecodedPart, EventDecoder, StreamEnd, finish_stream, malformed_error, parse_event,
    text_part, thought_part, token_count,
};
use super::prompt::PromptPart;
use super::request::ModelRequest;
use crate::model::step::TokenUsage;
use crate::model::thought::ThoughtLevel;
use crate::sse::SseEvent;

/// The default limit on the tokens of a response, which this API requires. It is lower than the model's own maximum,
/// because the provider counts the whole limit as used in advance. Near the end of the context window, it would reject
/// requests that fit.
const DEFAULT_MAX_TOKENS: u32 = 32_000;

/// The minimum thinking budget that the API accepts, in tokens.
const MIN_THINKING_BUDGET: u32 = 1024;

/// Returns the body of a request to this API.
pub(super) fn request_body(request: &ModelRequest<'_>) -> Value {
    let most = request.max_output.unwrap_or(DEFAULT_MAX_TOKENS);
    let mut messages: Vec<Value> = request.turns.iter().map(to_message).collect();
    add_cache_control(messages.last_mut());
    let mut body = json!({
        "model": request.model,
        "max_tokens": most,
        "stream": true,
        "messages": messages,
    });
    if !request.instructions.trim().is_empty() {
        body["system"] = json!(request.instructions);
    }
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.parameters,
            })
        })
        .collect();
    if let Some(tool) = tools.last_mut() {
        tool["cache_control"] = cache_control();
        body["tools"] = Value::Array(tools);
    }
    // With thinking on, the API rejects calls without the thoughts that led to them.
    if let Some(level) = request.thought.filter(|_| !request.lacks_thoughts) {
        set_thinking(
            &mut body,
            ClaudeGeneration::from_model_name(request.model),
            level,
            most,
        );
    }
    body
}

/// Returns a marker that tells the provider to cache everything before it. Reading from the cache costs a tenth of the
/// usual price.
fn cache_control() -> Value {
    json!({"type": "ephemeral"})
}

/// Marks the conversation up to this message for caching.
fn add_cache_control(message: Option<&mut Value>) {
    let Some(content) = message.and_then(|message| message.get_mut("content")) else {
        return;
    };
    if let Value::String(text) = content {
        *content = json!([{"type": "text", "text": std::mem::take(text)}]);
    }
    let last = content.as_array_mut().and_then(|blocks| blocks.last_mut());
    if let Some(block) = last {
        block["cache_control"] = cache_control();
    }
}

fn to_message(turn: &ProviderTurn<'_>) -> Value {
    match turn {
        ProviderTurn::User(parts) => match join_texts(parts) {
            Some(text) => json!({"role": "user", "content": text}),
            None => {
                json!({"role": "user", "content": parts.iter().map(to_part).collect::<Value>()})
            }
        },
        ProviderTurn::Assistant(said) => {
            json!({"role": "assistant", "content": assistant_blocks(said)})
        }
        ProviderTurn::Results(results) => {
            json!({"role": "user", "content": results.iter().map(to_result).collect::<Value>()})
        }
    }
}

fn to_part(part: &PromptPart<'_>) -> Value {
    match part {
        PromptPart::Text(text) => json!({"type": "text", "text": text}),
        PromptPart::Image { mime_type, data } => {
            let source = json!({"type": "base64", "media_type": mime_type, "data": data});
            json!({"type": "image", "source": source})
        }
    }
}

fn to_result(result: &CallResult<'_>) -> Value {
    json!({"type": "tool_result", "tool_use_id": result.id, "content": result.text})
}

/// Returns the content of one model round. The thinking blocks come first and are not changed.
fn assistant_blocks(said: &AssistantTurn<'_>) -> Value {
    let text = said.text.map(|text| json!({"type": "text", "text": text}));
    let calls = said.calls.iter().map(|call| {
        json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments})
    });
    said.opaque_parts
        .iter()
        .cloned()
        .chain(text)
        .chain(calls)
        .collect()
}

/// The generation of a Claude model, parsed from its name: `claude-FAMILY-MAJOR-MINOR`, optionally followed by a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ClaudeGeneration(u32, u32);

impl ClaudeGeneration {
    /// The first generation that decides for itself how much to think, and takes an effort instead of a budget.
    const FIRST_ADAPTIVE: Self = Self(4, 6);

    /// The first generation that thinks by default.
    const FIRST_THINKING_BY_DEFAULT: Self = Self(5, 0);

    /// Returns the generation in a model's name. Returns `None` for older models and for those of other companies,
    /// whose names do not contain a generation.
    fn from_model_name(name: &str) -> Option<Self> {
        let (_, rest) = name.split_once("claude-")?;
        let mut words = rest.split('-');
        // Before generation 4, the numbers came before the family.
        words
            .next()
            .filter(|family| !family.starts_with(|c: char| c.is_ascii_digit()))?;
        // A date has eight digits.
        let mut number = || words.next().filter(|word| word.len() < 3)?.parse().ok();
        let major = number()?;
        Some(Self(major, number().unwrap_or(0)))
    }
}

/// Sets how much the model should think.
fn set_thinking(
    body: &mut Value,
    generation: Option<ClaudeGeneration>,
    level: ThoughtLevel,
    most: u32,
) {
    if level == ThoughtLevel::Off {
        if generation >= Some(ClaudeGeneration::FIRST_THINKING_BY_DEFAULT) {
            body["thinking"] = json!({"type": "disabled"});
        }
        return;
    }
    if generation >= Some(ClaudeGeneration::FIRST_ADAPTIVE) {
        // Without `display`, the newest models do not send their thoughts.
        body["thinking"] = json!({"type": "adaptive", "display": "summarized"});
        let effort = match level {
            ThoughtLevel::Off | ThoughtLevel::Low => "low",
            ThoughtLevel::Medium => "medium",
            ThoughtLevel::High => "high",
            ThoughtLevel::Max => "max",
        };
        body["output_config"] = json!({ "effort": effort });
        return;
    }
    let budget: u32 = match level {
        ThoughtLevel::Off | ThoughtLevel::Low => MIN_THINKING_BUDGET,
        ThoughtLevel::Medium => 8000,
        ThoughtLevel::High | ThoughtLevel::Max => 24_000,
    };
    // Thoughts count toward the limit, so leave at least one token for the response.
    let budget = budget.min(most.saturating_sub(1)).max(MIN_THINKING_BUDGET);
    body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
}

/// A decoder for responses from this API.
pub(super) struct AnthropicDecoder {
    calls: CallAssembler,
    /// The block that is being received. Blocks never overlap.
    block: AnthropicBlock,
    /// The thinking blocks, in the form in which later rounds must send them back.
    opaque_parts: Vec<Value>,
    has_thought: bool,
    usage: Option<TokenUsage>,
    stop: Option<String>,
}

enum AnthropicBlock {
    Text,
    Thinking {
        thought: String,
        signature: String,
    },
    Call(usize),
    /// A block of an unknown type.
    Other,
}

#[derive(Deserialize)]
struct AnthropicEvent {
    #[serde(rename = "type")]
    kind: Option<String>,
    message: Option<AnthropicMessage>,
    content_block: Option<Value>,
    delta: Option<AnthropicDelta>,
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct AnthropicMessage {
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct AnthropicDelta {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

impl AnthropicDecoder {
    pub(super) fn new(before: usize) -> Self {
        Self {
            calls: CallAssembler::new(before),
            block: AnthropicBlock::Other,
            opaque_parts: Vec::new(),
            has_thought: false,
            usage: None,
            stop: None,
        }
    }

    fn start_block(&mut self, mut block: Value) -> Option<Vec<DecodedPart>> {
        self.stop_block();
        let kind = block.get("type")?.as_str()?.to_owned();
        let mut take = |name: &str| match block.get_mut(name).map(Value::take) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        match kind.as_str() {
            "text" => {
                self.block = AnthropicBlock::Text;
                Some(text_part(take("text")).into_iter().collect())
            }
            "thinking" => {
                let (text, signature) = (take("thinking"), take("signature"));
                self.block = AnthropicBlock::Thinking {
                    thought: text.clone().unwrap_or_default(),
                    signature: signature.unwrap_or_default(),
                };
                self.has_thought = true;
                Some(thought_part(text).into_iter().collect())
            }
            "redacted_thinking" => {
                self.block = AnthropicBlock::Other;
                self.has_thought = true;
                let data = take("data")?;
                let size = data.len();
                self.opaque_parts
                    .push(json!({"type": "redacted_thinking", "data": data}));
                Some(vec![DecodedPart::BufferedBytes(size)])
            }
            "tool_use" => {
                let id = take("id").unwrap_or_default();
                let tool = take("name")?;
                self.block = AnthropicBlock::Call(self.calls.len());
                Some(self.calls.begin_call(id, tool))
            }
            _ => {
                self.block = AnthropicBlock::Other;
                Some(Vec::new())
            }
        }
    }

    fn add_delta(&mut self, delta: AnthropicDelta) -> Option<Vec<DecodedPart>> {
        Some(match &mut self.block {
            AnthropicBlock::Text => vec![text_part(Some(delta.text?))?],
            AnthropicBlock::Call(call) => {
                let call = *call;
                let more = self.calls.append_arguments(call, &delta.partial_json?);
                more.into_iter().collect()
            }
            AnthropicBlock::Thinking {
                thought: so_far,
                signature,
            } => {
                if let Some(more) = delta.signature {
                    signature.push_str(&more);
                    return Some(vec![DecodedPart::BufferedBytes(more.len())]);
                }
                so_far.push_str(delta.thinking.as_deref().unwrap_or_default());
                thought_part(delta.thinking).into_iter().collect()
            }
            AnthropicBlock::Other => Vec::new(),
        })
    }

    /// Ends a block. Discards thoughts without a signature, because the API would reject them.
    fn stop_block(&mut self) {
        if let AnthropicBlock::Thinking { thought, signature } =
            std::mem::replace(&mut self.block, AnthropicBlock::Other)
            && !signature.is_empty()
        {
            self.opaque_parts.push(json!({
                "type": "thinking",
                "thinking": thought,
                "signature": signature,
            }));
        }
    }

    /// Records token usage. It arrives in two parts, and the second part may be incomplete.
    fn add_usage(&mut self, usage: Option<Value>) {
        let Some(usage) = usage.filter(Value::is_object) else {
            return;
        };
        let used = self.usage.get_or_insert_default();
        let count = |name: &str| token_count(&usage, name);
        let read = count("/cache_read_input_tokens");
        let write = count("/cache_creation_input_tokens");
        if let Some(fresh) = count("/input_tokens") {
            // `input_tokens` does not include cache reads and writes.
            used.input = fresh
                .saturating_add(read.unwrap_or(0))
                .saturating_add(write.unwrap_or(0));
        }
        used.cache_read = read.filter(|read| *read > 0).unwrap_or(used.cache_read);
        used.cache_write = write.filter(|n| *n > 0).unwrap_or(used.cache_write);
        used.output = count("/output_tokens").unwrap_or(used.output);
        used.thought = count("/output_tokens_details/thinking_tokens").unwrap_or(used.thought);
    }

    fn finish(&mut self) -> Vec<DecodedPart> {
        self.stop_block();
        let stop = match self.stop.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::MaxTokens,
            Some("refusal") => StopReason::Refusal,
            // New stop reasons may be added. In any case, the model has responded.
            _ => StopReason::EndTurn,
        };
        finish_stream(StreamEnd {
            has_thought: self.has_thought,
            opaque_parts: Value::Array(std::mem::take(&mut self.opaque_parts)),
            calls: self.calls.finish(),
            usage: self.usage,
            stop,
        })
    }
}

impl EventDecoder for AnthropicDecoder {
    fn decode(&mut self, event: &SseEvent) -> Result<Vec<DecodedPart>, DecodeError> {
        if event.name == "error" {
            let reported = serde_json::from_str(&event.data);
            let text = |_| Value::String(event.data.clone());
            return Err(DecodeError::Reported(reported.unwrap_or_else(text)));
        }
        let read: AnthropicEvent = parse_event(event)?;
        let kind = read.kind.as_deref().unwrap_or(&event.name);
        let missing = |part: &str| malformed_error(event, &format!("{part} is missing"));
        match kind {
            "message_start" => self.add_usage(read.message.and_then(|message| message.usage)),
            "message_delta" => {
                self.add_usage(read.usage);
                let stop = read.delta.and_then(|delta| delta.stop_reason);
                self.stop = stop.or(self.stop.take());
            }
            "content_block_start" => {
                let block = read.content_block;
                let decoded = block.and_then(|block| self.start_block(block));
                return decoded.ok_or_else(|| missing("a required field of `content_block`"));
            }
            "content_block_delta" => {
                let delta = read.delta.ok_or_else(|| missing("`delta`"))?;
                return Ok(self.add_delta(delta).unwrap_or_default());
            }
            "content_block_stop" => self.stop_block(),
            "message_stop" => return Ok(self.finish()),
            // Some servers leave out the name of the event, and have its type only here.
            "error" => {
                let reported: Map<String, Value> = parse_event(event)?;
                return Err(DecodeError::Reported(Value::Object(reported)));
            }
            // `ping` and unknown events.
            _ => {}
        }
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::provider::decode::tests::decode_events;
    use crate::model::step::Step;

    #[test]
    fn blocks_become_steps_and_thinking_blocks_are_preserved() {
        let start = |block: Value| json!({"type": "content_block_start", "index": 0, "content_block": block});
        let delta =
            |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
        let stop = || json!({"type": "content_block_stop", "index": 0});
        let decoded = decode_events(
            &mut AnthropicDecoder::new(0),
            &[
                json!({"type": "message_start", "message": {"usage":
                    {"input_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 2, "output_tokens": 1}}}),
                start(json!({"type": "thinking", "thinking": "", "signature": ""})),
                delta(json!({"type": "thinking_delta", "thinking": "Hm"})),
                delta(json!({"type": "signature_delta", "signature": "si"})),
                delta(json!({"type": "signature_delta", "signature": "gned"})),
                stop(),
                start(json!({"type": "redacted_thinking", "data": "secret"})),
                stop(),
                json!({"type": "ping"}),
                start(json!({"type": "server_tool_use", "id": "x", "name": "y", "input": {}})),
                delta(json!({"type": "input_json_delta", "partial_json": "{}"})),
                stop(),
                start(json!({"type": "text", "text": ""})),
                delta(json!({"type": "text_delta", "text": "Yes"})),
                stop(),
                start(json!({"type": "tool_use", "id": "a", "name": "read", "input": {}})),
                delta(json!({"type": "input_json_delta", "partial_json": "{\"n\""})),
                delta(json!({"type": "input_json_delta", "partial_json": ":1}"})),
                stop(),
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
                json!({"type": "message_stop"}),
            ],
        );
        let steps: Vec<DecodedPart> = decoded
            .unwrap()
            .into_iter()
            .filter(|decoded| !matches!(decoded, DecodedPart::BufferedBytes(_)))
            .collect();
        let usage = TokenUsage {
            input: 14,
            output: 9,
            cache_read: 7,
            cache_write: 2,
            ..TokenUsage::default()
        };
        let (call, tool) = (0, "read".to_owned());
        let writes = |arguments: &str| Step::CallDelta {
            call,
            arguments: arguments.to_owned(),
        };
        let expected: Vec<DecodedPart> = vec![
            Step::Thought("Hm".to_owned()).into(),
            Step::Text("Yes".to_owned()).into(),
            Step::CallStarted { call, tool }.into(),
            writes("{\"n\"").into(),
            writes(":1}").into(),
            DecodedPart::OpaquePart(json!([
                {"type": "thinking", "thinking": "Hm", "signature": "signed"},
                {"type": "redacted_thinking", "data": "secret"}])),
            Step::Call(crate::model::message::ToolRequest::new(
                "a",
                "read",
                json!({"n": 1}),
            ))
            .into(),
            Step::Usage(usage).into(),
            Step::Stop(StopReason::EndTurn).into(),
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn incomplete_event_is_malformed() {
        let none = [
            json!({"type": "content_block_start", "index": 0}),
            json!({"type": "content_block_start", "content_block": {"type": "tool_use", "id": "a"}}),
            json!({"type": "content_block_delta"}),
            json!([1]),
        ];
        for event in none {
            let fault = decode_events(&mut AnthropicDecoder::new(0), std::slice::from_ref(&event));
            assert!(matches!(fault, Err(DecodeError::Malformed(..))), "{event}");
        }
        let error = json!({"type": "error", "error": {"type": "overloaded_error"}});
        let fault = decode_events(&mut AnthropicDecoder::new(0), std::slice::from_ref(&error));
        assert_eq!(fault, Err(DecodeError::Reported(error)));
    }

    #[test]
    fn thinking_parameters_depend_on_the_model_generation() {
        let told = |name, level| {
            let mut body = json!({});
            set_thinking(
                &mut body,
                ClaudeGeneration::from_model_name(name),
                level,
                2000,
            );
            body
        };
        let adaptive = json!({"type": "adaptive", "display": "summarized"});
        for name in [
            "claude-opus-5",
            "claude-opus-4-8",
            "anthropic/claude-sonnet-4-6-20260101",
        ] {
            let high = json!({"thinking": adaptive, "output_config": {"effort": "max"}});
            assert_eq!(told(name, ThoughtLevel::Max), high, "{name}");
        }
        for name in [
            "claude-opus-4-5",
            "claude-sonnet-4-20250514",
            "claude-3-7-sonnet-latest",
            "acme-3-max",
            "claude",
        ] {
            let budget = |n| json!({"thinking": {"type": "enabled", "budget_tokens": n}});
            assert_eq!(told(name, ThoughtLevel::Low), budget(1024), "{name}");
            assert_eq!(told(name, ThoughtLevel::High), budget(1999), "{name}");
            assert_eq!(told(name, ThoughtLevel::Off), json!({}), "{name}");
        }
        assert_eq!(told("claude-opus-4-8", ThoughtLevel::Off), json!({}));
        let off = json!({"thinking": {"type": "disabled"}});
        assert_eq!(told("claude-opus-5", ThoughtLevel::Off), off);
    }
}
