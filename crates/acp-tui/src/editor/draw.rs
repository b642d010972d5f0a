//! Draws the prompt editor.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::marked_text::MarkContent;
use super::popup::{CompletionPopup, draw_truncated};
use super::rows::{column_count, row_at, split_clusters};
use super::search::HistorySearch;
use super::{MAX_EXPANDED_BYTES, PromptEditor};
use crate::Theme;

/// The label of the history search.
const SEARCH_LABEL: &str = "search: ";

impl PromptEditor {
    /// Returns the editor's height in rows for `width` columns on a screen of `screen` rows. The editor gets as many
    /// rows as it needs, up to a third of the screen.
    pub(crate) fn height(&mut self, width: u16, screen: u16) -> u16 {
        let chips = u16::from(!self.attachments.is_empty());
        self.update_layout(width);
        let rows = if self.search.is_some() {
            1
        } else {
            u16::try_from(self.layout.rows.len()).unwrap_or(u16::MAX)
        };
        let most = (screen / 3).saturating_sub(chips).max(1);
        rows.min(most) + chips
    }

    /// Draws the framed editor, and the completion list over the rows above it. Returns the cursor's position, if it is
    /// visible.
    pub(crate) fn draw(
        &mut self,
        area: Rect,
        frame: Rect,
        buf: &mut Buffer,
        theme: &Theme,
    ) -> Option<Position> {
        let above = Rect { y: frame.y, ..area };
        let area = area.intersection(buf.area);
        if area.is_empty() {
            return None;
        }
        buf.set_style(area, theme.text);
        let mut text = area;
        if !self.attachments.is_empty() && area.height > 1 {
            let line = Rect { height: 1, ..area };
            self.attachments.draw(line, buf, theme);
            text.y += 1;
            text.height -= 1;
        }
        if let Some(completion) = &mut self.completion {
            completion.refresh(&self.files);
        }
        if let Some(search) = &self.search {
            let popup = CompletionPopup {
                title: "history",
                rows: &search.rows,
                selected_index: search.selected_index,
            };
            popup.draw(above, buf, theme);
            return Some(draw_search(search, text, buf, theme));
        }
        if let Some(completion) = &self.completion {
            let popup = CompletionPopup {
                title: completion.title(),
                rows: &completion.rows,
                selected_index: completion.selected_index,
            };
            popup.draw(above, buf, theme);
        }
        Some(self.draw_text(text, buf, theme))
    }

