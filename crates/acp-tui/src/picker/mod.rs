//! Choosing from a list by typing.

mod draw;

use acp_host::terminal_text;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Position, Rect};

use crate::fuzzy::{self, FuzzyMatch};
use crate::input::{InputOutcome, LineInput};

/// How much may be typed to find something, in bytes.
const FILTER: usize = 1024;

/// Something to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PickerItem<T> {
    pub(crate) value: T,
    /// What it is called, on one line.
    pub(crate) label: String,
    /// More about it, less stressed; may be empty.
    pub(crate) detail: String,
    /// What it is listed under. Items of a group stand together.
    pub(crate) group: Option<String>,
    /// It is what is chosen now.
    pub(crate) is_current: bool,
    /// Why it cannot be chosen.
    pub(crate) disabled: Option<String>,
}

impl<T> PickerItem<T> {
    pub(crate) fn new(value: T, label: impl Into<String>) -> Self {
        Self {
            value,
            label: label.into(),
            detail: String::new(),
            group: None,
            is_current: false,
            disabled: None,
        }
    }
}

/// What a key did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PickerOutcome<T> {
    /// Nothing: it is for others.
    Ignored,
    /// It looks different.
    Changed,
    /// This was chosen.
    Picked(T),
    /// It is to be closed, and nothing was chosen.
    Closed,
    /// One of the [actions](Picker::action) is to be done with this.
    KeyAction(char, T),
}

