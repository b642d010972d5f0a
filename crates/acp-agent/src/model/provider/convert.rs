//! A conversation as the providers take it.
//!
//! A session may have gone on with several models, been cut off by a kill, or made shorter. What providers refuse
//! is mended here: a call without a result, a result without a call, a message without content, two calls of one
//! name, two messages of the person's with nothing between them.

use std::collections::HashSet;

use acp::v1::ImageContent;
use genai::chat::{
    CacheControl, ChatMessage, ChatRequest, ChatRole, ContentPart, CustomPart, MessageContent,
    Tool, ToolCall, ToolResponse,
};
use serde_json::{Value, json};

use super::super::{Message, Request, Sealed, ToolRequest};
use super::config::Provider;
use super::prompt::{picture, prompt};

/// What a call is answered with that has no result.
const NO_RESULT: &str = "There is no result of this.";

/// The longest name of a call that all take.
const LONGEST_ID: usize = 40;

/// For whom a conversation is put together.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) provider: Provider,
    /// What it calls itself in [`Sealed::by`].
    pub(super) by: &'a str,
    pub(super) images: bool,
}

/// What a model is asked, in its provider's terms.
pub(super) fn chat_request(reader: Reader<'_>, request: &Request<'_>) -> ChatRequest {
    let mut messages = messages(reader, request.conversation);
    let mut tools: Vec<Tool> = request.tools.iter().map(tool).collect();
    if reader.provider == Provider::Anthropic {
        // It keeps what stands before these marks, and takes a tenth for it the next time. Others do so unasked.
        if let Some(tool) = tools.last_mut() {
            tool.cache_control = Some(CacheControl::Ephemeral);
        }
        if let Some(message) = messages.pop() {
            messages.push(message.with_options(CacheControl::Ephemeral));
        }
    }
    let mut asked = ChatRequest::new(messages);
    if !request.instructions.trim().is_empty() {
        asked = asked.with_system(request.instructions);
    }
    if !tools.is_empty() {
        asked = asked.with_tools(tools);
    }
    asked
}

/// Whether the model that reads this was in the middle of calling tools, and what it thought before is lost: it
/// was thought by another.
pub(super) fn lacks_thoughts(reader: Reader<'_>, conversation: &[Message]) -> bool {
    this_turn(conversation).iter().any(|message| match message {
        Message::Assistant { calls, sealed, .. } => {
            !calls.is_empty() && own(reader, sealed.as_ref()).is_none()
        }
        _ => false,
    })
}

/// What came since the person's last prompt.
fn this_turn(conversation: &[Message]) -> &[Message] {
    let start = conversation
        .iter()
        .rposition(|message| matches!(message, Message::User(_)));
    conversation
        .get(start.unwrap_or_default()..)
        .unwrap_or_default()
}

fn own<'a>(reader: Reader<'_>, sealed: Option<&'a Sealed>) -> Option<&'a Sealed> {
    sealed.filter(|sealed| sealed.by == reader.by)
}

fn tool(spec: &super::super::ToolSpec) -> Tool {
    Tool::new(spec.name.as_ref())
        .with_description(spec.description.as_ref())
        .with_schema(spec.parameters.clone())
}

/// A call whose result is still to come.
struct Open<'a> {
    /// [`ToolRequest::id`].
    id: &'a str,
    /// What the provider is told instead.
    told: String,
    tool: &'a str,
    result: Option<String>,
    pictures: &'a [ImageContent],
}

fn messages(reader: Reader<'_>, conversation: &[Message]) -> Vec<ChatMessage> {
    let old = conversation.len() - this_turn(conversation).len();
    let mut messages = Vec::with_capacity(conversation.len());
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut ids = HashSet::new();
    for (n, message) in conversation.iter().enumerate() {
        match message {
            Message::ToolResult(result) => {
                let mut waiting = open.iter_mut();
                let call = waiting.find(|call| call.result.is_none() && call.id == result.id);
                // One that nobody asked for would be refused.
                if let Some(call) = call {
                    let text = result.text.trim();
                    let text = if text.is_empty() {
                        "(nothing)"
                    } else {
                        &result.text
                    };
                    call.result = Some(text.to_owned());
                    call.pictures = &result.images;
                }
                continue;
            }
            Message::User(content) => {
                messages.extend(results(reader, &mut open));
                say(&mut messages, prompt(reader, content));
            }
            Message::Assistant {
                text,
                thought,
                calls,
                sealed,
            } => {
                messages.extend(results(reader, &mut open));
                for call in calls {
                    open.push(Open {
                        id: &call.id,
                        told: told_id(reader.provider, &call.id, &mut ids),
                        tool: &call.tool,
                        result: None,
                        pictures: &[],
                    });
                }
                let sealed = own(reader, sealed.as_ref());
                // Those who want to see its thoughts again want those of this turn.
                let thought = Some(thought).filter(|_| n >= old && sealed.is_some());
                let said = Said {
                    text,
                    thought: thought.map_or("", String::as_str),
                    calls,
                    open: &open,
                };
                let parts = said.parts(reader.provider, sealed.map(|sealed| &sealed.parts));
                // A message of thoughts alone is none.
                if !parts.is_empty() && (!text.trim().is_empty() || !calls.is_empty()) {
                    messages.push(ChatMessage::assistant(MessageContent::from_parts(parts)));
                }
            }
        }
    }
    messages.extend(results(reader, &mut open));
    messages
}

