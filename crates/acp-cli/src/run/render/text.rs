//! Renders a thread as text.

use std::collections::{HashMap, VecDeque};

use acp::Thread;
use acp::thread::{
    Item, ItemKind, PlanContent, PlanEntry, PlanEntryStatus, ThreadMessage, ThreadPlan,
    ThreadSessionMessage, ThreadSubagent,
};
use acp::v1::{
    CompactionStatus, ContentBlock, MessageId, Notice, NoticeSeverity, PlanId, SessionId,
    ToolCallId,
};
use acp::v2::StateUpdate;
use acp_host::terminal_text::{self, TextCleaner};

use super::placeholder::placeholder;
use super::tool_call::{ShownToolCall, may_be_unfinished};
use crate::screen::ScreenOutput;

/// Renders a thread as text and keeps track of how much has been shown.
#[derive(Default)]
pub(super) struct TextRenderer {
    revision: u64,
    /// The number of the first item that is not shown.
    end: Option<usize>,
    pub(super) shows_prompts: bool,
    /// The item that was shown last. Another item starts on a new line.
    last_item: Option<usize>,
    messages: HashMap<usize, ShownMessage>,
    tool_calls: HashMap<ToolCallId, ShownToolCall>,
    plans: HashMap<PlanId, Vec<PlanEntry>>,
    mode: Option<String>,
    subagents: HashMap<SessionId, ShownSubagent>,
    /// The latest messages between this session and its parent that have been shown, in either of the two.
    shown_session_messages: VecDeque<MessageId>,
}

/// How many messages between sessions to remember. Both copies of a message arrive shortly after one another.
const MAX_SESSION_MESSAGES: usize = 256;

/// How much of a subagent has been shown.
#[derive(Default)]
struct ShownSubagent {
    name: String,
    text: TextRenderer,
    /// The stop reason, once the subagent has ended.
    stop_reason: Option<String>,
}

/// A changed part of the thread.
enum ThreadChange<'t> {
    Plan(&'t ThreadPlan),
    Item(usize, &'t ItemKind),
}

impl ThreadChange<'_> {
    fn is_subagent(&self) -> bool {
        matches!(self, Self::Item(_, ItemKind::Subagent(_)))
    }
}

#[derive(Default)]
struct ShownMessage {
    /// The number of blocks that have been shown completely.
    shown_blocks: usize,
    /// The number of bytes of the next block that have been shown.
    shown_bytes: usize,
    /// The last few of those bytes. If the text at that point is different, the agent has replaced it.
    tail: String,
    clean: TextCleaner,
}

impl ShownMessage {
    fn is_prefix_of(&self, text: &str) -> bool {
        text.get(..self.shown_bytes)
            .is_some_and(|shown| shown.ends_with(&self.tail))
    }
}

/// Returns the last few bytes of `text`, enough to distinguish it from other text.
fn tail(text: &str) -> &str {
    let mut from = text.len().saturating_sub(64);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.get(from..).unwrap_or_default()
}

/// Returns the revision of the first message that a subagent has sent since then, if it is before the subagent's latest
/// change. The message reports what the subagent did, so the subagent is shown first.
fn first_report(item: &Item, changed: &[(usize, &Item)]) -> Option<u64> {
    let ItemKind::Subagent(subagent) = &item.kind else {
        return None;
    };
    let is_report = |other: &Item| {
        matches!(&other.kind, ItemKind::SessionMessage(message)
            if message.sender.as_ref() == Some(&subagent.session_id))
    };
    let others = changed.iter().map(|(_, other)| *other);
    let reports = others.filter(|other| is_report(other));
    let first = reports.map(|report| report.revision).min();
    first.filter(|first| *first < item.revision)
}

impl TextRenderer {
    /// Marks everything up to a revision of the thread as already shown.
    pub(super) fn skip_to(&mut self, revision: u64) {
        self.revision = revision;
    }

    /// Renders nothing from the item with the number `end` on.
    pub(super) fn stop_at(&mut self, end: Option<usize>) {
        self.end = end;
    }

    /// Renders only the agent's messages.
    pub(super) fn render_messages(&mut self, thread: &Thread, out: &mut ScreenOutput) {
        for (at, item) in self.changed_items(thread) {
            if let (ItemKind::Agent(message), None) = (&item.kind, item.parent) {
                if self.last_item.is_some_and(|last| last != at) {
                    out.end_line();
                }
                self.render_message(at, message, out, false);
            }
        }
        self.revision = thread.revision();
    }

