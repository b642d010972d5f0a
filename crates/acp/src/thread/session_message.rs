//! Messages from one session to another in a thread.
//!
//! Such a message appears in both sessions, with an id in each. If a session shows its subagent's thread as well, the
//! same text would be shown twice, so the front ends ask where the other copy is.

use acp_wire::v1::SessionMessage as SessionMessageUpdate;
use acp_wire::v1::{ContentBlock, MessageId, SessionId, SessionMessageChunk};

use super::{Item, ItemKind, Thread, ThreadSubagent};
use crate::memory::weight;

/// A message from one session to another, as shown to the user.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ThreadSessionMessage {
    /// The id of the message in this session.
    pub id: MessageId,
    /// The session that sent the message, if known.
    pub sender: Option<SessionId>,
    /// The session that receives the message, if known.
    pub recipient: Option<SessionId>,
    /// The id of the message in the sender's session, if known.
    pub sender_message_id: Option<MessageId>,
    /// The id of the message in the recipient's session, if known.
    pub recipient_message_id: Option<MessageId>,
    /// The content of the message.
    pub content: Vec<ContentBlock>,
}

impl ThreadSessionMessage {
    pub(super) fn weight(&self) -> usize {
        let id = |id: &Option<SessionId>| id.as_ref().map_or(0, |id| id.as_str().len());
        self.id.as_str().len()
            + id(&self.sender)
            + id(&self.recipient)
            + weight(&self.sender_message_id)
            + weight(&self.recipient_message_id)
            + weight(&self.content)
    }
}

impl Thread {
    /// Says whom a message comes from or goes to, as seen from this session: `from NAME` or `to NAME`, or `between
    /// sessions` if neither is known. The name is the agent's text.
    #[must_use]
    pub fn message_direction(&self, message: &ThreadSessionMessage) -> String {
        let parent = self.parent_session.as_ref();
        let name = |id: &Option<SessionId>| {
            let id = id.as_ref()?;
            match self.subagent(id) {
                Some(subagent) => Some(subagent.name()),
                None => (Some(id) == parent).then_some("the parent session"),
            }
        };
        match (name(&message.sender), name(&message.recipient)) {
            (Some(sender), _) => format!("from {sender}"),
            (None, Some(recipient)) => format!("to {recipient}"),
            (None, None) => "between sessions".to_owned(),
        }
    }

