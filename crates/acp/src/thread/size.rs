//! Tracks the size of a thread and enforces its limit.
//!
//! An agent can send any amount of data, but a thread stores a limited amount. Beyond the limit, the thread drops
//! parts, the earliest first, and [`Thread::truncation`] counts them.
//!
//! Sizes are estimates ([`weight`]). Each part stores its own size, so that the cost of a change depends only on the
//! changed part.

use super::{Item, ItemKind, Thread, ThreadMessage, ThreadPlan, ThreadTerminal, ThreadToolCall};
use crate::memory::weight;
use acp_wire::v1::ContentBlock;
use serde::Serialize;

/// The default size limit of a thread, in bytes.
pub(crate) const DEFAULT_LIMIT_BYTES: usize = 64 * 1024 * 1024;

/// How much a thread has dropped to stay within its limit ([`Limits::thread`](crate::Limits::thread)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Truncation {
    /// The number of dropped items. The oldest items are dropped first.
    pub items: usize,
    /// The number of dropped terminals. The least recently updated terminals are dropped first. A dropped terminal that
    /// prints more output reappears without its earlier output.
    pub terminals: u64,
    /// The number of dropped plans. The least recently changed plans are dropped first.
    pub plans: u64,
    /// The number of parts dropped from items and settings that otherwise remain. A part can be the start of a message,
    /// the content of a tool call, or a value that was too large, such as a list of commands or options. Truncated
    /// messages and calls are marked as such.
    pub parts: u64,
}

impl Truncation {
    /// Returns `true` if nothing has been dropped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The size limit of a thread and the sizes of its parts, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadSize {
    limit: usize,
    items: usize,
    terminals: usize,
    plans: usize,
}

impl Default for ThreadSize {
    fn default() -> Self {
        Self {
            limit: DEFAULT_LIMIT_BYTES,
            items: 0,
            terminals: 0,
            plans: 0,
        }
    }
}

/// Replaces the term `before` in a sum with `after`.
fn replace_term(sum: &mut usize, before: usize, after: usize) {
    *sum = sum.saturating_sub(before).saturating_add(after);
}

/// The size of an item without its content, in bytes: its slot in the list, which grows by doubling, and its index
/// entries.
const ITEM_OVERHEAD_BYTES: usize = 2 * size_of::<Item>() + 256;

/// The size of a terminal or a plan without its content, in bytes.
const ENTRY_OVERHEAD_BYTES: usize = 512;

impl ItemKind {
    fn weight(&self) -> usize {
        ITEM_OVERHEAD_BYTES
            + match self {
                Self::User(m) | Self::Agent(m) | Self::Thought(m) => m.weight(),
                Self::ToolCall(call) => call.weight(),
                Self::Notice(notice) => weight(notice),
                Self::Compaction(compaction) => {
                    compaction.id.as_str().len()
                        + weight(&compaction.summary)
                        + compaction.error.as_ref().map_or(0, String::len)
                }
                Self::Subagent(subagent) => subagent.weight(),
                Self::SessionMessage(message) => message.weight(),
                Self::Unknown(object) => weight(object),
            }
    }
}

impl ThreadMessage {
    fn weight(&self) -> usize {
        self.id.as_ref().map_or(0, |id| id.as_str().len()) + weight(&self.content)
    }

    /// Drops the start of the message, leaving about `room` bytes.
    fn drop_start(&mut self, room: usize) {
        self.is_truncated = true;
        let mut left = self.weight();
        let mut whole = 0;
        for block in self
            .content
            .iter()
            .take(self.content.len().saturating_sub(1))
        {
            if left <= room {
                break;
            }
            left = left.saturating_sub(weight(block));
            whole += 1;
        }
        self.content.drain(..whole);
        if left <= room {
            return;
        }
        // A single block is too large. If it is text, keep its end.
        match self.content.first_mut() {
            Some(ContentBlock::Text(block)) if weight(&block.annotations) < room / 4 => {
                let mut from = block.text.len().saturating_sub(room / 2);
                while !block.text.is_char_boundary(from) {
                    from += 1;
                }
                block.text = block.text.split_off(from);
                block.meta = None;
            }
            _ => self.content.clear(),
        }
    }
}

impl Thread {
    /// Creates an empty thread with a size limit of about `bytes` bytes. See [`truncation`](Self::truncation).
    #[must_use]
    pub fn with_limit(bytes: usize) -> Self {
        let mut thread = Self::default();
        thread.set_limit(bytes);
        thread
    }

    pub(super) fn limit(&self) -> usize {
        self.size.limit
    }

    pub(crate) fn set_limit(&mut self, bytes: usize) {
        self.size.limit = bytes;
        self.enforce_limit();
    }

