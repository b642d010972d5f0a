//! A window with text to be read: help, what an agent has printed.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, BorderType, Clear, Padding, Paragraph, Widget};

use crate::look::Look;
use crate::text::wrap::wrap;

/// How wide it is at most, in columns.
const WIDEST: u16 = 100;

/// A text, which scrolls.
pub(super) struct Leaflet {
    title: &'static str,
    lines: Vec<Line<'static>>,
    from: u16,
    /// How far it can scroll, as of the last drawing.
    most: u16,
    page: u16,
}

impl Leaflet {
    pub(super) fn new(title: &'static str, lines: Vec<Line<'static>>) -> Self {
        Self {
            title,
            lines,
            from: 0,
            most: 0,
            page: 1,
        }
    }

    /// One whose end is shown first.
    pub(super) fn at_end(mut self) -> Self {
        self.from = u16::MAX;
        self
    }

    pub(super) fn scroll(&mut self, by: isize) {
        let by = i16::try_from(by).unwrap_or_default();
        self.from = self.from.saturating_add_signed(by).min(self.most);
    }

    /// Whether it stays open.
    pub(super) fn key(&mut self, key: KeyEvent) -> bool {
        self.from = match key.code {
            KeyCode::Down | KeyCode::Char('j') => self.from.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.from.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.from.saturating_add(self.page),
            KeyCode::PageUp => self.from.saturating_sub(self.page),
            KeyCode::Home => 0,
            KeyCode::End => self.most,
            _ => return false,
        }
        .min(self.most);
        true
    }

    pub(super) fn draw(&mut self, area: Rect, buf: &mut Buffer, look: &Look<'_>) {
        let room = area.width.saturating_sub(4).min(WIDEST);
        let needed = self.lines.iter().map(Line::width).max().unwrap_or_default();
        let needed = u16::try_from(needed + 4).unwrap_or(u16::MAX);
        let width = needed.clamp(room.min(44), room);
        let lines: Vec<Line<'_>> = self
            .lines
            .iter()
            .flat_map(|line| wrap(line, width.saturating_sub(4)))
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
            .title_bottom(" ↑ ↓ scroll, any other key closes ");
        let inner = block.inner(window);
        self.page = inner.height.saturating_sub(1).max(1);
        self.most = rows.saturating_sub(inner.height);
        self.from = self.from.min(self.most);
        Paragraph::new(lines)
            .scroll((self.from, 0))
            .block(block)
            .render(window, buf);
    }
}
