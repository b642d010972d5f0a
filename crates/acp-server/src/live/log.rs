//! The log of a live session.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Deserialize;

use super::message::LiveLine;

/// The maximum size of a log, in bytes. When it is exceeded, the oldest entries are dropped.
pub(super) const MAX_LOG_BYTES: usize = 64 * 1024 * 1024;

/// The maximum length of the text of merged chunks, in bytes.
const MAX_MERGED_TEXT: usize = 64 * 1024;

/// The position of a log that need not be written: everything can be read.
const EVERYTHING: u64 = u64::MAX;

/// Identifies a client of a live agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ClientId(pub(super) u64);

impl ClientId {
    /// No client: the one that has sent a prompt was connected to another server.
    pub(super) const NONE: Self = Self(0);
}

/// Identifies a question within a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct QuestionId(pub(super) u64);

/// The clients that an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    All,
    Only(ClientId),
    AllExcept(ClientId),
}

/// What an entry contains.
#[derive(Debug, Clone)]
pub(super) enum EntryContent {
    /// A line that is part of the session's history.
    Line(LiveLine),
    /// A line for clients that are attached already.
    Event(LiveLine),
    /// A request of the agent. Each client gets it with an id of its own, if it is still open by then.
    Question(QuestionId),
}

/// An entry of a log.
#[derive(Debug, Clone)]
pub(super) struct LiveLogEntry {
    pub(super) number: u64,
    /// The number after the last entry that is merged into this one.
    pub(super) end: u64,
    pub(super) audience: Audience,
    pub(super) content: EntryContent,
}

impl LiveLogEntry {
    /// The memory that the entry takes up, in bytes.
    fn size(&self) -> usize {
        let line = match &self.content {
            EntryContent::Line(line) | EntryContent::Event(line) => line.len(),
            EntryContent::Question(_) => 0,
        };
        size_of::<Self>() + line
    }

    /// Returns `true` if a client that loads the session later must see this entry.
    fn is_history(&self) -> bool {
        matches!(self.content, EntryContent::Line(_))
    }
}

/// Entries that have been merged into one.
#[derive(Debug)]
pub(super) struct MergedEntries {
    /// The number of the first one.
    pub(super) number: u64,
    /// The number after the last one.
    pub(super) end: u64,
    pub(super) line: LiveLine,
}

/// The entries of a session, in the order in which all clients see them. Numbers increase, but can have gaps.
///
/// If the log is stored, an entry can be read only when it has been written: after a crash, everything that a client
/// has seen is still there.
///
/// ```text
///   dropped_until      written_until      taken_until      next
///        ├── can be read ──┼── being written ──┼── to be written ──┤
/// ```
#[derive(Debug)]
pub(super) struct LiveLog {
    entries: VecDeque<LiveLogEntry>,
    /// The number of the next entry.
    next: u64,
    /// All entries with lower numbers have been dropped, because the log was full.
    dropped_until: u64,
    /// All entries with lower numbers have been compacted.
    compacted_until: u64,
    /// All entries with lower numbers have been written. [`EVERYTHING`] if the log is not stored.
    written_until: u64,
    /// The number of the next line, as the store knows it.
    stored_until: u64,
    /// All entries with lower numbers have been taken to be written.
    taken_until: u64,
    bytes: usize,
    max_bytes: usize,
    /// Tells this log from a later one of the same session, which has other positions. `None` if the log is stored:
    /// its positions stay the same.
    id: Option<u64>,
}

