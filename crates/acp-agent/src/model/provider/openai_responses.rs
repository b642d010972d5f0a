//! The wire format of OpenAI's Responses API: `POST /v1/responses`.
//!
//! The provider stores nothing. Every request contains the whole conversation, and the model's encrypted reasoning is
//! sent back along with the calls that followed it.

use acp::v1::StopReason;
use serde::Deserialize;
use serde_json::{Value, json};

use super::calls::CallAssembler;
use super::convert::{AssistantTurn, ProviderTurn, join_texts};
use super::decode::{
    DecodeError, DecodedPart, EventDecoder, StreamEnd, finish_stream, malformed_error, parse_event,
    text_part, thought_part, token_count,
};
use super::openai_chat::{is_reasoning_model, reasoning_effort};
use super::prompt::PromptPart;
use super::request::ModelRequest;
use crate::model::step::TokenUsage;
use crate::model::thought::ThoughtLevel;
use crate::sse::SseEvent;

/// Returns the body of a request to this API.
pub(super) fn request_body(request: &ModelRequest<'_>) -> Value {
    let mut input = Vec::with_capacity(request.turns.len());
    for turn in &request.turns {
        add_turn(&mut input, turn);
    }
    let mut body = json!({
        "model": request.model,
        "input": input,
        "stream": true,
        "store": false,
    });
    if !request.instructions.trim().is_empty() {
        body["instructions"] = json!(request.instructions);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                // In strict mode, a tool cannot have optional arguments.
                "strict": false,
            })
        });
        body["tools"] = tools.collect();
    }
    if let Some(most) = request.max_output {
        body["max_output_tokens"] = json!(most);
    }
    let mut reasoning = json!({});
    if let Some(level) = request.thought {
        reasoning["effort"] = json!(reasoning_effort(level));
    }
    // Models that cannot reason reject these parameters.
    let silent = request.thought == Some(ThoughtLevel::Off);
    if (is_reasoning_model(request.model) || request.thought.is_some()) && !silent {
        if !request.unsupported.summary {
            reasoning["summary"] = json!("auto");
        }
        if !request.unsupported.encrypted {
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
    }
    if reasoning.as_object().is_some_and(|said| !said.is_empty()) {
        body["reasoning"] = reasoning;
    }
    body
}

fn add_turn(input: &mut Vec<Value>, turn: &ProviderTurn<'_>) {
    match turn {
        ProviderTurn::User(parts) => {
            let content = match join_texts(parts) {
                Some(text) => json!(text),
                None => parts.iter().map(to_part).collect(),
            };
            input.push(json!({"type": "message", "role": "user", "content": content}));
        }
        ProviderTurn::Assistant(said) => add_assistant_turn(input, said),
        ProviderTurn::Results(results) => input.extend(results.iter().map(|result| {
            json!({"type": "function_call_output", "call_id": result.id, "output": result.text})
        })),
    }
}

fn to_part(part: &PromptPart<'_>) -> Value {
    match part {
        PromptPart::Text(text) => json!({"type": "input_text", "text": text}),
        PromptPart::Image { mime_type, data } => {
            let url = format!("data:{mime_type};base64,{data}");
            json!({"type": "input_image", "detail": "auto", "image_url": url})
        }
    }
}

/// Adds the text and calls of one round, each preceded by its reasoning items. The API rejects reasoning items that are
/// not followed by anything.
fn add_assistant_turn(input: &mut Vec<Value>, said: &AssistantTurn<'_>) {
    let mut thoughts = Vec::new();
    if said.is_current_turn {
        thoughts.extend(said.opaque_parts.iter().filter_map(|sealed| {
            let calls = token_count(sealed, "/calls").unwrap_or(0);
            let spoken = sealed.get("spoken") == Some(&json!(true));
            Some((sealed.get("item")?, (spoken, calls)))
        }));
    }
    let mut thoughts = thoughts.into_iter().peekable();
    let mut before = |place: (bool, u64)| {
        let next = thoughts.next_if(|(_, thought)| match place {
            (false, _) => *thought == (false, 0),
            (true, calls) => thought.1 <= calls,
        });
        next.map(|(item, _)| item.clone())
    };
    if let Some(text) = said.text {
        input.extend(std::iter::from_fn(|| before((false, 0))));
        input.push(json!({"type": "message", "role": "assistant", "content": text}));
    }
    for (n, call) in (0..).zip(&said.calls) {
        input.extend(std::iter::from_fn(|| before((true, n))));
        input.push(json!({
            "type": "function_call",
            "call_id": call.id,
            "name": call.tool,
            "arguments": call.arguments.to_string(),
        }));
    }
}

