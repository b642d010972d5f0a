//! Reads the model's conversation from the stored history of a session.

use std::collections::HashSet;
use std::sync::Arc;

use acp::Update;
use acp::update::MessageChunk;
use acp::v1::{ContentBlock, MessageId};
use serde_json::Value;

use crate::model::message::{ModelMessage, ToolResult, ToolStatus};
use crate::store::entry::{StoreEntry, StoreEntryContent};
use crate::store::error::StoreError;
use crate::store::session_store::SessionStore;
use crate::store::stored_session::{EntryFilter, HistoryEnd, StoredSession};

/// The result of a tool call that was still running when the process exited.
const INTERRUPTED_RESULT: &str =
    "The agent exited before this finished. Some or all of the work may have been done.";

/// The history of a stored session at a certain revision.
#[derive(Clone)]
pub(crate) struct StoredHistory {
    store: Arc<dyn SessionStore>,
    session: StoredSession,
}

/// The model's conversation, as read from a session's history.
pub(crate) struct ModelHistory {
    /// All messages of the conversation, oldest first.
    pub(crate) messages: Vec<ModelMessage>,
    /// The messages at the end of `messages` that have not been stored yet.
    pub(crate) missing_messages: Vec<ModelMessage>,
}

impl StoredHistory {
    pub(crate) fn new(store: Arc<dyn SessionStore>, session: StoredSession) -> Self {
        Self { store, session }
    }

    pub(crate) fn stored_session(&self) -> &StoredSession {
        &self.session
    }

    /// Returns the entries starting at number `from`, in pages, so that they are never all in memory at the same time.
    pub(crate) fn entry_pages(&self, which: EntryFilter, from: u64) -> EntryPages<'_> {
        EntryPages {
            history: self,
            filter: which,
            next_entry: Some(from),
        }
    }

    /// Returns where the history ends if it contains a message, but nothing from the user's next message on. Returns `None`
    /// if no message has this id.
    pub(crate) async fn end_after(
        &self,
        last: &MessageId,
    ) -> Result<Option<HistoryEnd>, StoreError> {
        let mut was_found = false;
        let mut pages = self.entry_pages(EntryFilter::Updates, 0);
        while let Some(entries) = pages.next_with_numbers().await? {
            for (number, entry) in entries {
                // What cannot be parsed is not replayed either.
                let Ok(content) = entry.parse() else {
                    continue;
                };
                let chunk = match content {
                    StoreEntryContent::Update(Update::UserMessageChunk(chunk)) => {
                        if was_found && chunk.message_id.as_ref() != Some(last) {
                            return Ok(Some(HistoryEnd::new(self.session.revision, number)));
                        }
                        chunk
                    }
                    StoreEntryContent::Update(
                        Update::AgentMessageChunk(chunk) | Update::AgentThoughtChunk(chunk),
                    ) => chunk,
                    _ => continue,
                };
                was_found |= chunk.message_id.as_ref() == Some(last);
            }
        }
        Ok(was_found.then(|| HistoryEnd::new(self.session.revision, self.session.next_entry)))
    }

    /// Reads the model's conversation, and fills gaps that a killed process may have left. A partial response that the
    /// client has received becomes a message of the model. A tool call without a result gets one that explains why the
    /// result is missing.
    pub(crate) async fn model_history(&self) -> Result<ModelHistory, StoreError> {
        let mut messages = Vec::new();
        let mut pages = self.entry_pages(EntryFilter::Messages, 0);
        while let Some(entries) = pages.next().await? {
            for entry in entries {
                match entry.parse()? {
                    StoreEntryContent::Message(message) => messages.push(message),
                    StoreEntryContent::Compaction(compaction) => compaction.apply(&mut messages),
                    StoreEntryContent::Update(_) => {}
                }
            }
        }
        let mut untold = UnsentMessages::default();
        let mut pages = self.entry_pages(EntryFilter::All, self.session.folded_until);
        while let Some(entries) = pages.next().await? {
            for entry in entries {
                match entry.parse()? {
                    StoreEntryContent::Message(_) | StoreEntryContent::Compaction(_) => {
                        untold = UnsentMessages::default()
                    }
                    StoreEntryContent::Update(update) => untold.add(update),
                }
            }
        }
        let missing = untold.finish();
        messages.extend(missing.iter().cloned());
        Ok(ModelHistory {
            messages: add_missing_results(messages),
            missing_messages: missing,
        })
    }
}

/// An iterator over the pages of a session's entries.
pub(crate) struct EntryPages<'a> {
    history: &'a StoredHistory,
    filter: EntryFilter,
    next_entry: Option<u64>,
}

impl EntryPages<'_> {
    /// Reads the next page. Returns `None` after the last one.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<StoreEntry>>, StoreError> {
        let page = self.next_with_numbers().await?;
        Ok(page.map(|entries| entries.into_iter().map(|(_, entry)| entry).collect()))
    }

    /// Reads the next page, with the numbers of the entries. Returns `None` after the last one.
    async fn next_with_numbers(&mut self) -> Result<Option<Vec<(u64, StoreEntry)>>, StoreError> {
        let Some(from) = self.next_entry else {
            return Ok(None);
        };
        let session = &self.history.session;
        let page = self
            .history
            .store
            .read(session.id.clone(), session.revision, self.filter, from);
        let page = page.await?;
        self.next_entry = page.next;
        Ok(Some(page.entries))
    }
}

