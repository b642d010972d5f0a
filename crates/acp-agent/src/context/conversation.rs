//! The conversation with the model, and its use of the context window.

use super::compaction::Compaction;
use super::instructions::Instructions;
use crate::mode::Mode;
use crate::model::message::ModelMessage;
use crate::model::step::TokenUsage;

/// The assumed number of bytes per token. For natural languages and code, the actual number is between three and five.
/// The estimate is only used to decide when to compact.
pub(crate) const BYTES_PER_TOKEN: u64 = 4;

/// The context usage at which a conversation is compacted, in percent. The rest of the window is kept free for one
/// round: a response of typical length and some tool results.
const COMPACT_AT_PERCENT: u64 = 80;

/// The minimum growth of the context usage between two compactions, in percent of the window. Without this minimum, a
/// conversation that cannot be compacted enough to fit into a small window would be compacted before every round, to no
/// effect.
const MIN_GROWTH_PERCENT: u64 = 10;

/// The conversation with the model, together with its instructions.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: Vec<ModelMessage>,
    /// The instructions for the running turn.
    instructions: Instructions,
    /// Whether the model reported that the conversation does not fit into its context window.
    pub(crate) has_overflowed: bool,
    usage: ContextUsage,
}

/// How much of the model's context window is used. Some values may not be known yet.
#[derive(Debug, Default)]
struct ContextUsage {
    /// The usage most recently reported by the model, in tokens.
    reported_tokens: Option<u64>,
    /// The number of bytes added to the conversation since the last report.
    added_since_report: u64,
    /// Whether the conversation has been compacted since the last report.
    was_compacted: bool,
    /// The usage right after the last compaction, in tokens.
    tokens_after_compaction: u64,
}

impl Conversation {
    /// Creates a conversation from stored messages.
    pub(crate) fn from_messages(messages: Vec<ModelMessage>) -> Self {
        let mut all = Self::default();
        for message in messages {
            all.push(message);
        }
        all
    }

    pub(crate) fn messages(&self) -> &[ModelMessage] {
        &self.messages
    }

    /// Returns the instructions for a session in this mode.
    pub(crate) fn instructions(&self, mode: Mode) -> String {
        self.instructions.for_mode(mode)
    }

    pub(crate) fn set_instructions(&mut self, instructions: Instructions) {
        self.instructions = instructions;
    }

    /// Adds a message. Skips a round that has neither text nor calls, because providers reject empty messages.
    pub(crate) fn push(&mut self, message: ModelMessage) {
        if message.is_silent() {
            return;
        }
        self.usage.added_since_report += super::compaction::message_size(&message);
        self.messages.push(message);
    }

    /// Records that the model rejected the conversation because it does not fit into its window.
    pub(crate) fn set_overflowed(&mut self) {
        self.has_overflowed = true;
    }

    /// Records the usage that the model reported. It covers everything up to and including the model's response.
    pub(crate) fn record_usage(&mut self, usage: TokenUsage) {
        let used_tokens = usage.tokens_in_window();
        if std::mem::take(&mut self.usage.was_compacted) {
            self.usage.tokens_after_compaction = used_tokens;
        }
        (self.usage.reported_tokens, self.usage.added_since_report) = (Some(used_tokens), 0);
    }

    /// Returns how many tokens of the context window are used, if known.
    pub(crate) fn used_tokens(&self) -> Option<u64> {
        let since = self.usage.added_since_report / BYTES_PER_TOKEN;
        Some(self.usage.reported_tokens?.saturating_add(since))
    }

    /// Returns `true` if the conversation must be compacted before the next round. `window` is the size of the context
    /// window in tokens.
    pub(crate) fn needs_compaction(&self, window: u64) -> bool {
        let percent = |n: u64| window / 100 * n;
        self.used_tokens().is_some_and(|filled| {
            filled >= percent(COMPACT_AT_PERCENT)
                && filled >= self.usage.tokens_after_compaction + percent(MIN_GROWTH_PERCENT)
        })
    }

    /// Postpones compaction until the conversation grows. Called when the conversation cannot be compacted any further.
    pub(crate) fn defer_compaction(&mut self) {
        self.usage.tokens_after_compaction = self.used_tokens().unwrap_or_default();
    }

    /// Applies a compaction to the conversation. The context usage is then unknown until the model reports it again.
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

    fn token_usage(tokens: u64) -> TokenUsage {
        TokenUsage {
            input: tokens,
            ..TokenUsage::default()
        }
    }

    #[test]
    fn compaction_is_needed_if_the_window_is_nearly_full_and_usage_has_grown() {
        let mut conversation = Conversation::default();
        assert!(!conversation.needs_compaction(1000));
        conversation.record_usage(token_usage(790));
        assert!(!conversation.needs_compaction(1000));
        let more = "x".repeat(200);
        conversation.push(ModelMessage::User(vec![ContentBlock::text(more)]));
        assert!(conversation.needs_compaction(1000), "{conversation:?}");

        // The instructions alone may use that much of the window.
        conversation.compact(&Compaction::default());
        assert!(!conversation.needs_compaction(1000));
        conversation.record_usage(token_usage(850));
        assert!(!conversation.needs_compaction(1000));
        conversation.record_usage(token_usage(949));
        assert!(!conversation.needs_compaction(1000));
        conversation.record_usage(token_usage(950));
        assert!(conversation.needs_compaction(1000));
        conversation.defer_compaction();
        assert!(!conversation.needs_compaction(1000));
    }
}
