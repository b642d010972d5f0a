//! Defines steps, which are the pieces of a model's response.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use acp::v1::StopReason;
use futures_core::Stream;
use serde::{Deserialize, Serialize};

use super::error::ModelError;
use super::message::{OpaqueParts, ToolRequest};

/// A piece of a model's response.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// A chunk of the model's message, in Markdown.
    Text(String),
    /// A chunk of the model's thoughts.
    Thought(String),
    /// The start of a tool call, which the user sees from this point on. The complete call follows as a [`Step::Call`],
    /// unless the response is cut off. A model whose calls arrive in one piece need not send this step.
    CallStarted {
        /// The index of the call in the round. Calls are counted from 0 in the order in which they start.
        call: usize,
        /// The name of the tool being called.
        tool: String,
    },
    /// Another piece of a call that has already started.
    CallDelta {
        /// The index of the call, as in [`Step::CallStarted`].
        call: usize,
        /// The next piece of the arguments' JSON text.
        arguments: String,
    },
    /// A complete tool call. The calls of a round run in order after the round has ended.
    Call(ToolRequest),
    /// A pause, with the reason to show to the user. For example, the model is busy and the request is being retried.
    /// This is not part of the response, so the model does not see it. Calls that have already started are discarded,
    /// because the response starts over.
    Delay(String),
    /// Opaque data from this round that the model expects back. Sent at most once.
    OpaqueParts(OpaqueParts),
    /// The token usage of the round so far. It replaces the usage reported before.
    Usage(TokenUsage),
    /// The end of the response, with its stop reason. A stream without this step ends with [`StopReason::EndTurn`].
    /// Tool calls run only after that stop reason, because after any other they may be incomplete.
    Stop(StopReason),
}

/// The token usage of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TokenUsage {
    /// The number of input tokens in the system prompt, tools and conversation, including tokens from the provider's
    /// cache.
    pub input: u64,
    /// The number of output tokens, including thoughts.
    pub output: u64,
    /// The number of output tokens that were thoughts.
    pub thought: u64,
    /// The number of input tokens read from the provider's cache.
    pub cache_read: u64,
    /// The number of input tokens written to the provider's cache.
    pub cache_write: u64,
}

impl TokenUsage {
    /// Returns the number of tokens in the context window after the round.
    #[must_use]
    pub fn tokens_in_window(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// A stream of steps from a model.
pub type Steps<'a> = Pin<Box<dyn Stream<Item = Result<Step, ModelError>> + Send + 'a>>;

/// Returns the next step of a stream.
pub(crate) async fn next_step(steps: &mut Steps<'_>) -> Option<Result<Step, ModelError>> {
    std::future::poll_fn(|cx| steps.as_mut().poll_next(cx)).await
}

/// A stream of predetermined steps. It then ends or, to simulate a hang, stays pending forever.
pub(crate) struct FixedSteps {
    steps: VecDeque<Result<Step, ModelError>>,
    hangs_at_end: bool,
}

impl FixedSteps {
    pub(crate) fn fixed_steps<'a>(
        steps: impl IntoIterator<Item = Result<Step, ModelError>>,
        hang: bool,
    ) -> Steps<'a> {
        Box::pin(Self {
            steps: steps.into_iter().collect(),
            hangs_at_end: hang,
        })
    }
}

impl Stream for FixedSteps {
    type Item = Result<Step, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.steps.pop_front() {
            // Nothing wakes the task again. It ends when the stream is dropped.
            None if self.hangs_at_end => Poll::Pending,
            step => Poll::Ready(step),
        }
    }
}
