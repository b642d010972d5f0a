//! Draws a picker.

use acp_host::terminal_text;
use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Padding, Widget};
use unicode_segmentation::UnicodeSegmentation;

use super::{Picker, PickerItem};
use crate::draw_context::{DrawContext, SPINNER_FRAMES};
use crate::fuzzy::highlight_matches;
use crate::text::fit::truncate_to_width;

/// The maximum width of the popup, in columns.
const MAX_WIDTH_COLUMNS: u16 = 96;
/// The maximum height of the popup, in rows.
const MAX_HEIGHT_ROWS: u16 = 30;
/// A row of the picker's list.
enum PickerRow<'a> {
    Heading(&'a str),
    /// A match, by its index.
    Item(usize),
}

impl<T: Clone + PartialEq> Picker<T> {
    /// Draws the picker in the center of `screen` and returns the cursor's position.
    pub(crate) fn draw(
        &mut self,
        screen: Rect,
        buf: &mut Buffer,
        look: &DrawContext<'_>,
    ) -> Option<Position> {
        let theme = look.theme;
        let height = {
            // The frame, the filter and the line below it, plus one row for the message that the list is empty or still
            // loading.
            let said = u16::from(self.loading || self.matches.is_empty());
            let wrong = u16::from(self.error.is_some());
            let rows = u16::try_from(self.rows().len()).unwrap_or(u16::MAX);
            rows.saturating_add(4 + said + wrong)
        };
        let window = center_window(screen, height);
        blank_wide_edges(window, buf);
        Clear.render(window, buf);
        let block = Block::bordered()
            .border_type(BorderType::Rounded)
            .border_style(theme.focus)
            .padding(Padding::horizontal(1))
            .title_top(Span::styled(
                format!(" {} ", terminal_text::clean_line(&self.title)),
                theme.strong,
            ))
            .title_bottom(self.render_keys(look));
        let inner = block.inner(window);
        block.render(window, buf);
        if inner.is_empty() {
            return None;
        }

        let cursor = self.draw_filter(Rect { height: 1, ..inner }, buf, look);
        let mut list = inner;
        list.y += inner.height.min(2);
        list.height -= inner.height.min(2);
        if inner.height > 1 {
            let rule = "─".repeat(inner.width.into());
            buf.set_stringn(inner.x, inner.y + 1, rule, inner.width.into(), theme.border);
        }
        for (text, style) in self.status_lines(look) {
            if list.height > 0 {
                list.height -= 1;
                let text = truncate_to_width(&text, list.width);
                buf.set_stringn(list.x, list.bottom(), text, list.width.into(), style);
            }
        }
        self.draw_list(list, buf, look);
        Some(cursor)
    }

    /// Returns the status lines below the list.
    fn status_lines(&self, look: &DrawContext<'_>) -> Vec<(String, Style)> {
        let mut said = Vec::new();
        if let Some(error) = &self.error {
            said.push((terminal_text::clean_line(error), look.theme.bad));
        }
        if self.loading {
            let frame = SPINNER_FRAMES
                .get(look.frame % SPINNER_FRAMES.len())
                .unwrap_or(&"…");
            said.push((format!("{frame} loading…"), look.theme.dim));
        } else if self.items.is_empty() {
            said.push(("No items.".to_owned(), look.theme.dim));
        } else if self.matches.is_empty() {
            said.push(("No matches.".to_owned(), look.theme.dim));
        }
        said
    }

    fn render_keys(&self, look: &DrawContext<'_>) -> Line<'static> {
        let mut line = Line::default();
        let mut key = |key: String, what: &str| {
            let before = if line.spans.is_empty() { " " } else { " · " };
            line.spans.push(Span::styled(before, look.theme.border));
            line.spans.push(Span::styled(key, look.theme.accent));
            line.spans
                .push(Span::styled(format!(" {what}"), look.theme.dim));
        };
        key("enter".to_owned(), "choose");
        for (letter, what) in &self.actions {
            key(format!("ctrl-{letter}"), what);
        }
        let esc = match self.filter.is_empty() {
            true => "close",
            false => "clear filter",
        };
        key("esc".to_owned(), esc);
        line.spans.push(Span::raw(" "));
        line
    }

    fn draw_filter(&self, area: Rect, buf: &mut Buffer, look: &DrawContext<'_>) -> Position {
        let theme = look.theme;
        let count = match self.filter.is_empty() {
            true => format!(" {}", self.items.len()),
            false => format!(" {}/{}", self.matches.len(), self.items.len()),
        };
        let counted = u16::try_from(count.len()).unwrap_or(u16::MAX);
        let room = area.width.saturating_sub(2);
        let room = match room.checked_sub(counted) {
            Some(room) if room >= 10 => {
                let x = area.right() - counted;
                buf.set_stringn(x, area.y, &count, counted.into(), theme.dim);
                room
            }
            _ => room,
        };
        buf.set_stringn(area.x, area.y, "> ", area.width.into(), theme.accent);
        let x = area.x + area.width.min(2);
        let (text, column) = self.filter.visible_part(room, theme.text);
        match self.filter.is_empty() {
            true => buf.set_stringn(x, area.y, "type to filter", room.into(), theme.dim),
            false => buf.set_span(x, area.y, &text, room),
        };
        let x = (x + column).min(area.right().saturating_sub(1));
        Position::new(x, area.y)
    }

    /// Returns all rows: the matches and, while the filter is empty, their group headings.
    fn rows(&self) -> Vec<PickerRow<'_>> {
        let mut rows = Vec::new();
        let mut group = None;
        for at in 0..self.matches.len() {
            let own = self.item_at(at).and_then(|item| item.group.as_deref());
            if self.filter.is_empty() && own != group {
                rows.extend(own.map(PickerRow::Heading));
                group = own;
            }
            rows.push(PickerRow::Item(at));
        }
        rows
    }

