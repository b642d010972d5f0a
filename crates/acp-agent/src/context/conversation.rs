//! What was said and done in a session, as the model is told of it, and how much of its window that fills.

use super::compaction::Compaction;
use super::instructions::Instructions;
use crate::mode::Mode;
use crate::model::message::ModelMessage;
use crate::model::step::TokenUsage;

/// How many bytes of a conversation are taken for a token. Languages and code have three to five of them; what
/// follows from it is only when to look again.
pub(crate) const BYTES_PER_TOKEN: u64 = 4;

/// How much of the window may be filled before room is made, in percent. What is left is for what one round
/// brings: an answer of usual length, and the results of some tool calls.
const NEARLY_FULL: u64 = 80;

/// How much of the window must have been filled since room was made last, in percent. What cannot be made
/// shorter may fill a small window by itself; asking for a summary in each round would help nobody.
const GROWN: u64 = 10;

/// What was said and done in a session.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: Vec<ModelMessage>,
    /// What stands before it in the turn that runs.
    instructions: Instructions,
    /// The model said that it does not fit into its window.
    pub(crate) has_overflowed: bool,
    usage: ContextUsage,
}

/// What is known of how much of the window is filled.
#[derive(Debug, Default)]
struct ContextUsage {
    /// What the model said after the last round, in tokens.
    reported_tokens: Option<u64>,
    /// What has come since, in bytes.
    added_since_report: u64,
    /// Room was made, or was tried to be made, and it is not known yet how much is filled after that.
    was_compacted: bool,
    /// What was filled after that.
    tokens_after_compaction: u64,
}

impl Conversation {
    /// What there is of it, as it was read back.
    pub(crate) fn of(messages: Vec<ModelMessage>) -> Self {
        let mut all = Self::default();
        for message in messages {
            all.push(message);
        }
        all
    }

    pub(crate) fn messages(&self) -> &[ModelMessage] {
        &self.messages
    }

    /// What stands before it.
    pub(crate) fn instructions(&self, mode: Mode) -> String {
        self.instructions.in_mode(mode)
    }

    pub(crate) fn instruct(&mut self, instructions: Instructions) {
        self.instructions = instructions;
    }

    /// Adds to it. A round in which nothing was said and nothing called is left out: providers refuse a message
    /// with nothing in it.
    pub(crate) fn push(&mut self, message: ModelMessage) {
        if message.is_silent() {
            return;
        }
        self.usage.added_since_report += super::compaction::size(&message);
        self.messages.push(message);
    }

    /// The model did not take it, because it does not fit into its window.
    pub(crate) fn set_overflowed(&mut self) {
        self.has_overflowed = true;
    }

    /// The model has said what it was given and has answered with. That is all there is, until more is pushed.
    pub(crate) fn record_usage(&mut self, usage: TokenUsage) {
        let told = usage.in_window();
        if std::mem::take(&mut self.usage.was_compacted) {
            self.usage.tokens_after_compaction = told;
        }
        (self.usage.reported_tokens, self.usage.added_since_report) = (Some(told), 0);
    }

    /// What of the window is filled, in tokens, as far as that is known.
    pub(crate) fn used_tokens(&self) -> Option<u64> {
        let since = self.usage.added_since_report / BYTES_PER_TOKEN;
        Some(self.usage.reported_tokens?.saturating_add(since))
    }

    /// Whether room has to be made in a window of this size, in tokens.
    pub(crate) fn needs_compaction(&self, window: u64) -> bool {
        let percent = |n: u64| window / 100 * n;
        self.used_tokens().is_some_and(|filled| {
            filled >= percent(NEARLY_FULL)
                && filled >= self.usage.tokens_after_compaction + percent(GROWN)
        })
    }

    /// No room could be made now: tried again when more has come.
    pub(crate) fn defer_compaction(&mut self) {
        self.usage.tokens_after_compaction = self.used_tokens().unwrap_or_default();
    }

    /// Makes it shorter.
    pub(crate) fn compact(&mut self, compaction: &Compaction) {
        compaction.apply(&mut self.messages);
        self.usage = ContextUsage {
            was_compacted: true,
            ..ContextUsage::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use acp::v1::ContentBlock;

    use super::*;

    fn used(tokens: u64) -> TokenUsage {
        TokenUsage {
            input: tokens,
            ..TokenUsage::default()
        }
    }

    #[test]
    fn room_is_made_when_the_window_is_nearly_full_and_has_filled_since() {
        let mut conversation = Conversation::default();
        assert!(!conversation.needs_compaction(1000));
        conversation.record_usage(used(790));
        assert!(!conversation.needs_compaction(1000));
        let more = "x".repeat(200);
        conversation.push(ModelMessage::User(vec![ContentBlock::text(more)]));
        assert!(conversation.needs_compaction(1000), "{conversation:?}");

        // Instructions alone may fill that much.
        conversation.compact(&Compaction::default());
        assert!(!conversation.needs_compaction(1000));
        conversation.record_usage(used(850));
        assert!(!conversation.needs_compaction(1000));
        conversation.record_usage(used(949));
        assert!(!conversation.needs_compaction(1000));
        conversation.record_usage(used(950));
        assert!(conversation.needs_compaction(1000));
        conversation.defer_compaction();
        assert!(!conversation.needs_compaction(1000));
    }
}
