//! What a model answers with, piece by piece.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use acp::v1::StopReason;
use futures_core::Stream;
use serde::{Deserialize, Serialize};

use super::error::ModelError;
use super::message::{OpaqueParts, ToolRequest};

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
    CallStarted {
        /// Which of the round's calls, counted from 0 in the order in which they come.
        call: usize,
        /// The tool.
        tool: String,
    },
    /// It writes on at a call that it has begun.
    CallDelta {
        /// Which, as in [`Step::CallStarted`].
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
    Sealed(OpaqueParts),
    /// What the round has used so far. A later one replaces it.
    Usage(TokenUsage),
    /// It stops, and why. A stream that ends without it has stopped with [`StopReason::EndTurn`].
    /// Tool calls are carried out after that reason only, since after any other they may be cut off.
    Stop(StopReason),
}

/// How many tokens a round used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TokenUsage {
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

impl TokenUsage {
    /// What stands in the model's window after the round.
    #[must_use]
    pub fn in_window(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// What a model answers with.
pub type Steps<'a> = Pin<Box<dyn Stream<Item = Result<Step, ModelError>> + Send + 'a>>;

/// The next step of a stream.
pub(crate) async fn next_step(steps: &mut Steps<'_>) -> Option<Result<Step, ModelError>> {
    std::future::poll_fn(|cx| steps.as_mut().poll_next(cx)).await
}

/// Steps that are all known, and then, if told to, nothing for ever.
pub(crate) struct KnownSteps {
    steps: VecDeque<Result<Step, ModelError>>,
    hangs_at_end: bool,
}

impl KnownSteps {
    pub(crate) fn steps<'a>(
        steps: impl IntoIterator<Item = Result<Step, ModelError>>,
        hang: bool,
    ) -> Steps<'a> {
        Box::pin(Self {
            steps: steps.into_iter().collect(),
            hangs_at_end: hang,
        })
    }
}

impl Stream for KnownSteps {
    type Item = Result<Step, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.steps.pop_front() {
            // Nobody wakes it: it ends by being dropped.
            None if self.hangs_at_end => Poll::Pending,
            step => Poll::Ready(step),
        }
    }
}