impl LiveLog {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            next: 0,
            dropped_until: 0,
            compacted_until: 0,
            written_until: EVERYTHING,
            stored_until: 0,
            taken_until: 0,
            bytes: 0,
            max_bytes,
            id: Some(fastrand::u64(..)),
        }
    }

    /// Creates a log that is stored and contains these entries already. `next` is the number of the next entry.
    pub(super) fn stored(
        max_bytes: usize,
        next: u64,
        lines: impl IntoIterator<Item = (u64, u64, LiveLine)>,
    ) -> Self {
        let mut log = Self::new(max_bytes);
        log.id = None;
        log.written_until = next;
        for (number, end, line) in lines {
            log.push_entry(LiveLogEntry {
                number,
                end,
                audience: Audience::All,
                content: EntryContent::Line(line),
            });
        }
        log.next = next;
        log.stored_until = next;
        log.taken_until = next;
        log.compacted_until = next;
        log
    }

    /// Returns text that positions in this log are valid with, if they are not valid in later logs of the session.
    pub(super) fn id(&self) -> Option<String> {
        self.id.map(|id| format!("{id:016x}"))
    }

    /// Returns the position after the last entry that can be read.
    fn readable_until(&self) -> u64 {
        self.next.min(self.written_until)
    }

    /// Returns `true` if there is something to write.
    pub(super) fn has_unwritten(&self) -> bool {
        self.written_until != EVERYTHING && self.taken_until < self.next
    }

    /// Takes the lines to write, up to about `max_bytes`. Returns them with the position after them, which is passed to
    /// [`written`](Self::written) when they have been written.
    pub(super) fn take_unwritten(&mut self, max_bytes: usize) -> (Vec<(u64, LiveLine)>, u64) {
        let from = self.index_of(self.taken_until);
        let mut lines = Vec::new();
        let mut bytes = 0;
        let mut until = self.next;
        for entry in self.entries.range(from..) {
            if bytes >= max_bytes {
                until = entry.number;
                break;
            }
            if let EntryContent::Line(line) = &entry.content {
                bytes += line.len();
                lines.push((entry.number, Arc::clone(line)));
            }
        }
        self.taken_until = until;
        (lines, until)
    }

    /// Makes entries readable that have been written.
    pub(super) fn written(&mut self, until: u64) {
        self.stored_until = self.stored_until.max(until);
        self.readable(until);
    }

    /// Makes entries readable that need not be written.
    pub(super) fn readable(&mut self, until: u64) {
        if self.written_until != EVERYTHING {
            self.written_until = self.written_until.max(until);
        }
    }

    /// Returns the position from which a client can continue on another server, if it has read everything before
    /// `position`. The store does not know of the events after its last line.
    pub(super) fn stored_position(&self, position: u64) -> u64 {
        match self.written_until {
            EVERYTHING => position,
            _ => position.min(self.stored_until),
        }
    }

    /// Returns `true` if everything before this position has been written.
    pub(super) fn is_written(&self, until: u64) -> bool {
        self.written_until >= until
    }

    /// Returns the index of the first entry with this number or a higher one.
    fn index_of(&self, number: u64) -> usize {
        self.entries.partition_point(|entry| entry.number < number)
    }

    /// Returns the position after the last entry.
    pub(super) fn end(&self) -> u64 {
        self.next
    }

    /// Returns the position of the oldest entry that has not been dropped.
    pub(super) fn start(&self) -> u64 {
        self.dropped_until
    }

    /// Appends an entry. Drops the oldest ones if the log is full.
    pub(super) fn push(&mut self, audience: Audience, content: EntryContent) {
        let number = self.next;
        self.next += 1;
        // An event is not written. If nothing before it is being written, it can be read at once.
        if !matches!(content, EntryContent::Line(_))
            && self.written_until == number
            && self.taken_until == number
        {
            self.written_until = self.next;
            self.taken_until = self.next;
        }
        self.push_entry(LiveLogEntry {
            number,
            end: self.next,
            audience,
            content,
        });
    }

    fn push_entry(&mut self, entry: LiveLogEntry) {
        self.bytes += entry.size();
        self.entries.push_back(entry);
        if self.bytes <= self.max_bytes {
            return;
        }
        // An eighth of the log is dropped at once. A client that has just begun to read has that much of a lead.
        let remaining = self.max_bytes - self.max_bytes / 8;
        while self.bytes > remaining && self.entries.len() > 1 {
            if let Some(oldest) = self.entries.pop_front() {
                self.bytes -= oldest.size();
                self.dropped_until = oldest.end;
            }
        }
    }

    /// Returns the entries from a position on that can be read, or `None` if some of them have been dropped.
    pub(super) fn entries_from(
        &self,
        position: u64,
    ) -> Option<impl Iterator<Item = &LiveLogEntry>> {
        if position < self.dropped_until {
            return None;
        }
        let until = self.readable_until();
        let entries = self.entries.range(self.index_of(position)..);
        Some(entries.take_while(move |entry| entry.number < until))
    }

    /// Returns the entries from a position on that cannot be read yet.
    pub(super) fn unreadable_entries(&self, position: u64) -> impl Iterator<Item = &LiveLogEntry> {
        let from = position.max(self.readable_until());
        self.entries.range(self.index_of(from)..)
    }

    /// Returns the position that a client has when it has read everything that can be read.
    pub(super) fn position_after(&self, position: u64) -> u64 {
        position.max(self.readable_until())
    }

    /// Returns `true` if a client can continue from this position: nothing after it has been dropped, and it is not in
    /// the middle of merged entries.
    pub(super) fn can_continue_from(&self, position: u64) -> bool {
        let before = self.index_of(position).checked_sub(1);
        let before = before.and_then(|index| self.entries.get(index));
        (self.dropped_until..=self.next).contains(&position)
            && before.is_none_or(|entry| entry.end <= position)
    }

    /// Removes entries that nobody will need again, and merges consecutive chunks of a message. Only changes entries
    /// with lower numbers than `read_until`, which all attached clients have read. Returns what it has merged.
    pub(super) fn compact(&mut self, read_until: u64) -> Vec<MergedEntries> {
        let read_until = read_until.min(self.readable_until());
        let from = self.index_of(self.compacted_until);
        let to = self.index_of(read_until);
        if from >= to {
            return Vec::new();
        }
        let rest = self.entries.split_off(to);
        let mut merging: Option<MergedChunk> = None;
        let mut changed = Vec::new();
        for entry in self.entries.split_off(from) {
            self.bytes -= entry.size();
            if !entry.is_history() {
                continue;
            }
            merging = match (merging.take(), ChunkLine::from_entry(&entry)) {
                (Some(mut merged), Some(chunk)) if merged.accepts(&chunk) => {
                    merged.text.push_str(&chunk.text);
                    merged.first.end = entry.end;
                    merged.is_merged = true;
                    Some(merged)
                }
                (merged, Some(chunk)) => {
                    self.push_merged(merged, &mut changed);
                    Some(MergedChunk::new(&entry, chunk))
                }
                (merged, None) => {
                    self.push_merged(merged, &mut changed);
                    self.push_compacted(entry);
                    None
                }
            };
        }
        self.push_merged(merging, &mut changed);
        self.entries.extend(rest);
        self.compacted_until = read_until;
        changed
    }

    fn push_merged(&mut self, merged: Option<MergedChunk>, changed: &mut Vec<MergedEntries>) {
        let Some(merged) = merged else {
            return;
        };
        let is_merged = merged.is_merged;
        let entry = merged.into_entry();
        if is_merged && let EntryContent::Line(line) = &entry.content {
            changed.push(MergedEntries {
                number: entry.number,
                end: entry.end,
                line: Arc::clone(line),
            });
        }
        self.push_compacted(entry);
    }

    fn push_compacted(&mut self, entry: LiveLogEntry) {
        self.bytes += entry.size();
        self.entries.push_back(entry);
    }
}