    /// Returns the subagent that sends or receives a message of this thread, and the id of the message in the
    /// subagent's session, if both are known.
    #[must_use]
    pub fn subagent_copy<'a>(
        &'a self,
        message: &'a ThreadSessionMessage,
    ) -> Option<(&'a ThreadSubagent, &'a MessageId)> {
        let ends = [
            (&message.recipient, &message.recipient_message_id),
            (&message.sender, &message.sender_message_id),
        ];
        ends.into_iter().find_map(|(session, id)| {
            let subagent = self.subagent(session.as_ref()?)?;
            Some((subagent, id.as_ref()?))
        })
    }

    /// Returns `true` if the thread of one of this session's subagents contains the message as well.
    #[must_use]
    pub fn is_in_subagent(&self, message: &ThreadSessionMessage) -> bool {
        self.subagent_copy(message).is_some_and(|(subagent, id)| {
            let thread = &subagent.thread;
            thread.read(|thread| thread.find_session_message(id).is_some())
        })
    }

    /// Sets the session that has announced this one as its subagent.
    pub(super) fn set_parent_session(&mut self, parent: &SessionId) {
        self.parent_session = Some(parent.clone());
    }

    /// Returns the item number of a message between sessions.
    fn find_session_message(&self, id: &MessageId) -> Option<usize> {
        let known = self.messages.get(id).copied();
        let is_one = |item: &Item| matches!(item.kind, ItemKind::SessionMessage(_));
        known.filter(|at| self.item(*at).is_some_and(is_one))
    }

    pub(super) fn update_session_message(&mut self, update: &SessionMessageUpdate) {
        let at = self.find_or_add_session_message(&update.message_id);
        let Some(message) = self.session_message_mut(at) else {
            return;
        };
        if let Some(sender) = &update.sender_session_id {
            message.sender.clone_from(sender);
        }
        if let Some(recipient) = &update.recipient_session_id {
            message.recipient.clone_from(recipient);
        }
        if let Some(id) = &update.sender_message_id {
            message.sender_message_id.clone_from(id);
        }
        if let Some(id) = &update.recipient_message_id {
            message.recipient_message_id.clone_from(id);
        }
        if let Some(content) = &update.content {
            message.content = content.clone().unwrap_or_default();
        }
        self.update_item_weight(at);
    }

    pub(super) fn apply_session_message_chunk(&mut self, chunk: &SessionMessageChunk) {
        let at = self.find_or_add_session_message(&chunk.message_id);
        if let Some(message) = self.session_message_mut(at) {
            let added = super::message::append_chunk(&mut message.content, &chunk.content);
            self.grow_item(at, added);
        }
    }

    fn session_message_mut(&mut self, at: usize) -> Option<&mut ThreadSessionMessage> {
        match &mut self.item_mut(at)?.kind {
            ItemKind::SessionMessage(message) => Some(message),
            _ => None,
        }
    }

    /// Returns the item number of a message between sessions, adding the item if it is new.
    fn find_or_add_session_message(&mut self, id: &MessageId) -> usize {
        self.find_session_message(id).unwrap_or_else(|| {
            let at = self.push(ItemKind::SessionMessage(ThreadSessionMessage {
                id: id.clone(),
                ..ThreadSessionMessage::default()
            }));
            self.messages.insert(id.clone(), at);
            at
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acp_wire::v1::SessionUpdate;
    use serde_json::{Value, json};

    fn apply_json(thread: &mut Thread, update: Value) {
        let update: SessionUpdate = serde_json::from_value(update).unwrap();
        thread.apply(&update.into());
    }

    fn message(id: &str, sender: &str, recipient: &str, other: (&str, &str)) -> Value {
        let (field, other) = other;
        json!({"sessionUpdate": "session_message", "messageId": id, "senderSessionId": sender,
            "recipientSessionId": recipient, field: other, "content": [{"type": "text", "text": "Look"}]})
    }

    fn messages(thread: &Thread) -> Vec<&ThreadSessionMessage> {
        let items = thread.items().iter();
        items
            .filter_map(|item| match &item.kind {
                ItemKind::SessionMessage(message) => Some(message),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn the_copy_of_a_message_is_found_in_the_subagent() {
        let mut thread = Thread::new();
        apply_json(
            &mut thread,
            json!({"sessionUpdate": "subagent_update", "sessionId": "c", "title": "Scout"}),
        );
        apply_json(
            &mut thread,
            message("m1", "p", "c", ("recipientMessageId", "m2")),
        );
        assert!(!thread.is_in_subagent(messages(&thread)[0]));
        let child = thread.subagent(&"c".into()).unwrap().thread.clone();
        child.change(|child| {
            child.set_parent_session(&"p".into());
            apply_json(child, message("m2", "p", "c", ("senderMessageId", "m1")));
            apply_json(child, message("m3", "c", "p", ("recipientMessageId", "m4")));
            apply_json(child, message("m5", "x", "y", ("recipientMessageId", "m6")));
            let directions: Vec<String> = messages(child)
                .into_iter()
                .map(|message| child.message_direction(message))
                .collect();
            let expected = [
                "from the parent session",
                "to the parent session",
                "between sessions",
            ];
            assert_eq!(directions, expected);
        });
        apply_json(
            &mut thread,
            message("m4", "c", "p", ("senderMessageId", "m3")),
        );
        apply_json(
            &mut thread,
            message("m7", "c", "p", ("senderMessageId", "m8")),
        );
        let found: Vec<(String, bool)> = messages(&thread)
            .into_iter()
            .map(|message| {
                (
                    thread.message_direction(message),
                    thread.is_in_subagent(message),
                )
            })
            .collect();
        let expected = [
            ("to Scout", true),
            ("from Scout", true),
            ("from Scout", false),
        ];
        assert_eq!(
            found,
            expected.map(|(text, is_in)| (text.to_owned(), is_in))
        );
    }
}
