//! Stand-in.
use crate::look::Look;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
pub(crate) enum Outcome<T> {
    Ignored,
    Changed,
    Picked(T),
    Action(KeyEvent, T),
    Closed,
}
#[derive(Clone)]
pub(crate) struct Item<T> {
    pub(crate) label: String,
    pub(crate) value: T,
}
impl<T> Item<T> {
    pub(crate) fn new(label: impl Into<String>, value: T) -> Self {
        Self {
            label: label.into(),
            value,
        }
    }
    pub(crate) fn detail(self, _: impl Into<String>) -> Self {
        self
    }
    pub(crate) fn group(self, _: impl Into<String>) -> Self {
        self
    }
    pub(crate) fn current(self, _: bool) -> Self {
        self
    }
}
pub(crate) struct Picker<T> {
    items: Vec<Item<T>>,
    at: usize,
}
impl<T: Clone> Picker<T> {
    pub(crate) fn new(_: impl Into<String>, items: Vec<Item<T>>) -> Self {
        Self { items, at: 0 }
    }
    pub(crate) fn action(self, _: KeyEvent, _: &str) -> Self {
        self
    }
    pub(crate) fn set_items(&mut self, items: Vec<Item<T>>) {
        self.items = items;
    }
    pub(crate) fn set_loading(&mut self, _: bool) {}
    pub(crate) fn set_error(&mut self, _: Option<String>) {}
    pub(crate) fn paste(&mut self, _: &str) {}
    pub(crate) fn key(&mut self, key: KeyEvent) -> Outcome<T> {
        match key.code {
            KeyCode::Esc => Outcome::Closed,
            KeyCode::Down => {
                self.at += 1;
                Outcome::Changed
            }
            KeyCode::Enter => self
                .items
                .get(self.at)
                .map_or(Outcome::Ignored, |i| Outcome::Picked(i.value.clone())),
            _ => match self.items.first() {
                Some(i) if key.code == KeyCode::F(12) => Outcome::Action(key, i.value.clone()),
                _ => Outcome::Ignored,
            },
        }
    }
    pub(crate) fn draw(&mut self, area: Rect, buf: &mut Buffer, _: &Look<'_>) -> Option<Position> {
        for (n, i) in self.items.iter().enumerate().take(area.height as usize) {
            buf.set_string(
                area.x + 2,
                area.y + n as u16,
                &i.label,
                ratatui::style::Style::new(),
            );
        }
        None
    }
}
