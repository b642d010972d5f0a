//! Choosing from a list by typing.

mod draw;

use acp_host::clean;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Position, Rect};

use crate::fuzzy::{self, Found};
use crate::input::{Edit, Input};

/// How much may be typed to find something, in bytes.
const FILTER: usize = 1024;

/// Something to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item<T> {
    pub(crate) value: T,
    /// What it is called, on one line.
    pub(crate) label: String,
    /// More about it, less stressed; may be empty.
    pub(crate) detail: String,
    /// What it is listed under. Items of a group stand together.
    pub(crate) group: Option<String>,
    /// It is what is chosen now.
    pub(crate) current: bool,
    /// Why it cannot be chosen.
    pub(crate) disabled: Option<String>,
}

impl<T> Item<T> {
    pub(crate) fn new(value: T, label: impl Into<String>) -> Self {
        Self {
            value,
            label: label.into(),
            detail: String::new(),
            group: None,
            current: false,
            disabled: None,
        }
    }
}

/// What a key did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome<T> {
    /// Nothing: it is for others.
    Ignored,
    /// It looks different.
    Changed,
    /// This was chosen.
    Picked(T),
    /// It is to be closed, and nothing was chosen.
    Closed,
    /// One of the [actions](Picker::action) is to be done with this.
    Action(char, T),
}

/// A list to choose from, in a window over the screen.
pub(crate) struct Picker<T> {
    title: String,
    items: Vec<Item<T>>,
    /// What of each item the filter is held against: label, a space, detail.
    texts: Vec<String>,
    filter: Input,
    found: Vec<Found>,
    /// Among those found.
    selected: usize,
    /// The first row that is shown, headings counted.
    top: usize,
    /// Letters that, with Ctrl, do something with what is selected, and what.
    actions: Vec<(char, &'static str)>,
    loading: bool,
    error: Option<String>,
    /// The rows as they were drawn last: where, and which of those found is in each.
    drawn: (Rect, Vec<Option<usize>>),
}

impl<T: Clone + PartialEq> Picker<T> {
    /// With what is chosen now selected, if it is among them.
    pub(crate) fn new(title: impl Into<String>, items: Vec<Item<T>>) -> Self {
        let current = items.iter().position(|item| item.current);
        let mut picker = Self {
            title: title.into(),
            items: Vec::new(),
            texts: Vec::new(),
            filter: Input::new(FILTER),
            found: Vec::new(),
            selected: current.unwrap_or(0),
            top: 0,
            actions: Vec::new(),
            loading: false,
            error: None,
            drawn: (Rect::ZERO, Vec::new()),
        };
        picker.set_items(items);
        picker
    }

    /// Adds an action: Ctrl with this letter. It comes before what the letter does to the filter.
    #[must_use]
    pub(crate) fn action(mut self, letter: char, name: &'static str) -> Self {
        self.actions.push((letter, name));
        self
    }

    /// More are on their way.
    pub(crate) fn set_loading(&mut self, loading: bool) {
        self.loading = loading;
    }

    /// What went wrong, until something else is said.
    pub(crate) fn set_error(&mut self, error: Option<String>) {
        self.error = error;
    }

    /// Puts others in their place: what is selected stays selected if it is still among them.
    /// Their labels and details are cleaned here.
    pub(crate) fn set_items(&mut self, mut items: Vec<Item<T>>) {
        let selected = self.selected().cloned();
        for item in &mut items {
            item.label = clean::line(&item.label);
            item.detail = clean::line(&item.detail);
        }
        let text = |item: &Item<T>| format!("{} {}", item.label, item.detail);
        self.texts = items.iter().map(text).collect();
        self.items = items;
        let at = self.selected;
        self.search();
        let same = selected.and_then(|value| self.place_of(|item| item.value == value));
        self.selected = same.unwrap_or(at).min(self.found.len().saturating_sub(1));
    }

    /// What is selected.
    pub(crate) fn selected(&self) -> Option<&T> {
        self.found_item(self.selected).map(|item| &item.value)
    }

