//! Folds a history into fewer entries with the same meaning.
//!
//! While a turn runs, each update becomes an entry. After the turn, the chunks of a message are joined into one, the
//! updates of a tool call are merged into the call, and only the last state of a plan is kept. A replay of the folded
//! history shows the same to the client.

use std::collections::HashMap;

use acp::Update;
use acp::update::{MessageChunk, ToolCallPatch};
use acp::v1::{ContentBlock, MessageId, PlanId, TerminalId, ToolCallId};
use acp::v2::TerminalOutputChunk;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::entry::{StoreEntry, StoreEntryContent};
use super::error::StoreError;

/// The maximum length of joined text or output, in bytes. The limit exists because an entry is always read and sent as
/// a whole.
const MAX_JOINED_BYTES: usize = 64 * 1024;

/// Folds entries. They must be pushed in order.
#[derive(Default)]
pub(crate) struct EntryMerger {
    /// The folded entries. `None` marks an entry that was replaced by a later one.
    slots: Vec<Option<StoreEntryContent>>,
    /// The type, id and slot of the last message. Chunks are joined to it until an entry follows that clients show as a
    /// separate item.
    message: Option<(&'static str, MessageId, usize)>,
    calls: HashMap<ToolCallId, usize>,
    outputs: HashMap<TerminalId, usize>,
    plans: HashMap<PlanId, usize>,
    /// The total size of all pushed entries, in bytes.
    bytes: usize,
}

impl EntryMerger {
    /// Adds the next entry of the history.
    ///
    /// # Errors
    /// The entry cannot be parsed.
    pub(crate) fn push(&mut self, entry: &StoreEntry) -> Result<(), StoreError> {
        self.bytes += entry.body.len();
        match entry.parse()? {
            StoreEntryContent::Update(update) => self.add_update(update),
            other => {
                // Chunks are not joined across a message for the model. The position of the last such message in the
                // history shows what had not been sent to the model when the process ended.
                self.message = None;
                self.push_content(other);
            }
        }
        Ok(())
    }

    /// Returns the total size of all pushed entries, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the folded entries, which replace the pushed ones.
    ///
    /// # Errors
    /// An entry cannot be serialized.
    pub(crate) fn finish(self) -> Result<Vec<StoreEntry>, StoreError> {
        let left = self.slots.iter().flatten();
        left.map(StoreEntryContent::to_entry).collect()
    }

    fn push_content(&mut self, content: StoreEntryContent) -> usize {
        self.slots.push(Some(content));
        self.slots.len() - 1
    }

    fn push_update(&mut self, update: Update) -> usize {
        self.push_content(StoreEntryContent::Update(update))
    }

    fn add_update(&mut self, update: Update) {
        match update {
            Update::AgentMessageChunk(chunk) => {
                self.add_chunk("agent", chunk, Update::AgentMessageChunk);
            }
            Update::AgentThoughtChunk(chunk) => {
                self.add_chunk("thought", chunk, Update::AgentThoughtChunk);
            }
            Update::ToolCallUpdate(call) if call.is_new => {
                self.message = None;
                let id = call.tool_call_id.clone();
                let at = self.push_update(Update::ToolCallUpdate(call));
                self.calls.insert(id, at);
            }
            Update::ToolCallUpdate(update) => self.add_call_update(*update),
            Update::PlanUpdate(update) => {
                let id = update.plan.plan_id();
                let replaced = id.as_ref().and_then(|id| self.plans.remove(id));
                self.remove(replaced);
                let at = self.push_update(Update::PlanUpdate(update));
                self.plans.extend(id.map(|id| (id, at)));
            }
            Update::PlanRemoved(removed) => {
                let replaced = self.plans.remove(&removed.plan_id);
                self.remove(replaced);
                self.push_update(Update::PlanRemoved(removed));
            }
            Update::TerminalOutputChunk(chunk) => self.add_output(chunk),
            Update::TerminalUpdate(update) => {
                // The update replaces the output that came before it.
                self.outputs.remove(&update.terminal_id);
                self.push_update(Update::TerminalUpdate(update));
            }
            other => {
                self.message = None;
                self.push_update(other);
            }
        }
    }

    fn remove(&mut self, at: Option<usize>) {
        if let Some(slot) = at.and_then(|at| self.slots.get_mut(at)) {
            *slot = None;
        }
    }

