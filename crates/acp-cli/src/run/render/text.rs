//! A thread as text.

use std::collections::HashMap;

use acp::Thread;
use acp::thread::{Item, ItemKind, Message, ThreadPlan};
use acp::v1::{ContentBlock, EmbeddedResourceResource, PlanEntry, PlanEntryStatus, ToolCallId};

use super::clean::{self, Clean};
use super::screen::Out;
use super::tool_call::Shown;

/// How much of a thread has been shown.
#[derive(Default)]
pub(super) struct Text {
    revision: u64,
    /// What was shown last; another thing begins on a line of its own.
    last: Option<usize>,
    messages: HashMap<usize, ShownMessage>,
    tool_calls: HashMap<ToolCallId, Shown>,
    plans: HashMap<String, Vec<PlanEntry>>,
    mode: Option<String>,
}

/// Something of a thread that has changed.
enum Change<'t> {
    Plan(&'t ThreadPlan),
    Item(usize, &'t ItemKind),
}

#[derive(Default)]
struct ShownMessage {
    /// How many blocks have been shown whole.
    blocks: usize,
    /// How many bytes of the next one.
    bytes: usize,
    clean: Clean,
}

impl Text {
    /// Only what the agent says.
    pub(super) fn messages(&mut self, thread: &Thread, out: &mut Out) {
        for (at, item) in self.changed(thread) {
            if let ItemKind::Agent(message) = &item.kind {
                if self.last.is_some_and(|last| last != at) {
                    out.end_line();
                }
                self.message(at, message, out, false);
            }
        }
        self.revision = thread.revision();
    }

    /// All of it: in the order in which things last changed, which is the order they came in, but for
    /// what came faster than it was shown.
    pub(super) fn thread(&mut self, thread: &Thread, out: &mut Out) {
        let plans = thread
            .plans()
            .iter()
            .filter(|plan| plan.revision > self.revision);
        let mut changes: Vec<(u64, Change<'_>)> = plans
            .map(|plan| (plan.revision, Change::Plan(plan)))
            .collect();
        for (at, item) in self.changed(thread) {
            changes.push((item.revision, Change::Item(at, &item.kind)));
        }
        changes.sort_by_key(|(revision, _)| *revision);
        for (_, change) in changes {
            match change {
                Change::Plan(plan) => self.plan(plan, out),
                Change::Item(at, kind) => self.item(at, kind, thread, out),
            }
        }
        self.mode(thread, out);
        self.revision = thread.revision();
    }

    fn item(&mut self, at: usize, kind: &ItemKind, thread: &Thread, out: &mut Out) {
        match kind {
            // They have just typed it.
            ItemKind::User(_) => {}
            ItemKind::Agent(message) => {
                self.separate(at, out);
                self.message(at, message, out, false);
            }
            ItemKind::Thought(message) => {
                self.separate(at, out);
                self.message(at, message, out, true);
            }
            ItemKind::ToolCall(call) => {
                let shown = self.tool_calls.remove(&call.id);
                let came_back = shown.is_some() && self.last != Some(at);
                if shown.is_none() {
                    self.separate(at, out);
                }
                let mut shown = shown.unwrap_or_default();
                if shown.update(call, thread, out, came_back) {
                    self.last = Some(at);
                }
                self.tool_calls.insert(call.id.clone(), shown);
            }
            ItemKind::Unknown(object) => {
                self.separate(at, out);
                let kind: String = object.field("sessionUpdate").unwrap_or_default();
                let text = format!(
                    "(an update of a kind unknown here: {})\n",
                    clean::line(&kind)
                );
                out.styled(out.styles.dim, &text);
            }
            _ => {}
        }
    }

    /// The items that have changed, and those whose terminals may have printed something.
    fn changed<'t>(&self, thread: &'t Thread) -> Vec<(usize, &'t Item)> {
        let revision = self.revision;
        let shows_terminal = |item: &Item| {
            matches!(&item.kind, ItemKind::ToolCall(call)
                if self.tool_calls.get(&call.id).is_some_and(Shown::has_terminal))
        };
        thread
            .items()
            .iter()
            .enumerate()
            .filter(|(_, item)| item.revision > revision || shows_terminal(item))
            .collect()
    }

    /// Another thing begins on a line of its own, behind an empty one.
    fn separate(&mut self, at: usize, out: &mut Out) {
        if self.last == Some(at) {
            return;
        }
        out.end_line();
        if self.last.is_some() {
            out.text("\n");
        }
        self.last = Some(at);
    }

    fn message(&mut self, at: usize, message: &Message, out: &mut Out, thought: bool) {
        self.last = Some(at);
        let shown = self.messages.entry(at).or_default();
        for (n, block) in message.content.iter().enumerate().skip(shown.blocks) {
            let last = n + 1 == message.content.len();
            match block {
                ContentBlock::Text(text) => {
                    let piece = text.text.get(shown.bytes..).unwrap_or_default();
                    let piece = shown.clean.text(piece);
                    if thought {
                        out.styled(out.styles.dim, &piece);
                    } else {
                        out.text(&piece);
                    }
                    if last {
                        // More may come of it.
                        shown.bytes = text.text.len();
                        shown.blocks = n;
                        break;
                    }
                }
                other => {
                    out.end_line();
                    out.styled(out.styles.dim, &format!("{}\n", placeholder(other)));
                }
            }
            shown.blocks = n + 1;
            shown.bytes = 0;
        }
    }

    /// The whole plan when its steps are new, and after that the steps that have moved on.
    fn plan(&mut self, plan: &ThreadPlan, out: &mut Out) {
        let before = self.plans.insert(plan.id.clone(), plan.entries.clone());
        let same_steps = before.as_ref().is_some_and(|before| {
            before.len() == plan.entries.len()
                && before
                    .iter()
                    .zip(&plan.entries)
                    .all(|(a, b)| a.content == b.content)
        });
        let before = before.unwrap_or_default();
        if !same_steps {
            self.separate(usize::MAX, out);
            out.styled(out.styles.bold, "Plan\n");
        }
        for (n, entry) in plan.entries.iter().enumerate() {
            if same_steps
                && before
                    .get(n)
                    .is_some_and(|before| before.status == entry.status)
            {
                continue;
            }
            self.separate(usize::MAX, out);
            let (mark, style) = match entry.status {
                PlanEntryStatus::Completed => ("[x]", out.styles.good),
                PlanEntryStatus::InProgress => ("[>]", out.styles.accent),
                _ => ("[ ]", out.styles.dim),
            };
            out.text("  ");
            out.styled(style, mark);
            out.text(&format!(" {}\n", clean::line(&entry.content)));
        }
    }

    /// The mode, when the agent changes it.
    fn mode(&mut self, thread: &Thread, out: &mut Out) {
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
            self.separate(usize::MAX, out);
            out.styled(out.styles.dim, &format!("(mode: {})\n", clean::line(mode)));
        }
        self.mode = mode;
    }
}

/// What stands for content that cannot be shown as text.
pub(super) fn placeholder(block: &ContentBlock) -> String {
    let text = match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image: {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[sound: {}]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[{}: {}]", link.name, link.uri),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::Text(text) => format!("[{}]", text.uri),
            EmbeddedResourceResource::Blob(blob) => format!("[{}]", blob.uri),
            _ => "[a resource]".to_owned(),
        },
        _ => "[content of a kind unknown here]".to_owned(),
    };
    clean::line(&text)
}
