//! The past of a session, read back: what the model was told of it.

use std::collections::HashSet;
use std::sync::Arc;

use acp::Update;
use acp::update::MessageChunk;
use acp::v1::ContentBlock;
use serde_json::Value;

use crate::model::message::{Message, ToolResult, ToolStatus};
use crate::store::entry::{Content, Entry};
use crate::store::error::StoreError;
use crate::store::kept::{Kept, Which};
use crate::store::session_store::SessionStore;

/// What the model is told of a tool call in the middle of which the process ended.
const ENDED: &str =
    "The agent was ended before this was done. It may have been done in part, or whole.";

/// A session that is kept, as it is now.
#[derive(Clone)]
pub(crate) struct Past {
    store: Arc<dyn SessionStore>,
    kept: Kept,
}

/// What the model is told of it.
pub(crate) struct Told {
    /// All of it.
    pub(crate) messages: Vec<Message>,
    /// What of it is not kept yet, at the end of what is.
    pub(crate) missing: Vec<Message>,
}

impl Past {
    pub(crate) fn new(store: Arc<dyn SessionStore>, kept: Kept) -> Self {
        Self { store, kept }
    }

    pub(crate) fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Its entries from this number on, page by page: it is not in memory all at once.
    pub(crate) fn pages(&self, which: Which, from: u64) -> Pages<'_> {
        Pages {
            past: self,
            which,
            at: Some(from),
        }
    }

    /// What the model is told of it. A process that was killed may have left gaps: what the client was shown
    /// of an answer that did not come to its end was said; a call without a result gets one that says why.
    pub(crate) async fn told(&self) -> Result<Told, StoreError> {
        let mut messages = Vec::new();
        let mut pages = self.pages(Which::Messages, 0);
        while let Some(entries) = pages.next().await? {
            for entry in entries {
                match entry.read()? {
                    Content::Message(message) => messages.push(message),
                    Content::Compaction(compaction) => compaction.apply(&mut messages),
                    Content::Shown(_) => {}
                }
            }
        }
        let mut untold = Untold::default();
        let mut pages = self.pages(Which::All, self.kept.folded);
        while let Some(entries) = pages.next().await? {
            for entry in entries {
                match entry.read()? {
                    Content::Message(_) | Content::Compaction(_) => untold = Untold::default(),
                    Content::Shown(update) => untold.add(update),
                }
            }
        }
        let missing = untold.finish();
        messages.extend(missing.iter().cloned());
        Ok(Told {
            messages: complete(messages),
            missing,
        })
    }
}

/// The entries of a session, page by page.
pub(crate) struct Pages<'a> {
    past: &'a Past,
    which: Which,
    at: Option<u64>,
}

impl Pages<'_> {
    /// The next page; `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Entry>>, StoreError> {
        let Some(from) = self.at else {
            return Ok(None);
        };
        let kept = &self.past.kept;
        let page = self
            .past
            .store
            .read(kept.id.clone(), kept.version, self.which, from);
        let page = page.await?;
        self.at = page.next;
        Ok(Some(
            page.entries.into_iter().map(|(_, entry)| entry).collect(),
        ))
    }
}

/// What was shown since the model was told anything.
#[derive(Default)]
struct Untold {
    messages: Vec<Message>,
    prompt: Vec<ContentBlock>,
    text: String,
    thought: String,
}

impl Untold {
    fn add(&mut self, update: Update) {
        let text = |chunk: MessageChunk| chunk.content.as_text().unwrap_or_default().to_owned();
        match update {
            Update::UserMessageChunk(chunk) => {
                self.answered();
                self.prompt.push(chunk.content);
            }
            Update::AgentMessageChunk(chunk) => {
                self.asked();
                self.text.push_str(&text(chunk));
            }
            Update::AgentThoughtChunk(chunk) => {
                self.asked();
                self.thought.push_str(&text(chunk));
            }
            _ => {}
        }
    }

    fn asked(&mut self) {
        if !self.prompt.is_empty() {
            let prompt = std::mem::take(&mut self.prompt);
            self.messages.push(Message::User(prompt));
        }
    }

    fn answered(&mut self) {
        if !self.text.is_empty() || !self.thought.is_empty() {
            self.messages.push(Message::Assistant {
                text: std::mem::take(&mut self.text),
                thought: std::mem::take(&mut self.thought),
                calls: Vec::new(),
                sealed: None,
            });
        }
    }

    fn finish(mut self) -> Vec<Message> {
        self.answered();
        self.asked();
        self.messages
    }
}

/// Gives each call a result that has none: no provider takes a conversation in which one lacks it.
fn complete(messages: Vec<Message>) -> Vec<Message> {
    let mut all = Vec::with_capacity(messages.len());
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match &message {
            Message::ToolResult(result) => open.retain(|id| *id != result.id),
            Message::User(_) | Message::Assistant { .. } => {
                all.extend(open.drain(..).map(ended));
            }
        }
        if let Message::Assistant { calls, .. } = &message {
            let mut known = HashSet::new();
            let ids = calls.iter().map(|call| call.id.clone());
            open.extend(ids.filter(|id| known.insert(id.clone())));
        }
        all.push(message);
    }
    all.extend(open.drain(..).map(ended));
    all
}

fn ended(id: String) -> Message {
    Message::ToolResult(ToolResult {
        id,
        status: ToolStatus::Cancelled,
        text: ENDED.to_owned(),
        data: Value::Null,
        images: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::message::ToolRequest;

    fn asks(ids: &[&str]) -> Message {
        Message::Assistant {
            text: String::new(),
            thought: String::new(),
            calls: ids
                .iter()
                .map(|id| ToolRequest::new(*id, "run", json!({})))
                .collect(),
            sealed: None,
        }
    }

    fn result(id: &str) -> Message {
        Message::ToolResult(ToolResult {
            id: id.to_owned(),
            status: ToolStatus::Done,
            text: String::new(),
            data: Value::Null,
            images: Vec::new(),
        })
    }

    fn user(text: &str) -> Message {
        Message::User(vec![ContentBlock::text(text)])
    }

    #[test]
    fn every_call_has_a_result() {
        let messages = vec![
            user("1"),
            asks(&["a", "b"]),
            result("a"),
            user("2"),
            asks(&["c"]),
            result("c"),
            asks(&["d"]),
        ];
        let ended = |id: &str| ended(id.to_owned());
        let expected = [
            user("1"),
            asks(&["a", "b"]),
            result("a"),
            ended("b"),
            user("2"),
            asks(&["c"]),
            result("c"),
            asks(&["d"]),
            ended("d"),
        ];
        assert_eq!(complete(messages), expected);
    }

    #[test]
    fn what_was_shown_was_said() {
        let mut untold = Untold::default();
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
        let said = Message::Assistant {
            text: "Hello".to_owned(),
            thought: "Hm".to_owned(),
            calls: Vec::new(),
            sealed: None,
        };
        let prompt = ["And", "now?"].map(ContentBlock::text).to_vec();
        assert_eq!(untold.finish(), [said, Message::User(prompt)]);
        assert_eq!(Untold::default().finish(), []);
    }
}
