//! A log made shorter, without a loss of what it shows.
//!
//! While a turn runs each piece of it is an entry. When it has ended, pieces of a message become the message,
//! changes of a tool call the call, and of the plans the last one stays. What a client is shown by a replay
//! is the same.

use std::collections::HashMap;

use acp::Update;
use acp::v1::{
    ContentBlock, ContentChunk, MessageId, PlanId, PlanUpdateContent, SessionUpdate as V1,
    TerminalId, ToolCall, ToolCallId, ToolCallUpdate,
};
use acp::v2::{SessionUpdate as V2, TerminalOutputChunk};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::entry::Content;
use super::{Entry, StoreError};

/// How many bytes of text or of output are put together at most: an entry is read and sent whole.
const LONGEST: usize = 64 * 1024;

/// Folds entries one after the other.
#[derive(Default)]
pub(crate) struct Folder {
    /// What is left. Where something was taken up by what came later, there is a gap.
    slots: Vec<Option<Content>>,
    /// The message at the end, and where it is. A piece belongs to it only as long as nothing stands behind
    /// it that a client shows in its own place.
    message: Option<(&'static str, MessageId, usize)>,
    calls: HashMap<ToolCallId, usize>,
    outputs: HashMap<TerminalId, usize>,
    plan: Option<usize>,
    plans: HashMap<PlanId, usize>,
    /// How many bytes the entries had that were put in.
    bytes: usize,
}

impl Folder {
    /// Puts the next entry in.
    ///
    /// # Errors
    /// It cannot be understood.
    pub(crate) fn push(&mut self, entry: &Entry) -> Result<(), StoreError> {
        self.bytes += entry.body.len();
        match entry.read()? {
            Content::Shown(Update::V1(update)) => self.v1(update),
            Content::Shown(Update::V2(update)) => self.v2(update),
            other => {
                // Between what the model was told and what was shown after it stays a line: what the model
                // had not been told yet when the process ended is found by it.
                self.message = None;
                self.keep(other);
            }
        }
        Ok(())
    }

    /// How many bytes the entries had that were put in.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What they have become.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn finish(self) -> Result<Vec<Entry>, StoreError> {
        let left = self.slots.iter().flatten();
        left.map(Content::write).collect()
    }

    fn keep(&mut self, content: Content) -> usize {
        self.slots.push(Some(content));
        self.slots.len() - 1
    }

    fn keep_v1(&mut self, update: V1) -> usize {
        self.keep(Content::Shown(update.into()))
    }

    fn v1(&mut self, update: V1) {
        match update {
            V1::AgentMessageChunk(chunk) => self.chunk("agent", chunk, V1::AgentMessageChunk),
            V1::AgentThoughtChunk(chunk) => self.chunk("thought", chunk, V1::AgentThoughtChunk),
            V1::ToolCall(call) => {
                self.message = None;
                let id = call.tool_call_id.clone();
                let at = self.keep_v1(V1::ToolCall(call));
                self.calls.insert(id, at);
            }
            V1::ToolCallUpdate(update) => self.call_update(*update),
            V1::Plan(plan) => {
                let gone = self.plan.take();
                self.remove(gone);
                self.plan = Some(self.keep_v1(V1::Plan(plan)));
            }
            V1::PlanUpdate(update) => {
                let id = plan_id(&update.plan);
                let gone = id.as_ref().and_then(|id| self.plans.remove(id));
                self.remove(gone);
                let at = self.keep_v1(V1::PlanUpdate(update));
                self.plans.extend(id.map(|id| (id, at)));
            }
            V1::PlanRemoved(removed) => {
                let gone = self.plans.remove(&removed.plan_id);
                self.remove(gone);
                self.keep_v1(V1::PlanRemoved(removed));
            }
            other => {
                self.message = None;
                self.keep_v1(other);
            }
        }
    }

    fn v2(&mut self, update: V2) {
        match update {
            V2::TerminalOutputChunk(chunk) => self.output(chunk),
            V2::TerminalUpdate(update) => {
                // What it says replaces what was printed before.
                self.outputs.remove(&update.terminal_id);
                self.keep(Content::Shown(V2::TerminalUpdate(update).into()));
            }
            other => {
                self.message = None;
                self.keep(Content::Shown(other.into()));
            }
        }
    }

    fn remove(&mut self, at: Option<usize>) {
        if let Some(slot) = at.and_then(|at| self.slots.get_mut(at)) {
            *slot = None;
        }
    }

