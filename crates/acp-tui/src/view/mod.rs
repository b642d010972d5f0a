//! A thread on the screen.
//!
//! What is seen is anchored to an item and a line within it, or to the end, and only what fits on the screen is
//! laid out, from the anchor on: how long the thread is does not matter. Nothing of it is measured as a whole.

mod image;
mod item;
mod message;
mod subagent;
#[cfg(test)]
mod tests;
mod tool_call;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use acp::Thread;
use acp::thread::{Item, ItemKind};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::draw_context::DrawContext;
use crate::images::ImageRow;
use crate::text::diff::DiffLayout;
pub(crate) use image::image_data;
use item::ItemLayout;

/// How many lines of items that are not on the screen are kept laid out.
const KEPT_LINES: usize = 20_000;

/// How long a drawing lays out what is long. What is left then is laid out with the next ones.
const AT_ONCE: Duration = Duration::from_millis(4);

/// How many changes of the place wait at most for what is laid out.
const MOVES: usize = 64;

/// The columns on the left, which say whose the item is and which is chosen.
const MARGIN: u16 = 2;

/// Where a line is: the number of its item, and its own within the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LinePosition {
    item: usize,
    line: usize,
}

/// Where the screen is in the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ScrollAnchor {
    /// At the end, which it follows.
    #[default]
    End,
    /// This line is at the top.
    Top(LinePosition),
}

/// What is to be done with the place before the next drawing, when the thread is at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScrollMove {
    /// So many lines up.
    Up(usize),
    /// So many lines down.
    Down(usize),
    /// To the first line.
    Beginning,
    /// To the item that is chosen, if it is not on the screen.
    Reveal,
}

/// What was shown in detail, and what is to be.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DetailState {
    /// All thoughts and tool calls are shown whole.
    pub(crate) all: bool,
    /// How diffs are shown.
    pub(crate) layout: DiffLayout,
}

/// A thread on the screen.
#[derive(Default)]
pub(crate) struct ThreadView {
    anchor: ScrollAnchor,
    moves: Vec<ScrollMove>,
    /// What is laid out, by the number of the item.
    layouts: HashMap<usize, ItemLayout>,
    /// What the person has opened or folded, by the number of the item.
    open_overrides: HashMap<usize, bool>,
    pub(crate) detail: DetailState,
    selected: Option<usize>,
    /// What the last drawing showed.
    viewport: ViewportState,
    /// The images of which it showed something, row by row.
    images: Vec<ImageRow>,
    /// How many drawings there were.
    drawings: u64,
}

/// What a drawing showed.
#[derive(Debug, Default, Clone, Copy)]
struct ViewportState {
    top: Option<LinePosition>,
    bottom: Option<LinePosition>,
    width: u16,
    height: u16,
    /// There is more below.
    below: bool,
}

impl ThreadView {
    fn queue_move(&mut self, moved: ScrollMove) {
        if self.moves.len() < MOVES {
            self.moves.push(moved);
        }
    }

    /// So many lines up.
    pub(crate) fn scroll_up(&mut self, lines: usize) {
        self.queue_move(ScrollMove::Up(lines));
    }

    /// So many lines down.
    pub(crate) fn scroll_down(&mut self, lines: usize) {
        self.queue_move(ScrollMove::Down(lines));
    }

    /// A page, less two lines that stay in sight.
    pub(crate) fn page(&self) -> usize {
        usize::from(self.viewport.height).saturating_sub(2).max(1)
    }

    /// To the first line.
    pub(crate) fn go_to_beginning(&mut self) {
        self.queue_move(ScrollMove::Beginning);
    }

    /// To the end, and with it from there on.
    pub(crate) fn go_to_end(&mut self) {
        self.moves.clear();
        self.anchor = ScrollAnchor::End;
    }

    /// Whether there is more below what is seen.
    pub(crate) fn has_more_below(&self) -> bool {
        self.viewport.below
    }

