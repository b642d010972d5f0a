//! Writes responses in the wire format of each provider.

use acp_agent::WireFormat;
use serde_json::{Value, json};

use super::{AnswerPiece, FinishReason, ProviderUsage};

/// Returns the events of a response.
pub fn response_events(format: WireFormat, says: &[AnswerPiece]) -> Vec<String> {
    let mut events = leading_events(format, says);
    let usage = says.iter().find_map(|say| match say {
        AnswerPiece::Usage(used) => Some(*used),
        _ => None,
    });
    let calls = says
        .iter()
        .any(|say| matches!(say, AnswerPiece::Call(..) | AnswerPiece::Scribble(..)));
    let why = says.iter().find_map(|say| match say {
        AnswerPiece::Stop(why) => Some(*why),
        _ => None,
    });
    let why = why.unwrap_or(if calls {
        FinishReason::Tools
    } else {
        FinishReason::End
    });
    events.extend(match format {
        WireFormat::AnthropicMessages => anthropic_end_events(why, usage),
        WireFormat::OpenAiChat => chat_end_events(why, usage),
        WireFormat::OpenAiResponses => responses_end_events(why, usage),
        _ => gemini_end_events(why, usage),
    });
    events
}

/// Returns the events of a response, except those that end it.
pub fn leading_events(format: WireFormat, says: &[AnswerPiece]) -> Vec<String> {
    match format {
        WireFormat::AnthropicMessages => anthropic_events(says),
        WireFormat::OpenAiChat => chat_events(says),
        WireFormat::OpenAiResponses => responses_events(says),
        _ => gemini_events(says),
    }
}

/// Returns the number of events before those that complete the last call. The response must end with a call.
pub fn event_count_without_end(format: WireFormat, says: &[AnswerPiece]) -> usize {
    let all = leading_events(format, says).len();
    all - match format {
        // These are the second half of the arguments and the end of the call.
        WireFormat::AnthropicMessages => 2,
        WireFormat::OpenAiChat => 1,
        // The end is sent twice.
        WireFormat::OpenAiResponses => 3,
        // Gemini's calls arrive whole.
        _ => 0,
    }
}

fn data_event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn named_event(data: Value) -> String {
    let name = data["type"].as_str().unwrap();
    format!("event: {name}\ndata: {data}\n\n")
}

/// Splits a text in the middle.
fn split_in_half(text: &str) -> [&str; 2] {
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle -= 1;
    }
    let (a, b) = text.split_at(middle);
    [a, b]
}

fn call_parts(say: &AnswerPiece) -> Option<(&'static str, &'static str, String)> {
    match say {
        AnswerPiece::Call(id, tool, arguments) => Some((id, tool, arguments.to_string())),
        AnswerPiece::Scribble(id, tool, text) => Some((id, tool, (*text).to_owned())),
        _ => None,
    }
}

fn anthropic_events(says: &[AnswerPiece]) -> Vec<String> {
    let used = says.iter().find_map(|say| match say {
        AnswerPiece::Usage(used) => Some(*used),
        _ => None,
    });
    let used = used.unwrap_or_default();
    let mut events = vec![
        named_event(json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "a-model", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": {
                "input_tokens": used.input - used.cached, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": used.cached, "output_tokens": 1}}})),
        named_event(json!({"type": "ping"})),
    ];
    let mut index = 0;
    let mut thinking = false;
    for say in says {
        let mut block = |start: Value, deltas: Vec<Value>, stops: bool| {
            if !start.is_null() {
                events.push(named_event(
                    json!({"type": "content_block_start", "index": index, "content_block": start}),
                ));
            }
            for delta in deltas {
                events.push(named_event(
                    json!({"type": "content_block_delta", "index": index, "delta": delta}),
                ));
            }
            if stops {
                events.push(named_event(
                    json!({"type": "content_block_stop", "index": index}),
                ));
                index += 1;
            }
        };
        if std::mem::take(&mut thinking) && !matches!(say, AnswerPiece::Sign(_)) {
            block(Value::Null, vec![], true);
        }
        match say {
            AnswerPiece::Text(text) => block(
                json!({"type": "text", "text": ""}),
                split_in_half(text)
                    .map(|text| json!({"type": "text_delta", "text": text}))
                    .into(),
                true,
            ),
            AnswerPiece::Think(text) => {
                block(
                    json!({"type": "thinking", "thinking": "", "signature": ""}),
                    split_in_half(text)
                        .map(|text| json!({"type": "thinking_delta", "thinking": text}))
                        .into(),
                    false,
                );
                thinking = true;
            }
            AnswerPiece::Sign(signature) => block(
                Value::Null,
                vec![json!({"type": "signature_delta", "signature": signature})],
                true,
            ),
            AnswerPiece::Redacted(text) => block(
                json!({"type": "redacted_thinking", "data": text}),
                vec![],
                true,
            ),
            AnswerPiece::Call(..) | AnswerPiece::Scribble(..) => {
                let (id, tool, written) = call_parts(say).unwrap();
                block(
                    json!({"type": "tool_use", "id": id, "name": tool, "input": {}}),
                    split_in_half(&written)
                        .map(|text| json!({"type": "input_json_delta", "partial_json": text}))
                        .into(),
                    true,
                );
            }
            AnswerPiece::Usage(_) | AnswerPiece::Stop(_) => {}
        }
    }
    events
}

fn anthropic_end_events(why: FinishReason, used: Option<ProviderUsage>) -> Vec<String> {
    let reason = match why {
        FinishReason::End => "end_turn",
        FinishReason::Tools => "tool_use",
        FinishReason::Length => "max_tokens",
        FinishReason::Refusal => "refusal",
    };
    let output = used.unwrap_or_default().output;
    vec![
        named_event(
            json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
                     "usage": {"output_tokens": output}}),
        ),
        named_event(json!({"type": "message_stop"})),
    ]
}