    /// Renders everything that has changed, in the order of the latest changes. This is the order of arrival, unless
    /// changes arrive faster than they are shown.
    pub(super) fn render_thread(&mut self, thread: &Thread, out: &mut ScreenOutput) {
        let first = thread.truncation().items;
        self.messages.retain(|at, _| *at >= first);
        let plans = thread
            .plans()
            .iter()
            .filter(|plan| plan.revision > self.revision);
        let mut changes: Vec<(u64, ThreadChange<'_>)> = plans
            .map(|plan| (plan.revision, ThreadChange::Plan(plan)))
            .collect();
        let changed = self.changed_items(thread);
        for (at, item) in &changed {
            let revision = first_report(item, &changed).unwrap_or(item.revision);
            changes.push((revision, ThreadChange::Item(*at, &item.kind)));
        }
        // A subagent comes before its report, which has the same revision then.
        changes.sort_by_key(|(revision, change)| (*revision, !change.is_subagent()));
        for (_, change) in changes {
            match change {
                ThreadChange::Plan(plan) => self.render_plan(plan, out),
                ThreadChange::Item(at, kind) => self.render_in_place(at, kind, thread, out),
            }
        }
        self.render_mode(thread, out);
        self.revision = thread.revision();
    }

    /// Renders an item, indented below the tool call that it is nested under, if any.
    fn render_in_place(
        &mut self,
        at: usize,
        kind: &ItemKind,
        thread: &Thread,
        out: &mut ScreenOutput,
    ) {
        let depth = thread.nesting_depth(at);
        if let Some(parent) = thread.parent_item(at) {
            self.render_parent_title(at, parent, thread, out);
            let has_begun = matches!(kind, ItemKind::ToolCall(call)
                if self.tool_calls.get(&call.id).is_some_and(|shown| !shown.is_new()));
            if self.last_item == Some(parent) && !has_begun {
                // Directly below the title, without an empty line.
                self.last_item = Some(at);
            }
        }
        out.push_nested(depth, |out| self.render_item(at, kind, thread, out));
    }

    /// Names the tool call that an item is nested under, unless that is clear from what was shown last.
    fn render_parent_title(
        &mut self,
        at: usize,
        parent: usize,
        thread: &Thread,
        out: &mut ScreenOutput,
    ) {
        let is_clear = self
            .last_item
            .is_some_and(|last| last == parent || thread.parent_item(last) == Some(parent));
        if let (false, Some(call)) = (is_clear, thread.parent_call(at)) {
            out.push_nested(thread.nesting_depth(parent), |out| {
                self.separate_item(parent, out);
                let title = terminal_text::clean_value(call.title_or_id());
                out.push_styled(out.styles.bold, &format!("Subagent: {title}\n"));
            });
        }
    }

    fn render_item(&mut self, at: usize, kind: &ItemKind, thread: &Thread, out: &mut ScreenOutput) {
        match kind {
            ItemKind::User(message) if self.shows_prompts => {
                self.separate_item(at, out);
                for line in message.text().lines() {
                    let line = format!("> {}\n", terminal_text::clean_value(line));
                    out.push_styled(out.styles.bold, &line);
                }
            }
            // The user has just entered it.
            ItemKind::User(_) => {}
            ItemKind::Agent(message) => {
                self.separate_item(at, out);
                self.render_message(at, message, out, false);
            }
            ItemKind::Thought(message) => {
                self.separate_item(at, out);
                self.render_message(at, message, out, true);
            }
            ItemKind::ToolCall(call) => {
                let mut shown = self.tool_calls.remove(&call.id).unwrap_or_default();
                let came_back = !shown.is_new() && self.last_item != Some(at);
                if shown.is_new() {
                    if thread.is_running() && may_be_unfinished(call) {
                        self.tool_calls.insert(call.id.clone(), shown);
                        return;
                    }
                    self.separate_item(at, out);
                }
                if shown.update(call, thread, out, came_back) {
                    self.last_item = Some(at);
                }
                self.tool_calls.insert(call.id.clone(), shown);
            }
            ItemKind::Notice(notice) => self.render_notice(at, notice, out),
            ItemKind::Subagent(subagent) => self.render_subagent(at, subagent, out),
            ItemKind::SessionMessage(message) => {
                self.render_session_message(at, message, thread, out);
            }
            ItemKind::Compaction(compaction) => {
                self.separate_item(at, out);
                let how = match (&compaction.status, &compaction.error) {
                    (CompactionStatus::InProgress, _) => "is being compacted".to_owned(),
                    (CompactionStatus::Completed, _) => "was compacted".to_owned(),
                    (_, Some(error)) => format!(
                        "could not be compacted: {}",
                        terminal_text::clean_value(error)
                    ),
                    (_, None) => "could not be compacted".to_owned(),
                };
                out.push_styled(out.styles.dim, &format!("(the conversation {how})\n"));
            }
            ItemKind::Unknown(object) => {
                self.separate_item(at, out);
                let kind: String = object.field("sessionUpdate").unwrap_or_default();
                let text = format!("(unknown update: {})\n", terminal_text::clean_value(&kind));
                out.push_styled(out.styles.dim, &text);
            }
            _ => {}
        }
    }

    fn render_notice(&mut self, at: usize, notice: &Notice, out: &mut ScreenOutput) {
        self.separate_item(at, out);
        let style = match notice.severity {
            NoticeSeverity::Error => out.styles.bad,
            _ => out.styles.dim,
        };
        out.push_styled(
            style,
            &format!("! {}\n", terminal_text::clean_value(&notice.title)),
        );
        for line in
            terminal_text::clean_text(notice.description.as_deref().unwrap_or_default()).lines()
        {
            out.push_styled(out.styles.dim, &format!("  {line}\n"));
        }
    }

    /// Renders a message between sessions, unless its copy in the other session has been shown.
    fn render_session_message(
        &mut self,
        at: usize,
        message: &ThreadSessionMessage,
        thread: &Thread,
        out: &mut ScreenOutput,
    ) {
        if !self.messages.contains_key(&at) {
            // The subagent shows its copy below its name, and this session shows its own.
            let is_new = match thread.subagent_copy(message) {
                Some((subagent, id)) => {
                    let shown = self.subagents.entry(subagent.session_id.clone());
                    shown.or_default().text.note_session_message(id)
                }
                None => self.note_session_message(&message.id),
            };
            if !is_new {
                return;
            }
        }
        self.separate_item(at, out);
        let shown = self.messages.entry(at).or_default();
        if shown.shown_bytes == 0 {
            let direction = terminal_text::clean_value(&thread.message_direction(message));
            out.push_styled(out.styles.dim, &format!("(message {direction})\n"));
        }
        let text = message.content.iter().filter_map(ContentBlock::as_text);
        let text: String = text.collect();
        let piece = text.get(shown.shown_bytes..).unwrap_or_default();
        out.push_nested(1, |out| out.push_text(&terminal_text::clean_text(piece)));
        shown.shown_bytes = text.len();
    }

    /// Returns `true` if a message between this session and its parent has not been shown yet, and remembers it.
    fn note_session_message(&mut self, id: &MessageId) -> bool {
        if self.shown_session_messages.contains(id) {
            return false;
        }
        if self.shown_session_messages.len() == MAX_SESSION_MESSAGES {
            self.shown_session_messages.pop_front();
        }
        self.shown_session_messages.push_back(id.clone());
        true
    }

    /// Renders a subagent's task and, indented below it, its thread.
    fn render_subagent(&mut self, at: usize, subagent: &ThreadSubagent, out: &mut ScreenOutput) {
        let ended = match &subagent.state {
            Some(StateUpdate::Idle(idle)) => idle.stop_reason.as_ref().map(ToString::to_string),
            _ => None,
        };
        let known = self.subagents.remove(&subagent.session_id);
        let new = known.is_none();
        let mut shown = known.unwrap_or_default();
        let news = subagent.thread.read(Thread::revision) > shown.text.revision;
        let named = shown.name != subagent.name();
        let ends = ended.is_some() && shown.stop_reason != ended;
        if new || news || named || ends {
            let again = self.last_item != Some(at);
            self.separate_item(at, out);
            if again || named {
                out.end_line();
                let head = format!(
                    "Subagent: {}\n",
                    terminal_text::clean_value(subagent.name())
                );
                out.push_styled(out.styles.bold, &head);
            }
            out.push_nested(1, |out| {
                subagent
                    .thread
                    .read(|thread| shown.text.render_thread(thread, out));
                if let Some(how) = ended.as_ref().filter(|_| ends) {
                    out.end_line();
                    out.push_styled(
                        out.styles.dim,
                        &format!("({})\n", terminal_text::clean_value(how)),
                    );
                }
            });
        }
        subagent.name().clone_into(&mut shown.name);
        shown.stop_reason = ended;
        self.subagents.insert(subagent.session_id.clone(), shown);
    }

    /// Returns the items that have changed, may have more terminal output, or have been held back so far.
    fn changed_items<'t>(&self, thread: &'t Thread) -> Vec<(usize, &'t Item)> {
        let revision = self.revision;
        let due = |shown: &ShownToolCall| shown.has_terminal() || shown.is_new();
        let due = |item: &Item| {
            matches!(&item.kind, ItemKind::ToolCall(call)
                if self.tool_calls.get(&call.id).is_some_and(due))
        };
        // Items keep their numbers when the earliest are dropped.
        let numbers = thread.truncation().items..;
        numbers
            .zip(thread.items())
            .take_while(|(number, _)| self.end.is_none_or(|end| *number < end))
            .filter(|(_, item)| item.revision > revision || due(item))
            .collect()
    }

