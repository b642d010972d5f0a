//! What has changed in a session since it was last written to the store.

use std::collections::BTreeMap;

use serde_json::Value;

use super::log::MergedEntries;
use super::message::LiveLine;
use super::session::SharedSession;
use crate::store::{
    FencingToken, LiveSessionChange, LiveSessionKey, LoggedLine, PromptRecord, SessionHead,
};

/// What has changed in a session since it was last written to the store.
#[derive(Debug)]
pub(super) struct SessionRecord {
    /// Proves that this server owns the session.
    pub(super) token: FencingToken,
    /// The params with which the session was opened. Another server opens it with the same ones.
    pub(super) params: Value,
    is_new: bool,
    is_head_changed: bool,
    /// The prompts that have changed, by number.
    prompts: BTreeMap<u64, PromptRecord>,
    merged: Vec<MergedEntries>,
}

impl SessionRecord {
    /// Creates the record of a session that the store does not contain.
    pub(super) fn new(params: Value) -> Self {
        Self {
            is_new: true,
            is_head_changed: true,
            ..Self::stored(FencingToken(1), params)
        }
    }

    /// Creates the record of a session that the store contains.
    pub(super) fn stored(token: FencingToken, params: Value) -> Self {
        Self {
            token,
            params,
            is_new: false,
            is_head_changed: false,
            prompts: BTreeMap::new(),
            merged: Vec::new(),
        }
    }

    pub(super) fn head_changed(&mut self) {
        self.is_head_changed = true;
    }

    pub(super) fn prompt_changed(&mut self, record: PromptRecord) {
        self.prompts.insert(record.number, record);
    }

    pub(super) fn merged(&mut self, merged: Vec<MergedEntries>) {
        self.merged.extend(merged);
    }

    /// Returns `true` if there is something to write, apart from the log.
    pub(super) fn is_changed(&self) -> bool {
        self.is_new || self.is_head_changed || !self.prompts.is_empty() || !self.merged.is_empty()
    }
}

impl SharedSession {
    /// Takes what is to be written to the store, with up to about `max_bytes` of the log. Returns it with the position
    /// up to which the log is then written.
    pub(super) fn take_change(
        &mut self,
        agent: &str,
        max_bytes: usize,
    ) -> Option<(LiveSessionChange, u64)> {
        self.record.as_ref()?;
        let (lines, until) = self.log.take_unwritten(max_bytes);
        let setup = self.setup.to_result().clone();
        let record = self.record.as_mut()?;
        // A prompt must not have ended in the store before its turn is there.
        let prompts = match until == self.log.end() {
            true => std::mem::take(&mut record.prompts),
            false => BTreeMap::new(),
        };
        let head = record.is_head_changed.then(|| SessionHead {
            cwd: self.cwd.clone(),
            title: self.title.clone(),
            creator: self.creator.clone(),
            setup: serde_json::json!({ "result": setup, "params": record.params }).to_string(),
        });
        let added = lines.iter().map(|(number, line)| LoggedLine {
            number: *number,
            until: number + 1,
            line: text(line),
        });
        let merged = std::mem::take(&mut record.merged);
        let replaced = merged.iter().map(|merged| (merged.number, merged.end));
        let merged_lines = merged.iter().map(|merged| LoggedLine {
            number: merged.number,
            until: merged.end,
            line: text(&merged.line),
        });
        let change = LiveSessionChange {
            key: LiveSessionKey {
                agent: agent.to_owned(),
                session: self.id.to_string(),
            },
            token: record.token,
            is_new: std::mem::take(&mut record.is_new),
            head,
            next_line: until,
            next_prompt: self.prompts.next_number(),
            replaced: replaced.collect(),
            lines: merged_lines.chain(added).collect(),
            prompts: prompts.into_values().collect(),
        };
        record.is_head_changed = false;
        Some((change, until))
    }

    /// Records that the working directory, the title or the setup has changed.
    pub(super) fn head_changed(&mut self) {
        if let Some(record) = &mut self.record {
            record.head_changed();
        }
    }

    /// Records the state of a prompt.
    pub(super) fn prompt_changed(&mut self, prompt: PromptRecord) {
        if let Some(record) = &mut self.record {
            record.prompt_changed(prompt);
        }
    }

    /// Records the places of all prompts that wait.
    pub(super) fn queue_changed(&mut self) {
        if let Some(record) = &mut self.record {
            for prompt in self.prompts.queue() {
                record.prompt_changed(prompt.record(crate::store::PromptState::Queued));
            }
        }
    }
}

/// Returns a message without its line feed.
fn text(line: &LiveLine) -> std::sync::Arc<str> {
    // The message was parsed as JSON, so it is valid UTF-8.
    String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into()
}