/// The parts of a line that is a chunk of text and nothing else.
struct ChunkLine {
    head: ChunkHead,
    text: String,
}

/// What consecutive chunks must have in common to be merged.
#[derive(PartialEq, Eq)]
struct ChunkHead {
    session: String,
    kind: String,
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NotificationLine {
    #[serde(rename = "jsonrpc")]
    _version: String,
    method: String,
    params: ChunkParams,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ChunkParams {
    session_id: String,
    update: ChunkUpdate,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ChunkUpdate {
    session_update: String,
    content: TextContent,
    #[serde(default)]
    message_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextContent {
    r#type: String,
    text: String,
}

impl ChunkLine {
    /// Reads an entry that contains nothing but text. With any other member, the entry cannot be merged without loss.
    fn from_entry(entry: &LiveLogEntry) -> Option<Self> {
        let EntryContent::Line(line) = &entry.content else {
            return None;
        };
        // Chunks are short. Longer lines are not worth parsing.
        if entry.audience != Audience::All || line.len() > MAX_MERGED_TEXT {
            return None;
        }
        let line: NotificationLine = serde_json::from_slice(line).ok()?;
        let update = line.params.update;
        let is_chunk = matches!(
            update.session_update.as_str(),
            "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk"
        );
        if line.method != "session/update" || !is_chunk || update.content.r#type != "text" {
            return None;
        }
        Some(Self {
            head: ChunkHead {
                session: line.params.session_id,
                kind: update.session_update,
                message: update.message_id,
            },
            text: update.content.text,
        })
    }
}

/// Chunks that are being merged.
struct MergedChunk {
    /// The first of the chunks.
    first: LiveLogEntry,
    head: ChunkHead,
    text: String,
    /// Whether there is more than one chunk.
    is_merged: bool,
}

impl MergedChunk {
    fn new(first: &LiveLogEntry, chunk: ChunkLine) -> Self {
        Self {
            first: first.clone(),
            head: chunk.head,
            text: chunk.text,
            is_merged: false,
        }
    }

    fn accepts(&self, chunk: &ChunkLine) -> bool {
        self.head == chunk.head && self.text.len() + chunk.text.len() <= MAX_MERGED_TEXT
    }

    fn into_entry(self) -> LiveLogEntry {
        if !self.is_merged {
            return self.first;
        }
        let mut update = serde_json::json!({
            "sessionUpdate": self.head.kind,
            "content": { "type": "text", "text": self.text },
        });
        if let (Some(message), Some(update)) = (self.head.message, update.as_object_mut()) {
            update.insert("messageId".to_owned(), message.into());
        }
        let params = serde_json::json!({ "sessionId": self.head.session, "update": update });
        let line = super::message::notification("session/update", &params);
        LiveLogEntry {
            content: EntryContent::Line(Arc::clone(&line)),
            ..self.first
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(text: &str) -> EntryContent {
        let params = serde_json::json!({
            "sessionId": "s",
            "update": {
                "sessionUpdate": "agent_message_chunk",
                "content": { "type": "text", "text": text },
            },
        });
        EntryContent::Line(super::super::message::notification(
            "session/update",
            &params,
        ))
    }

    fn line(text: &str) -> EntryContent {
        EntryContent::Line(text.as_bytes().into())
    }

    fn numbers(log: &LiveLog, from: u64) -> Option<Vec<u64>> {
        Some(log.entries_from(from)?.map(|entry| entry.number).collect())
    }

    #[test]
    fn compaction_merges_what_is_read_and_keeps_the_rest() {
        let mut log = LiveLog::new(MAX_LOG_BYTES);
        log.push(Audience::All, chunk("a"));
        let response = EntryContent::Event(b"response\n".as_slice().into());
        log.push(Audience::Only(ClientId(1)), response);
        log.push(Audience::All, chunk("b"));
        log.push(Audience::All, EntryContent::Question(QuestionId(1)));
        log.push(Audience::AllExcept(ClientId(1)), line("another update\n"));
        log.push(Audience::All, chunk("c"));
        log.push(Audience::All, chunk("d"));
        log.compact(6);
        assert_eq!(numbers(&log, 0), Some(vec![0, 4, 5, 6]));
        let merged = log.entries_from(0).unwrap().next().unwrap();
        let EntryContent::Line(merged) = &merged.content else {
            panic!("{merged:?}");
        };
        let merged: serde_json::Value = serde_json::from_slice(merged).unwrap();
        assert_eq!(merged["params"]["update"]["content"]["text"], "ab");
        // A position in a gap continues with the next entry.
        assert_eq!(numbers(&log, 2), Some(vec![4, 5, 6]));
        let bytes: usize = log.entries.iter().map(LiveLogEntry::size).sum();
        assert_eq!(log.bytes, bytes);
    }

    #[test]
    fn chunks_with_other_members_are_not_merged() {
        let mut log = LiveLog::new(MAX_LOG_BYTES);
        for meta in ["", r#","_meta":{"a":1}"#, r#","messageId":"m""#] {
            let text = format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"x"}}{meta}}}}}}}"#
            );
            log.push(Audience::All, line(&text));
        }
        log.compact(3);
        assert_eq!(numbers(&log, 0), Some(vec![0, 1, 2]));
    }

    #[test]
    fn full_log_drops_its_oldest_entries() {
        let mut log = LiveLog::new(10_000);
        let text = "x".repeat(1000);
        for _ in 0..100 {
            log.push(Audience::All, line(&text));
        }
        assert!(log.bytes <= 10_000);
        assert!(log.start() > 80);
        assert_eq!(numbers(&log, 0), None);
        assert!(numbers(&log, log.start()).is_some_and(|rest| rest.len() > 5));
        assert_eq!(numbers(&log, log.end()), Some(Vec::new()));
    }
}
