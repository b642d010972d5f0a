//! Shows a thread in a scrollable view.
//!
//! The view is anchored to a line of an item, or to the end. Only what fits on the screen is laid out, starting at the
//! anchor, so the length of the thread does not matter. The thread is never measured as a whole.

mod image;
mod item;
mod message;
mod nested;
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
use crate::editor::FoldedText;
use crate::images::ImageRow;
use crate::text::diff::DiffLayout;
pub(crate) use image::image_data;
use item::ItemLayout;

/// The maximum number of laid-out lines to cache for items that are not visible.
const MAX_CACHED_LINES: usize = 20_000;

/// The time limit for layout in one frame. The rest is laid out in later frames.
const FRAME_BUDGET: Duration = Duration::from_millis(4);

/// The maximum number of scroll commands that can wait for a layout.
const MAX_QUEUED_MOVES: usize = 64;

/// The maximum number of texts to show as labels.
const MAX_FOLDED_TEXTS: usize = 200;

/// The width of the left margin, which shows who wrote each item and which item is selected.
const MARGIN_WIDTH: u16 = 2;

/// The position of a line: the index of its item, and the line's index within the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LinePosition {
    item: usize,
    line: usize,
}

/// The position that the view is anchored to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ScrollAnchor {
    /// The end of the thread. The view follows it.
    #[default]
    End,
    /// A line that is kept at the top of the view.
    Top(LinePosition),
}

/// A scroll command that waits for the next frame, because only drawing code has access to the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScrollMove {
    /// Scroll up by this number of lines.
    Up(usize),
    /// Scroll down by this number of lines.
    Down(usize),
    /// Scroll to the first line.
    Beginning,
    /// Scroll to the selected item, unless it is already visible.
    Reveal,
    /// Scroll to the line of the selected item that contains the text that was searched for, unless it is already
    /// visible.
    RevealText,
}

/// Settings for how much detail to show.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DetailOptions {
    /// Whether all thoughts and tool calls are expanded.
    pub(crate) all: bool,
    /// The layout of diffs in tool calls.
    pub(crate) layout: DiffLayout,
}

/// A scrollable view of a thread, with a selection.
#[derive(Default)]
pub(crate) struct ThreadView {
    anchor: ScrollAnchor,
    moves: Vec<ScrollMove>,
    /// The cached layouts, by item index.
    layouts: HashMap<usize, ItemLayout>,
    /// The items that the user has expanded or collapsed, by item index.
    open_overrides: HashMap<usize, bool>,
    pub(crate) detail: DetailOptions,
    selected: Option<usize>,
    /// The texts of the user's messages that are shown as their labels unless the message is expanded.
    folded: Vec<FoldedText>,
    /// The text that was searched for last, in lower case.
    sought: String,
    /// The part of the thread shown in the last frame.
    viewport: ViewportState,
    /// The index of the item in each row of the last frame.
    drawn_items: Vec<Option<usize>>,
    /// The image rows in the last frame.
    images: Vec<ImageRow>,
    /// The number of frames drawn so far.
    drawings: u64,
}

/// The visible part of a thread in the last frame.
#[derive(Debug, Default, Clone, Copy)]
struct ViewportState {
    top: Option<LinePosition>,
    bottom: Option<LinePosition>,
    area: Rect,
    /// Whether there is more below the visible part.
    has_more_below: bool,
}

impl ThreadView {
    fn queue_move(&mut self, moved: ScrollMove) {
        if self.moves.len() < MAX_QUEUED_MOVES {
            self.moves.push(moved);
        }
    }

    /// Scrolls up by this number of lines.
    pub(crate) fn scroll_up(&mut self, lines: usize) {
        self.queue_move(ScrollMove::Up(lines));
    }

    /// Scrolls down by this number of lines.
    pub(crate) fn scroll_down(&mut self, lines: usize) {
        self.queue_move(ScrollMove::Down(lines));
    }

