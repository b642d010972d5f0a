//! Stand-in.
use crate::agent::{Answer, Asked, Question};
use crate::look::Look;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use std::sync::Arc;
use std::time::Instant;
pub(crate) enum Outcome {
    Ignored,
    Changed,
    Answer(Answer),
}
pub(crate) struct QuestionView {
    asked: Arc<Asked>,
}
impl QuestionView {
    pub(crate) fn new(asked: Arc<Asked>, _: Instant) -> Self {
        Self { asked }
    }
    pub(crate) fn id(&self) -> u64 {
        self.asked.id
    }
    pub(crate) fn paste(&mut self, _: &str) {}
    pub(crate) fn key(&mut self, key: KeyEvent, _: Instant) -> Outcome {
        let Question::Permission(p) = &self.asked.question else {
            return Outcome::Ignored;
        };
        if let KeyCode::Char(c @ '1'..='9') = key.code
            && let Some(o) = p.options.get(usize::from(c as u8 - b'1'))
        {
            return Outcome::Answer(Answer::Permission(Some(o.option_id.clone())));
        }
        if matches!(key.code, KeyCode::Char(_)) {
            Outcome::Changed
        } else {
            Outcome::Ignored
        }
    }
    pub(crate) fn height(&self, _: u16, _: u16, _: &Look<'_>) -> u16 {
        4
    }
    pub(crate) fn draw(&mut self, area: Rect, buf: &mut Buffer, _: &Look<'_>) -> Option<Position> {
        if let Question::Permission(p) = &self.asked.question {
            buf.set_string(area.x, area.y, &p.title, ratatui::style::Style::new());
            for (n, o) in p.options.iter().enumerate().take(3) {
                buf.set_string(
                    area.x,
                    area.y + 1 + n as u16,
                    format!("{} {}", n + 1, o.name),
                    ratatui::style::Style::new(),
                );
            }
        }
        None
    }
}
