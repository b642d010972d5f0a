//! Converts a conversation to turns that all providers accept. The turns are then written in the wire format of one
//! provider.
//!
//! A session may have used several models, been interrupted, or been compacted. This module repairs everything that
//! providers would reject: a call without a result, a result without a call, a message without content, two calls with
//! the same id, and two consecutive messages of the user.

use std::borrow::Cow;
use std::collections::HashSet;

use acp::v1::ImageContent;
use serde_json::{Value, json};

use super::prompt::{PromptPart, TargetModel, convert_image, convert_prompt};
use super::wire_format::WireFormat;
use crate::model::message::{ModelMessage, OpaqueParts, ToolRequest};

/// The text to send as the result of a tool call that has none.
const NO_RESULT_TEXT: &str = "No result.";

/// The maximum length of a call id that all providers accept, in bytes.
const MAX_ID_BYTES: usize = 40;

/// A turn of the conversation in a request to a provider.
#[derive(Debug)]
pub(super) enum ProviderTurn<'a> {
    /// A message from the user.
    User(Vec<PromptPart<'a>>),
    /// A message from the model.
    Assistant(AssistantTurn<'a>),
    /// The results of the calls in the previous turn, in the same order.
    Results(Vec<CallResult<'a>>),
}

/// The text, thoughts and calls of the model in one round.
#[derive(Debug)]
pub(super) struct AssistantTurn<'a> {
    /// The model's text, if it is not blank.
    pub(super) text: Option<&'a str>,
    /// The thoughts, if this round belongs to the current turn and was produced by the same model.
    pub(super) thought: Option<&'a str>,
    pub(super) calls: Vec<PriorCall<'a>>,
    /// The opaque parts, if they were produced by the same model.
    pub(super) opaque_parts: &'a [Value],
    /// Whether the round belongs to the current turn.
    pub(super) is_current_turn: bool,
}

/// An earlier tool call, as it is sent to the provider.
#[derive(Debug)]
pub(super) struct PriorCall<'a> {
    /// An id that is unique in the conversation.
    pub(super) id: String,
    pub(super) tool: &'a str,
    /// The arguments of the call, which are always an object.
    pub(super) arguments: Cow<'a, Value>,
}

/// The result of an earlier tool call, as it is sent to the provider.
#[derive(Debug)]
pub(super) struct CallResult<'a> {
    /// The [`PriorCall::id`] of the call.
    pub(super) id: String,
    pub(super) tool: &'a str,
    pub(super) text: &'a str,
}

/// Returns `true` if the current turn contains tool calls by a model other than `target`. The thoughts behind those
/// calls cannot be sent to `target`.
pub(super) fn lacks_thoughts(target: TargetModel<'_>, conversation: &[ModelMessage]) -> bool {
    current_turn(conversation)
        .iter()
        .any(|message| match message {
            ModelMessage::Assistant { calls, sealed, .. } => {
                !calls.is_empty() && opaque_parts_from_same_model(target, sealed.as_ref()).is_none()
            }
            _ => false,
        })
}

/// Returns the messages from the user's last prompt to the end.
fn current_turn(conversation: &[ModelMessage]) -> &[ModelMessage] {
    let start = conversation
        .iter()
        .rposition(|message| matches!(message, ModelMessage::User(_)));
    conversation
        .get(start.unwrap_or_default()..)
        .unwrap_or_default()
}

fn opaque_parts_from_same_model<'a>(
    target: TargetModel<'_>,
    sealed: Option<&'a OpaqueParts>,
) -> Option<&'a OpaqueParts> {
    sealed.filter(|sealed| sealed.by == target.by)
}

/// A tool call that has not been matched with a result yet.
struct UnansweredCall<'a> {
    /// The [`ToolRequest::id`] of the call.
    id: &'a str,
    /// The id that is sent to the provider instead.
    provider_id: String,
    tool: &'a str,
    result: Option<&'a str>,
    images: &'a [ImageContent],
}