/// Adds what the person said. Behind a turn that ended before anything was answered, and behind pictures, that is
/// more of the message before: many models at home are told a conversation by a template that refuses two of them, and
/// the others do not mind.
fn say(messages: &mut Vec<ChatMessage>, said: MessageContent) {
    match messages.last_mut() {
        Some(last) if last.role == ChatRole::User => {
            last.content.extend(said.into_parts());
        }
        _ => messages.push(ChatMessage::user(said)),
    }
}

/// The results of a round, all in one message, as Anthropic wants it. The provider crate has no place in them for
/// pictures, so these follow as if the person had given them.
fn results(reader: Reader<'_>, open: &mut Vec<Open<'_>>) -> Vec<ChatMessage> {
    let mut pictures = Vec::new();
    let mut results = Vec::with_capacity(open.len());
    for call in open.drain(..) {
        let result = call.result.unwrap_or_else(|| NO_RESULT.to_owned());
        results.push(ToolResponse::new(call.told, result).with_fn_name(call.tool));
        if !call.pictures.is_empty() {
            let text = format!("(This is what the tool `{}` has shown.)", call.tool);
            pictures.push(ContentPart::Text(text));
        }
        pictures.extend(
            call.pictures
                .iter()
                .map(|image| picture(reader, &image.mime_type, &image.data, image.uri.as_deref())),
        );
    }
    let mut messages = Vec::new();
    if !results.is_empty() {
        messages.push(ChatMessage::tool(MessageContent::from_tool_responses(
            results,
        )));
    }
    if !pictures.is_empty() {
        messages.push(ChatMessage::user(MessageContent::from_parts(pictures)));
    }
    messages
}

/// A name for a call that this provider takes, and that no other call of the conversation has.
fn told_id(provider: Provider, id: &str, taken: &mut HashSet<String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    // Gemini gives calls no names; those made up for them (`call#read#0`) it is not told.
    let fits = provider == Provider::Gemini || id.chars().all(plain) && id.len() <= LONGEST_ID;
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

/// What the model said in a round.
struct Said<'a> {
    text: &'a str,
    thought: &'a str,
    calls: &'a [ToolRequest],
    open: &'a [Open<'a>],
}

impl Said<'_> {
    fn parts(&self, provider: Provider, sealed: Option<&Value>) -> Vec<ContentPart> {
        let sealed = sealed
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        let mut parts = Vec::new();
        match provider {
            // Its blocks of thoughts, as they came.
            Provider::Anthropic => parts.extend(sealed.iter().map(|block| {
                ContentPart::Custom(CustomPart {
                    model_iden: None,
                    data: block.clone(),
                })
            })),
            Provider::Gemini => {
                let signature = sealed.iter().find(|part| part.get("call").is_none());
                if let Some(signature) = signature.and_then(signature_of)
                    && !self.text.trim().is_empty()
                {
                    parts.push(ContentPart::ThoughtSignature(signature));
                }
            }
            Provider::OpenAi if !self.thought.is_empty() => {
                parts.push(ContentPart::ReasoningContent(self.thought.to_owned()));
            }
            Provider::OpenAi => {}
        }
        if !self.text.trim().is_empty() {
            parts.push(ContentPart::Text(self.text.to_owned()));
        }
        for (n, (call, open)) in self.calls.iter().zip(self.open).enumerate() {
            let mut signed = sealed.iter().filter(|_| provider == Provider::Gemini);
            let signed =
                signed.find(|part| part.get("call").and_then(Value::as_u64) == Some(n as u64));
            parts.push(ContentPart::ToolCall(ToolCall {
                call_id: open.told.clone(),
                fn_name: call.tool.clone(),
                fn_arguments: arguments(&call.arguments),
                thought_signatures: signed
                    .and_then(signature_of)
                    .map(|signature| vec![signature]),
            }));
        }
        parts
    }
}

fn signature_of(part: &Value) -> Option<String> {
    part.get("signature")
        .and_then(Value::as_str)
        .map(str::to_owned)
}

/// The arguments of a call: an object, whatever the model wrote.
fn arguments(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::Null => json!({}),
        other => json!({ "unreadable": other }),
    }
}

#[cfg(test)]
mod tests {
    use acp::v1::ContentBlock;

    use super::super::super::{ToolResult, ToolStatus};
    use super::*;

