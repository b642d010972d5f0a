//! Lays out each subagent as a line with its task and status, followed by its work.
//!
//! A collapsed subagent shows only its last lines.

use std::collections::HashMap;

use acp::Thread;
use acp::thread::{Item, ItemKind, ThreadSubagent};
use acp::v2::StateUpdate;
use acp_host::terminal_text;
use ratatui::text::{Line, Span};

use super::item::{ItemLayout, ItemRequest};
use crate::draw_context::{DrawContext, SPINNER_FRAMES};
use crate::text::columns::pluralize;
use crate::text::wrap::wrap_line;

/// The prefix of a subagent's lines, except the first.
const BODY_INDENT: &str = "│ ";

/// The maximum number of lines that a collapsed subagent shows of its work.
const MAX_COLLAPSED_LINES: usize = 6;

/// The maximum number of items to lay out for an expanded subagent, counted from the end.
const MAX_ITEMS: usize = 500;

/// The laid-out lines of a subagent.
#[derive(Default)]
pub(super) struct SubagentLayout {
    head: Vec<Line<'static>>,
    body: Vec<Line<'static>>,
    /// The layouts of the subagent's items, by item index.
    items: HashMap<usize, ItemLayout>,
    unfinished: bool,
}

impl SubagentLayout {
    /// Updates the layout and returns whether the subagent is expanded.
    pub(super) fn update(
        &mut self,
        subagent: &ThreadSubagent,
        wanted: &ItemRequest<'_>,
        look: &DrawContext<'_>,
    ) -> bool {
        let open = wanted.is_open.unwrap_or(wanted.detail.all);
        self.update_head(subagent, wanted.width, look);
        self.unfinished = false;
        let body = subagent
            .thread
            .read(|thread| self.render_body(subagent, thread, open, wanted, look));
        let left_out = if open {
            0
        } else {
            body.len().saturating_sub(MAX_COLLAPSED_LINES)
        };
        self.body.clear();
        if left_out > 0 {
            let more = format!("{BODY_INDENT}… {}", pluralize(left_out, "earlier line"));
            self.body.push(Line::styled(more, look.theme.dim));
        }
        self.body.extend(body.into_iter().skip(left_out));
        open
    }

    /// Updates the first line, which shows the task and the status. The status symbol is animated.
    pub(super) fn update_head(
        &mut self,
        subagent: &ThreadSubagent,
        width: u16,
        look: &DrawContext<'_>,
    ) {
        self.head = wrap_line(&render_head(subagent, look), width);
    }

    fn render_body(
        &mut self,
        subagent: &ThreadSubagent,
        thread: &Thread,
        open: bool,
        wanted: &ItemRequest<'_>,
        look: &DrawContext<'_>,
    ) -> Vec<Line<'static>> {
        let first = thread.truncation().items;
        let count = thread.items().len();
        // Each item takes at least one line or is invisible.
        let shown = if open {
            MAX_ITEMS
        } else {
            2 * MAX_COLLAPSED_LINES
        };
        let skipped = count.saturating_sub(shown);
        self.items.retain(|number, _| *number >= first + skipped);
        let mut body = Vec::new();
        if skipped > 0 || !thread.truncation().is_empty() {
            body.push(Line::styled(
                format!("{BODY_INDENT}… earlier lines hidden"),
                look.theme.dim,
            ));
        }
        for (number, item) in (first..).zip(thread.items()).skip(skipped) {
            let laid = self.items.entry(number).or_default();
            laid.update(
                &ItemRequest {
                    thread,
                    item,
                    width: wanted.width.saturating_sub(2).max(1),
                    is_open: open.then_some(wanted.detail.all),
                    is_running: subagent.is_running() && number + 1 == first + count,
                    ..*wanted
                },
                look,
            );
            self.unfinished |= laid.is_unfinished();
            let style = laid.style(look);
            for line in (0..laid.height()).filter_map(|n| laid.line(n)) {
                let mut spans = vec![Span::styled(BODY_INDENT, look.theme.dim)];
                let styled = |span: &Span<'static>| {
                    let inner = style.patch(line.style).patch(span.style);
                    Span::styled(span.content.clone(), inner)
                };
                spans.extend(line.spans.iter().map(styled));
                body.push(Line::from(spans));
            }
        }
        body
    }

    pub(super) fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    pub(super) fn height(&self) -> usize {
        self.head.len() + self.body.len()
    }

    pub(super) fn line(&self, n: usize) -> Option<&Line<'static>> {
        match n.checked_sub(self.head.len()) {
            Some(n) => self.body.get(n),
            None => self.head.get(n),
        }
    }
}

/// Builds the first line of a subagent: the task and its current activity.
fn render_head(subagent: &ThreadSubagent, look: &DrawContext<'_>) -> Line<'static> {
    let theme = look.theme;
    let (sign, style, doing) = match &subagent.state {
        Some(StateUpdate::Running(_)) => {
            let frame = SPINNER_FRAMES
                .get(look.frame % SPINNER_FRAMES.len())
                .copied();
            (frame.unwrap_or("●"), theme.accent, String::new())
        }
        Some(StateUpdate::RequiresAction(_)) => ("?", theme.warn, " needs your answer".to_owned()),
        Some(StateUpdate::Idle(idle)) => {
            let reason = idle.stop_reason.as_ref();
            let ended = reason.map(|reason| reason.as_str().replace('_', " "));
            (
                "■",
                theme.dim,
                ended.map(|how| format!(" {how}")).unwrap_or_default(),
            )
        }
        _ => ("■", theme.dim, String::new()),
    };
    Line::from(vec![
        Span::styled(format!("{sign} "), style),
        Span::raw("Subagent: "),
        Span::raw(terminal_text::clean_line(subagent.name())),
        Span::styled(terminal_text::clean_line(&doing), theme.dim),
    ])
}

/// Returns a number that changes whenever a subagent's visible content changes.
pub(super) fn item_revision(item: &Item) -> u64 {
    match &item.kind {
        ItemKind::Subagent(subagent) => subagent.thread.read(Thread::revision),
        _ => 0,
    }
}