    /// Starts a new item: ends the current line and adds a blank one.
    fn separate_item(&mut self, at: usize, out: &mut ScreenOutput) {
        if self.last_item == Some(at) {
            return;
        }
        out.end_line();
        if self.last_item.is_some() {
            out.push_text("\n");
        }
        self.last_item = Some(at);
    }

    fn render_message(
        &mut self,
        at: usize,
        message: &ThreadMessage,
        out: &mut ScreenOutput,
        thought: bool,
    ) {
        self.last_item = Some(at);
        let shown = self.messages.entry(at).or_default();
        for (n, block) in message.content.iter().enumerate().skip(shown.shown_blocks) {
            let last = n + 1 == message.content.len();
            match block {
                ContentBlock::Text(text) => {
                    if !shown.is_prefix_of(&text.text) {
                        // The agent has replaced the text; show the new one as well.
                        shown.shown_bytes = 0;
                        shown.tail.clear();
                        out.end_line();
                    }
                    let piece = text.text.get(shown.shown_bytes..).unwrap_or_default();
                    let piece = shown.clean.clean_piece(piece);
                    if thought {
                        out.push_styled(out.styles.dim, &piece);
                    } else {
                        out.push_text(&piece);
                    }
                    if last {
                        // The last block may still grow.
                        shown.shown_bytes = text.text.len();
                        shown.tail = tail(&text.text).to_owned();
                        shown.shown_blocks = n;
                        break;
                    }
                }
                other => {
                    out.end_line();
                    out.push_styled(out.styles.dim, &format!("{}\n", placeholder(other)));
                }
            }
            shown.shown_blocks = n + 1;
            shown.shown_bytes = 0;
            shown.tail.clear();
        }
    }

