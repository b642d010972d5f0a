//! Where turns begin in a conversation.

use std::sync::Arc;

use acp::thread::ItemKind;
use acp::v1::{MessageId, SessionId};
use acp::{Thread, ThreadHandle};

use crate::export;

/// The maximum length of a prompt's text that is kept to find the prompt again, in bytes.
const MAX_TEXT_BYTES: usize = 1000;

/// The beginning of a turn in a conversation.
#[derive(Debug, Clone)]
pub(super) struct TurnPosition {
    /// The session of the conversation, which the tab may have left since.
    pub(super) session: SessionId,
    pub(super) thread: ThreadHandle,
    /// The number of items before the turn.
    pub(super) item_count: usize,
    /// The earlier conversation, if it was sent with the turn's prompt. Then the turn is the first of its session.
    pub(super) transcript: Option<Arc<str>>,
}

impl TurnPosition {
    /// Returns the last message of the agent before the turn. A copy of the session up to this message ends before the
    /// turn. Returns `None` if there is no such message, because the turn is the first one, or the agent did not say
    /// anything in the turn before.
    pub(super) fn last_message(&self) -> Option<MessageId> {
        self.thread.read(|thread| {
            let items = self.items_before(thread)?.iter().rev();
            let items = items.filter(|item| item.parent.is_none());
            for item in items {
                match &item.kind {
                    ItemKind::Agent(message) => return message.id.clone(),
                    ItemKind::User(_) => return None,
                    _ => {}
                }
            }
            None
        })
    }

    /// Returns whether nothing was said before the turn.
    pub(super) fn is_beginning(&self) -> bool {
        let is_user = |item: &acp::thread::Item| matches!(item.kind, ItemKind::User(_));
        let is_first = self.thread.read(|thread| {
            let items = self.items_before(thread);
            thread.truncation().items == 0 && items.is_none_or(|items| !items.iter().any(is_user))
        });
        is_first && self.transcript.is_none()
    }

    /// Returns the text of the turn's prompt as the conversation contains it, unless the earlier conversation is a part
    /// of it.
    pub(super) fn prompt(&self) -> Option<String> {
        self.thread.read(|thread| {
            let index = self.item_count.checked_sub(thread.truncation().items)?;
            match &thread.items().get(index)?.kind {
                ItemKind::User(message) => Some(message.text()),
                _ => None,
            }
            .filter(|text| !text.starts_with(export::TRANSCRIPT_INTRODUCTION))
        })
    }

    /// Returns the conversation before the turn as Markdown, or `None` if there is nothing to tell.
    pub(super) fn render_transcript(&self) -> Option<Arc<str>> {
        self.transcript.clone().or_else(|| {
            let render = |thread: &Thread| export::render_transcript(thread, self.item_count);
            self.thread.read(render).map(Arc::from)
        })
    }

    fn items_before<'a>(&self, thread: &'a Thread) -> Option<&'a [acp::thread::Item]> {
        let count = self.item_count.checked_sub(thread.truncation().items)?;
        thread.items().get(..count)
    }
}

/// The beginning of a prompt's text, which finds the prompt again in a conversation that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptText(String);

impl PromptText {
    pub(crate) fn new(text: &str) -> Self {
        let text = text.trim();
        let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
        let end = ends.take_while(|end| *end <= MAX_TEXT_BYTES).last();
        Self(text[..end.unwrap_or(0)].to_owned())
    }

    /// Returns whether a message of the user is this prompt. A transcript can come before it.
    fn is_shown_as(&self, message: &str) -> bool {
        let (text, message) = (self.0.as_str(), message.trim());
        let is_cut = text.len() > MAX_TEXT_BYTES - 4;
        message == text
            || is_cut && message.starts_with(text)
            || message.starts_with(export::TRANSCRIPT_INTRODUCTION) && message.ends_with(text)
    }
}

impl From<PromptText> for String {
    fn from(text: PromptText) -> Self {
        text.0
    }
}

/// A turn to find in a conversation.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnToFind<'a> {
    pub(super) prompt: &'a PromptText,
    /// The number of items before the turn, if it is known.
    pub(super) known: Option<usize>,
}

