//! Provides a single-line input in its own popup.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::widgets::{Block, BorderType, Clear, Widget};

use crate::draw_context::DrawContext;
use crate::input::LineInput;

/// The maximum length of the input, in bytes.
const MAX_LINE_BYTES: usize = 4 * 1024;

/// The effect of a key on a single-line input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptLineOutcome {
    KeepOpen,
    Close,
    Submit(String),
}

/// A popup with a title and a single-line input.
pub(super) struct PromptLine {
    title: &'static str,
    input: LineInput,
    /// The last search, which ↑ recalls.
    recall: Option<String>,
}

impl PromptLine {
    pub(super) fn new(title: &'static str, text: &str) -> Self {
        let mut input = LineInput::new(MAX_LINE_BYTES);
        input.insert(text, false);
        Self {
            title,
            input,
            recall: None,
        }
    }

    /// Makes ↑ recall the last search.
    #[must_use]
    pub(super) fn with_recall(mut self, last: Option<String>) -> Self {
        self.recall = last;
        self
    }

    pub(super) fn handle_key(&mut self, key: KeyEvent) -> PromptLineOutcome {
        match key.code {
            KeyCode::Esc => PromptLineOutcome::Close,
            KeyCode::Char('c') if key.modifiers == KeyModifiers::CONTROL => {
                PromptLineOutcome::Close
            }
            KeyCode::Enter => PromptLineOutcome::Submit(self.input.text().to_owned()),
            KeyCode::Up if self.recall.is_some() => {
                self.input = LineInput::new(MAX_LINE_BYTES);
                self.input
                    .insert(self.recall.as_deref().unwrap_or_default(), false);
                PromptLineOutcome::KeepOpen
            }
            _ => {
                self.input.handle_key(key);
                PromptLineOutcome::KeepOpen
            }
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        self.input.insert(text, false);
    }

    pub(super) fn draw(
        &mut self,
        area: Rect,
        buf: &mut Buffer,
        look: &DrawContext<'_>,
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
            .border_type(BorderType::Rounded)
            .border_style(look.theme.focus)
            .title(format!(" {} ", self.title))
            .title_bottom(match self.recall {
                Some(_) => " Enter: OK  ↑: last search  Esc: cancel ",
                None => " Enter: OK  Esc: cancel ",
            });
        let inner = block.inner(window);
        block.render(window, buf);
        if inner.is_empty() {
            return None;
        }
        let (shown, column) = self.input.visible_part(inner.width, look.theme.text);
        buf.set_span(inner.x, inner.y, &shown, inner.width);
        Some(Position::new(inner.x + column, inner.y))
    }
}