    fn chunk(&mut self, kind: &'static str, chunk: ContentChunk, update: fn(ContentChunk) -> V1) {
        if let Some((speaker, id, at)) = &self.message
            && *speaker == kind
            && chunk.message_id.as_ref() == Some(id)
            && let Some(Some(Content::Shown(Update::V1(
                V1::AgentMessageChunk(last) | V1::AgentThoughtChunk(last),
            )))) = self.slots.get_mut(*at)
            && append(last, &chunk)
        {
            return;
        }
        let id = chunk.message_id.clone();
        let at = self.keep_v1(update(chunk));
        self.message = id.map(|id| (kind, id, at));
    }

    fn call_update(&mut self, mut update: ToolCallUpdate) {
        let id = update.tool_call_id.clone();
        // Custom data may be of any kind: what was said last need not be all of it.
        if let Some(meta) = update.meta.take() {
            self.keep_v1(V1::ToolCallUpdate(Box::new(
                ToolCallUpdate::new(&id).meta(meta),
            )));
        }
        let at = self.calls.get(&id).copied();
        match at.and_then(|at| self.slots.get_mut(at)) {
            Some(Some(Content::Shown(Update::V1(V1::ToolCall(call))))) => change(call, update),
            Some(Some(Content::Shown(Update::V1(V1::ToolCallUpdate(before))))) => {
                change_again(before, update);
            }
            _ => {
                self.message = None;
                let at = self.keep_v1(V1::ToolCallUpdate(Box::new(update)));
                self.calls.insert(id, at);
            }
        }
    }

    fn output(&mut self, chunk: TerminalOutputChunk) {
        let id = chunk.terminal_id.clone();
        let at = self.outputs.get(&id).copied();
        if let Some(Some(Content::Shown(Update::V2(V2::TerminalOutputChunk(last))))) =
            at.and_then(|at| self.slots.get_mut(at))
            && let Some(data) = joined(&last.data, &chunk.data)
            && chunk.meta.is_none()
        {
            last.data = data;
            return;
        }
        let at = self.keep(Content::Shown(V2::TerminalOutputChunk(chunk).into()));
        self.outputs.insert(id, at);
    }
}

fn plan_id(plan: &PlanUpdateContent) -> Option<PlanId> {
    match plan {
        PlanUpdateContent::Items(plan) => Some(plan.plan_id.clone()),
        PlanUpdateContent::File(plan) => Some(plan.plan_id.clone()),
        PlanUpdateContent::Markdown(plan) => Some(plan.plan_id.clone()),
        _ => None,
    }
}

/// Puts text to the end of text, unless that becomes too long.
fn append(last: &mut ContentChunk, next: &ContentChunk) -> bool {
    if last.meta.is_some() || next.meta.is_some() {
        return false;
    }
    match (&mut last.content, &next.content) {
        (ContentBlock::Text(last), ContentBlock::Text(next))
            if last.text.len() + next.text.len() <= LONGEST
                && (last.annotations.is_none() && next.annotations.is_none())
                && (last.meta.is_none() && next.meta.is_none()) =>
        {
            last.text.push_str(&next.text);
            true
        }
        _ => false,
    }
}

/// Bytes behind bytes, unless that becomes too long.
fn joined(last: &str, next: &str) -> Option<String> {
    if (last.len() + next.len()) / 4 * 3 > LONGEST {
        return None;
    }
    let mut bytes = STANDARD.decode(last).ok()?;
    bytes.extend(STANDARD.decode(next).ok()?);
    Some(STANDARD.encode(bytes))
}

fn change(call: &mut ToolCall, update: ToolCallUpdate) {
    call.kind = update.kind.unwrap_or_else(|| call.kind.clone());
    call.status = update.status.unwrap_or_else(|| call.status.clone());
    call.title = update.title.unwrap_or_else(|| call.title.clone());
    call.name = update.name.or_else(|| call.name.take());
    call.content = update
        .content
        .unwrap_or_else(|| std::mem::take(&mut call.content));
    call.locations = update
        .locations
        .unwrap_or_else(|| std::mem::take(&mut call.locations));
    call.raw_input = update.raw_input.or_else(|| call.raw_input.take());
    call.raw_output = update.raw_output.or_else(|| call.raw_output.take());
}

fn change_again(before: &mut ToolCallUpdate, update: ToolCallUpdate) {
    before.kind = update.kind.or_else(|| before.kind.take());
    before.status = update.status.or_else(|| before.status.take());
    before.title = update.title.or_else(|| before.title.take());
    before.name = update.name.or_else(|| before.name.take());
    before.content = update.content.or_else(|| before.content.take());
    before.locations = update.locations.or_else(|| before.locations.take());
    before.raw_input = update.raw_input.or_else(|| before.raw_input.take());
    before.raw_output = update.raw_output.or_else(|| before.raw_output.take());
}