/// Finds turns in a conversation by their prompts, from the last one on. `turns` and the result are in the order of the
/// conversation. Returns the number of items before each turn, or `None` for a turn that the conversation does not contain.
pub(super) fn find_turns(thread: &Thread, turns: &[TurnToFind<'_>]) -> Vec<Option<usize>> {
    let messages: Vec<(usize, String)> = (thread.truncation().items..)
        .zip(thread.items())
        .filter(|(_, item)| item.parent.is_none())
        .filter_map(|(number, item)| match &item.kind {
            ItemKind::User(message) => Some((number, message.text())),
            _ => None,
        })
        .collect();
    let mut messages = messages.iter().rev().peekable();
    let mut found: Vec<Option<usize>> = turns
        .iter()
        .rev()
        .map(|turn| {
            if let Some(known) = turn.known {
                while messages.next_if(|(number, _)| *number >= known).is_some() {}
                return Some(known);
            }
            let mut earlier = messages.clone();
            let (number, _) = earlier.find(|(_, message)| turn.prompt.is_shown_as(message))?;
            messages = earlier;
            Some(*number)
        })
        .collect();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use acp::Update;
    use acp::update::MessageChunk;
    use acp::v1::ContentBlock;

    use super::*;

    fn thread(messages: &[(&str, &str)]) -> Thread {
        let mut thread = Thread::new();
        for (n, (speaker, text)) in messages.iter().enumerate() {
            let id = MessageId::from(format!("m{n}").as_str());
            let chunk = MessageChunk::new(ContentBlock::text(*text)).message_id(id);
            thread.apply(&match *speaker {
                "user" => Update::UserMessageChunk(chunk),
                "thought" => Update::AgentThoughtChunk(chunk),
                _ => Update::AgentMessageChunk(chunk),
            });
        }
        thread
    }

    fn position(thread: Thread, item_count: usize) -> TurnPosition {
        let handle = ThreadHandle::new();
        handle.change(|empty| *empty = thread);
        TurnPosition {
            session: "s".into(),
            thread: handle,
            item_count,
            transcript: None,
        }
    }

    #[test]
    fn a_copy_ends_with_the_last_message_before_the_turn() {
        let thread = thread(&[
            ("user", "one"),
            ("agent", "1"),
            ("thought", "hm"),
            ("user", "two"),
            ("thought", "hm"),
            ("user", "three"),
        ]);
        let last = |count| position(thread.clone(), count).last_message();
        assert_eq!(last(0), None);
        assert_eq!(last(3), Some("m1".into()));
        // The agent did not say anything in the second turn, so a copy would end before that.
        assert_eq!(last(5), None);
        let is_beginning = |count| position(thread.clone(), count).is_beginning();
        assert!(is_beginning(0));
        assert!(!is_beginning(3));
    }

    #[test]
    fn turns_are_found_from_the_end() {
        let thread = thread(&[
            ("user", "go on"),
            ("agent", "1"),
            ("user", "go on"),
            ("agent", "2"),
            ("user", "by another client"),
            ("user", " go on\n"),
            ("agent", "3"),
        ]);
        let texts = ["not there", "go on", "go on"].map(PromptText::new);
        let turns = texts.each_ref().map(|prompt| TurnToFind {
            prompt,
            known: None,
        });
        assert_eq!(find_turns(&thread, &turns), [None, Some(2), Some(5)]);
        // What comes after a turn whose place is known does not count.
        let running = PromptText::new("go on");
        let running = TurnToFind {
            prompt: &running,
            known: Some(5),
        };
        let turns = [turns[1], running];
        assert_eq!(find_turns(&thread, &turns), [Some(2), Some(5)]);
    }

    #[test]
    fn a_prompt_is_found_by_its_beginning() {
        let long = "ä".repeat(MAX_TEXT_BYTES);
        assert!(PromptText::new(&long).is_shown_as(&long));
        assert!(!PromptText::new("go").is_shown_as("go on"));
        let with_transcript = format!("{}…</conversation>\n\ngo", export::TRANSCRIPT_INTRODUCTION);
        assert!(PromptText::new("go").is_shown_as(&with_transcript));
    }
}