/// A decoder for responses from this API.
pub(super) struct ResponsesDecoder {
    calls: CallAssembler,
    /// Pairs the index of each output item that is a call with the index of that call.
    items: Vec<(u64, usize)>,
    /// The reasoning items, in the form in which later rounds must send them back. Each is stored with its position:
    /// the number of calls before it, and whether text precedes it.
    opaque_parts: Vec<Value>,
    /// Whether the response contains text.
    has_text: bool,
    has_thought: bool,
    has_refusal: bool,
}

#[derive(Deserialize)]
struct ResponsesEvent {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    output_index: u64,
    /// The index of a part of the summary. Each part is a paragraph.
    #[serde(default)]
    summary_index: u64,
    delta: Option<String>,
    arguments: Option<String>,
    item: Option<ResponsesItem>,
    response: Option<ResponsesResponse>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ResponsesItem {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    encrypted_content: Option<String>,
    summary: Option<Value>,
    content: Option<Value>,
}

#[derive(Deserialize)]
struct ResponsesResponse {
    error: Option<Value>,
    incomplete_details: Option<IncompleteDetails>,
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct IncompleteDetails {
    reason: Option<String>,
}

impl ResponsesDecoder {
    pub(super) fn new(before: usize) -> Self {
        Self {
            calls: CallAssembler::new(before),
            items: Vec::new(),
            opaque_parts: Vec::new(),
            has_text: false,
            has_thought: false,
            has_refusal: false,
        }
    }

    /// Returns the index of the call in an output item.
    fn call_index(&self, item: u64) -> Option<usize> {
        let mut items = self.items.iter().rev();
        let found = items.find(|(index, _)| *index == item);
        found.map(|(_, call)| *call)
    }

    fn start_call(&mut self, index: u64, item: &ResponsesItem) -> Option<Vec<DecodedPart>> {
        let id = item.call_id.clone().or_else(|| item.id.clone());
        let tool = item.name.clone()?;
        let call = self.calls.len();
        self.items.push((index, call));
        let mut decoded = self.calls.begin_call(id.unwrap_or_default(), tool);
        decoded.extend(self.write_arguments(call, item.arguments.as_deref()));
        Some(decoded)
    }

    /// Adds the complete arguments of a call, unless they have already arrived in pieces.
    fn write_arguments(&mut self, call: usize, arguments: Option<&str>) -> Option<DecodedPart> {
        let blank = self.calls.has_no_arguments(call);
        arguments
            .filter(|_| blank)
            .and_then(|all| self.calls.append_arguments(call, all))
    }

    /// Stores a reasoning item to send back in later rounds. Discards an item without content.
    fn finish_item(&mut self, item: ResponsesItem) -> Option<DecodedPart> {
        let content = item
            .content
            .filter(|content| content.as_array().is_some_and(|c| !c.is_empty()));
        if item.encrypted_content.is_none() && content.is_none() {
            return None;
        }
        let mut reasoning_item = json!({
            "type": "reasoning",
            "summary": item.summary.unwrap_or_else(|| json!([])),
        });
        let parts = [
            ("id", item.id.map(Value::String)),
            (
                "encrypted_content",
                item.encrypted_content.map(Value::String),
            ),
            ("content", content),
        ];
        for (name, part) in parts {
            if let Some(part) = part {
                reasoning_item[name] = part;
            }
        }
        let size = reasoning_item.to_string().len();
        self.opaque_parts.push(
            json!({"item": reasoning_item, "calls": self.calls.len(), "spoken": self.has_text}),
        );
        Some(DecodedPart::BufferedBytes(size))
    }

