//! Defines the trait that every model implements, and the request that a model receives.

use std::borrow::Cow;

use serde_json::Value;

use super::message::ModelMessage;
use super::provider::catalogue::Price;
use super::step::Steps;
use super::thought::ThoughtLevel;

/// A language model, or a substitute for one, that continues a conversation.
///
/// A model is called once for each round of a turn. It gets the conversation so far and returns a stream of steps. If
/// there are tool calls among the steps, the agent runs them, adds their results to the conversation, and calls the
/// model again. If there are none, the turn is over.
///
/// A model keeps no state between rounds: everything is in the conversation. So one model can serve any number of
/// sessions, and a stored session can continue with any model.
pub trait Model: Send + Sync {
    /// Returns the model's name, to show to users and in logs.
    fn name(&self) -> &str;

    /// Returns the maximum combined number of tokens in a conversation and its response, if known.
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// Returns `true` if the model understands natural language. Otherwise, it receives the user's text unchanged and
    /// without instructions, and custom commands that expand to prompts are not available.
    fn understands_language(&self) -> bool {
        true
    }

    /// Returns `true` if the model accepts images in a prompt. Otherwise, each image is replaced with a note.
    fn accepts_images(&self) -> bool {
        false
    }

    /// Returns the supported thought levels, lowest first. Empty if there is no choice.
    fn thought_levels(&self) -> &[ThoughtLevel] {
        &[]
    }

    /// Returns the price of the model's tokens, if known.
    fn price(&self) -> Option<Price> {
        None
    }

    /// Continues the conversation. Yields the steps as they arrive. Dropping the stream cancels the round, and the
    /// model must then stop all of its work.
    fn respond<'a>(&'a self, request: RoundRequest<'a>) -> Steps<'a>;
}

/// The input to a model for one round.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RoundRequest<'a> {
    /// The whole conversation of the session, oldest message first. The last message is the user's prompt or the result
    /// of a tool call.
    pub conversation: &'a [ModelMessage],
    /// The tools that the model may call.
    pub tools: &'a [ToolSpec],
    /// The session's working directory, an absolute path.
    pub cwd: &'a str,
    /// The system prompt, which describes the model's role and the rules of this session.
    pub instructions: &'a str,
    /// The thought level. `None` means the provider's default.
    pub thought: Option<ThoughtLevel>,
}

impl<'a> RoundRequest<'a> {
    /// Creates a request with no instructions and with the provider's default thought level.
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

    /// Sets the system prompt.
    #[must_use]
    pub fn instructions(mut self, instructions: &'a str) -> Self {
        self.instructions = instructions;
        self
    }

    /// Sets the thought level for the round. `None` means the provider's default.
    #[must_use]
    pub fn thought(mut self, thought: Option<ThoughtLevel>) -> Self {
        self.thought = thought;
        self
    }
}

/// A tool's description, as sent to a model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The tool's name: at most 64 letters, digits, `_` and `-`, which all providers accept.
    pub name: Cow<'static, str>,
    /// A description, for the model, of what the tool does and when to use it.
    pub description: Cow<'static, str>,
    /// The JSON Schema of the tool's arguments.
    pub parameters: Value,
}

impl ToolSpec {
    /// Creates a tool description. `parameters` is the JSON Schema of the tool's arguments.
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
