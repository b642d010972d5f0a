//! Lays out the items that are nested under another: the work of a subagent.
//!
//! If it is collapsed, only its last lines are shown.

use std::collections::HashMap;

use acp::Thread;
use acp::thread::Item;
use ratatui::text::{Line, Span};

use super::item::{ItemLayout, ItemRequest};
use crate::draw_context::DrawContext;
use crate::text::columns::pluralize;

/// The prefix of a nested line.
const NESTED_INDENT: &str = "│ ";

/// The maximum number of nested lines to show of a collapsed item.
const MAX_COLLAPSED_LINES: usize = 6;

/// The maximum number of items to lay out under an expanded item, counted from the end.
const MAX_ITEMS: usize = 500;

/// The laid-out lines under an item.
#[derive(Default)]
pub(super) struct NestedLayout {
    lines: Vec<Line<'static>>,
    /// The layouts of the nested items, by item number.
    items: HashMap<usize, ItemLayout>,
    is_unfinished: bool,
}

/// Nested items, and how to show them.
pub(super) struct NestedItems<'a> {
    /// The thread that contains the items.
    pub(super) thread: &'a Thread,
    /// The items with their numbers.
    pub(super) items: Vec<(usize, &'a Item)>,
    /// Whether there were earlier items that the thread has dropped.
    pub(super) has_dropped: bool,
    /// Whether all lines are shown.
    pub(super) is_open: bool,
    /// Whether the last item may still be worked on.
    pub(super) is_running: bool,
}

impl NestedLayout {
    pub(super) fn update(
        &mut self,
        nested: &NestedItems<'_>,
        wanted: &ItemRequest<'_>,
        look: &DrawContext<'_>,
    ) {
        self.is_unfinished = false;
        let body = self.layout_items(nested, wanted, look);
        let left_out = match nested.is_open {
            true => 0,
            false => body.len().saturating_sub(MAX_COLLAPSED_LINES),
        };
        self.lines.clear();
        if left_out > 0 {
            let more = format!("{NESTED_INDENT}… {}", pluralize(left_out, "earlier line"));
            self.lines.push(Line::styled(more, look.theme.dim));
        }
        self.lines.extend(body.into_iter().skip(left_out));
    }

    fn layout_items(
        &mut self,
        nested: &NestedItems<'_>,
        wanted: &ItemRequest<'_>,
        look: &DrawContext<'_>,
    ) -> Vec<Line<'static>> {
        let count = nested.items.len();
        // Each item takes at least one line or is invisible.
        let shown = match nested.is_open {
            true => MAX_ITEMS,
            false => 2 * MAX_COLLAPSED_LINES,
        };
        let skipped = count.saturating_sub(shown);
        let items = nested.items.get(skipped..).unwrap_or_default();
        let first = items.first().map_or(usize::MAX, |(number, _)| *number);
        self.items.retain(|number, _| *number >= first);
        let mut body = Vec::new();
        if skipped > 0 || nested.has_dropped {
            body.push(Line::styled(
                format!("{NESTED_INDENT}… earlier lines hidden"),
                look.theme.dim,
            ));
        }
        for (index, (number, item)) in items.iter().enumerate() {
            let laid = self.items.entry(*number).or_default();
            laid.update(
                &ItemRequest {
                    thread: nested.thread,
                    item,
                    number: *number,
                    width: wanted.width.saturating_sub(2).max(1),
                    is_open: nested.is_open.then_some(wanted.detail.all),
                    is_running: nested.is_running && index + 1 == items.len(),
                    ..*wanted
                },
                look,
            );
            self.is_unfinished |= laid.is_unfinished();
            let style = laid.style(look);
            for line in (0..laid.height()).filter_map(|n| laid.line(n)) {
                let mut spans = vec![Span::styled(NESTED_INDENT, look.theme.dim)];
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

    /// Removes all lines.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_unfinished(&self) -> bool {
        self.is_unfinished
    }

    pub(super) fn height(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn line(&self, n: usize) -> Option<&Line<'static>> {
        self.lines.get(n)
    }
}