/// A list to choose from, in a window over the screen.
pub(crate) struct Picker<T> {
    title: String,
    items: Vec<PickerItem<T>>,
    /// What of each item the filter is held against: label, a space, detail.
    texts: Vec<String>,
    filter: LineInput,
    matches: Vec<FuzzyMatch>,
    /// Among those found.
    selected: usize,
    /// The first row that is shown, headings counted.
    top: usize,
    /// Letters that, with Ctrl, do something with what is selected, and what.
    actions: Vec<(char, &'static str)>,
    loading: bool,
    error: Option<String>,
    /// The rows as they were drawn last: where, and which of those found is in each.
    drawn_rows: (Rect, Vec<Option<usize>>),
}

impl<T: Clone + PartialEq> Picker<T> {
    /// With what is chosen now selected, if it is among them.
    pub(crate) fn new(title: impl Into<String>, items: Vec<PickerItem<T>>) -> Self {
        let current = items.iter().position(|item| item.is_current);
        let mut picker = Self {
            title: title.into(),
            items: Vec::new(),
            texts: Vec::new(),
            filter: LineInput::new(FILTER),
            matches: Vec::new(),
            selected: current.unwrap_or(0),
            top: 0,
            actions: Vec::new(),
            loading: false,
            error: None,
            drawn_rows: (Rect::ZERO, Vec::new()),
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
    pub(crate) fn set_items(&mut self, mut items: Vec<PickerItem<T>>) {
        let selected = self.selected().cloned();
        for item in &mut items {
            item.label = terminal_text::clean_line(&item.label);
            item.detail = terminal_text::clean_line(&item.detail);
        }
        let text = |item: &PickerItem<T>| format!("{} {}", item.label, item.detail);
        self.texts = items.iter().map(text).collect();
        self.items = items;
        let at = self.selected;
        self.search();
        let same = selected.and_then(|value| self.position_of(|item| item.value == value));
        self.selected = same.unwrap_or(at).min(self.matches.len().saturating_sub(1));
    }

    /// What is selected.
    pub(crate) fn selected(&self) -> Option<&T> {
        self.item_at(self.selected).map(|item| &item.value)
    }

    fn item_at(&self, at: usize) -> Option<&PickerItem<T>> {
        self.items.get(self.matches.get(at)?.index)
    }

    /// Where among those found such an item is.
    fn position_of(&self, is_it: impl Fn(&PickerItem<T>) -> bool) -> Option<usize> {
        let mut found = self.matches.iter();
        found.position(|found| self.items.get(found.index).is_some_and(&is_it))
    }

    fn search(&mut self) {
        self.matches = fuzzy::find(self.filter.text(), self.texts.iter().map(String::as_str));
    }

    /// How many rows of the list were seen last.
    fn page_height(&self) -> usize {
        usize::from(self.drawn_rows.0.height)
            .saturating_sub(1)
            .max(1)
    }

    fn select(&mut self, at: usize) -> PickerOutcome<T> {
        self.selected = at.min(self.matches.len().saturating_sub(1));
        PickerOutcome::Changed
    }

    fn pick(&mut self) -> PickerOutcome<T> {
        match self.item_at(self.selected) {
            Some(item) if item.disabled.is_none() => PickerOutcome::Picked(item.value.clone()),
            _ => PickerOutcome::Changed,
        }
    }

    /// The filter has changed.
    fn on_filter_changed(&mut self) -> PickerOutcome<T> {
        self.search();
        self.top = 0;
        // With nothing to find, what is chosen now is what one looks for.
        let current = match self.filter.is_empty() {
            true => self.position_of(|item| item.is_current),
            false => None,
        };
        self.select(current.unwrap_or(0))
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> PickerOutcome<T> {
        if key.kind == KeyEventKind::Release {
            return PickerOutcome::Ignored;
        }
        let control = key.modifiers == KeyModifiers::CONTROL;
        let last = self.matches.len().saturating_sub(1);
        match key.code {
            KeyCode::Char(c) if control && self.actions.iter().any(|(own, _)| *own == c) => {
                match self.selected() {
                    Some(value) => PickerOutcome::KeyAction(c, value.clone()),
                    None => PickerOutcome::Changed,
                }
            }
            KeyCode::Esc if !self.filter.is_empty() => {
                self.filter = LineInput::new(FILTER);
                self.on_filter_changed()
            }
            KeyCode::Esc => PickerOutcome::Closed,
            KeyCode::Char('c') if control => PickerOutcome::Closed,
            KeyCode::Enter => self.pick(),
            // From one end to the other.
            KeyCode::Up if self.selected == 0 => self.select(last),
            KeyCode::Up => self.select(self.selected - 1),
            KeyCode::Down if self.selected == last => self.select(0),
            KeyCode::Down => self.select(self.selected + 1),
            KeyCode::Char('p') if control => self.select(self.selected.saturating_sub(1)),
            KeyCode::Char('n') if control => self.select(self.selected + 1),
            KeyCode::PageUp => self.select(self.selected.saturating_sub(self.page_height())),
            KeyCode::PageDown => self.select(self.selected + self.page_height()),
            KeyCode::Home => self.select(0),
            KeyCode::End => self.select(last),
            _ => match self.filter.key(key) {
                InputOutcome::Ignored => PickerOutcome::Ignored,
                InputOutcome::Moved => PickerOutcome::Changed,
                InputOutcome::Changed | InputOutcome::Full => self.on_filter_changed(),
            },
        }
    }

    pub(crate) fn paste(&mut self, text: &str) -> PickerOutcome<T> {
        self.filter.insert(text, false);
        self.on_filter_changed()
    }

    /// The mouse was pressed there: picks what is there.
    pub(crate) fn click(&mut self, at: Position) -> PickerOutcome<T> {
        let (area, rows) = &self.drawn_rows;
        if !area.contains(at) {
            return PickerOutcome::Ignored;
        }
        match rows.get(usize::from(at.y - area.y)) {
            Some(Some(found)) => {
                self.selected = *found;
                self.pick()
            }
            _ => PickerOutcome::Changed,
        }
    }

    /// The wheel was turned by so many rows, down if positive.
    pub(crate) fn scroll(&mut self, rows: isize) -> PickerOutcome<T> {
        self.select(self.selected.saturating_add_signed(rows))
    }
}

#[cfg(test)]
mod tests;