    /// Returns how many lines a page key scrolls: the view's height minus two, so that two lines stay visible.
    pub(crate) fn page_height(&self) -> usize {
        usize::from(self.viewport.area.height)
            .saturating_sub(2)
            .max(1)
    }

    /// Scrolls to the first line.
    pub(crate) fn go_to_beginning(&mut self) {
        self.queue_move(ScrollMove::Beginning);
    }

    /// Scrolls to the end. The view then keeps following the end.
    pub(crate) fn go_to_end(&mut self) {
        self.moves.clear();
        self.anchor = ScrollAnchor::End;
    }

    /// Returns whether there is more below the visible part.
    pub(crate) fn has_more_below(&self) -> bool {
        self.viewport.has_more_below
    }

    /// Moves the selection by this number of items. Later commands apply to the newly selected item even if it has not
    /// been drawn yet.
    pub(crate) fn select(&mut self, by: isize, thread: &Thread) {
        let first = thread.truncation().items;
        let Some(last) = thread.items().len().checked_sub(1) else {
            return;
        };
        let last = first + last;
        self.selected = Some(match self.selected {
            Some(selected) => {
                // Nested items are shown, expanded and selected with the item that contains them.
                let is_outermost = |n: &usize| thread.parent_item(*n).is_none();
                let steps = by.unsigned_abs();
                let reached = match by < 0 {
                    true => (first..selected)
                        .rev()
                        .filter(is_outermost)
                        .take(steps)
                        .last(),
                    false => (selected + 1..=last)
                        .filter(is_outermost)
                        .take(steps)
                        .last(),
                };
                reached.unwrap_or_else(|| thread.outermost_item(selected.clamp(first, last)))
            }
            // Select the nearest item. Coming from below, that is the last one on the screen.
            None => {
                let nearest = self.viewport.bottom.map_or(last, |at| at.item.min(last));
                thread.outermost_item(nearest)
            }
        });
        self.queue_move(ScrollMove::Reveal);
    }

    /// Selects the item with this index, expands it, and scrolls to the first line that contains the text.
    pub(crate) fn open_item_at(&mut self, number: usize, text: &str) {
        self.selected = Some(number);
        self.open_overrides.insert(number, true);
        self.sought = text.to_lowercase();
        self.queue_move(ScrollMove::RevealText);
    }

    /// Returns a view of another conversation in the same tab. It knows the same labels.
    pub(crate) fn for_other_conversation(&self) -> Self {
        Self {
            folded: self.folded.clone(),
            ..Self::default()
        }
    }

    /// Shows these texts as their labels in the user's messages, until the user expands the message.
    pub(crate) fn fold(&mut self, texts: impl Iterator<Item = FoldedText>) {
        for text in texts {
            if !self.folded.contains(&text) {
                self.folded.push(text);
            }
        }
        let surplus = self.folded.len().saturating_sub(MAX_FOLDED_TEXTS);
        self.folded.drain(..surplus);
    }

    /// Clears the selection.
    pub(crate) fn deselect(&mut self) {
        self.selected = None;
    }

    /// Returns the index of the selected item.
    pub(crate) fn selected(&self) -> Option<usize> {
        self.selected
    }

    /// Expands or collapses the selected item.
    pub(crate) fn toggle(&mut self) {
        if let Some(number) = self.selected {
            self.toggle_item(number);
        }
    }

    /// Returns the index of the item that was drawn at this position.
    pub(crate) fn item_at(&self, at: Position) -> Option<usize> {
        let area = self.viewport.area;
        let row = at.y.checked_sub(area.y).filter(|_| area.contains(at))?;
        *self.drawn_items.get(usize::from(row))?
    }

    /// Expands or collapses the item with this index.
    pub(crate) fn toggle_item(&mut self, number: usize) {
        let open = self.layouts.get(&number).is_some_and(|laid| laid.is_open);
        self.open_overrides.insert(number, !open);
    }

    /// Expands or collapses all items.
    pub(crate) fn toggle_all(&mut self) {
        self.detail.all = !self.detail.all;
        self.open_overrides.clear();
    }