    /// Renders a plan: all of it if its steps are new, and otherwise only the steps whose status has changed.
    fn render_plan(&mut self, plan: &ThreadPlan, out: &mut ScreenOutput) {
        let entries = plan.entries();
        if entries.is_empty() {
            self.render_plan_without_steps(plan, out);
        }
        let before = self.plans.insert(plan.id.clone(), entries.to_vec());
        let same_steps = before.as_ref().is_some_and(|before| {
            before.len() == entries.len()
                && before
                    .iter()
                    .zip(entries)
                    .all(|(a, b)| a.content == b.content)
        });
        let before = before.unwrap_or_default();
        if !same_steps {
            self.separate_item(usize::MAX, out);
            out.push_styled(out.styles.bold, "Plan\n");
        }
        for (n, entry) in entries.iter().enumerate() {
            if same_steps
                && before
                    .get(n)
                    .is_some_and(|before| before.status == entry.status)
            {
                continue;
            }
            self.separate_item(usize::MAX, out);
            let (mark, style) = match entry.status {
                PlanEntryStatus::Completed => ("[x]", out.styles.good),
                PlanEntryStatus::InProgress => ("[>]", out.styles.accent),
                PlanEntryStatus::Cancelled => ("[-]", out.styles.dim),
                _ => ("[ ]", out.styles.dim),
            };
            out.push_text("  ");
            out.push_styled(style, mark);
            out.push_text(&format!(
                " {}\n",
                terminal_text::clean_value(&entry.content)
            ));
        }
    }

    /// Renders a plan that is Markdown text or a file rather than a list of steps.
    fn render_plan_without_steps(&mut self, plan: &ThreadPlan, out: &mut ScreenOutput) {
        let text = match &plan.content {
            PlanContent::Markdown(text) => terminal_text::clean_text(text),
            PlanContent::File(uri) => terminal_text::clean_value(uri),
            _ => return,
        };
        self.separate_item(usize::MAX, out);
        out.push_styled(out.styles.bold, "Plan\n");
        for line in text.lines() {
            out.push_text(&format!("  {line}\n"));
        }
    }

    /// Renders the mode if the agent has changed it.
    fn render_mode(&mut self, thread: &Thread, out: &mut ScreenOutput) {
        use acp::v1::{SessionConfigKind, SessionConfigOptionCategory};
        let mode = thread
            .config_options()
            .iter()
            .find_map(|option| match &option.kind {
                SessionConfigKind::Select(select)
                    if option.category == Some(SessionConfigOptionCategory::Mode) =>
                {
                    Some(select.current_value.to_string())
                }
                _ => None,
            });
        if mode == self.mode {
            return;
        }
        let known = self.mode.is_some();
        if let (true, Some(mode)) = (known, &mode) {
            self.separate_item(usize::MAX, out);
            out.push_styled(
                out.styles.dim,
                &format!("(mode: {})\n", terminal_text::clean_value(mode)),
            );
        }
        self.mode = mode;
    }
}