/// Converts a conversation to turns for a provider.
pub(super) fn to_turns<'a>(
    target: TargetModel<'_>,
    conversation: &'a [ModelMessage],
) -> Vec<ProviderTurn<'a>> {
    let old = conversation.len() - current_turn(conversation).len();
    let mut turns = Vec::with_capacity(conversation.len());
    let mut open: Vec<UnansweredCall<'a>> = Vec::new();
    let mut ids = HashSet::new();
    for (n, message) in conversation.iter().enumerate() {
        match message {
            ModelMessage::ToolResult(result) => {
                let mut waiting = open.iter_mut();
                let call = waiting.find(|call| call.result.is_none() && call.id == result.id);
                // Providers would reject a result without a call.
                if let Some(call) = call {
                    let blank = result.text.trim().is_empty();
                    call.result = Some(if blank { "(nothing)" } else { &result.text });
                    call.images = &result.images;
                }
                continue;
            }
            ModelMessage::User(content) => {
                turns.extend(take_results(target, &mut open));
                push_user_parts(&mut turns, convert_prompt(target, content));
            }
            ModelMessage::Assistant {
                text,
                thought,
                calls,
                sealed,
            } => {
                turns.extend(take_results(target, &mut open));
                // Skip a message that has only thoughts.
                if text.trim().is_empty() && calls.is_empty() {
                    continue;
                }
                let prior_calls: Vec<PriorCall<'a>> = calls
                    .iter()
                    .map(|call| PriorCall {
                        id: unique_call_id(target.format, &call.id, &mut ids),
                        tool: &call.tool,
                        arguments: object_arguments(call),
                    })
                    .collect();
                open.extend(calls.iter().zip(&prior_calls).map(|(call, prior_calls)| {
                    UnansweredCall {
                        id: &call.id,
                        provider_id: prior_calls.id.clone(),
                        tool: &call.tool,
                        result: None,
                        images: &[],
                    }
                }));
                let sealed = opaque_parts_from_same_model(target, sealed.as_ref());
                // Providers that require a model's thoughts require those of the current turn.
                let own_thought = n >= old && sealed.is_some() && !thought.is_empty();
                turns.push(ProviderTurn::Assistant(AssistantTurn {
                    text: Some(text.as_str()).filter(|text| !text.trim().is_empty()),
                    thought: own_thought.then_some(thought),
                    calls: prior_calls,
                    opaque_parts: sealed.map_or(&[], OpaqueParts::as_slice),
                    is_current_turn: n >= old,
                }));
            }
        }
    }
    turns.extend(take_results(target, &mut open));
    turns
}

/// Adds a user message. Merges it with the previous message if that is also from the user, as after a turn without a
/// response or after the images of a tool. Many local models have chat templates that reject two consecutive user
/// messages, and other models accept either form.
fn push_user_parts<'a>(turns: &mut Vec<ProviderTurn<'a>>, said: Vec<PromptPart<'a>>) {
    match turns.last_mut() {
        Some(ProviderTurn::User(parts)) => parts.extend(said),
        _ => turns.push(ProviderTurn::User(said)),
    }
}

/// Returns the results of a round in a single turn, as Anthropic requires. Images follow in a user message, because not
/// every wire format allows them in results.
fn take_results<'a>(
    target: TargetModel<'_>,
    open: &mut Vec<UnansweredCall<'a>>,
) -> Vec<ProviderTurn<'a>> {
    let mut pictures = Vec::new();
    let mut results = Vec::with_capacity(open.len());
    for call in open.drain(..) {
        if !call.images.is_empty() {
            let text = format!("(Image returned by the tool `{}`.)", call.tool);
            pictures.push(PromptPart::Text(text.into()));
        }
        pictures.extend(call.images.iter().map(|image| {
            convert_image(target, &image.mime_type, &image.data, image.uri.as_deref())
        }));
        results.push(CallResult {
            id: call.provider_id,
            tool: call.tool,
            text: call.result.unwrap_or(NO_RESULT_TEXT),
        });
    }
    let mut turns = Vec::new();
    if !results.is_empty() {
        turns.push(ProviderTurn::Results(results));
    }
    if !pictures.is_empty() {
        turns.push(ProviderTurn::User(pictures));
    }
    turns
}

/// Returns a call id that is unique in the conversation and accepted by the wire format.
fn unique_call_id(format: WireFormat, id: &str, taken: &mut HashSet<String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    // Gemini's calls have no ids. The ids that were generated for them (`call#read#0`) are not sent to it.
    let fits = format == WireFormat::Gemini || id.chars().all(plain) && id.len() <= MAX_ID_BYTES;
    if fits && !id.is_empty() && taken.insert(id.to_owned()) {
        return id.to_owned();
    }
    let mut n = taken.len();
    loop {
        let id = format!("call_{n}");
        if taken.insert(id.clone()) {
            return id;
        }
        n += 1;
    }
}

