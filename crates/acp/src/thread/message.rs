//! Applies messages and chunks to a thread.

use acp_wire::v1::{ContentBlock, MessageId};
use acp_wire::v2;

use super::{ItemKind, Thread};
use crate::memory::weight;
use crate::update::MessageChunk;

/// A message as shown to the user, built from its chunks.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ThreadMessage {
    /// The id of the message, if the agent sent one.
    pub id: Option<MessageId>,
    /// The message's content. Consecutive text chunks form one block.
    pub content: Vec<ContentBlock>,
    /// Whether the start of the message was dropped because the thread exceeded its limit. See
    /// [`Thread::truncation`](super::Thread::truncation).
    pub is_truncated: bool,
}

impl ThreadMessage {
    /// Returns the concatenated text of all text blocks.
    #[must_use]
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(ContentBlock::as_text)
            .collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadSpeaker {
    User,
    Agent,
    Thought,
}

impl ThreadSpeaker {
    fn to_item_kind(self, message: ThreadMessage) -> ItemKind {
        match self {
            Self::User => ItemKind::User(message),
            Self::Agent => ItemKind::Agent(message),
            Self::Thought => ItemKind::Thought(message),
        }
    }
}

/// Tracks the echo of the user's message, which the thread shows before the agent echoes it. All version 2 agents and
/// some version 1 agents echo messages.
#[derive(Debug, Clone)]
pub(super) struct PromptEcho {
    /// The item number of the message.
    pub(super) item: usize,
    /// Whether the agent has started to echo the message.
    has_started: bool,
    /// The id of the message, once the agent has sent it.
    id: Option<MessageId>,
}

impl ItemKind {
    /// Returns the item's message if it is from `speaker`.
    fn message_mut(&mut self, speaker: ThreadSpeaker) -> Option<&mut ThreadMessage> {
        match (self, speaker) {
            (Self::User(m), ThreadSpeaker::User)
            | (Self::Agent(m), ThreadSpeaker::Agent)
            | (Self::Thought(m), ThreadSpeaker::Thought) => Some(m),
            _ => None,
        }
    }
}

impl Thread {
    /// Adds the user's message to the thread before the agent echoes it.
    pub(super) fn add_prompt_echo(&mut self, content: &[ContentBlock]) {
        let item = self.push(ItemKind::User(ThreadMessage {
            id: None,
            content: content.to_vec(),
            is_truncated: false,
        }));
        self.echo = Some(PromptEcho {
            item,
            has_started: false,
            id: None,
        });
    }

    /// Stores the id that the agent gave the user's message.
    pub(super) fn confirm_prompt_echo(&mut self, id: &MessageId) {
        if id.as_str().is_empty() || self.messages.contains_key(id) {
            return;
        }
        if let Some(echo) = &mut self.echo
            && echo.id.is_none()
        {
            echo.id = Some(id.clone());
            let item = echo.item;
            self.revision += 1;
            self.messages.insert(id.clone(), item);
            if let Some(message) = self.message_at(item, ThreadSpeaker::User) {
                message.id = Some(id.clone());
                self.grow_item(item, id.as_str().len());
            }
            self.enforce_limit();
        }
    }

    fn message_at(&mut self, item: usize, speaker: ThreadSpeaker) -> Option<&mut ThreadMessage> {
        self.item_mut(item)?.kind.message_mut(speaker)
    }

    /// Applies a chunk to the message with the chunk's id, wherever it is, or else to the last message.
    pub(super) fn apply_chunk(&mut self, chunk: &MessageChunk, speaker: ThreadSpeaker) {
        match &chunk.message_id {
            Some(id) if chunk.is_found_by_id => {
                let at = self.apply_chunk_by_id(id, &chunk.content, speaker);
                if let Some(parent) = self.find_parent(chunk.meta.as_ref()) {
                    self.nest_item(at, parent);
                }
            }
            _ => self.apply_chunk_at_end(chunk, speaker),
        }
    }

