//! One round: the model is asked, and asked again while it is busy, and what it answers becomes steps.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use acp::v1::StopReason;
use futures_util::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatOptions, ChatStream, ChatStreamEvent, ContentPart, ReasoningEffort, StopReason as Stopped,
    StreamEnd,
};
use genai::resolver::{AuthData, Endpoint};
use genai::{ModelIden, ServiceTarget};
use serde_json::{Value, json};

use super::super::{Message, ModelError, Request, Sealed, Step, Steps, ThoughtLevel, Usage};
use super::Served;
use super::backoff::{Backoff, Wait};
use super::calls::{Added, Calls};
use super::config::{Provider, ProviderModel};
use super::convert::{self, Reader};
use super::failure::{About, Again, Failure};
use super::relay::{Broke, Outward, Relay};
use super::seen::Seen;

/// What each event counts at least, in bytes, toward what an answer may have.
const EVENT: usize = 32;

/// How many tokens a model of Anthropic's may answer with, which must be said, if nothing else is set. Their own most
/// counts as used before it is: near the end of the window, a request would be refused that has room enough.
const MOST_OUTPUT: u32 = 32_000;

/// A round that runs.
pub(super) struct Round<'a> {
    served: &'a Served,
    request: Request<'a>,
    state: State,
    /// What is known and was not taken yet.
    ready: VecDeque<Result<Step, ModelError>>,
    backoff: Backoff,
    /// Whether anything of the answer was given on: it cannot be asked for once more then.
    shown: bool,
    /// How many bytes have come.
    bytes: usize,
}

enum State {
    Ask,
    /// Until the next try.
    Wait(Duration),
    Listen(Box<Listening>),
    Done,
}

struct Listening {
    stream: ChatStream,
    /// Passes on what the stream is made of.
    passing: Pin<Box<dyn Future<Output = Result<(), Broke>> + Send>>,
    /// How that ended.
    passed: Option<Result<(), Broke>>,
    seen: Seen,
    calls: Calls,
    /// Gemini's signatures of what is no call.
    signatures: Vec<String>,
    /// Gemini's signatures of its calls.
    signed: Vec<Value>,
    thought: bool,
}

impl Listening {
    async fn next(&mut self) -> Option<genai::Result<ChatStreamEvent>> {
        loop {
            tokio::select! {
                // What has come is taken before why there is no more.
                biased;
                event = self.stream.next() => return event,
                passed = &mut self.passing, if self.passed.is_none() => self.passed = Some(passed),
            }
        }
    }
}