#[cfg(test)]
mod tests {
    use acp::Thread;
    use acp::v1::{Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, ToolCallStatus};
    use acp::v2;

    use super::*;
    use crate::model::Message;

    fn text(id: &str, text: &str) -> Update {
        let chunk = ContentChunk::new(ContentBlock::text(text)).message_id(id);
        V1::AgentMessageChunk(chunk).into()
    }

    fn thought(id: &str, text: &str) -> Update {
        let chunk = ContentChunk::new(ContentBlock::text(text)).message_id(id);
        V1::AgentThoughtChunk(chunk).into()
    }

    fn plan(step: &str) -> Update {
        let entry = PlanEntry::new(step, PlanEntryPriority::Low, PlanEntryStatus::Pending);
        V1::Plan(Plan::new(vec![entry])).into()
    }

    fn printed(terminal: &str, bytes: &[u8]) -> Update {
        V2::TerminalOutputChunk(TerminalOutputChunk::new(terminal, STANDARD.encode(bytes))).into()
    }

    fn started(terminal: &str) -> Update {
        V2::TerminalUpdate(Box::new(v2::TerminalUpdate::new(terminal).command("ls"))).into()
    }

    fn folded(updates: &[Update]) -> Vec<Update> {
        let mut folder = Folder::default();
        for update in updates {
            folder.push(&Entry::shown(update).unwrap()).unwrap();
        }
        let entries = folder.finish().unwrap();
        let contents = entries.iter().map(|entry| match entry.read().unwrap() {
            Content::Shown(update) => update,
            other => panic!("{other:?}"),
        });
        contents.collect()
    }

    /// What a person sees of it.
    fn shown(updates: &[Update]) -> String {
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
    fn what_is_shown_stays_the_same() {
        let call = |id: &str| ToolCall::new(id, "Call").raw_input(serde_json::json!({"a": 1}));
        let change = |id: &str| ToolCallUpdate::new(id);
        let mut meta = acp::wire::Meta::new();
        meta.insert("x".to_owned(), serde_json::json!(1));
        let updates = [
            text("1", "Hel"),
            text("1", "lo"),
            thought("2", "Hm"),
            plan("one"),
            thought("2", "m"),
            V1::ToolCall(Box::new(call("c"))).into(),
            started("t"),
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
            printed("t", b"a\xe2\x82"),
            text("3", "meanwhile"),
            printed("t", b"\xac\n"),
            plan("two"),
            V1::ToolCallUpdate(Box::new(change("c").status(ToolCallStatus::Completed))).into(),
            text("3", " more"),
            V1::ToolCall(Box::new(call("d"))).into(),
            text("3", " late"),
            V1::ToolCallUpdate(Box::new(change("e").title("unknown"))).into(),
            V1::ToolCallUpdate(Box::new(change("e").status(ToolCallStatus::Failed))).into(),
        ];
        let folded = folded(&updates);
        assert_eq!(shown(&folded), shown(&updates));
        // Hello, Hmm, c with its custom data, terminal, output, meanwhile more, plan, d, late, e.
        assert_eq!(folded.len(), 11, "{folded:#?}");
        let whole = format!("{folded:?}");
        for text in ["Hello", "Hmm", "meanwhile more", "\"x\""] {
            assert!(whole.contains(text), "{text}: {whole}");
        }
    }

    #[test]
    fn no_entry_becomes_huge() {
        let long = "x".repeat(LONGEST / 3);
        let mut updates: Vec<Update> = (0..10).map(|_| text("1", &long)).collect();
        updates.extend((0..10).map(|_| printed("t", long.as_bytes())));
        let folded = folded(&updates);
        assert_eq!(shown(&folded), shown(&updates));
        assert!((8..=12).contains(&folded.len()), "{}", folded.len());
        for update in &folded {
            let length = Entry::shown(update).unwrap().body.len();
            assert!(length < 2 * LONGEST, "{length}");
        }
    }

    #[test]
    fn text_stays_on_its_side_of_what_the_model_was_told() {
        let message = Entry::message(&Message::User(vec![ContentBlock::text("x")])).unwrap();
        let mut folder = Folder::default();
        for entry in [
            Entry::shown(&text("1", "a")).unwrap(),
            message.clone(),
            Entry::shown(&text("1", "b")).unwrap(),
        ] {
            folder.push(&entry).unwrap();
        }
        let folded = folder.finish().unwrap();
        assert_eq!(folded.len(), 3);
        assert_eq!(folded[1], message);
    }
}