    /// Returns how much was dropped to keep the thread within its limit ([`Limits::thread`](crate::Limits::thread)).
    /// Programs that show a thread should also show this.
    #[must_use]
    pub fn truncation(&self) -> Truncation {
        self.truncation
    }

    /// Returns the next item's number. Dropping items does not renumber the others.
    pub(super) fn next_item(&self) -> usize {
        self.truncation.items + self.items.len()
    }

    pub(super) fn item(&self, number: usize) -> Option<&Item> {
        self.items.get(number.checked_sub(self.truncation.items)?)
    }

    /// Returns an item for modification, and sets its revision to the thread's.
    pub(super) fn item_mut(&mut self, number: usize) -> Option<&mut Item> {
        let item = self
            .items
            .get_mut(number.checked_sub(self.truncation.items)?)?;
        item.revision = self.revision;
        Some(item)
    }

    /// Appends a new item and returns its number.
    pub(super) fn push(&mut self, kind: ItemKind) -> usize {
        let number = self.next_item();
        let weight = kind.weight();
        self.size.items = self.size.items.saturating_add(weight);
        self.items.push(Item {
            revision: self.revision,
            kind,
            parent: None,
            weight,
        });
        number
    }

    /// Records that an item has grown by `by` bytes.
    pub(super) fn grow_item(&mut self, number: usize, by: usize) {
        if let Some(item) = self.item_mut(number) {
            item.weight = item.weight.saturating_add(by);
            self.size.items = self.size.items.saturating_add(by);
        }
    }

    /// Updates the recorded size of an item after a change.
    pub(super) fn update_item_weight(&mut self, number: usize) {
        if let Some(item) = self.item_mut(number) {
            let after = item.kind.weight();
            let before = std::mem::replace(&mut item.weight, after);
            replace_term(&mut self.size.items, before, after);
        }
    }

    pub(super) fn update_terminal_weight(&mut self, id: &acp_wire::v1::TerminalId) {
        if let Some(terminal) = self.terminals.get_mut(id) {
            let after = ENTRY_OVERHEAD_BYTES + id.as_str().len() + terminal.stored_bytes();
            let before = std::mem::replace(&mut terminal.weight, after);
            replace_term(&mut self.size.terminals, before, after);
        }
    }

    /// Records and returns the size of a plan. `before` is the size of the plan that it replaces.
    pub(super) fn update_plan_weight<T: Serialize + ?Sized>(
        &mut self,
        id: &acp_wire::v1::PlanId,
        content: &T,
        before: usize,
    ) -> usize {
        let after = ENTRY_OVERHEAD_BYTES + id.as_str().len() + weight(content);
        replace_term(&mut self.size.plans, before, after);
        after
    }

    pub(super) fn subtract_plan(&mut self, plan: &ThreadPlan) {
        replace_term(&mut self.size.plans, plan.weight, 0);
    }

    /// Returns `true` if a setting is small enough to store, at most 1/16 of the limit. Otherwise, counts it as
    /// dropped.
    pub(super) fn fits_within<T: Serialize + ?Sized>(&mut self, value: &T) -> bool {
        let fits = weight(value) <= self.size.limit / 16;
        if !fits {
            self.truncation.parts += 1;
        }
        fits
    }

    /// Drops the oldest parts if the thread is over its limit. Drops a bit more than necessary, so that the next change
    /// does not cause another drop.
    pub(super) fn enforce_limit(&mut self) {
        let ThreadSize {
            limit,
            items,
            terminals,
            plans,
        } = self.size;
        if items.saturating_add(terminals).saturating_add(plans) <= limit {
            return;
        }
        if plans > limit / 4 {
            self.drop_plans(limit / 8);
        }
        if terminals > limit / 4 {
            self.drop_terminals(limit / 8);
        }
        let others = self.size.plans.saturating_add(self.size.terminals);
        self.drop_items((limit - limit / 8).saturating_sub(others));
    }

    fn drop_plans(&mut self, room: usize) {
        let mut by_age: Vec<(u64, usize)> =
            self.plans.iter().map(|p| (p.revision, p.weight)).collect();
        by_age.sort_unstable();
        let mut since = 0;
        for (revision, weight) in by_age {
            if self.size.plans <= room {
                break;
            }
            self.size.plans = self.size.plans.saturating_sub(weight);
            self.truncation.plans += 1;
            since = revision + 1;
        }
        self.plans.retain(|plan| plan.revision >= since);
    }