    fn add_chunk(
        &mut self,
        kind: &'static str,
        chunk: MessageChunk,
        update: fn(MessageChunk) -> Update,
    ) {
        if let Some((speaker, id, at)) = &self.message
            && *speaker == kind
            && chunk.message_id.as_ref() == Some(id)
            && let Some(Some(StoreEntryContent::Update(
                Update::AgentMessageChunk(last) | Update::AgentThoughtChunk(last),
            ))) = self.slots.get_mut(*at)
            && append_chunk(last, &chunk)
        {
            return;
        }
        let id = chunk.message_id.clone();
        let at = self.push_update(update(chunk));
        self.message = id.map(|id| (kind, id, at));
    }

    fn add_call_update(&mut self, mut update: ToolCallPatch) {
        let id = update.tool_call_id.clone();
        // Custom data can be of any type, so its last value need not include earlier values. Each value stays in an
        // entry of its own.
        if let Some(meta) = update.meta.take() {
            let mut alone = ToolCallPatch::new(&id);
            alone.meta = Some(meta);
            self.push_update(Update::ToolCallUpdate(alone.into()));
        }
        let at = self.calls.get(&id).copied();
        match at.and_then(|at| self.slots.get_mut(at)) {
            Some(Some(StoreEntryContent::Update(Update::ToolCallUpdate(call)))) => {
                call.merge(update)
            }
            _ => {
                self.message = None;
                let at = self.push_update(Update::ToolCallUpdate(update.into()));
                self.calls.insert(id, at);
            }
        }
    }