    fn finish(&mut self, usage: Option<Value>, stop: StopReason) -> Vec<DecodedPart> {
        finish_stream(StreamEnd {
            has_thought: self.has_thought,
            opaque_parts: Value::Array(std::mem::take(&mut self.opaque_parts)),
            calls: self.calls.finish(),
            usage: usage.as_ref().and_then(token_usage),
            stop: match self.has_refusal {
                true => StopReason::Refusal,
                false => stop,
            },
        })
    }
}

/// Reads the token usage. Returns `None` if it contains no counts.
fn token_usage(usage: &Value) -> Option<TokenUsage> {
    let count = |name: &str| token_count(usage, name);
    let (input, output) = (count("/input_tokens"), count("/output_tokens"));
    input.or(output)?;
    Some(TokenUsage {
        input: input.unwrap_or(0),
        output: output.unwrap_or(0),
        thought: count("/output_tokens_details/reasoning_tokens").unwrap_or(0),
        cache_read: count("/input_tokens_details/cached_tokens").unwrap_or(0),
        cache_write: 0,
    })
}

/// Maps the reason why a response is incomplete to a stop reason.
fn incomplete_stop_reason(reason: Option<&str>) -> StopReason {
    match reason {
        Some("content_filter") => StopReason::Refusal,
        // Whatever the reason, the response is incomplete.
        _ => StopReason::MaxTokens,
    }
}

impl ResponsesDecoder {
    /// Handles the end of an output item. Returns `None` if it is a call without a tool name.
    fn end_item(&mut self, index: u64, item: ResponsesItem) -> Option<Vec<DecodedPart>> {
        Some(match (item.kind.as_str(), self.call_index(index)) {
            ("reasoning", _) => self.finish_item(item).into_iter().collect(),
            ("function_call", Some(call)) => {
                let all = self.write_arguments(call, item.arguments.as_deref());
                all.into_iter().collect()
            }
            // The start of the call was not sent.
            ("function_call", None) => self.start_call(index, &item)?,
            _ => Vec::new(),
        })
    }
}

impl EventDecoder for ResponsesDecoder {
    fn decode(&mut self, event: &SseEvent) -> Result<Vec<DecodedPart>, DecodeError> {
        // Some compatible servers end the stream with this marker, as in Chat Completions.
        if event.data.trim() == "[DONE]" {
            return Ok(Vec::new());
        }
        let read: ResponsesEvent = parse_event(event)?;
        let kind = read.kind.as_deref().unwrap_or(&event.name);
        let missing = |part: &str| malformed_error(event, &format!("{part} is missing"));
        let (index, delta) = (read.output_index, read.delta);
        Ok(match kind {
            "response.output_text.delta" => {
                self.has_text = true;
                text_part(delta).into_iter().collect()
            }
            "response.refusal.delta" => {
                self.has_refusal = true;
                text_part(delta).into_iter().collect()
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.has_thought = true;
                thought_part(delta).into_iter().collect()
            }
            "response.reasoning_summary_part.added" if read.summary_index > 0 => {
                thought_part(Some("\n\n".to_owned())).into_iter().collect()
            }
            "response.output_item.added" => {
                let item = read.item.ok_or_else(|| missing("`item`"))?;
                match item.kind.as_str() {
                    "function_call" => self
                        .start_call(index, &item)
                        .ok_or_else(|| missing("the tool name"))?,
                    _ => Vec::new(),
                }
            }
            "response.function_call_arguments.delta" => {
                // If the start of the call was not sent, its complete arguments follow at its end.
                let more = self.call_index(index).zip(delta);
                let more = more.and_then(|(call, more)| self.calls.append_arguments(call, &more));
                more.into_iter().collect()
            }
            "response.function_call_arguments.done" => {
                let call = self.call_index(index);
                let all =
                    call.and_then(|call| self.write_arguments(call, read.arguments.as_deref()));
                all.into_iter().collect()
            }
            "response.output_item.done" => {
                let item = read.item.ok_or_else(|| missing("`item`"))?;
                self.end_item(index, item)
                    .ok_or_else(|| missing("the tool name"))?
            }
            "response.completed" => {
                let usage = read.response.and_then(|response| response.usage);
                self.finish(usage, StopReason::EndTurn)
            }
            "response.incomplete" => {
                let response = read.response.ok_or_else(|| missing("`response`"))?;
                let reason = response.incomplete_details.and_then(|why| why.reason);
                self.finish(response.usage, incomplete_stop_reason(reason.as_deref()))
            }
            "response.failed" => {
                let error = read.response.and_then(|response| response.error);
                return Err(error.map_or_else(|| missing("`error`"), DecodeError::Reported));
            }
            "error" => {
                // The error is in a field of its own, or it is the whole event.
                let error = match read.error {
                    Some(error) => error,
                    None => parse_event(event)?,
                };
                return Err(DecodeError::Reported(error));
            }
            // The starts and ends of parts, which the deltas imply, and unknown events.
            _ => match read.error {
                Some(error) => return Err(DecodeError::Reported(error)),
                None => Vec::new(),
            },
        })
    }