impl<'a> Round<'a> {
    pub(super) fn steps(served: &'a Served, request: Request<'a>) -> Steps<'a> {
        let round = Self {
            served,
            request,
            state: State::Ask,
            ready: VecDeque::new(),
            backoff: Backoff::new(served.model.retries),
            shown: false,
            bytes: 0,
        };
        Box::pin(futures_util::stream::unfold(
            round,
            |mut round| async move {
                let step = round.next().await?;
                Some((step, round))
            },
        ))
    }

    async fn next(&mut self) -> Option<Result<Step, ModelError>> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Some(step);
            }
            match std::mem::replace(&mut self.state, State::Done) {
                State::Done => return None,
                State::Wait(time) => {
                    tokio::time::sleep(time).await;
                    self.state = State::Ask;
                }
                State::Ask => match self.ask().await {
                    Ok(listening) => self.state = State::Listen(Box::new(listening)),
                    Err(failure) => self.failed(failure),
                },
                State::Listen(mut listening) => {
                    let event = listening.next().await;
                    match self.heard(&mut listening, event) {
                        Ok(true) => self.state = State::Listen(listening),
                        Ok(false) => {}
                        Err(failure) => self.failed(failure),
                    }
                }
            }
        }
    }

    /// Waits for another try, or gives up.
    fn failed(&mut self, failure: Failure) {
        let Failure {
            mut error,
            plain,
            again,
        } = failure;
        let Again::After(asked_for) = again else {
            return self.ready.push_back(Err(error));
        };
        let wait = match self.backoff.wait(asked_for) {
            Wait::For(wait) if !self.shown => wait,
            Wait::TooLong(wait) if !self.shown => {
                let seconds = wait.as_secs_f64();
                error.message =
                    format!("{}; it may be asked again in {seconds:.0} s", error.message);
                return self.ready.push_back(Err(error));
            }
            _ => return self.ready.push_back(Err(error)),
        };
        let seconds = wait.as_secs_f64();
        tracing::info!(%error, seconds, "the model is asked again");
        let (next, all) = self.backoff.next();
        let text = format!("{plain}. It is asked again in {seconds:.1} s: try {next} of {all}.");
        self.ready.push_back(Ok(Step::Delay(text)));
        self.state = State::Wait(wait);
    }

    async fn ask(&mut self) -> Result<Listening, Failure> {
        self.backoff.asks();
        self.bytes = 0;
        let served = self.served;
        let model = &served.model;
        if model.lacks_key() {
            return Err(served.about().unauthorized("there is no key for it"));
        }
        let impossible = |why: String| {
            served.about().failure(
                Default::default(),
                Again::No,
                &format!("no connection can be made: {why}"),
                "",
            )
        };
        let outward = Outward {
            client: served
                .http
                .client(&served.address)
                .await
                .map_err(impossible)?
                .clone(),
            address: served.address.clone(),
            key: model.key.clone(),
            silence: model.silence,
            longest: model.longest_answer,
        };
        let formats = served.http.formats().await.map_err(impossible)?;
        let relay = Relay::open().await.map_err(|e| impossible(e.to_string()))?;
        let seen = Seen::default();
        let reader = served.reader();
        let asked = convert::chat_request(reader, &self.request);
        let options = self.options(reader, seen.clone());
        let streamed = formats
            .exec_chat_stream(served.target(&relay), asked, Some(&options))
            .await;
        let streamed = streamed.map_err(|error| served.about().of(&error, ""))?;
        let calls = |message: &Message| match message {
            Message::Assistant { calls, .. } => calls.len(),
            _ => 0,
        };
        let before = self.request.conversation.iter().map(calls).sum();
        Ok(Listening {
            stream: streamed.stream,
            passing: Box::pin(relay.pass(outward)),
            passed: None,
            seen,
            calls: Calls::new(model.provider, before),
            signatures: Vec::new(),
            signed: Vec::new(),
            thought: false,
        })
    }

    fn options(&self, reader: Reader<'_>, seen: Seen) -> ChatOptions {
        let model = &self.served.model;
        let level = self.request.thought.or(model.thought);
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_raw_frame_sink(seen);
        // With it Anthropic's blocks of thoughts are kept, and Gemini's thoughts are asked for, which its models
        // that have none do not take.
        let thinks = !["gemini-1", "gemini-2.0", "gemma"]
            .iter()
            .any(|old| model.name.starts_with(old));
        options = options.with_capture_reasoning_content(thinks);
        options.max_tokens = match model.provider {
            Provider::Anthropic => Some(model.max_output.unwrap_or(MOST_OUTPUT)),
            Provider::OpenAi | Provider::Gemini => model.max_output,
        };
        // Anthropic does not take calls back, while thinking, without the thoughts that led to them.
        let lost = model.provider == Provider::Anthropic
            && convert::lacks_thoughts(reader, self.request.conversation);
        options.reasoning_effort = effort(model, level.filter(|_| !lost));
        options
    }

    /// Takes an event. Gives whether there are more to come.
    fn heard(
        &mut self,
        listening: &mut Listening,
        event: Option<genai::Result<ChatStreamEvent>>,
    ) -> Result<bool, Failure> {
        let about = self.served.about();
        if let Some(refusal) = listening.seen.take_refusal() {
            self.say(Step::Text(refusal))?;
        }
        // The crate only sees that its connection broke.
        if let (None | Some(Err(_)), Some(Err(broke))) = (&event, &listening.passed)
            && !listening.seen.refused()
        {
            return Err(about.passed(broke));
        }
        match event {
            None => return Err(about.broken("the answer broke off")),
            // It was blocked before it began, and there is nothing else to it.
            Some(Err(_)) if listening.seen.refused() => {
                self.ready.push_back(Ok(Step::Stop(StopReason::Refusal)));
                return Ok(false);
            }
            Some(Err(error)) => return Err(about.of(&error, &listening.seen.last())),
            Some(Ok(event)) => match event {
                ChatStreamEvent::Start | ChatStreamEvent::Heartbeat => {}
                ChatStreamEvent::Chunk(chunk) => self.say(Step::Text(chunk.content))?,
                ChatStreamEvent::ReasoningChunk(chunk) => {
                    listening.thought = true;
                    self.say(Step::Thought(chunk.content))?;
                }
                ChatStreamEvent::ThoughtSignatureChunk(chunk) => {
                    self.count(chunk.content.len())?;
                    listening.signatures.push(chunk.content);
                }
                ChatStreamEvent::ToolCallChunk(chunk) => {
                    let call = chunk.tool_call;
                    for signature in call.thought_signatures.iter().flatten() {
                        listening.signatures.retain(|other| other != signature);
                        let n = listening.calls.len();
                        listening
                            .signed
                            .push(json!({ "call": n, "signature": signature }));
                    }
                    let added = listening.calls.add(call);
                    self.count(added.written.len())?;
                    self.writes(added);
                }
                ChatStreamEvent::End(end) => {
                    self.ended(listening, end)?;
                    return Ok(false);
                }
            },
        }
        Ok(true)
    }

    fn say(&mut self, step: Step) -> Result<(), Failure> {
        if let Step::Text(text) | Step::Thought(text) = &step {
            self.count(text.len())?;
            if text.is_empty() {
                return Ok(());
            }
        }
        self.shown = true;
        self.ready.push_back(Ok(step));
        Ok(())
    }

    /// A call is no part of an answer before it is whole: another try begins it anew, and what was shown of it has
    /// failed then. So the round can be asked for once more.
    fn writes(&mut self, added: Added) {
        let Added {
            call,
            begins,
            written,
        } = added;
        let begins = begins.map(|tool| Step::Begins { call, tool });
        let writes = (!written.is_empty()).then_some(Step::Writes {
            call,
            arguments: written,
        });
        self.ready.extend(begins.into_iter().chain(writes).map(Ok));
    }

    fn count(&mut self, bytes: usize) -> Result<(), Failure> {
        self.bytes = self.bytes.saturating_add(bytes.max(EVENT));
        let most = self.served.model.longest_answer;
        if self.bytes <= most {
            return Ok(());
        }
        let mut failure = self
            .served
            .about()
            .broken(&format!("the answer has more than {most} bytes"));
        // It would be no shorter.
        failure.again = Again::No;
        Err(failure)
    }

    /// Takes the end of an answer.
    fn ended(&mut self, listening: &mut Listening, end: StreamEnd) -> Result<(), Failure> {
        let provider = self.served.model.provider;
        let about = self.served.about();
        let usage = end.captured_usage.as_ref().map(usage);
        let refused = listening.seen.refused();
        let stop = match &end.captured_stop_reason {
            _ if refused => StopReason::Refusal,
            Some(Stopped::ContentFilter(_)) => StopReason::Refusal,
            Some(Stopped::MaxTokens(_)) => StopReason::MaxTokens,
            Some(Stopped::Completed(_) | Stopped::ToolCall(_) | Stopped::StopSequence(_)) => {
                StopReason::EndTurn
            }
            Some(Stopped::Other(reason)) => match reason.as_str() {
                "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "error" => {
                    return Err(about.broken(&format!("the answer ended with {reason}")));
                }
                // There are more of them than anybody knows, and something was said.
                _ => StopReason::EndTurn,
            },
            // The others say why they stop before they say that they do.
            None if provider == Provider::Gemini => {
                return Err(about.broken("the answer broke off"));
            }
            None => StopReason::EndTurn,
        };
        let calls = std::mem::replace(&mut listening.calls, Calls::new(provider, 0)).finish();
        let parts = match provider {
            Provider::Anthropic => blocks(end),
            Provider::OpenAi => Value::Null,
            Provider::Gemini => {
                let last = listening.signatures.pop();
                let text = last.map(|signature| json!({ "signature": signature }));
                listening.signed.drain(..).chain(text).collect()
            }
        };
        // Also where there is nothing in it: whether another model has thought this is to be known.
        if listening.thought || !calls.is_empty() {
            let sealed = Sealed::new(self.served.by.as_str(), parts);
            self.ready.push_back(Ok(Step::Sealed(sealed)));
        }
        self.ready.extend(calls.into_iter().map(Step::Call).map(Ok));
        self.ready.extend(usage.map(Step::Usage).map(Ok));
        self.ready.push_back(Ok(Step::Stop(stop)));
        Ok(())
    }
}

