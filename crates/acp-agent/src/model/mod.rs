//! Models: what decides what to say and which tools to call.

mod offline;
mod provider;
mod scripted;
mod thought;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::choice::ModelChoices;

use acp::v1::{ContentBlock, ImageContent, StopReason};
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use offline::OfflineModel;
pub(crate) use provider::offered;
pub use provider::{
    Models, ParseProviderError, Price, Provider, ProviderModel, Retries, Secret, WireFormat,
};
pub use scripted::{ScriptError, ScriptedModel};
pub use thought::{ParseThoughtLevelError, ThoughtLevel};

/// Which model an agent has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelConfig {
    /// No AI: typed commands only. See [`OfflineModel`].
    #[default]
    Offline,
    /// Turns from a file, for tests. See [`ScriptedModel`].
    Scripted(PathBuf),
    /// A language model of a provider, or at any address that speaks as one of them.
    Provider(Box<ProviderModel>),
    /// Whatever language models there are keys for, and those that are named; each session chooses.
    Choice(Box<ModelChoices>),
}

/// Something that carries a conversation on.
///
/// A model is asked once for each round of a turn: with the conversation as it is, it gives a stream
/// of steps. If there are tool calls among them, they are carried out, their results are added to
/// the conversation, and the model is asked again; if there are none, the turn is over.
///
/// A model keeps no state between rounds: all of it is in the conversation, so that one model can
/// serve any number of sessions, and a session that was stored can go on with any model.
pub trait Model: Send + Sync {
    /// Its name, for people and logs.
    fn name(&self) -> &str;

    /// How many tokens a conversation and the answer to it may have together, where that is known.
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// Whether it understands what it is told in words. One that does not is given no instructions, is offered
    /// no commands that are prompts, and hears what a person typed exactly as it was.
    fn understands(&self) -> bool {
        true
    }

    /// Whether it can look at pictures in a prompt. One that cannot is told that there was one.
    fn takes_images(&self) -> bool {
        false
    }

    /// How much it can be told to think, the least first. Nothing if it cannot be told.
    fn thought_levels(&self) -> &[ThoughtLevel] {
        &[]
    }

    /// What its provider takes for tokens, where that is known.
    fn price(&self) -> Option<Price> {
        None
    }

    /// Carries the conversation on. The steps are reported as they come. Dropping the stream is how
    /// a round is cancelled: a model must then stop whatever it does for it.
    fn respond<'a>(&'a self, request: Request<'a>) -> Steps<'a>;
}

/// What a model answers with.
pub type Steps<'a> = Pin<Box<dyn Stream<Item = Result<Step, ModelError>> + Send + 'a>>;

/// What a model is asked with.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Request<'a> {
    /// Everything that was said and done in the session, the newest last. The last message is the
    /// person's, or the results of the model's own tool calls.
    pub conversation: &'a [Message],
    /// The tools that can be called.
    pub tools: &'a [ToolSpec],
    /// The session's working directory, an absolute path.
    pub cwd: &'a str,
    /// What the model is told before the conversation: who it is, and what holds in this session.
    pub instructions: &'a str,
    /// How much it is to think; as its provider has it if that is not said.
    pub thought: Option<ThoughtLevel>,
}

impl<'a> Request<'a> {
    /// A request.
    #[must_use]
    pub fn new(conversation: &'a [Message], tools: &'a [ToolSpec], cwd: &'a str) -> Self {
        Self {
            conversation,
            tools,
            cwd,
            instructions: "",
            thought: None,
        }
    }

    /// Sets what the model is told before the conversation.
    #[must_use]
    pub fn instructions(mut self, instructions: &'a str) -> Self {
        self.instructions = instructions;
        self
    }

    /// Sets how much the model is to think.
    #[must_use]
    pub fn thought(mut self, thought: Option<ThoughtLevel>) -> Self {
        self.thought = thought;
        self
    }
}

/// A part of a conversation. Sessions are kept with it: what is written today is read by later versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// The person's prompt.
    User(Vec<ContentBlock>),
    /// What the model said and called in one round. A round in which it did neither is not told again.
    Assistant {
        /// What it said.
        text: String,
        /// What it thought.
        thought: String,
        /// The tools it called, in order. Each has a result further on.
        calls: Vec<ToolRequest>,
        /// What its provider wants to see again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sealed: Option<Sealed>,
    },
    /// What came of a tool call.
    ToolResult(ToolResult),
}

impl Message {
    /// Whether it is a round in which nothing was said and nothing called: there is nothing in it to be told.
    pub(crate) fn is_silent(&self) -> bool {
        let Self::Assistant { text, calls, .. } = self else {
            return false;
        };
        text.trim().is_empty() && calls.is_empty()
    }

    /// What a model said without calling anything.
    pub(crate) fn said(text: impl Into<String>) -> Self {
        Self::Assistant {
            text: text.into(),
            thought: String::new(),
            calls: Vec::new(),
            sealed: None,
        }
    }

    /// What a model called without saying anything.
    #[cfg(test)]
    pub(crate) fn calling(calls: Vec<ToolRequest>) -> Self {
        Self::Assistant {
            text: String::new(),
            thought: String::new(),
            calls,
            sealed: None,
        }
    }
}

/// What only the model that gave it has a use for: signatures of its thoughts, say. It is given back to
/// that model as it came, and to no other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sealed {
    /// Which model gave it, and where.
    pub by: String,
    /// What it gave.
    pub parts: Value,
}

impl Sealed {
    /// What that model gave.
    pub fn new(by: impl Into<String>, parts: Value) -> Self {
        Self {
            by: by.into(),
            parts,
        }
    }
}