    fn draw_list(&mut self, area: Rect, buf: &mut Buffer, look: &DrawContext<'_>) {
        let rows = self.rows();
        // The details are aligned in a column, after the longest label if that leaves room for them.
        let widest = |text: fn(&PickerItem<T>) -> &String| {
            let found = (0..self.matches.len()).filter_map(|at| self.item_at(at));
            found
                .map(|item| column_width(text(item)))
                .max()
                .unwrap_or(0)
        };
        let details = widest(|item| &item.detail).min(area.width / 3) + 4;
        let labels = widest(|item| &item.label).min(area.width.saturating_sub(details));
        let height = usize::from(area.height);
        let is_selected =
            |row: &PickerRow<'_>| matches!(row, PickerRow::Item(at) if *at == self.selected);
        let selected = rows.iter().position(is_selected).unwrap_or(0);
        // Keep the selected row visible, and also the first heading if the first item is selected.
        let top = if selected <= 1 {
            0
        } else {
            self.top.min(selected)
        };
        let top = top.max((selected + 1).saturating_sub(height));
        let top = top.min(rows.len().saturating_sub(height));
        let mut drawn = Vec::new();
        for (y, row) in (area.y..area.bottom()).zip(rows.iter().skip(top)) {
            let area = Rect {
                y,
                height: 1,
                ..area
            };
            match row {
                PickerRow::Heading(heading) => {
                    let heading =
                        truncate_to_width(&terminal_text::clean_line(heading), area.width);
                    buf.set_stringn(area.x, y, heading, area.width.into(), look.theme.heading);
                    drawn.push(None);
                }
                PickerRow::Item(at) => {
                    self.draw_item(*at, labels, area, buf, look);
                    drawn.push(Some(*at));
                }
            }
        }
        drop(rows);
        self.top = top;
        self.drawn_rows = (area, drawn);
    }

    fn draw_item(
        &self,
        at: usize,
        labels: u16,
        area: Rect,
        buf: &mut Buffer,
        look: &DrawContext<'_>,
    ) {
        let theme = look.theme;
        let (Some(found), Some(item)) = (self.matches.get(at), self.item_at(at)) else {
            return;
        };
        let selected = at == self.selected;
        let mark = match (selected, item.is_current) {
            (_, true) => "● ",
            (true, false) => "› ",
            (false, false) => "  ",
        };
        let label = match item.disabled {
            Some(_) => theme.dim,
            None if item.is_current => theme.strong,
            None => theme.text,
        };
        let mut line = Line::from(Span::styled(mark, theme.accent));
        line.spans.extend(render_label(
            item,
            &found.letters,
            label,
            labels,
            look,
            area.width,
        ));
        if let Some(why) = &item.disabled {
            let why = format!("  ({})", terminal_text::clean_line(why));
            line.spans.push(Span::styled(why, theme.warn));
        } else if let (false, Some(group)) = (self.filter.is_empty(), &item.group) {
            let group = format!("  {}", terminal_text::clean_line(group));
            line.spans.push(Span::styled(group, theme.dim));
        }
        buf.set_line(area.x, area.y, &line, area.width);
        if selected {
            buf.set_style(area, theme.selected);
        }
    }
}

/// Builds an item's label and detail, each truncated to fit, and highlights the matched letters.
fn render_label<T>(
    item: &PickerItem<T>,
    letters: &[u32],
    label: Style,
    labels: u16,
    look: &DrawContext<'_>,
    width: u16,
) -> Vec<Span<'static>> {
    let theme = look.theme;
    let room = width.saturating_sub(2);
    let name = truncate_to_width(&item.label, room);
    let blank = labels.saturating_sub(column_width(&name));
    let used = column_width(&name) + blank;
    let mut spans = highlight_matches(&name, 0, letters, label, theme.matched);
    if !item.detail.is_empty() && room > used + 6 {
        let first = item.label.graphemes(true).count() + 1;
        let detail = truncate_to_width(&item.detail, room - used - 2);
        spans.push(Span::raw(" ".repeat(usize::from(blank) + 2)));
        spans.extend(highlight_matches(
            &detail,
            first,
            letters,
            theme.dim,
            theme.matched,
        ));
    }
    spans
}

fn column_width(text: &str) -> u16 {
    text.graphemes(true).map(CellWidth::cell_width).sum()
}

/// Returns the area for a popup in the center of the screen, with a margin if there is space.
fn center_window(screen: Rect, height: u16) -> Rect {
    let margin = |room: u16, most: u16| room.saturating_sub(most).min(room / 10);
    let width = screen.width - margin(screen.width, 40);
    let width = width.min(MAX_WIDTH_COLUMNS);
    let most = screen.height - margin(screen.height, 10);
    let height = height.min(most).min(MAX_HEIGHT_ROWS);
    Rect {
        x: screen.x + (screen.width - width) / 2,
        y: screen.y + (screen.height - height) / 2,
        width,
        height,
    }
}

/// Blanks wide characters that the popup's edges would cut in half.
fn blank_wide_edges(window: Rect, buf: &mut Buffer) {
    let Some(x) = window.x.checked_sub(1) else {
        return;
    };
    for y in window.top()..window.bottom() {
        if let Some(cell) = buf.cell_mut((x, y))
            && cell.symbol().cell_width() > 1
        {
            cell.set_symbol(" ");
        }
    }
}