/// Anthropic's blocks of thoughts, as it wants to see them again.
fn blocks(end: StreamEnd) -> Value {
    let parts = end.captured_content.map(|content| content.into_parts());
    let mut blocks = Vec::new();
    let mut signature = None;
    for part in parts.unwrap_or_default() {
        match part {
            ContentPart::ThoughtSignature(given) => {
                blocks.extend(
                    signature
                        .replace(given)
                        .map(|signature| thinking("", &signature)),
                );
            }
            ContentPart::ReasoningContent(thought) => {
                blocks.extend(
                    signature
                        .take()
                        .map(|signature: String| thinking(&thought, &signature)),
                );
            }
            ContentPart::Custom(block) => {
                blocks.extend(
                    signature
                        .take()
                        .map(|signature: String| thinking("", &signature)),
                );
                blocks.push(block.data);
            }
            _ => {}
        }
    }
    blocks.extend(signature.map(|signature| thinking("", &signature)));
    Value::Array(blocks)
}

fn thinking(thought: &str, signature: &str) -> Value {
    json!({ "type": "thinking", "thinking": thought, "signature": signature })
}

fn usage(usage: &genai::chat::Usage) -> Usage {
    let count = |tokens: Option<i32>| tokens.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    let input = usage.prompt_tokens_details.as_ref();
    let output = usage.completion_tokens_details.as_ref();
    let thought = count(output.and_then(|details| details.reasoning_tokens));
    Usage {
        input: count(usage.prompt_tokens),
        // Where nothing but thoughts came, Gemini's are in no sum.
        output: count(usage.completion_tokens).max(thought),
        thought,
        cache_read: count(input.and_then(|details| details.cached_tokens)),
        cache_write: count(input.and_then(|details| details.cache_creation_tokens)),
    }
}