    fn drop_terminals(&mut self, room: usize) {
        let terminals = self.terminals.values();
        let mut by_age: Vec<(u64, usize)> =
            terminals.map(|t| (t.last_revision, t.weight)).collect();
        by_age.sort_unstable();
        let mut since = 0;
        for (heard, weight) in by_age {
            if self.size.terminals <= room {
                break;
            }
            self.size.terminals = self.size.terminals.saturating_sub(weight);
            self.truncation.terminals += 1;
            since = heard + 1;
        }
        self.terminals
            .retain(|_, terminal| terminal.last_revision >= since);
        self.terminals
            .shrink_to(self.terminals.len().saturating_mul(2));
    }

    /// Drops items from the start. The last item is truncated or dropped only if it is too large on its own.
    fn drop_items(&mut self, room: usize) {
        let mut gone = 0;
        for item in self.items.iter().take(self.items.len().saturating_sub(1)) {
            if self.size.items <= room {
                break;
            }
            self.size.items = self.size.items.saturating_sub(item.weight);
            gone += 1;
        }
        self.remove_from_indexes(gone);
        if self.size.items <= room {
            return;
        }
        let last = self.next_item().saturating_sub(1);
        if let Some(item) = self.item_mut(last) {
            match &mut item.kind {
                ItemKind::User(m) | ItemKind::Agent(m) | ItemKind::Thought(m) => {
                    m.drop_start(room / 2);
                }
                ItemKind::ToolCall(call) => call.drop_content(room / 8),
                ItemKind::Compaction(compaction) => compaction.summary.clear(),
                ItemKind::SessionMessage(message) => message.content.clear(),
                ItemKind::Subagent(_) | ItemKind::Notice(_) | ItemKind::Unknown(_) => {}
            }
            self.truncation.parts += 1;
            self.update_item_weight(last);
        }
        if self.size.items > room {
            // For example, a single name exceeds the limit.
            self.size.items = 0;
            self.remove_from_indexes(self.items.len());
        }
    }

    fn remove_from_indexes(&mut self, gone: usize) {
        if gone == 0 {
            return;
        }
        self.items.drain(..gone);
        self.items.shrink_to(self.items.len().saturating_mul(2));
        self.truncation.items += gone;
        let first = self.truncation.items;
        self.drop_nesting();
        self.tool_calls.retain(|_, number| *number >= first);
        self.tool_calls
            .shrink_to(self.tool_calls.len().saturating_mul(2));
        self.messages.retain(|_, number| *number >= first);
        self.messages
            .shrink_to(self.messages.len().saturating_mul(2));
        if self.echo.as_ref().is_some_and(|echo| echo.item < first) {
            self.echo = None;
        }
    }
}

impl ThreadTerminal {
    /// Returns the size of the terminal's output, command, working directory and other state, in bytes.
    fn stored_bytes(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.stored_len() + text(&self.command) + text(&self.cwd) + self.state_weight
    }

    /// Updates the recorded size of the terminal's state: its exit status, dimensions and capabilities.
    pub(super) fn update_state_weight(&mut self) {
        self.state_weight =
            weight(&self.exit_status) + weight(&self.size) + weight(&self.capabilities);
    }
}

/// The sizes of a tool call's potentially large parts, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ToolCallSize {
    pub(super) content: usize,
    pub(super) locations: usize,
    pub(super) raw_input: usize,
    pub(super) raw_output: usize,
    pub(super) capabilities: usize,
}

impl ThreadToolCall {
    /// Returns the estimated size of the tool call, in bytes.
    pub(crate) fn weight(&self) -> usize {
        let ToolCallSize {
            content,
            locations,
            raw_input,
            raw_output,
            capabilities,
        } = self.part_sizes;
        // The names of the tool and its kind are counted with the title.
        let names = self.name.as_ref().map_or(0, String::len) + self.kind.as_str().len();
        let texts = self.id.as_str().len() + self.title.len() + names;
        let large = content + locations + raw_input + raw_output + capabilities;
        size_of::<Self>() + texts + self.status.as_str().len() + large
    }

    /// Drops every part of the call that is larger than `room` bytes.
    fn drop_content(&mut self, room: usize) {
        self.is_truncated = true;
        if self.part_sizes.content > room {
            self.content = Vec::new();
            self.part_sizes.content = 0;
        }
        if self.part_sizes.locations > room {
            self.locations = Vec::new();
            self.part_sizes.locations = 0;
        }
        if self.part_sizes.raw_input > room {
            self.raw_input = None;
            self.part_sizes.raw_input = 0;
        }
        if self.part_sizes.raw_output > room {
            self.raw_output = None;
            self.part_sizes.raw_output = 0;
        }
        if self.part_sizes.capabilities > room {
            self.capabilities = None;
            self.part_sizes.capabilities = 0;
        }
        if self.title.len() > room {
            self.title = String::new();
        }
    }
}