    fn reader(provider: Provider) -> Reader<'static> {
        Reader {
            provider,
            by: "me",
            images: false,
        }
    }

    fn called(ids: &[&str]) -> Message {
        let calls = ids
            .iter()
            .map(|id| ToolRequest::new(*id, "read", json!({})));
        Message::Assistant {
            text: String::new(),
            thought: String::new(),
            calls: calls.collect(),
            sealed: None,
        }
    }

    fn result(id: &str) -> Message {
        Message::ToolResult(ToolResult {
            id: id.to_owned(),
            status: ToolStatus::Done,
            text: format!("of {id}"),
            data: Value::Null,
            images: Vec::new(),
        })
    }

    fn user(text: &str) -> Message {
        Message::User(vec![ContentBlock::text(text)])
    }

    /// The names of the calls and those that are answered, and what they are answered with.
    fn outline(messages: &[ChatMessage]) -> Vec<String> {
        let of = |part: &ContentPart| match part {
            ContentPart::ToolCall(call) => format!("call {}", call.call_id),
            ContentPart::ToolResponse(result) => format!("{}: {}", result.call_id, result.content),
            ContentPart::Text(text) => text.clone(),
            other => format!("{other:?}"),
        };
        let line = |message: &ChatMessage| {
            let parts: Vec<_> = message.content.parts().iter().map(of).collect();
            parts.join(", ")
        };
        messages.iter().map(line).collect()
    }

    #[test]
    fn every_call_has_one_result_right_behind_it_and_a_name_of_its_own() {
        let conversation = [
            user("1"),
            called(&["call#read#0", "b"]),
            result("b"),
            result("nobody's"),
            called(&["call#read#0"]),
            result("call#read#0"),
            called(&[]),
            user("2"),
            called(&["b"]),
        ];
        let told = outline(&messages(reader(Provider::Anthropic), &conversation));
        assert_eq!(
            told,
            [
                "1",
                "call call_0, call b",
                "call_0: There is no result of this., b: of b",
                "call call_2",
                "call_2: of call#read#0",
                "2",
                "call call_3",
                "call_3: There is no result of this.",
            ]
        );
    }

    #[test]
    fn what_the_person_said_without_an_answer_goes_with_what_came_next() {
        let Message::ToolResult(mut pictured) = result("a") else {
            panic!("it is a result");
        };
        pictured.images = vec![ImageContent::new("aGk=", "image/png")];
        let silent = Message::said(" ");
        let conversation = [
            user("1"),
            user("2"),
            silent,
            user("3"),
            called(&["a"]),
            Message::ToolResult(pictured),
            user("4"),
        ];
        for provider in Provider::ALL {
            let told = messages(reader(provider), &conversation);
            let roles: Vec<_> = told.iter().map(|message| message.role.clone()).collect();
            use ChatRole::{Assistant, Tool, User};
            assert_eq!(roles, [User, Assistant, Tool, User], "{provider}");
            let told = outline(&told);
            assert_eq!(told[0], "1, 2, 3");
            assert!(told[3].ends_with(", 4"), "{told:?}");
        }
    }

    #[test]
    fn pictures_of_a_result_follow_it() {
        let Message::ToolResult(mut result) = result("a") else {
            panic!("it is a result");
        };
        result.images = vec![ImageContent::new("aGk=", "image/png")];
        let conversation = [user("1"), called(&["a"]), Message::ToolResult(result)];
        let mut reader = reader(Provider::Anthropic);
        let told = outline(&messages(reader, &conversation));
        assert_eq!(told[2], "a: of a");
        assert!(told[3].contains("takes no pictures"), "{told:?}");
        reader.images = true;
        let told = messages(reader, &conversation);
        let parts = told[3].content.parts();
        assert!(
            matches!(&parts[1], ContentPart::Binary(b) if b.is_image()),
            "{parts:?}"
        );
    }

    #[test]
    fn what_is_sealed_goes_back_to_whom_it_came_from() {
        let by = |by: &str| {
            let blocks = json!([{"type": "thinking", "thinking": "Hm", "signature": "s"}]);
            [
                user("1"),
                Message::Assistant {
                    text: "Yes".to_owned(),
                    thought: "Hm".to_owned(),
                    calls: vec![ToolRequest::new("a", "read", json!("no JSON"))],
                    sealed: Some(Sealed::new(by, blocks)),
                },
            ]
        };
        let parts = |provider, conversation: &[Message]| {
            let mut messages = messages(reader(provider), conversation);
            messages.remove(1).content.into_parts()
        };
        let own = parts(Provider::Anthropic, &by("me"));
        assert_eq!(own.len(), 3);
        assert!(matches!(&own[0], ContentPart::Custom(c) if c.data["signature"] == "s"));
        let ContentPart::ToolCall(call) = &own[2] else {
            panic!("{own:?}");
        };
        assert_eq!(call.fn_arguments, json!({"unreadable": "no JSON"}));
        assert_eq!(parts(Provider::Anthropic, &by("another")).len(), 2);
        assert!(lacks_thoughts(reader(Provider::Anthropic), &by("another")));
        assert!(!lacks_thoughts(reader(Provider::Anthropic), &by("me")));
    }
}