/// How much to think, as the provider crate wants to hear it. Where nothing is said, it takes the end of some models'
/// names for it (`-max`, `-medium`) and sends the rest as the name; so something is said that has no effect.
fn effort(model: &ProviderModel, level: Option<ThoughtLevel>) -> Option<ReasoningEffort> {
    let Some(level) = level else {
        let taken = ReasoningEffort::from_model_name(&model.name).0.is_some();
        let nothing = match model.provider {
            Provider::OpenAi => ReasoningEffort::Budget(0),
            Provider::Anthropic | Provider::Gemini => ReasoningEffort::Zero,
        };
        return taken.then_some(nothing);
    };
    Some(match (level, model.provider) {
        (ThoughtLevel::Off, Provider::Gemini) => ReasoningEffort::Budget(0),
        (ThoughtLevel::Off, _) => ReasoningEffort::Zero,
        (ThoughtLevel::Low, _) => ReasoningEffort::Low,
        (ThoughtLevel::Medium, _) => ReasoningEffort::Medium,
        (ThoughtLevel::High, _) => ReasoningEffort::High,
        (ThoughtLevel::Max, Provider::OpenAi) => ReasoningEffort::XHigh,
        (ThoughtLevel::Max, _) => ReasoningEffort::Max,
    })
}

impl Served {
    /// Which model is asked, and where, for the provider crate.
    fn target(&self, relay: &Relay) -> ServiceTarget {
        let adapter = match self.model.provider {
            Provider::Anthropic => AdapterKind::Anthropic,
            Provider::OpenAi => AdapterKind::OpenAI,
            Provider::Gemini => AdapterKind::Gemini,
        };
        let address = relay.address(&self.address);
        ServiceTarget {
            endpoint: Endpoint::from_owned(Arc::<str>::from(address.as_str())),
            auth: AuthData::from_single(relay.token()),
            model: ModelIden::new(adapter, self.model.name.as_str()),
        }
    }

    fn reader(&self) -> Reader<'_> {
        Reader {
            provider: self.model.provider,
            by: &self.by,
            images: self.images,
        }
    }

    fn about(&self) -> About<'_> {
        About {
            model: &self.model,
            address: self.shown.as_str(),
            here: super::http::is_here(&self.address),
        }
    }
}