    /// Switches to the next diff layout: automatic, unified, side by side.
    pub(crate) fn toggle_layout(&mut self) {
        self.detail.layout = match self.detail.layout {
            DiffLayout::Auto => DiffLayout::Unified,
            DiffLayout::Unified => DiffLayout::SideBySide,
            DiffLayout::SideBySide => DiffLayout::Auto,
        };
    }

    /// Drops all layouts, because the theme has changed.
    pub(crate) fn forget_layouts(&mut self) {
        self.layouts.clear();
    }

    /// Returns whether part of the visible area is not laid out yet.
    pub(crate) fn is_unfinished(&self) -> bool {
        let mut laid = self.layouts.values();
        laid.any(|laid| laid.is_unfinished_in_drawing(self.drawings))
    }

    /// Returns the image rows in the last frame.
    pub(crate) fn images(&self) -> &[ImageRow] {
        &self.images
    }

    /// Draws the visible part of the thread.
    pub(crate) fn draw(
        &mut self,
        thread: &Thread,
        area: Rect,
        buf: &mut Buffer,
        look: &DrawContext<'_>,
    ) {
        self.viewport.area = area;
        let first = thread.truncation().items;
        let end = first + thread.items().len();
        self.drawings += 1;
        let mut pages = ViewRenderer {
            view: self,
            thread,
            first,
            end,
            width: area.width.saturating_sub(MARGIN_WIDTH).max(1),
            look,
            deadline: Instant::now() + FRAME_BUDGET,
        };
        pages.drop_removed();
        let mut moves = std::mem::take(&mut pages.view.moves).into_iter();
        while let Some(moved) = moves.next() {
            if !pages.apply(moved, area.height) {
                // The item above is long, and must be laid out first.
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

/// A view and its thread while a frame is being drawn.
struct ViewRenderer<'a> {
    view: &'a mut ThreadView,
    thread: &'a Thread,
    /// The index of the first item.
    first: usize,
    /// The index after the last item.
    end: usize,
    width: u16,
    look: &'a DrawContext<'a>,
    /// The deadline for layout in this frame.
    deadline: Instant,
}

impl ViewRenderer<'_> {
    fn item(&self, number: usize) -> Option<&Item> {
        self.thread.items().get(number.checked_sub(self.first)?)
    }

    /// Drops the layouts of items that no longer exist.
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

    /// Drops the layouts of distant items if there are many. Keeps unfinished layouts, because a scroll command may be
    /// waiting for them.
    fn drop_distant(&mut self) {
        let lines: usize = self.view.layouts.values().map(ItemLayout::height).sum();
        if lines > MAX_CACHED_LINES {
            let near = self.view.viewport.top.zip(self.view.viewport.bottom);
            let drawing = self.view.drawings;
            self.view.layouts.retain(|number, laid| {
                laid.is_unfinished_in_drawing(drawing)
                    || near.is_some_and(|(top, bottom)| (top.item..=bottom.item).contains(number))
            });
        }
    }

    fn is_unfinished(&mut self, number: usize) -> bool {
        self.layout_item(self.thread.outermost_item(number))
            .is_some_and(ItemLayout::is_unfinished)
    }

    /// Returns whether an item is shown under another one.
    fn is_nested(&self, number: usize) -> bool {
        self.thread.parent_item(number).is_some()
    }

    /// Returns the height of an item in lines, including the empty line before it. Nested items and items that show
    /// nothing have none.
    fn item_height(&mut self, number: usize) -> usize {
        if self.is_nested(number) {
            return 0;
        }
        let gap = self.gap_before(number);
        match self.layout_item(number).map_or(0, ItemLayout::height) {
            0 => 0,
            height => height + gap,
        }
    }

    /// Returns the number of empty lines before an item. There are none between one-line tool calls.
    fn gap_before(&mut self, number: usize) -> usize {
        let Some(before) = (self.first..number).rfind(|n| !self.is_nested(*n)) else {
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

    /// Lays out an item, unless its layout is up to date.
    fn layout_item(&mut self, number: usize) -> Option<&ItemLayout> {
        let at = number.checked_sub(self.first)?;
        let item = self.thread.items().get(at)?;
        let open = self.view.open_overrides.get(&number).copied();
        let running = self.thread.is_running() && number + 1 == self.end;
        let wanted = item::ItemRequest {
            thread: self.thread,
            item,
            number,
            width: self.width,
            is_open: open,
            is_running: running,
            detail: self.view.detail,
            folded: &self.view.folded,
            drawing: self.view.drawings,
            deadline: self.deadline,
        };
        let laid = self.view.layouts.entry(number).or_default();
        laid.update(&wanted, self.look);
        Some(laid)
    }

    /// Returns the position `lines` lines above `at`, or the first line if there are not enough lines.
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

    /// Returns the position `lines` lines below `at`. It may be past the last line.
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

    /// Returns the line at the top of the view when the last line is at the bottom.
    fn last_top(&mut self, height: u16) -> LinePosition {
        let behind = LinePosition {
            item: self.end,
            line: 0,
        };
        // This is counted anew with each drawing, because the layouts of earlier items may have changed, and gaps
        // depend on them.
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
                    // The anchor's line is not laid out yet, so show the nearest line.
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
                // If an item is not fully laid out, the end is further down.
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

    /// Applies a scroll command. Returns `false` if the command must wait for more layout, because it starts at a line
    /// that is not laid out, or scrolls up into an item whose end is not laid out.
    fn apply(&mut self, moved: ScrollMove, height: u16) -> bool {
        let top = self.resolve_top(height);
        let known = match self.view.anchor {
            ScrollAnchor::Top(at) => at == top,
            // The end of the last item is known at this point.
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
            ScrollMove::RevealText => return self.reveal_text(top, height),
        }
        true
    }

    /// Scrolls the line of the selected item that contains the text that was searched for into view. Returns `false` if
    /// the line is not laid out yet.
    fn reveal_text(&mut self, top: LinePosition, height: u16) -> bool {
        let here = self.first..self.end;
        let Some(selected) = self.view.selected.filter(|n| here.contains(n)) else {
            return true;
        };
        let sought = self.view.sought.clone();
        let laid = self.layout_item(selected);
        let Some(line) = laid.and_then(|laid| laid.find_text(&sought)) else {
            if self.is_unfinished(selected) {
                return false;
            }
            // The text is in a part that is not shown, such as the address of a link.
            self.reveal(top, height);
            return true;
        };
        let found = LinePosition {
            item: selected,
            line: line + self.gap_before(selected),
        };
        let below = self.line_below(top, usize::from(height));
        if found < top || found >= below {
            // With some lines before it, so that it can be understood.
            let to = self.line_above(found, usize::from(height / 3));
            self.view.anchor = ScrollAnchor::Top(to);
        }
        true
    }

    /// Scrolls the selected item into view.
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
        self.view.drawn_items.clear();
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
            let is_item = at.line >= gap;
            self.view.drawn_items.push(is_item.then_some(at.item));
            if is_item {
                self.paint_line(at.item, at.line - gap, area, row, buf);
            }
            at.line += 1;
        }
        let behind = self.line_below(last, 1);
        self.view.viewport.has_more_below = behind.item < self.end;
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
        buf.set_stringn(area.x, y, mark, usize::from(MARGIN_WIDTH), style);
        if let Some(text) = laid.line(line) {
            let x = area.x + MARGIN_WIDTH;
            let width = area.width.saturating_sub(MARGIN_WIDTH);
            buf.set_line(x, y, text, width);
            let row = Rect::new(x, y, width, 1);
            buf.set_style(row, laid.style(look));
        }
        if let Some((spot, image_row)) = laid.image(line) {
            self.view.images.push(ImageRow {
                key: spot.key,
                row: image_row,
                position: Position::new(area.x + MARGIN_WIDTH + spot.indent, y),
                item: number,
                block: spot.block,
            });
        }
    }
}