    /// Applies a chunk to the last message, or to a new message if the last one has another speaker or id.
    fn apply_chunk_at_end(&mut self, chunk: &MessageChunk, speaker: ThreadSpeaker) {
        if speaker == ThreadSpeaker::User && self.apply_echo(chunk) {
            return;
        }
        let parent = self.find_parent(chunk.meta.as_ref());
        let last = self.items.last_mut().filter(|item| item.parent == parent);
        if let Some(message) = last.and_then(|item| item.kind.message_mut(speaker))
            && (message.id == chunk.message_id
                || message.id.is_none()
                || chunk.message_id.is_none())
        {
            let mut added = append_chunk(&mut message.content, &chunk.content);
            if let (None, Some(id)) = (&message.id, &chunk.message_id) {
                message.id = Some(id.clone());
                added += id.as_str().len();
            }
            self.grow_item(self.next_item() - 1, added);
            return;
        }
        let at = self.push(speaker.to_item_kind(ThreadMessage {
            id: chunk.message_id.clone(),
            content: vec![chunk.content.clone()],
            is_truncated: false,
        }));
        if let Some(parent) = parent {
            self.nest_item(at, parent);
        }
    }

    /// Applies a chunk that echoes the user's message, if nothing else has happened in the turn. Returns `true` if the
    /// chunk was applied.
    fn apply_echo(&mut self, chunk: &MessageChunk) -> bool {
        let last = self.next_item().checked_sub(1);
        let Some(echo) = self
            .echo
            .as_mut()
            .filter(|echo| Some(echo.item) == last && self.turn.is_some())
        else {
            return false;
        };
        let (item, first) = (echo.item, !std::mem::replace(&mut echo.has_started, true));
        if let Some(message) = self.message_at(item, ThreadSpeaker::User) {
            if first {
                message.content.clear();
                message.id.clone_from(&chunk.message_id);
            }
            let added = append_chunk(&mut message.content, &chunk.content);
            if first {
                self.update_item_weight(item);
            } else {
                self.grow_item(item, added);
            }
        }
        true
    }

    /// Applies a chunk to the message with the given id, wherever it is. Returns its item number.
    fn apply_chunk_by_id(
        &mut self,
        id: &MessageId,
        content: &ContentBlock,
        speaker: ThreadSpeaker,
    ) -> usize {
        let (at, begins) = self.find_or_add_message(id, speaker);
        let Some(message) = self.message_at(at, speaker) else {
            return at;
        };
        if begins {
            message.content.clear();
        }
        let added = append_chunk(&mut message.content, content);
        if begins {
            self.update_item_weight(at);
        } else {
            self.grow_item(at, added);
        }
        at
    }

    /// Applies a full message, which replaces the content of the message with the same id.
    pub(super) fn apply_message(&mut self, whole: &v2::Message, speaker: ThreadSpeaker) {
        let (at, _) = self.find_or_add_message(&whole.message_id, speaker);
        if let (Some(content), Some(message)) = (&whole.content, self.message_at(at, speaker)) {
            message.content = content.clone().unwrap_or_default();
            message.is_truncated = false;
            self.update_item_weight(at);
        }
    }

    /// Returns a message's item number, adding the message if it is new. The flag is `true` if the message starts the
    /// agent's echo of the prompt.
    fn find_or_add_message(&mut self, id: &MessageId, speaker: ThreadSpeaker) -> (usize, bool) {
        let mut at = self.messages.get(id).copied();
        let mut begins = false;
        if speaker == ThreadSpeaker::User
            && let Some(echo) = &mut self.echo
        {
            // The echo was sent before the response to the prompt, which contains the id.
            if at.is_none() && echo.id.is_none() && self.turn.is_some() {
                echo.id = Some(id.clone());
                self.messages.insert(id.clone(), echo.item);
                at = Some(echo.item);
            }
            if at == Some(echo.item) {
                begins = !std::mem::replace(&mut echo.has_started, true);
            }
        }
        // Ignore another speaker's message with this id: some agents use one id for a thought and for the message after
        // it.
        let at = at.filter(|at| self.message_at(*at, speaker).is_some());
        let at = at.unwrap_or_else(|| {
            let at = self.push(speaker.to_item_kind(ThreadMessage::default()));
            self.messages.insert(id.clone(), at);
            at
        });
        if let Some(message) = self.message_at(at, speaker)
            && message.id.as_ref() != Some(id)
        {
            message.id = Some(id.clone());
            self.grow_item(at, id.as_str().len());
        }
        (at, begins)
    }
}

/// Appends a chunk to a message's content, joining consecutive text chunks. Returns the added size in bytes.
pub(super) fn append_chunk(content: &mut Vec<ContentBlock>, chunk: &ContentBlock) -> usize {
    if let (Some(ContentBlock::Text(last)), ContentBlock::Text(next)) = (content.last_mut(), chunk)
        && last.annotations == next.annotations
    {
        last.text.push_str(&next.text);
        return next.text.len();
    }
    content.push(chunk.clone());
    weight(chunk)
}