/// Returns the arguments of a call as an object, regardless of what the model wrote.
fn object_arguments(call: &ToolRequest) -> Cow<'_, Value> {
    match &call.arguments {
        object @ Value::Object(_) => Cow::Borrowed(object),
        Value::Null => Cow::Owned(json!({})),
        other => Cow::Owned(json!({ "unreadable": other })),
    }
}

/// Joins the user's texts. Returns `None` if there is anything other than text.
pub(super) fn join_texts<'a>(parts: &'a [PromptPart<'a>]) -> Option<Cow<'a, str>> {
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            PromptPart::Text(text) => Some(text.as_ref()),
            PromptPart::Image { .. } => None,
        })
        .collect();
    match texts?.as_slice() {
        [text] => Some(Cow::Borrowed(text)),
        texts => Some(Cow::Owned(texts.join("\n\n"))),
    }
}

#[cfg(test)]
mod tests {
    use acp::v1::ContentBlock;

    use super::*;
    use crate::model::message::{ToolResult, ToolStatus};

    fn target_model(format: WireFormat) -> TargetModel<'static> {
        TargetModel {
            format,
            by: "me",
            takes_images: false,
        }
    }

    fn call_message(ids: &[&str]) -> ModelMessage {
        let calls = ids
            .iter()
            .map(|id| ToolRequest::new(*id, "read", json!({})));
        ModelMessage::Assistant {
            text: String::new(),
            thought: String::new(),
            calls: calls.collect(),
            sealed: None,
        }
    }

    fn result_message(id: &str) -> ModelMessage {
        ModelMessage::ToolResult(ToolResult {
            id: id.to_owned(),
            status: ToolStatus::Done,
            text: format!("of {id}"),
            data: Value::Null,
            images: Vec::new(),
        })
    }

    fn user_message(text: &str) -> ModelMessage {
        ModelMessage::User(vec![ContentBlock::text(text)])
    }

    /// Formats an outline of the turns: the ids of the calls, and the results with their ids.
    fn outline_turns(turns: &[ProviderTurn<'_>]) -> Vec<String> {
        let line = |turn: &ProviderTurn<'_>| {
            let parts: Vec<String> = match turn {
                ProviderTurn::User(parts) => parts
                    .iter()
                    .map(|part| match part {
                        PromptPart::Text(text) => text.to_string(),
                        PromptPart::Image { mime_type, .. } => format!("<{mime_type}>"),
                    })
                    .collect(),
                ProviderTurn::Assistant(said) => {
                    let calls = said.calls.iter().map(|call| format!("call {}", call.id));
                    said.text
                        .map(str::to_owned)
                        .into_iter()
                        .chain(calls)
                        .collect()
                }
                ProviderTurn::Results(results) => results
                    .iter()
                    .map(|result| format!("{}: {}", result.id, result.text))
                    .collect(),
            };
            parts.join(", ")
        };
        turns.iter().map(line).collect()
    }

    #[test]
    fn every_call_is_followed_by_one_result_and_has_a_unique_id() {
        let conversation = [
            user_message("1"),
            call_message(&["call#read#0", "b"]),
            result_message("b"),
            result_message("nobody's"),
            call_message(&["call#read#0"]),
            result_message("call#read#0"),
            call_message(&[]),
            user_message("2"),
            call_message(&["b"]),
        ];
        let prior_calls = outline_turns(&to_turns(
            target_model(WireFormat::AnthropicMessages),
            &conversation,
        ));
        assert_eq!(
            prior_calls,
            [
                "1",
                "call call_0, call b",
                "call_0: No result., b: of b",
                "call call_2",
                "call_2: of call#read#0",
                "2",
                "call call_3",
                "call_3: No result.",
            ]
        );
    }

    #[test]
    fn unanswered_user_message_is_merged_with_the_next() {
        let ModelMessage::ToolResult(mut pictured) = result_message("a") else {
            panic!("it is a result");
        };
        pictured.images = vec![ImageContent::new("aGk=", "image/png")];
        let silent = ModelMessage::from_text(" ");
        let conversation = [
            user_message("1"),
            user_message("2"),
            silent,
            user_message("3"),
            call_message(&["a"]),
            ModelMessage::ToolResult(pictured),
            user_message("4"),
        ];
        for format in WireFormat::ALL {
            let prior_calls = to_turns(target_model(format), &conversation);
            let roles = [
                matches!(prior_calls[0], ProviderTurn::User(_)),
                matches!(prior_calls[1], ProviderTurn::Assistant(_)),
                matches!(prior_calls[2], ProviderTurn::Results(_)),
                matches!(prior_calls[3], ProviderTurn::User(_)),
                prior_calls.len() == 4,
            ];
            assert_eq!(roles, [true; 5], "{format}: {prior_calls:?}");
            let prior_calls = outline_turns(&prior_calls);
            assert_eq!(prior_calls[0], "1, 2, 3");
            assert!(prior_calls[3].ends_with(", 4"), "{prior_calls:?}");
        }
    }

    #[test]
    fn images_of_a_result_follow_it() {
        let ModelMessage::ToolResult(mut result) = result_message("a") else {
            panic!("it is a result");
        };
        result.images = vec![ImageContent::new("aGk=", "image/png")];
        let conversation = [
            user_message("1"),
            call_message(&["a"]),
            ModelMessage::ToolResult(result),
        ];
        let mut target = target_model(WireFormat::AnthropicMessages);
        let prior_calls = outline_turns(&to_turns(target, &conversation));
        assert_eq!(prior_calls[2], "a: of a");
        assert!(
            prior_calls[3].contains("does not support images"),
            "{prior_calls:?}"
        );
        target.takes_images = true;
        let prior_calls = outline_turns(&to_turns(target, &conversation));
        assert!(prior_calls[3].ends_with(", <image/png>"), "{prior_calls:?}");
    }

    #[test]
    fn opaque_parts_are_sent_only_to_their_own_model() {
        let by = |by: &str| {
            let blocks = json!([{"type": "thinking", "thinking": "Hm", "signature": "s"}]);
            [
                user_message("1"),
                ModelMessage::Assistant {
                    text: "Yes".to_owned(),
                    thought: "Hm".to_owned(),
                    calls: vec![ToolRequest::new("a", "read", json!("no JSON"))],
                    sealed: Some(OpaqueParts::new(by, blocks)),
                },
            ]
        };
        let target = target_model(WireFormat::AnthropicMessages);
        let (own, anothers) = (by("me"), by("another"));
        let prior_calls = to_turns(target, &own);
        let ProviderTurn::Assistant(said) = &prior_calls[1] else {
            panic!("{prior_calls:?}");
        };
        assert_eq!(said.opaque_parts[0]["signature"], "s");
        assert_eq!((said.text, said.thought), (Some("Yes"), Some("Hm")));
        assert_eq!(*said.calls[0].arguments, json!({"unreadable": "no JSON"}));
        let prior_calls = to_turns(target, &anothers);
        let ProviderTurn::Assistant(said) = &prior_calls[1] else {
            panic!("{prior_calls:?}");
        };
        assert!(
            said.opaque_parts.is_empty() && said.thought.is_none(),
            "{said:?}"
        );
        assert!(lacks_thoughts(target, &anothers));
        assert!(!lacks_thoughts(target, &own));
    }

    #[test]
    fn missing_thoughts_are_detected_in_the_current_turn() {
        let thinks = |id: &str| ModelMessage::Assistant {
            text: String::new(),
            thought: "Hm".to_owned(),
            calls: vec![ToolRequest::new(id, "read", json!({}))],
            sealed: Some(OpaqueParts::new("me", json!([{"call": 0}]))),
        };
        let conversation = [
            user_message("1"),
            thinks("a"),
            result_message("a"),
            user_message("2"),
            thinks("b"),
        ];
        let prior_calls = to_turns(target_model(WireFormat::OpenAiResponses), &conversation);
        let said = prior_calls.iter().filter_map(|turn| match turn {
            ProviderTurn::Assistant(said) => {
                Some((said.thought, said.opaque_parts.len(), said.is_current_turn))
            }
            _ => None,
        });
        let said: Vec<_> = said.collect();
        assert_eq!(said, [(None, 1, false), (Some("Hm"), 1, true)]);
    }
}