    fn add_output(&mut self, chunk: TerminalOutputChunk) {
        let id = chunk.terminal_id.clone();
        let at = self.outputs.get(&id).copied();
        if let Some(Some(StoreEntryContent::Update(Update::TerminalOutputChunk(last)))) =
            at.and_then(|at| self.slots.get_mut(at))
            && let Some(data) = join_text(&last.data, &chunk.data)
            && chunk.meta.is_none()
        {
            last.data = data;
            return;
        }
        let at = self.push_update(Update::TerminalOutputChunk(chunk));
        self.outputs.insert(id, at);
    }
}

/// Appends a chunk of text to another. Returns `false` if the result would be too long or the chunks cannot be joined.
fn append_chunk(last: &mut MessageChunk, next: &MessageChunk) -> bool {
    if last.meta.is_some() || next.meta.is_some() {
        return false;
    }
    match (&mut last.content, &next.content) {
        (ContentBlock::Text(last), ContentBlock::Text(next))
            if last.text.len() + next.text.len() <= MAX_JOINED_BYTES
                && (last.annotations.is_none() && next.annotations.is_none())
                && (last.meta.is_none() && next.meta.is_none()) =>
        {
            last.text.push_str(&next.text);
            true
        }
        _ => false,
    }
}

/// Joins two base64 strings. Returns `None` if the result would be too long.
fn join_text(last: &str, next: &str) -> Option<String> {
    if (last.len() + next.len()) / 4 * 3 > MAX_JOINED_BYTES {
        return None;
    }
    let mut bytes = STANDARD.decode(last).ok()?;
    bytes.extend(STANDARD.decode(next).ok()?);
    Some(STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use acp::Thread;
    use acp::v1::{
        ContentChunk, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate as V1,
        ToolCall, ToolCallStatus, ToolCallUpdate,
    };
    use acp::v2::{self, SessionUpdate as V2};

    use super::*;
    use crate::model::message::ModelMessage;

    fn text_update(id: &str, text: &str) -> Update {
        let chunk = ContentChunk::new(ContentBlock::text(text)).message_id(id);
        V1::AgentMessageChunk(chunk).into()
    }

    fn thought_update(id: &str, text: &str) -> Update {
        let chunk = ContentChunk::new(ContentBlock::text(text)).message_id(id);
        V1::AgentThoughtChunk(chunk).into()
    }

    fn plan_update(step: &str) -> Update {
        let entry = PlanEntry::new(step, PlanEntryPriority::Low, PlanEntryStatus::Pending);
        V1::Plan(Plan::new(vec![entry])).into()
    }

    fn output_update(terminal: &str, bytes: &[u8]) -> Update {
        V2::TerminalOutputChunk(TerminalOutputChunk::new(terminal, STANDARD.encode(bytes))).into()
    }

    fn terminal_started_update(terminal: &str) -> Update {
        V2::TerminalUpdate(Box::new(v2::TerminalUpdate::new(terminal).command("ls"))).into()
    }

    fn fold_updates(updates: &[Update]) -> Vec<Update> {
        let mut folder = EntryMerger::default();
        for update in updates {
            folder
                .push(&StoreEntry::from_update(update).unwrap())
                .unwrap();
        }
        let entries = folder.finish().unwrap();
        let contents = entries.iter().map(|entry| match entry.parse().unwrap() {
            StoreEntryContent::Update(update) => update,
            other => panic!("{other:?}"),
        });
        contents.collect()
    }

    /// Formats everything that the user sees as a result of these updates.
    fn render_thread(updates: &[Update]) -> String {
        let mut thread = Thread::default();
        for update in updates {
            thread.apply(update);
        }
        let kinds: Vec<_> = thread.items().iter().map(|item| &item.kind).collect();
        let terminal = thread.terminal(&"t".into());
        let terminal = terminal.map(|t| (t.command.clone(), t.output()));
        let plans: Vec<_> = thread.plans().iter().map(|plan| &plan.content).collect();
        format!("{kinds:#?} {plans:#?} {terminal:#?}")
    }

    #[test]
    fn folding_does_not_change_the_thread() {
        let call = |id: &str| ToolCall::new(id, "Call").raw_input(serde_json::json!({"a": 1}));
        let change = |id: &str| ToolCallUpdate::new(id);
        let mut meta = acp::wire::Meta::new();
        meta.insert("x".to_owned(), serde_json::json!(1));
        let updates = [
            text_update("1", "Hel"),
            text_update("1", "lo"),
            thought_update("2", "Hm"),
            plan_update("one"),
            thought_update("2", "m"),
            V1::ToolCall(Box::new(call("c"))).into(),
            terminal_started_update("t"),
            V1::ToolCallUpdate(Box::new(
                change("c")
                    .status(ToolCallStatus::InProgress)
                    .meta(meta.clone()),
            ))
            .into(),
            V1::ToolCallUpdate(Box::new(
                change("c").content(vec![TerminalId::from("t").into()]),
            ))
            .into(),
            output_update("t", b"a\xe2\x82"),
            text_update("3", "meanwhile"),
            output_update("t", b"\xac\n"),
            plan_update("two"),
            V1::ToolCallUpdate(Box::new(change("c").status(ToolCallStatus::Completed))).into(),
            text_update("3", " more"),
            V1::ToolCall(Box::new(call("d"))).into(),
            text_update("3", " late"),
            V1::ToolCallUpdate(Box::new(change("e").title("unknown"))).into(),
            V1::ToolCallUpdate(Box::new(change("e").status(ToolCallStatus::Failed))).into(),
        ];
        let folded = fold_updates(&updates);
        assert_eq!(render_thread(&folded), render_thread(&updates));
        // Expect Hello, Hmm, c with its custom data, terminal, output, meanwhile more, plan, d, late and e.
        assert_eq!(folded.len(), 11, "{folded:#?}");
        let whole = format!("{folded:?}");
        for text in ["Hello", "Hmm", "meanwhile more", "\"x\""] {
            assert!(whole.contains(text), "{text}: {whole}");
        }
    }

    #[test]
    fn folded_entries_stay_bounded() {
        let long = "x".repeat(MAX_JOINED_BYTES / 3);
        let mut updates: Vec<Update> = (0..10).map(|_| text_update("1", &long)).collect();
        updates.extend((0..10).map(|_| output_update("t", long.as_bytes())));
        let folded = fold_updates(&updates);
        assert_eq!(render_thread(&folded), render_thread(&updates));
        assert!((8..=12).contains(&folded.len()), "{}", folded.len());
        for update in &folded {
            let length = StoreEntry::from_update(update).unwrap().body.len();
            assert!(length < 2 * MAX_JOINED_BYTES, "{length}");
        }
    }

    #[test]
    fn text_is_not_folded_across_model_messages() {
        let message =
            StoreEntry::from_message(&ModelMessage::User(vec![ContentBlock::text("x")])).unwrap();
        let mut folder = EntryMerger::default();
        for entry in [
            StoreEntry::from_update(&text_update("1", "a")).unwrap(),
            message.clone(),
            StoreEntry::from_update(&text_update("1", "b")).unwrap(),
        ] {
            folder.push(&entry).unwrap();
        }
        let folded = folder.finish().unwrap();
        assert_eq!(folded.len(), 3);
        assert_eq!(folded[1], message);
    }
}