fn chat_events(says: &[AnswerPiece]) -> Vec<String> {
    let chunk = |delta: Value| {
        data_event(
            &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "a-model",
                     "choices": [{"index": 0, "delta": delta, "finish_reason": null}]}),
        )
    };
    let mut events = vec![chunk(
        json!({"role": "assistant", "content": "", "refusal": null}),
    )];
    let mut index = 0;
    for say in says {
        match say {
            AnswerPiece::Text(text) => {
                events.extend(split_in_half(text).map(|text| chunk(json!({"content": text}))))
            }
            AnswerPiece::Think(text) => {
                events.extend(
                    split_in_half(text).map(|text| chunk(json!({"reasoning_content": text}))),
                );
            }
            AnswerPiece::Call(..) | AnswerPiece::Scribble(..) => {
                let (id, tool, written) = call_parts(say).unwrap();
                events.push(chunk(
                    json!({"tool_calls": [{"index": index, "id": id, "type": "function",
                                         "function": {"name": tool, "arguments": ""}}]}),
                ));
                events.extend(split_in_half(&written).map(|text| {
                    chunk(
                        json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]}),
                    )
                }));
                index += 1;
            }
            AnswerPiece::Sign(_)
            | AnswerPiece::Redacted(_)
            | AnswerPiece::Usage(_)
            | AnswerPiece::Stop(_) => {}
        }
    }
    events
}

fn chat_end_events(why: FinishReason, used: Option<ProviderUsage>) -> Vec<String> {
    let reason = match why {
        FinishReason::End => "stop",
        FinishReason::Tools => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::Refusal => "content_filter",
    };
    let mut events = vec![data_event(
        &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
        "model": "a-model", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
    )];
    if let Some(used) = used {
        events.push(data_event(
            &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": {
            "prompt_tokens": used.input, "completion_tokens": used.output,
            "total_tokens": used.input + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cached},
            "completion_tokens_details": {"reasoning_tokens": used.thought}}}),
        ));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// Returns the events of a response. Each item is started, written and ended before the next one.