    fn end_of_stream(&mut self) -> Option<Vec<DecodedPart>> {
        self.has_refusal
            .then(|| self.finish(None, StopReason::Refusal))
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::super::convert::PriorCall;
    use super::*;
    use crate::model::message::ToolRequest;
    use crate::model::provider::decode::tests::decode_events;
    use crate::model::provider::request::UnsupportedParameters;
    use crate::model::step::Step;

    fn reasoning_item(id: &str) -> Value {
        json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "secret"})
    }

    fn item_added_event(index: u64, item: Value) -> Value {
        json!({"type": "response.output_item.added", "output_index": index, "item": item})
    }

    fn item_done_event(index: u64, item: Value) -> Value {
        json!({"type": "response.output_item.done", "output_index": index, "item": item})
    }

    fn call_item(id: &str, tool: &str, arguments: &str) -> Value {
        json!({"type": "function_call", "id": "fc", "call_id": id, "name": tool, "arguments": arguments})
    }

    #[test]
    fn events_become_steps_and_reasoning_keeps_its_position() {
        let delta = |kind: &str, index: u64, delta: &str| json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta});
        let decoded = decode_events(
            &mut ResponsesDecoder::new(0),
            &[
                json!({"type": "response.created", "response": {"error": null, "usage": null}}),
                item_added_event(0, json!({"type": "reasoning", "id": "r0", "summary": []})),
                json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0}),
                delta("reasoning_summary_text", 0, "Hm"),
                json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1}),
                delta("reasoning_summary_text", 0, "So"),
                item_done_event(0, reasoning_item("r0")),
                item_added_event(1, json!({"type": "message"})),
                delta("output_text", 1, "Yes"),
                item_done_event(
                    1,
                    json!({"type": "message", "content": [{"type": "output_text", "text": "Yes"}]}),
                ),
                // A reasoning item without content is of no use.
                item_done_event(
                    2,
                    json!({"type": "reasoning", "id": "r1", "summary": [], "content": []}),
                ),
                item_added_event(3, call_item("a", "read", "")),
                delta("function_call_arguments", 3, "{\"n\""),
                delta("function_call_arguments", 3, ":1}"),
                json!({"type": "response.function_call_arguments.done", "output_index": 3, "arguments": "{\"n\":1}"}),
                item_done_event(3, call_item("a", "read", "{\"n\":1}")),
                item_done_event(4, reasoning_item("r2")),
                item_done_event(5, call_item("b", "list", "{}")),
                json!({"type": "response.completed", "response": {"usage": {"input_tokens": 10, "output_tokens": 5,
                    "input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 2}}}}),
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
        let writes = |call, arguments: &str| Step::CallDelta {
            call,
            arguments: arguments.to_owned(),
        };
        let thinks = |text: &str| Step::Thought(text.to_owned());
        let usage = TokenUsage {
            input: 10,
            output: 5,
            thought: 2,
            cache_read: 4,
            ..TokenUsage::default()
        };
        let expected: Vec<DecodedPart> = vec![
            thinks("Hm").into(),
            thinks("\n\n").into(),
            thinks("So").into(),
            Step::Text("Yes".to_owned()).into(),
            begins(0, "read").into(),
            writes(0, "{\"n\"").into(),
            writes(0, ":1}").into(),
            begins(1, "list").into(),
            writes(1, "{}").into(),
            DecodedPart::OpaquePart(json!([
                {"item": reasoning_item("r0"), "calls": 0, "spoken": false},
                {"item": reasoning_item("r2"), "calls": 1, "spoken": true}])),
            Step::Call(ToolRequest::new("a", "read", json!({"n": 1}))).into(),
            Step::Call(ToolRequest::new("b", "list", json!({}))).into(),
            Step::Usage(usage).into(),
            Step::Stop(StopReason::EndTurn).into(),
        ];
        assert_eq!(decoded, expected);
    }

    #[test]
    fn reasoning_precedes_the_call_it_led_to() {
        let at = |id, calls, spoken| json!({"item": reasoning_item(id), "calls": calls, "spoken": spoken});
        let sealed = [
            at("r0", 0, false),
            at("r1", 0, true),
            at("r2", 1, true),
            at("r3", 2, true),
        ];
        let arguments = json!({});
        let call = |id: &str| PriorCall {
            id: id.to_owned(),
            tool: "read",
            arguments: Cow::Borrowed(&arguments),
        };
        let mut said = AssistantTurn {
            text: Some("Yes"),
            thought: None,
            calls: vec![call("a"), call("b")],
            opaque_parts: &sealed,
            is_current_turn: true,
        };
        let order = |said: &AssistantTurn<'_>| {
            let mut input = Vec::new();
            add_assistant_turn(&mut input, said);
            let names = input.iter().map(|item| {
                let name = ["id", "call_id", "content"]
                    .iter()
                    .find_map(|name| item[name].as_str());
                name.unwrap_or_default().to_owned()
            });
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(order(&said), "r0 Yes r1 a r2 b");
        said.text = None;
        assert_eq!(order(&said), "r0 r1 a r2 b");
        said.is_current_turn = false;
        assert_eq!(order(&said), "a b");
    }

    #[test]
    fn incomplete_reasons_are_mapped_to_stop_reasons() {
        let ends = |event: Value| decode_events(&mut ResponsesDecoder::new(0), &[event]);
        let incomplete = |reason: &str| {
            ends(
                json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": reason}}}),
            )
        };
        let only = |stop| Ok(vec![DecodedPart::Step(Step::Stop(stop))]);
        assert_eq!(incomplete("max_output_tokens"), only(StopReason::MaxTokens));
        assert_eq!(incomplete("content_filter"), only(StopReason::Refusal));
        let error = json!({"code": "server_error", "message": "Sorry"});
        let failed = json!({"type": "response.failed", "response": {"error": error}});
        assert_eq!(ends(failed), Err(DecodeError::Reported(error)));
        let error = json!({"type": "error", "code": "rate_limit_exceeded", "message": "Slow down"});
        assert_eq!(ends(error.clone()), Err(DecodeError::Reported(error)));
        let mut answer = ResponsesDecoder::new(0);
        let refuses = json!({"type": "response.refusal.delta", "delta": "No."});
        decode_events(&mut answer, &[refuses]).unwrap();
        let completed = json!({"type": "response.completed", "response": {}});
        assert_eq!(
            decode_events(&mut answer, &[completed]),
            only(StopReason::Refusal)
        );
        let nameless = item_added_event(0, json!({"type": "function_call"}));
        assert!(matches!(ends(nameless), Err(DecodeError::Malformed(..))));
    }

    #[test]
    fn reasoning_is_requested_from_reasoning_models() {
        let ask = |model, thought, refused| {
            request_body(&ModelRequest {
                model,
                instructions: "",
                turns: Vec::new(),
                tools: &[],
                thought,
                max_output: None,
                lacks_thoughts: false,
                unsupported: refused,
            })
        };
        let request = ask("gpt-5.4", None, UnsupportedParameters::default());
        assert_eq!(request["reasoning"], json!({"summary": "auto"}));
        assert_eq!(request["include"], json!(["reasoning.encrypted_content"]));
        assert_eq!(
            (&request["store"], &request["stream"]),
            (&json!(false), &json!(true))
        );
        let plain = ask("gpt-4.1", None, UnsupportedParameters::default());
        assert_eq!((plain.get("reasoning"), plain.get("include")), (None, None));
        let off = ask(
            "gpt-5.4",
            Some(ThoughtLevel::Off),
            UnsupportedParameters::default(),
        );
        assert_eq!(off["reasoning"], json!({"effort": "none"}));
        assert_eq!(off.get("include"), None);

        let mut refused = UnsupportedParameters::default();
        assert!(
            refused.record_rejected("reasoning.summary")
                && !refused.record_rejected("reasoning.summary")
        );
        assert!(!refused.record_rejected("tools"));
        let request = ask("gpt-5.4", Some(ThoughtLevel::Low), refused);
        assert_eq!(request["reasoning"], json!({"effort": "low"}));
        assert!(refused.record_rejected("include"));
        assert_eq!(ask("gpt-5.4", None, refused).get("include"), None);
    }
}
