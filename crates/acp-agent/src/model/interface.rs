//! What every model is, and what it is asked with.

use std::borrow::Cow;

use serde_json::Value;

use super::message::ModelMessage;
use super::provider::catalogue::Price;
use super::step::Steps;
use super::thought::ThoughtLevel;

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
    fn respond<'a>(&'a self, request: RoundRequest<'a>) -> Steps<'a>;
}

/// What a model is asked with.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RoundRequest<'a> {
    /// Everything that was said and done in the session, the newest last. The last message is the
    /// person's, or the results of the model's own tool calls.
    pub conversation: &'a [ModelMessage],
    /// The tools that can be called.
    pub tools: &'a [ToolSpec],
    /// The session's working directory, an absolute path.
    pub cwd: &'a str,
    /// What the model is told before the conversation: who it is, and what holds in this session.
    pub instructions: &'a str,
    /// How much it is to think; as its provider has it if that is not said.
    pub thought: Option<ThoughtLevel>,
}

impl<'a> RoundRequest<'a> {
    /// A request.
    #[must_use]
    pub fn new(conversation: &'a [ModelMessage], tools: &'a [ToolSpec], cwd: &'a str) -> Self {
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