fn responses_events(says: &[AnswerPiece]) -> Vec<String> {
    let mut events = vec![
        named_event(
            json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress",
            "error": null, "incomplete_details": null, "output": [], "usage": null}}),
        ),
        named_event(
            json!({"type": "response.in_progress", "response": {"id": "resp_1", "output": []}}),
        ),
    ];
    let mut index = 0;
    for (n, say) in says.iter().enumerate() {
        let mut item = |item: Value, done: Value, pieces: Vec<Value>| {
            let added =
                json!({"type": "response.output_item.added", "output_index": index, "item": item});
            events.push(named_event(added));
            for mut piece in pieces {
                piece["output_index"] = json!(index);
                events.push(named_event(piece));
            }
            let done =
                json!({"type": "response.output_item.done", "output_index": index, "item": done});
            events.push(named_event(done));
            index += 1;
        };
        match say {
            AnswerPiece::Text(text) => {
                let message = |content: Value| json!({"id": "msg_1", "type": "message", "role": "assistant", "content": content});
                let part = json!({"type": "output_text", "text": text, "annotations": []});
                let pieces = split_in_half(text).map(|text| json!({"type": "response.output_text.delta", "content_index": 0, "delta": text}));
                item(message(json!([])), message(json!([part])), pieces.into());
            }
            AnswerPiece::Think(text) => {
                let reasoning = |summary: Value, encrypted: Value| json!({"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": encrypted});
                let signature = match says.get(n + 1) {
                    Some(AnswerPiece::Sign(signature)) => json!(signature),
                    _ => Value::Null,
                };
                let summary = json!([{"type": "summary_text", "text": text}]);
                let pieces = split_in_half(text).map(|text| {
                    json!({"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": text})
                });
                item(
                    reasoning(json!([]), Value::Null),
                    reasoning(summary, signature),
                    pieces.into(),
                );
            }
            AnswerPiece::Call(..) | AnswerPiece::Scribble(..) => {
                let (id, tool, written) = call_parts(say).unwrap();
                let call = |arguments: &str| json!({"id": "fc_1", "type": "function_call", "call_id": id, "name": tool, "arguments": arguments});
                let pieces = split_in_half(&written).map(
                    |text| json!({"type": "response.function_call_arguments.delta", "delta": text}),
                );
                let all =
                    json!({"type": "response.function_call_arguments.done", "arguments": written});
                let pieces = pieces.into_iter().chain([all]).collect();
                item(call(""), call(&written), pieces);
            }
            AnswerPiece::Sign(_)
            | AnswerPiece::Redacted(_)
            | AnswerPiece::Usage(_)
            | AnswerPiece::Stop(_) => {}
        }
    }
    events
}

fn responses_end_events(why: FinishReason, used: Option<ProviderUsage>) -> Vec<String> {
    let incomplete = match why {
        FinishReason::End | FinishReason::Tools => None,
        FinishReason::Length => Some("max_output_tokens"),
        FinishReason::Refusal => Some("content_filter"),
    };
    let status = match incomplete {
        Some(_) => "incomplete",
        None => "completed",
    };
    let usage = used.map(|used| {
        json!({"input_tokens": used.input, "input_tokens_details": {"cached_tokens": used.cached},
            "output_tokens": used.output, "output_tokens_details": {"reasoning_tokens": used.thought},
            "total_tokens": used.input + used.output})
    });
    let details = incomplete.map(|reason| json!({ "reason": reason }));
    vec![named_event(
        json!({"type": format!("response.{status}"), "response": {"id": "resp_1", "status": status,
        "error": null, "incomplete_details": details, "usage": usage}}),
    )]
}

fn gemini_events(says: &[AnswerPiece]) -> Vec<String> {
    let frame = |parts: Value| {
        data_event(
            &json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
                     "modelVersion": "a-model", "responseId": "r"}),
        )
    };
    let mut events = Vec::new();
    let mut calls = Vec::new();
    let mut signature = None;
    for say in says {
        match say {
            AnswerPiece::Text(text) => {
                events.extend(split_in_half(text).map(|text| frame(json!([{"text": text}]))));
            }
            AnswerPiece::Think(text) => {
                events.extend(
                    split_in_half(text).map(|text| frame(json!([{"text": text, "thought": true}]))),
                );
            }
            AnswerPiece::Sign(text) => signature = Some(text),
            // Gemini sends all of its calls at once, without ids.
            AnswerPiece::Call(_, tool, arguments) => {
                let mut part = json!({"functionCall": {"name": tool, "args": arguments}});
                if let Some(signature) = signature.take() {
                    part["thoughtSignature"] = json!(signature);
                }
                calls.push(part);
            }
            AnswerPiece::Scribble(_, tool, text) => {
                calls.push(json!({"functionCall": {"name": tool, "args": text}}));
            }
            AnswerPiece::Redacted(_) | AnswerPiece::Usage(_) | AnswerPiece::Stop(_) => {}
        }
    }
    if !calls.is_empty() {
        events.push(frame(json!(calls)));
    }
    events
}

fn gemini_end_events(why: FinishReason, used: Option<ProviderUsage>) -> Vec<String> {
    let reason = match why {
        FinishReason::End | FinishReason::Tools => "STOP",
        FinishReason::Length => "MAX_TOKENS",
        FinishReason::Refusal => "SAFETY",
    };
    let used = used.unwrap_or_default();
    vec![data_event(&json!({
        "candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": reason, "index": 0}],
        "usageMetadata": {"promptTokenCount": used.input, "cachedContentTokenCount": used.cached,
            "candidatesTokenCount": used.output - used.thought, "thoughtsTokenCount": used.thought,
            "totalTokenCount": used.input + used.output}}))]
}