/// Messages rebuilt from the updates that the client received after the last stored message.
#[derive(Default)]
struct UnsentMessages {
    messages: Vec<ModelMessage>,
    prompt: Vec<ContentBlock>,
    text: String,
    thought: String,
}

impl UnsentMessages {
    fn add(&mut self, update: Update) {
        let text = |chunk: MessageChunk| chunk.content.as_text().unwrap_or_default().to_owned();
        match update {
            Update::UserMessageChunk(chunk) => {
                self.flush_reply();
                self.prompt.push(chunk.content);
            }
            Update::AgentMessageChunk(chunk) => {
                self.flush_prompt();
                self.text.push_str(&text(chunk));
            }
            Update::AgentThoughtChunk(chunk) => {
                self.flush_prompt();
                self.thought.push_str(&text(chunk));
            }
            _ => {}
        }
    }

    fn flush_prompt(&mut self) {
        if !self.prompt.is_empty() {
            let prompt = std::mem::take(&mut self.prompt);
            self.messages.push(ModelMessage::User(prompt));
        }
    }

    fn flush_reply(&mut self) {
        if !self.text.is_empty() || !self.thought.is_empty() {
            self.messages.push(ModelMessage::Assistant {
                text: std::mem::take(&mut self.text),
                thought: std::mem::take(&mut self.thought),
                calls: Vec::new(),
                sealed: None,
            });
        }
    }

    fn finish(mut self) -> Vec<ModelMessage> {
        self.flush_reply();
        self.flush_prompt();
        self.messages
    }
}

/// Adds a result to each tool call that has none, because providers reject conversations with missing results.
fn add_missing_results(messages: Vec<ModelMessage>) -> Vec<ModelMessage> {
    let mut all = Vec::with_capacity(messages.len());
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match &message {
            ModelMessage::ToolResult(result) => open.retain(|id| *id != result.id),
            ModelMessage::User(_) | ModelMessage::Assistant { .. } => {
                all.extend(open.drain(..).map(interrupted_result));
            }
        }
        if let ModelMessage::Assistant { calls, .. } = &message {
            let mut known = HashSet::new();
            let ids = calls.iter().map(|call| call.id.clone());
            open.extend(ids.filter(|id| known.insert(id.clone())));
        }
        all.push(message);
    }
    all.extend(open.drain(..).map(interrupted_result));
    all
}

fn interrupted_result(id: String) -> ModelMessage {
    ModelMessage::ToolResult(ToolResult {
        id,
        status: ToolStatus::Cancelled,
        text: INTERRUPTED_RESULT.to_owned(),
        data: Value::Null,
        images: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::message::ToolRequest;

    fn call_message(ids: &[&str]) -> ModelMessage {
        ModelMessage::Assistant {
            text: String::new(),
            thought: String::new(),
            calls: ids
                .iter()
                .map(|id| ToolRequest::new(*id, "run", json!({})))
                .collect(),
            sealed: None,
        }
    }

    fn result_message(id: &str) -> ModelMessage {
        ModelMessage::ToolResult(ToolResult {
            id: id.to_owned(),
            status: ToolStatus::Done,
            text: String::new(),
            data: Value::Null,
            images: Vec::new(),
        })
    }

    fn user_message(text: &str) -> ModelMessage {
        ModelMessage::User(vec![ContentBlock::text(text)])
    }

    #[test]
    fn every_call_has_a_result() {
        let messages = vec![
            user_message("1"),
            call_message(&["a", "b"]),
            result_message("a"),
            user_message("2"),
            call_message(&["c"]),
            result_message("c"),
            call_message(&["d"]),
        ];
        let ended = |id: &str| interrupted_result(id.to_owned());
        let expected = [
            user_message("1"),
            call_message(&["a", "b"]),
            result_message("a"),
            ended("b"),
            user_message("2"),
            call_message(&["c"]),
            result_message("c"),
            call_message(&["d"]),
            ended("d"),
        ];
        assert_eq!(add_missing_results(messages), expected);
    }

    #[test]
    fn shown_messages_reach_the_model() {
        let mut untold = UnsentMessages::default();
        let chunk = |text: &str| MessageChunk::new(ContentBlock::text(text));
        for update in [
            Update::AgentThoughtChunk(chunk("Hm")),
            Update::AgentMessageChunk(chunk("Hel")),
            Update::AgentMessageChunk(chunk("lo")),
            Update::UserMessageChunk(chunk("And")),
            Update::UserMessageChunk(chunk("now?")),
        ] {
            untold.add(update);
        }
        let said = ModelMessage::Assistant {
            text: "Hello".to_owned(),
            thought: "Hm".to_owned(),
            calls: Vec::new(),
            sealed: None,
        };
        let prompt = ["And", "now?"].map(ContentBlock::text).to_vec();
        assert_eq!(untold.finish(), [said, ModelMessage::User(prompt)]);
        assert_eq!(UnsentMessages::default().finish(), []);
    }
}
