//! Messages: whole, or put together from their chunks.

use acp_wire::v1::{ContentBlock, MessageId};
use acp_wire::v2;

use super::weight::weight;
use super::{ItemKind, Thread};
use crate::update::MessageChunk;

/// A message, put together from its chunks.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Message {
    /// Its id, if the agent gave it one.
    pub id: Option<MessageId>,
    /// Its content; text that came in pieces is one block.
    pub content: Vec<ContentBlock>,
    /// Its beginning was dropped, because the thread would have become larger than its limit:
    /// [`Thread::dropped`](super::Thread::dropped).
    pub cut: bool,
}

impl Message {
    /// All of its text.
    #[must_use]
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(ContentBlock::as_text)
            .collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Agent,
    Thought,
}

impl Speaker {
    fn item(self, message: Message) -> ItemKind {
        match self {
            Self::User => ItemKind::User(message),
            Self::Agent => ItemKind::Agent(message),
            Self::Thought => ItemKind::Thought(message),
        }
    }
}

/// What the person said, shown before the agent has told it again. Agents of version 2 do, some of
/// version 1 do as well.
#[derive(Debug, Clone)]
pub(super) struct Echo {
    /// The number of its item.
    pub(super) item: usize,
    /// The agent has begun to tell it.
    begun: bool,
    /// The message's id, once the agent has said it.
    id: Option<MessageId>,
}

impl ItemKind {
    /// The message of this speaker's.
    fn message_of(&mut self, speaker: Speaker) -> Option<&mut Message> {
        match (self, speaker) {
            (Self::User(m), Speaker::User)
            | (Self::Agent(m), Speaker::Agent)
            | (Self::Thought(m), Speaker::Thought) => Some(m),
            _ => None,
        }
    }
}

impl Thread {
    /// What the person says, as the client shows it at once.
    pub(super) fn said(&mut self, content: &[ContentBlock]) {
        let item = self.push(ItemKind::User(Message {
            id: None,
            content: content.to_vec(),
            cut: false,
        }));
        self.echo = Some(Echo {
            item,
            begun: false,
            id: None,
        });
    }

    /// The agent has taken what the person said, as this message.
    pub fn prompt_inserted(&mut self, id: &MessageId) {
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
            if let Some(message) = self.message_at(item, Speaker::User) {
                message.id = Some(id.clone());
                self.heavier(item, id.as_str().len());
            }
            self.keep_within();
        }
    }

    fn message_at(&mut self, item: usize, speaker: Speaker) -> Option<&mut Message> {
        self.item_mut(item)?.kind.message_of(speaker)
    }

    /// A piece of a message: of the one with its id, wherever that is, or of the one at the end.
    pub(super) fn chunk(&mut self, chunk: &MessageChunk, speaker: Speaker) {
        match &chunk.message_id {
            Some(id) if chunk.by_id => self.chunk_of(id, &chunk.content, speaker),
            _ => self.chunk_at_end(chunk, speaker),
        }
    }

    /// It belongs to the message at the end, unless that is another speaker's or has another id.
    fn chunk_at_end(&mut self, chunk: &MessageChunk, speaker: Speaker) {
        if speaker == Speaker::User && self.echoed(chunk) {
            return;
        }
        let last = self.items.last_mut();
        if let Some(message) = last.and_then(|item| item.kind.message_of(speaker))
            && (message.id == chunk.message_id
                || message.id.is_none()
                || chunk.message_id.is_none())
        {
            let mut added = append(&mut message.content, &chunk.content);
            if let (None, Some(id)) = (&message.id, &chunk.message_id) {
                message.id = Some(id.clone());
                added += id.as_str().len();
            }
            self.heavier(self.next_item() - 1, added);
            return;
        }
        self.push(speaker.item(Message {
            id: chunk.message_id.clone(),
            content: vec![chunk.content.clone()],
            cut: false,
        }));
    }

    /// Whether a piece of the message at the end tells again what the person has just said: it comes before
    /// anything else of the turn.
    fn echoed(&mut self, chunk: &MessageChunk) -> bool {
        let last = self.next_item().checked_sub(1);
        let Some(echo) = self
            .echo
            .as_mut()
            .filter(|echo| Some(echo.item) == last && self.turn)
        else {
            return false;
        };
        let (item, first) = (echo.item, !std::mem::replace(&mut echo.begun, true));
        if let Some(message) = self.message_at(item, Speaker::User) {
            if first {
                message.content.clear();
                message.id.clone_from(&chunk.message_id);
            }
            let added = append(&mut message.content, &chunk.content);
            if first {
                self.reweigh(item);
            } else {
                self.heavier(item, added);
            }
        }
        true
    }

    /// It belongs to the message with this id, wherever that is.
    fn chunk_of(&mut self, id: &MessageId, content: &ContentBlock, speaker: Speaker) {
        let (at, begins) = self.message(id, speaker);
        let Some(message) = self.message_at(at, speaker) else {
            return;
        };
        if begins {
            message.content.clear();
        }
        let added = append(&mut message.content, content);
        if begins {
            self.reweigh(at);
        } else {
            self.heavier(at, added);
        }
    }

    /// A whole message.
    pub(super) fn whole_message(&mut self, whole: &v2::Message, speaker: Speaker) {
        let (at, _) = self.message(&whole.message_id, speaker);
        if let (Some(content), Some(message)) = (&whole.content, self.message_at(at, speaker)) {
            message.content = content.clone().unwrap_or_default();
            message.cut = false;
            self.reweigh(at);
        }
    }

    /// The number of the message with this id, new or known; and whether what it shows is what the client
    /// showed before the agent told it.
    fn message(&mut self, id: &MessageId, speaker: Speaker) -> (usize, bool) {
        let mut at = self.messages.get(id).copied();
        let mut begins = false;
        if speaker == Speaker::User
            && let Some(echo) = &mut self.echo
        {
            // Told before the answer to the prompt, which names it.
            if at.is_none() && echo.id.is_none() && self.turn {
                echo.id = Some(id.clone());
                self.messages.insert(id.clone(), echo.item);
                at = Some(echo.item);
            }
            if at == Some(echo.item) {
                begins = !std::mem::replace(&mut echo.begun, true);
            }
        }
        // An id that another speaker's message has: agents are known to use one for a thought and the
        // message after it.
        let at = at.filter(|at| self.message_at(*at, speaker).is_some());
        let at = at.unwrap_or_else(|| {
            let at = self.push(speaker.item(Message::default()));
            self.messages.insert(id.clone(), at);
            at
        });
        if let Some(message) = self.message_at(at, speaker)
            && message.id.as_ref() != Some(id)
        {
            message.id = Some(id.clone());
            self.heavier(at, id.as_str().len());
        }
        (at, begins)
    }
}

/// Appends a chunk, text to the end of text; gives what that takes, in bytes.
pub(super) fn append(content: &mut Vec<ContentBlock>, chunk: &ContentBlock) -> usize {
    if let (Some(ContentBlock::Text(last)), ContentBlock::Text(next)) = (content.last_mut(), chunk)
        && last.annotations == next.annotations
    {
        last.text.push_str(&next.text);
        return next.text.len();
    }
    content.push(chunk.clone());
    weight(chunk)
}