    fn draw_text(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Position {
        self.update_layout(area.width);
        let height = usize::from(area.height);
        let cursor = self.buffer.cursor();
        let row = row_at(&self.layout.rows, cursor);
        let rows = &self.layout.rows;
        // The cursor stays visible, and no more empty rows are shown than necessary.
        self.top = self.top.min(row).max((row + 1).saturating_sub(height));
        self.top = self.top.min(rows.len().saturating_sub(height));
        for (y, index) in area.rows().zip(self.top..rows.len()) {
            self.draw_row(index, y, buf, theme);
        }
        let text = self.buffer.text();
        let range = &self.layout.rows[row];
        let column = column_count(&text[range.start..cursor]).min(area.width - 1);
        let line = area.y + (row - self.top) as u16;
        let at = Position::new(area.x + column, line);
        self.draw_hints(area, at, buf, theme);
        // The last column is reserved for the cursor.
        let edge = area.right() - 1;
        let below = self.top + height < self.layout.rows.len();
        let arrows = [(self.top > 0, area.y, "↑"), (below, area.bottom() - 1, "↓")];
        for (shown, y, arrow) in arrows {
            if shown && at != Position::new(edge, y) {
                buf.set_stringn(edge, y, arrow, 1, theme.dim);
            }
        }
        at
    }

    fn draw_row(&self, index: usize, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let range = &self.layout.rows[index];
        let marked = self.buffer.marked();
        let command = self.command_end();
        for cluster in split_clusters(&marked.text()[range.clone()]) {
            let at = range.start + cluster.offset;
            let style = match marked.mark_containing(at).map(|mark| &mark.content) {
                Some(MarkContent::Paste(_) | MarkContent::CommandOutput(_)) => theme.accent,
                Some(MarkContent::File(_)) => theme.link,
                None if at < command => theme.accent,
                None => theme.text,
            };
            draw_cluster(
                cluster.text,
                cluster.column,
                cluster.width,
                area,
                buf,
                style,
            );
        }
    }

    /// Returns the position at which the command name at the start of the text ends.
    fn command_end(&self) -> usize {
        let word = self.buffer.text().split(char::is_whitespace).next();
        let name = word.and_then(|word| word.strip_prefix('/'));
        let known = name.filter(|name| self.commands.iter().any(|c| c.name == *name));
        known.map_or(0, |name| name.len() + 1)
    }

    /// Draws hints after the text, such as the input that a command expects.
    fn draw_hints(&self, area: Rect, cursor: Position, buf: &mut Buffer, theme: &Theme) {
        let marked = self.buffer.marked();
        let text = marked.text();
        let at_end = self.buffer.cursor() == text.len();
        let room = area.right().saturating_sub(cursor.x);
        if text.is_empty() {
            draw_truncated(buf, cursor.x, cursor.y, &self.placeholder, room, theme.dim);
            return;
        }
        if !at_end {
            return;
        }
        let end = self.command_end();
        let command = self
            .commands
            .iter()
            .find(|c| end > 0 && c.name == text[1..end]);
        if let Some(hint) = command.and_then(|c| c.hint.as_deref())
            && text.len() > end
            && text[end..].trim().is_empty()
            && !text[end..].contains('\n')
        {
            draw_truncated(buf, cursor.x, cursor.y, hint, room, theme.dim);
        }
        let mark = marked.mark_at(text.len());
        let hidden = mark.and_then(|mark| mark.content.hidden_text());
        if hidden.is_some_and(|text| text.len() <= MAX_EXPANDED_BYTES) {
            let hint = "Tab: expand";
            if column_count(hint) < room {
                draw_truncated(buf, cursor.x + 1, cursor.y, hint, room - 1, theme.dim);
            }
        }
    }
}

fn draw_cluster(text: &str, column: u16, width: u16, area: Rect, buf: &mut Buffer, style: Style) {
    let room = area.width.saturating_sub(column);
    if width == 0 || room == 0 {
        return;
    }
    let x = area.x + column;
    if text == "\t" {
        buf.set_style(Rect::new(x, area.y, width.min(room), 1), style);
    } else if width > room {
        buf.set_stringn(x, area.y, "…", 1, style);
    } else {
        buf.set_stringn(x, area.y, text, usize::from(width), style);
    }
}

/// Draws the search text. If it does not fit, draws only its end.
fn draw_search(search: &HistorySearch, area: Rect, buf: &mut Buffer, theme: &Theme) -> Position {
    let query = search.query();
    let width = usize::from(area.width);
    let (at, _) = buf.set_stringn(area.x, area.y, SEARCH_LABEL, width, theme.dim);
    let room = area.right().saturating_sub(at).saturating_sub(1);
    let skipped = column_count(query).saturating_sub(room);
    let mut end = at;
    for cluster in split_clusters(query).filter(|cluster| cluster.column >= skipped) {
        let line = Rect::new(at, area.y, room, 1).intersection(area);
        let column = cluster.column - skipped;
        draw_cluster(cluster.text, column, cluster.width, line, buf, theme.text);
        end = at + column + cluster.width;
    }
    if search.rows.is_empty() {
        let left = area.right().saturating_sub(end + 2);
        draw_truncated(buf, end + 2, area.y, "no matches", left, theme.dim);
    }
    Position::new(end.min(area.right() - 1), area.y)
}
