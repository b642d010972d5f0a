//! What was said and done in a session, as the model is told of it, and how much of its window that fills.

use super::compaction::Compaction;
use super::instructions::Instructions;
use crate::mode::Mode;
use crate::model::message::Message;
use crate::model::step::Usage;

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
    messages: Vec<Message>,
    /// What stands before it in the turn that runs.
    instructions: Instructions,
    /// The model said that it does not fit into its window.
    pub(crate) overflows: bool,
    filled: Filled,
}

/// What is known of how much of the window is filled.
#[derive(Debug, Default)]
struct Filled {
    /// What the model said after the last round, in tokens.
    told: Option<u64>,
    /// What has come since, in bytes.
    since: u64,
    /// Room was made, or was tried to be made, and it is not known yet how much is filled after that.
    made: bool,
    /// What was filled after that.
    after: u64,
}

impl Conversation {
    /// What there is of it, as it was read back.
    pub(crate) fn of(messages: Vec<Message>) -> Self {
        let mut all = Self::default();
        for message in messages {
            all.push(message);
        }
        all
    }

    pub(crate) fn messages(&self) -> &[Message] {
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
    pub(crate) fn push(&mut self, message: Message) {
        if message.is_silent() {
            return;
        }
        self.filled.since += super::compaction::size(&message);
        self.messages.push(message);
    }

    /// The model did not take it, because it does not fit into its window.
    pub(crate) fn overflowed(&mut self) {
        self.overflows = true;
    }

    /// The model has said what it was given and has answered with. That is all there is, until more is pushed.
    pub(crate) fn used(&mut self, usage: Usage) {
        let told = usage.in_window();
        if std::mem::take(&mut self.filled.made) {
            self.filled.after = told;
        }
        (self.filled.told, self.filled.since) = (Some(told), 0);
    }

    /// What of the window is filled, in tokens, as far as that is known.
    pub(crate) fn filled(&self) -> Option<u64> {
        let since = self.filled.since / BYTES_PER_TOKEN;
        Some(self.filled.told?.saturating_add(since))
    }

    /// Whether room has to be made in a window of this size, in tokens.
    pub(crate) fn nearly_fills(&self, window: u64) -> bool {
        let percent = |n: u64| window / 100 * n;
        self.filled().is_some_and(|filled| {
            filled >= percent(NEARLY_FULL) && filled >= self.filled.after + percent(GROWN)
        })
    }

    /// No room could be made now: tried again when more has come.
    pub(crate) fn stays(&mut self) {
        self.filled.after = self.filled().unwrap_or_default();
    }

    /// Makes it shorter.
    pub(crate) fn compact(&mut self, compaction: &Compaction) {
        compaction.apply(&mut self.messages);
        self.filled = Filled {
            made: true,
            ..Filled::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use acp::v1::ContentBlock;

    use super::*;

    fn used(tokens: u64) -> Usage {
        Usage {
            input: tokens,
            ..Usage::default()
        }
    }

    #[test]
    fn room_is_made_when_the_window_is_nearly_full_and_has_filled_since() {
        let mut conversation = Conversation::default();
        assert!(!conversation.nearly_fills(1000));
        conversation.used(used(790));
        assert!(!conversation.nearly_fills(1000));
        let more = "x".repeat(200);
        conversation.push(Message::User(vec![ContentBlock::text(more)]));
        assert!(conversation.nearly_fills(1000), "{conversation:?}");

        // Instructions alone may fill that much.
        conversation.compact(&Compaction::default());
        assert!(!conversation.nearly_fills(1000));
        conversation.used(used(850));
        assert!(!conversation.nearly_fills(1000));
        conversation.used(used(949));
        assert!(!conversation.nearly_fills(1000));
        conversation.used(used(950));
        assert!(conversation.nearly_fills(1000));
        conversation.stays();
        assert!(!conversation.nearly_fills(1000));
    }
}