/// A tool call, as a model makes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolRequest {
    /// The model's own name for it. Clients see another id, which is unique in the session.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The tool's arguments, an object. Where a model wrote no JSON it is a string: what it wrote.
    pub arguments: Value,
}

impl ToolRequest {
    /// A tool call.
    pub fn new(id: impl Into<String>, tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            id: id.into(),
            tool: tool.into(),
            arguments,
        }
    }
}

/// What came of a tool call, as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// [`ToolRequest::id`] of the call.
    pub id: String,
    /// How it ended.
    pub status: ToolStatus,
    /// What the tool gave back, as text for the model.
    pub text: String,
    /// The same as data.
    pub data: Value,
    /// Images that belong to it, for models that see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageContent>,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolStatus {
    /// It did what it should.
    Done,
    /// It failed, and the text says why.
    Failed,
    /// The person did not allow it, so nothing was done.
    Rejected,
    /// The turn was cancelled before it was done.
    Cancelled,
}

/// A tool, as a model is told of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`, at most 64 of them, which is what all providers take.
    pub name: Cow<'static, str>,
    /// What it does and when to use it.
    pub description: Cow<'static, str>,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

impl ToolSpec {
    /// A tool with the JSON Schema of its arguments.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        description: impl Into<Cow<'static, str>>,
        parameters: Value,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters,
        }
    }
}

/// A piece of a model's answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// A piece of what it says: Markdown.
    Text(String),
    /// A piece of what it thinks.
    Thought(String),
    /// It begins to write a tool call, which is shown from here on. The call itself comes as a [`Step::Call`], when
    /// it is whole: of an answer that breaks off it never does. A model that knows its calls whole needs no such step.
    Begins {
        /// Which of the round's calls, counted from 0 in the order in which they come.
        call: usize,
        /// The tool.
        tool: String,
    },
    /// It writes on at a call that it has begun.
    Writes {
        /// Which, as in [`Step::Begins`].
        call: usize,
        /// What comes behind what it has written of the arguments so far: a piece of JSON.
        arguments: String,
    },
    /// It calls a tool. The calls of a round are carried out in order when the round is over.
    Call(ToolRequest),
    /// Nothing comes for now, and why, for the person: the model is busy and asked again later, say. It is no
    /// part of the answer, and the model does not hear of it. Of calls that it has begun nothing comes any more: it
    /// begins anew.
    Delay(String),
    /// What the model wants to see again of this round. It comes once at most.
    Sealed(Sealed),
    /// What the round has used so far. A later one replaces it.
    Usage(Usage),
    /// It stops, and why. A stream that ends without it has stopped with [`StopReason::EndTurn`].
    /// Tool calls are carried out after that reason only, since after any other they may be cut off.
    Stop(StopReason),
}

/// How many tokens a round used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// What the model was given: the conversation, the tools, and what stands before them. What came from the
    /// provider's cache is part of it.
    pub input: u64,
    /// What it answered with, thoughts included.
    pub output: u64,
    /// Of that, thoughts.
    pub thought: u64,
    /// Of the input, what came from the provider's cache.
    pub cache_read: u64,
    /// Of the input, what was put there.
    pub cache_write: u64,
}

impl Usage {
    /// What stands in the model's window after the round.
    #[must_use]
    pub fn in_window(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// Why a model cannot answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ModelError {
    /// What it is, for programs.
    pub kind: ModelErrorKind,
    /// What went wrong, and what to do about it, for people.
    pub message: String,
}

/// What kind of failure it is that keeps a model from answering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// There is no key, or the provider does not take it.
    Unauthorized,
    /// The provider has no such model, or not for this key.
    UnknownModel,
    /// The conversation is longer than the model's window.
    ContextFull,
    /// The provider is overloaded, or the limit of what may be asked is reached, and trying again did not help.
    Overloaded,
    /// The provider cannot be reached.
    Unreachable,
    /// The answer broke off, or is none that its format allows.
    Broken,
    /// Anything else.
    #[default]
    Other,
}

impl ModelErrorKind {
    /// Its name, as clients find it in the `data` of an error.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::UnknownModel => "unknown_model",
            Self::ContextFull => "context_full",
            Self::Overloaded => "overloaded",
            Self::Unreachable => "unreachable",
            Self::Broken => "broken",
            Self::Other => "other",
        }
    }
}

impl ModelError {
    /// An error of no kind in particular.
    pub fn new(message: impl Into<String>) -> Self {
        Self::of(ModelErrorKind::Other, message)
    }

    /// An error of that kind.
    pub fn of(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// The next step of a stream.
pub(crate) async fn next(steps: &mut Steps<'_>) -> Option<Result<Step, ModelError>> {
    std::future::poll_fn(|cx| steps.as_mut().poll_next(cx)).await
}

/// Steps that are all known, and then, if told to, nothing for ever.
pub(crate) struct Known {
    steps: VecDeque<Result<Step, ModelError>>,
    hang: bool,
}

impl Known {
    pub(crate) fn steps<'a>(
        steps: impl IntoIterator<Item = Result<Step, ModelError>>,
        hang: bool,
    ) -> Steps<'a> {
        Box::pin(Self {
            steps: steps.into_iter().collect(),
            hang,
        })
    }
}

impl Stream for Known {
    type Item = Result<Step, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.steps.pop_front() {
            // Nobody wakes it: it ends by being dropped.
            None if self.hang => Poll::Pending,
            step => Poll::Ready(step),
        }
    }
}
