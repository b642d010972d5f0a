//! A line to fill in, in a window of its own.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::widgets::{Block, Clear, Widget};
use ratatui_textarea::TextArea;

use crate::look::Look;

/// What a key has made of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Stays,
    Closed,
    Done(String),
}

/// A line to fill in.
pub(super) struct PromptLine {
    title: &'static str,
    area: TextArea<'static>,
}

impl PromptLine {
    pub(super) fn new(title: &'static str, text: &str) -> Self {
        let mut area = TextArea::new(vec![text.to_owned()]);
        area.move_cursor(ratatui_textarea::CursorMove::End);
        Self { title, area }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Outcome {
        match key.code {
            KeyCode::Esc => Outcome::Closed,
            KeyCode::Char('c') if key.modifiers == KeyModifiers::CONTROL => Outcome::Closed,
            KeyCode::Enter => Outcome::Done(self.area.lines().join(" ")),
            // A line stays one.
            KeyCode::Char('m' | 'j') if key.modifiers == KeyModifiers::CONTROL => Outcome::Stays,
            _ => {
                self.area.input(key);
                Outcome::Stays
            }
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        self.area.insert_str(acp_host::clean::line(text));
    }

    pub(super) fn draw(
        &mut self,
        area: Rect,
        buf: &mut Buffer,
        look: &Look<'_>,
    ) -> Option<Position> {
        let width = area.width.saturating_sub(4).min(72);
        let window = Rect {
            x: area.x + (area.width - width) / 2,
            y: area.y + area.height.saturating_sub(3) / 3,
            width,
            height: 3.min(area.height),
        };
        Clear.render(window, buf);
        let block = Block::bordered()
            .border_type(ratatui::widgets::BorderType::Rounded)
            .border_style(look.theme.focus)
            .title(format!(" {} ", self.title))
            .title_bottom(" Enter: do it  Esc: not ");
        let inner = block.inner(window);
        block.render(window, buf);
        self.area.set_cursor_line_style(look.theme.text);
        self.area.render(inner, buf);
        None
    }
}