    /// Another item is chosen: so many on, or back. What follows it means that one, whether or not it was drawn yet.
    pub(crate) fn select(&mut self, by: isize, thread: &Thread) {
        let first = thread.truncation().items;
        let Some(last) = thread.items().len().checked_sub(1) else {
            return;
        };
        let last = first + last;
        self.selected = Some(match self.selected {
            Some(selected) => selected.saturating_add_signed(by).clamp(first, last),
            // The nearest one: from below, that is the last one on the screen.
            None => self.viewport.bottom.map_or(last, |at| at.item.min(last)),
        });
        self.queue_move(ScrollMove::Reveal);
    }

    /// None is chosen.
    pub(crate) fn deselect(&mut self) {
        self.selected = None;
    }

    /// The number of the item that is chosen.
    pub(crate) fn selected(&self) -> Option<usize> {
        self.selected
    }

    /// Opens or folds the item that is chosen.
    pub(crate) fn toggle(&mut self) {
        if let Some(number) = self.selected {
            let open = self.layouts.get(&number).is_some_and(|laid| laid.is_open);
            self.open_overrides.insert(number, !open);
        }
    }

    /// Shows everything whole, or folded.
    pub(crate) fn toggle_all(&mut self) {
        self.detail.all = !self.detail.all;
        self.open_overrides.clear();
    }

    /// Shows diffs the other way.
    pub(crate) fn toggle_layout(&mut self) {
        self.detail.layout = match self.detail.layout {
            DiffLayout::Auto => DiffLayout::Unified,
            DiffLayout::Unified => DiffLayout::SideBySide,
            DiffLayout::SideBySide => DiffLayout::Auto,
        };
    }

    /// Whether there is more to be seen of what is on the screen than was laid out at once.
    pub(crate) fn is_unfinished(&self) -> bool {
        let mut laid = self.layouts.values();
        laid.any(|laid| laid.is_unfinished_in(self.drawings))
    }

    /// The rows of images that the last drawing has left free.
    pub(crate) fn images(&self) -> &[ImageRow] {
        &self.images
    }

    /// Draws what there is room for.
    pub(crate) fn draw(
        &mut self,
        thread: &Thread,
        area: Rect,
        buf: &mut Buffer,
        look: &DrawContext<'_>,
    ) {
        self.viewport.width = area.width;
        self.viewport.height = area.height;
        let first = thread.truncation().items;
        let end = first + thread.items().len();
        self.drawings += 1;
        let mut pages = ViewPages {
            view: self,
            thread,
            first,
            end,
            width: area.width.saturating_sub(MARGIN).max(1),
            look,
            deadline: Instant::now() + AT_ONCE,
        };
        pages.drop_removed();
        let mut moves = std::mem::take(&mut pages.view.moves).into_iter();
        while let Some(moved) = moves.next() {
            if !pages.apply(moved, area.height) {
                // The item above is as long as that: it is laid out first.
                pages.view.moves = std::iter::once(moved).chain(moves).collect();
                break;
            }
        }
        pages.view.images.clear();
        let top = pages.resolve_top(area.height);
        pages.paint(top, area, buf);
        pages.drop_distant();
    }
}

/// A view with its thread at hand.
struct ViewPages<'a> {
    view: &'a mut ThreadView,
    thread: &'a Thread,
    /// The number of the first item that is there, and the one behind the last.
    first: usize,
    end: usize,
    width: u16,
    look: &'a DrawContext<'a>,
    /// How long this drawing lays out.
    deadline: Instant,
}

