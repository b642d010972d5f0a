//! Shows the pager, a popup with scrollable text, such as the help page or an agent's output.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, BorderType, Clear, Padding, Paragraph, Widget};

use crate::draw_context::DrawContext;
use crate::text::wrap::wrap_line;

/// The maximum width of the window, in columns.
const MAX_WIDTH_COLUMNS: u16 = 100;

/// A popup with scrollable text.
pub(super) struct Pager {
    title: String,
    /// The keys, shown at the bottom.
    keys: String,
    lines: Vec<Line<'static>>,
    offset: u16,
    /// The maximum scroll offset when the window was last drawn.
    max_offset: u16,
    page_height: u16,
    /// Whether the end of the text has been shown.
    was_read: bool,
}

impl Pager {
    pub(super) fn new(title: impl Into<String>, lines: Vec<Line<'static>>) -> Self {
        Self {
            title: title.into(),
            keys: "any other key: close".to_owned(),
            lines,
            offset: 0,
            max_offset: 0,
            page_height: 1,
            was_read: false,
        }
    }

    /// Returns whether the end of the text has been shown.
    pub(super) fn was_read(&self) -> bool {
        self.was_read
    }

    /// Sets what the bottom of the window says about keys, instead of that any key closes it.
    pub(super) fn set_keys(&mut self, keys: String) {
        self.keys = keys;
    }

    /// Scrolls the pager to the end of its text.
    pub(super) fn scrolled_to_end(mut self) -> Self {
        self.offset = u16::MAX;
        self
    }

    pub(super) fn scroll(&mut self, by: isize) {
        let by = i16::try_from(by).unwrap_or_default();
        self.offset = self.offset.saturating_add_signed(by).min(self.max_offset);
    }

    /// Handles a key and returns whether the pager stays open.
    pub(super) fn handle_key(&mut self, key: KeyEvent) -> bool {
        self.offset = match key.code {
            KeyCode::Down | KeyCode::Char('j') => self.offset.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.offset.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.offset.saturating_add(self.page_height),
            KeyCode::PageUp => self.offset.saturating_sub(self.page_height),
            KeyCode::Home => 0,
            KeyCode::End => self.max_offset,
            _ => return false,
        }
        .min(self.max_offset);
        true
    }

    pub(super) fn draw(&mut self, area: Rect, buf: &mut Buffer, look: &DrawContext<'_>) {
        let room = area.width.saturating_sub(4).min(MAX_WIDTH_COLUMNS);
        let needed = self.lines.iter().map(Line::width).max().unwrap_or_default();
        let needed = u16::try_from(needed + 4).unwrap_or(u16::MAX);
        let width = needed.clamp(room.min(44), room);
        let lines: Vec<Line<'_>> = self
            .lines
            .iter()
            .flat_map(|line| wrap_line(line, width.saturating_sub(4)))
            .collect();
        let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX - 2);
        let height = area.height.saturating_sub(2).min(rows + 2);
        let window = Rect {
            x: area.x + (area.width - width) / 2,
            y: area.y + (area.height - height) / 2,
            width,
            height,
        };
        Clear.render(window, buf);
        let block = Block::bordered()
            .border_type(BorderType::Rounded)
            .border_style(look.theme.focus)
            .padding(Padding::horizontal(1))
            .title(format!(" {} ", self.title))
            .title_bottom(format!(" ↑↓: scroll  {} ", self.keys));
        let inner = block.inner(window);
        self.page_height = inner.height.saturating_sub(1).max(1);
        self.max_offset = rows.saturating_sub(inner.height);
        self.offset = self.offset.min(self.max_offset);
        // The end of a text that is too long to scroll is never shown.
        self.was_read |= self.offset == self.max_offset && u16::try_from(lines.len()).is_ok();
        Paragraph::new(lines)
            .scroll((self.offset, 0))
            .block(block)
            .render(window, buf);
    }
}