    fn found_item(&self, at: usize) -> Option<&Item<T>> {
        self.items.get(self.found.get(at)?.index)
    }

    /// Where among those found such an item is.
    fn place_of(&self, is_it: impl Fn(&Item<T>) -> bool) -> Option<usize> {
        let mut found = self.found.iter();
        found.position(|found| self.items.get(found.index).is_some_and(&is_it))
    }

    fn search(&mut self) {
        self.found = fuzzy::find(self.filter.text(), self.texts.iter().map(String::as_str));
    }

    /// How many rows of the list were seen last.
    fn page(&self) -> usize {
        usize::from(self.drawn.0.height).saturating_sub(1).max(1)
    }

    fn select(&mut self, at: usize) -> Outcome<T> {
        self.selected = at.min(self.found.len().saturating_sub(1));
        Outcome::Changed
    }

    fn pick(&mut self) -> Outcome<T> {
        match self.found_item(self.selected) {
            Some(item) if item.disabled.is_none() => Outcome::Picked(item.value.clone()),
            _ => Outcome::Changed,
        }
    }

    /// The filter has changed.
    fn edited(&mut self) -> Outcome<T> {
        self.search();
        self.top = 0;
        // With nothing to find, what is chosen now is what one looks for.
        let current = match self.filter.is_empty() {
            true => self.place_of(|item| item.current),
            false => None,
        };
        self.select(current.unwrap_or(0))
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Outcome<T> {
        if key.kind == KeyEventKind::Release {
            return Outcome::Ignored;
        }
        let control = key.modifiers == KeyModifiers::CONTROL;
        let last = self.found.len().saturating_sub(1);
        match key.code {
            KeyCode::Char(c) if control && self.actions.iter().any(|(own, _)| *own == c) => {
                match self.selected() {
                    Some(value) => Outcome::Action(c, value.clone()),
                    None => Outcome::Changed,
                }
            }
            KeyCode::Esc if !self.filter.is_empty() => {
                self.filter = Input::new(FILTER);
                self.edited()
            }
            KeyCode::Esc => Outcome::Closed,
            KeyCode::Char('c') if control => Outcome::Closed,
            KeyCode::Enter => self.pick(),
            // From one end to the other.
            KeyCode::Up if self.selected == 0 => self.select(last),
            KeyCode::Up => self.select(self.selected - 1),
            KeyCode::Down if self.selected == last => self.select(0),
            KeyCode::Down => self.select(self.selected + 1),
            KeyCode::Char('p') if control => self.select(self.selected.saturating_sub(1)),
            KeyCode::Char('n') if control => self.select(self.selected + 1),
            KeyCode::PageUp => self.select(self.selected.saturating_sub(self.page())),
            KeyCode::PageDown => self.select(self.selected + self.page()),
            KeyCode::Home => self.select(0),
            KeyCode::End => self.select(last),
            _ => match self.filter.key(key) {
                Edit::Ignored => Outcome::Ignored,
                Edit::Moved => Outcome::Changed,
                Edit::Changed | Edit::Full => self.edited(),
            },
        }
    }

    pub(crate) fn paste(&mut self, text: &str) -> Outcome<T> {
        self.filter.insert(text, false);
        self.edited()
    }

    /// The mouse was pressed there: picks what is there.
    pub(crate) fn click(&mut self, at: Position) -> Outcome<T> {
        let (area, rows) = &self.drawn;
        if !area.contains(at) {
            return Outcome::Ignored;
        }
        match rows.get(usize::from(at.y - area.y)) {
            Some(Some(found)) => {
                self.selected = *found;
                self.pick()
            }
            _ => Outcome::Changed,
        }
    }

    /// The wheel was turned by so many rows, down if positive.
    pub(crate) fn scroll(&mut self, rows: isize) -> Outcome<T> {
        self.select(self.selected.saturating_add_signed(rows))
    }
}

#[cfg(test)]
mod tests;