impl ViewPages<'_> {
    fn item(&self, number: usize) -> Option<&Item> {
        self.thread.items().get(number.checked_sub(self.first)?)
    }

    /// Lets go of what was laid out of items that are gone.
    fn drop_removed(&mut self) {
        let first = self.first;
        self.view
            .open_overrides
            .retain(|number, _| *number >= first);
        self.view.layouts.retain(|number, _| *number >= first);
        if self.view.selected.is_some_and(|s| s < first) {
            self.view.selected = None;
        }
    }

    /// Lets go of what was laid out far away, if it is much. What is being laid out stays: somebody is on the way there.
    fn drop_distant(&mut self) {
        let lines: usize = self.view.layouts.values().map(ItemLayout::height).sum();
        if lines > KEPT_LINES {
            let near = self.view.viewport.top.zip(self.view.viewport.bottom);
            let drawing = self.view.drawings;
            self.view.layouts.retain(|number, laid| {
                laid.is_unfinished_in(drawing)
                    || near.is_some_and(|(top, bottom)| (top.item..=bottom.item).contains(number))
            });
        }
    }

    fn is_unfinished(&mut self, number: usize) -> bool {
        self.layout_item(number)
            .is_some_and(ItemLayout::is_unfinished)
    }

    /// How many lines an item takes, the empty one before it included.
    fn item_height(&mut self, number: usize) -> usize {
        let gap = self.gap_before(number);
        self.layout_item(number)
            .map_or(0, |laid| laid.height() + gap)
    }

    /// The empty lines before an item. Tool calls that are one line each stand together.
    fn gap_before(&mut self, number: usize) -> usize {
        let Some(before) = number.checked_sub(1).filter(|n| *n >= self.first) else {
            return 0;
        };
        usize::from(!(self.is_short_call(number) && self.is_short_call(before)))
    }

    fn is_short_call(&mut self, number: usize) -> bool {
        let call = self
            .item(number)
            .is_some_and(|item| matches!(item.kind, ItemKind::ToolCall(_)));
        call && self
            .layout_item(number)
            .is_some_and(|laid| laid.height() == 1)
    }

    /// Lays an item out, if it is not yet as it is.
    fn layout_item(&mut self, number: usize) -> Option<&ItemLayout> {
        let at = number.checked_sub(self.first)?;
        let item = self.thread.items().get(at)?;
        let open = self.view.open_overrides.get(&number).copied();
        let running = self.thread.is_running() && number + 1 == self.end;
        let wanted = item::ItemRequest {
            thread: self.thread,
            item,
            width: self.width,
            is_open: open,
            is_running: running,
            detail: self.view.detail,
            drawing: self.view.drawings,
            deadline: self.deadline,
        };
        let laid = self.view.layouts.entry(number).or_default();
        laid.update(&wanted, self.look);
        Some(laid)
    }

    /// The line so many lines above this one; the first one, if there are not as many.
    fn line_above(&mut self, at: LinePosition, lines: usize) -> LinePosition {
        let mut at = at;
        let mut lines = lines;
        loop {
            if at.line >= lines {
                at.line -= lines;
                return at;
            }
            lines -= at.line;
            if at.item <= self.first {
                return LinePosition {
                    item: self.first,
                    line: 0,
                };
            }
            at.item -= 1;
            at.line = self.item_height(at.item);
        }
    }

    /// The line so many lines below this one, which may be behind the last.
    fn line_below(&mut self, at: LinePosition, lines: usize) -> LinePosition {
        let mut at = LinePosition {
            item: at.item,
            line: at.line + lines,
        };
        while at.item < self.end {
            let height = self.item_height(at.item);
            if at.line < height {
                break;
            }
            at.line -= height;
            at.item += 1;
        }
        at
    }

    /// The line at the top when the last one is at the bottom.
    fn last_top(&mut self, height: u16) -> LinePosition {
        let behind = LinePosition {
            item: self.end,
            line: 0,
        };
        // What was laid out while the items before were not counts anew: gaps depend on it.
        let top = self.line_above(behind, usize::from(height));
        top.max(LinePosition {
            item: self.first,
            line: 0,
        })
    }

    fn resolve_top(&mut self, height: u16) -> LinePosition {
        let last = self.last_top(height);
        let first = LinePosition {
            item: self.first,
            line: 0,
        };
        match self.view.anchor {
            ScrollAnchor::Top(at) => {
                let at = at.max(first);
                let there = self.item_height(at.item);
                if at.line >= there && self.is_unfinished(at.item) {
                    // Its line is not laid out yet: as near as one can be.
                    let line = there.saturating_sub(usize::from(height));
                    return LinePosition { line, ..at };
                }
                // An item may have become shorter.
                let at = self.line_below(
                    LinePosition {
                        item: at.item,
                        line: 0,
                    },
                    at.line,
                );
                // Of what is not laid out yet the end is further down.
                if at >= last && !self.is_unfinished(self.end.saturating_sub(1)) {
                    self.view.anchor = ScrollAnchor::End;
                    return last;
                }
                self.view.anchor = ScrollAnchor::Top(at);
                at
            }
            ScrollAnchor::End => last,
        }
    }

    /// Moves; gives whether that could be done yet. One cannot go up into an item whose end is not laid out, nor from a
    /// line that is not.
    fn apply(&mut self, moved: ScrollMove, height: u16) -> bool {
        let top = self.resolve_top(height);
        let known = match self.view.anchor {
            ScrollAnchor::Top(at) => at == top,
            // The last item's end is where it is by now.
            ScrollAnchor::End => top.item + 1 >= self.end || !self.is_unfinished(top.item),
        };
        match moved {
            ScrollMove::Up(_) | ScrollMove::Down(_) if !known => return false,
            ScrollMove::Up(lines) => {
                let to = self.line_above(top, lines);
                if (to.item..top.item).any(|number| self.is_unfinished(number)) {
                    return false;
                }
                self.view.anchor = ScrollAnchor::Top(to);
            }
            ScrollMove::Down(lines) => {
                self.view.anchor = ScrollAnchor::Top(self.line_below(top, lines))
            }
            ScrollMove::Beginning => {
                self.view.anchor = ScrollAnchor::Top(LinePosition {
                    item: self.first,
                    line: 0,
                });
            }
            ScrollMove::Reveal => self.reveal(top, height),
        }
        true
    }

    /// Brings the item that is chosen onto the screen.
    fn reveal(&mut self, top: LinePosition, height: u16) {
        let here = self.first..self.end;
        let Some(selected) = self.view.selected.filter(|n| here.contains(n)) else {
            return;
        };
        let begins = LinePosition {
            item: selected,
            line: 0,
        };
        if begins < top {
            let line = self.gap_before(selected);
            self.view.anchor = ScrollAnchor::Top(LinePosition { line, ..begins });
            return;
        }
        let lines = self.item_height(selected).min(usize::from(height));
        let ends = self.line_below(begins, lines);
        let fits = self.line_above(ends, usize::from(height));
        if fits > top {
            self.view.anchor = ScrollAnchor::Top(fits);
        }
    }

    fn paint(&mut self, top: LinePosition, area: Rect, buf: &mut Buffer) {
        let mut at = top;
        let mut last = top;
        for row in 0..area.height {
            while at.item < self.end && at.line >= self.item_height(at.item) {
                at = LinePosition {
                    item: at.item + 1,
                    line: 0,
                };
            }
            if at.item >= self.end {
                break;
            }
            last = at;
            let gap = self.gap_before(at.item);
            if at.line >= gap {
                self.paint_line(at.item, at.line - gap, area, row, buf);
            }
            at.line += 1;
        }
        let behind = self.line_below(last, 1);
        self.view.viewport.below = behind.item < self.end;
        self.view.viewport.top = Some(top);
        self.view.viewport.bottom = Some(last);
    }

    fn paint_line(&mut self, number: usize, line: usize, area: Rect, row: u16, buf: &mut Buffer) {
        let chosen = self.view.selected == Some(number);
        let look = self.look;
        let Some(laid) = self.view.layouts.get(&number) else {
            return;
        };
        let y = area.y + row;
        let (mark, style) = if chosen {
            ("┃", look.theme.accent)
        } else {
            laid.mark(look)
        };
        buf.set_stringn(area.x, y, mark, usize::from(MARGIN), style);
        if let Some(text) = laid.line(line) {
            let x = area.x + MARGIN;
            let width = area.width.saturating_sub(MARGIN);
            buf.set_line(x, y, text, width);
            let row = Rect::new(x, y, width, 1);
            buf.set_style(row, laid.style(look));
        }
        if let Some((spot, image_row)) = laid.image(line) {
            self.view.images.push(ImageRow {
                key: spot.key,
                row: image_row,
                position: Position::new(area.x + MARGIN + spot.indent, y),
                item: number,
                block: spot.block,
            });
        }
    }
}
