//! Shows a filterable list that lets the user choose an item.

mod draw;

use acp_host::terminal_text;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::draw_context::DrawContext;
use crate::fuzzy::{self, FuzzyMatch};
use crate::input::{InputOutcome, LineInput};

/// The maximum length of the filter, in bytes.
const MAX_FILTER_BYTES: usize = 1024;

/// An item in a picker's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PickerItem<T> {
    pub(crate) value: T,
    /// The item's name, on one line.
    pub(crate) label: String,
    /// Further information about the item, shown dimmed. May be empty.
    pub(crate) detail: String,
    /// The heading of the item's group. The items of a group are adjacent.
    pub(crate) group: Option<String>,
    /// Whether the item is the current choice.
    pub(crate) is_current: bool,
    /// The reason why the item cannot be chosen, or `None` if it can.
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

/// The effect of a key on the picker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PickerOutcome<T> {
    /// The picker does not use this key.
    Ignored,
    /// The picker must be redrawn.
    Changed,
    /// The user chose this item.
    Picked(T),
    /// The user closed the picker without choosing.
    Closed,
    /// The user requested one of the [actions](Picker::with_action) for this item.
    Action(char, T),
}

/// A popup with a filterable list that lets the user choose an item.
pub(crate) struct Picker<T> {
    title: String,
    items: Vec<PickerItem<T>>,
    /// The text to match against the filter, for each item: the label, a space and the detail.
    texts: Vec<String>,
    filter: LineInput,
    matches: Vec<FuzzyMatch>,
    /// The index of the selected item among the matches.
    selected: usize,
    /// The index of the first visible row, counting headings.
    top: usize,
    /// The actions available for the selected item: the letter to press with Ctrl, and the action's name.
    actions: Vec<(char, &'static str)>,
    loading: bool,
    error: Option<String>,
    /// The area of the rows as last drawn, and the index of the match in each row.
    drawn_rows: (Rect, Vec<Option<usize>>),
}

impl<T: Clone + PartialEq> Picker<T> {
    /// Creates a picker with the current choice selected, if there is one.
    pub(crate) fn new(title: impl Into<String>, items: Vec<PickerItem<T>>) -> Self {
        let current = items.iter().position(|item| item.is_current);
        let mut picker = Self {
            title: title.into(),
            items: Vec::new(),
            texts: Vec::new(),
            filter: LineInput::new(MAX_FILTER_BYTES),
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

    /// Adds an action that the user performs with Ctrl and this letter. It takes precedence over what the key would do
    /// in the filter.
    #[must_use]
    pub(crate) fn with_action(mut self, letter: char, name: &'static str) -> Self {
        self.actions.push((letter, name));
        self
    }

    /// Sets whether more items are loading.
    pub(crate) fn set_loading(&mut self, loading: bool) {
        self.loading = loading;
    }

    /// Sets the error to show below the list, or removes it if `error` is `None`.
    pub(crate) fn set_error(&mut self, error: Option<String>) {
        self.error = error;
    }

    /// Replaces the items and sanitizes their labels and details for display.
    ///
    /// The selected item stays selected if it is still among them.
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

    /// Returns the selected item, or `None` if there are no matches.
    pub(crate) fn selected(&self) -> Option<&T> {
        self.item_at(self.selected).map(|item| &item.value)
    }

    fn item_at(&self, at: usize) -> Option<&PickerItem<T>> {
        self.items.get(self.matches.get(at)?.index)
    }

    /// Returns the index of the first match whose item satisfies the predicate.
    fn position_of(&self, is_it: impl Fn(&PickerItem<T>) -> bool) -> Option<usize> {
        let mut found = self.matches.iter();
        found.position(|found| self.items.get(found.index).is_some_and(&is_it))
    }

    fn search(&mut self) {
        self.matches =
            fuzzy::find_matches(self.filter.text(), self.texts.iter().map(String::as_str));
    }

    /// Returns the number of list rows that were visible in the last frame.
    fn page_height(&self) -> usize {
        usize::from(self.drawn_rows.0.height)
            .saturating_sub(1)
            .max(1)
    }

    fn select(&mut self, at: usize) -> PickerOutcome<T> {
        self.selected = at.min(self.matches.len().saturating_sub(1));
        PickerOutcome::Changed
    }

    fn choose(&mut self) -> PickerOutcome<T> {
        match self.item_at(self.selected) {
            Some(item) if item.disabled.is_none() => PickerOutcome::Picked(item.value.clone()),
            _ => PickerOutcome::Changed,
        }
    }

    /// Updates the matches after the filter has changed.
    fn on_filter_changed(&mut self) -> PickerOutcome<T> {
        self.search();
        self.top = 0;
        // While the filter is empty, the current choice is the best one to select.
        let current = match self.filter.is_empty() {
            true => self.position_of(|item| item.is_current),
            false => None,
        };
        self.select(current.unwrap_or(0))
    }

    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> PickerOutcome<T> {
        if key.kind == KeyEventKind::Release {
            return PickerOutcome::Ignored;
        }
        let control = key.modifiers == KeyModifiers::CONTROL;
        let last = self.matches.len().saturating_sub(1);
        match key.code {
            KeyCode::Char(c) if control && self.actions.iter().any(|(own, _)| *own == c) => {
                match self.selected() {
                    Some(value) => PickerOutcome::Action(c, value.clone()),
                    None => PickerOutcome::Changed,
                }
            }
            KeyCode::Esc if !self.filter.is_empty() => {
                self.filter = LineInput::new(MAX_FILTER_BYTES);
                self.on_filter_changed()
            }
            KeyCode::Esc => PickerOutcome::Closed,
            KeyCode::Char('c') if control => PickerOutcome::Closed,
            KeyCode::Enter => self.choose(),
            // The selection wraps around.
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
            _ => match self.filter.handle_key(key) {
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

    /// Selects the item at this position, if there is one.
    pub(crate) fn select_at(&mut self, at: Position) {
        let (area, rows) = &self.drawn_rows;
        if !area.contains(at) {
            return;
        }
        if let Some(Some(found)) = rows.get(usize::from(at.y - area.y)) {
            self.selected = *found;
        }
    }

    /// Scrolls by a number of rows. Positive numbers scroll down.
    pub(crate) fn scroll(&mut self, rows: isize) -> PickerOutcome<T> {
        self.select(self.selected.saturating_add_signed(rows))
    }
}

/// What all pickers can do, whatever their items are.
pub(crate) trait PickerPopup {
    /// Adds pasted text to the filter.
    fn paste(&mut self, text: &str);

    /// Scrolls by a number of rows. Positive numbers scroll down.
    fn scroll(&mut self, rows: isize);

    /// Selects the item at this position, if there is one.
    fn select_at(&mut self, at: Position);

    /// Draws the picker in the center of `screen` and returns the cursor's position.
    fn draw(&mut self, screen: Rect, buf: &mut Buffer, look: &DrawContext<'_>) -> Option<Position>;
}

impl<T: Clone + PartialEq> PickerPopup for Picker<T> {
    fn paste(&mut self, text: &str) {
        let _ = Picker::paste(self, text);
    }

    fn scroll(&mut self, rows: isize) {
        let _ = Picker::scroll(self, rows);
    }

    fn select_at(&mut self, at: Position) {
        Picker::select_at(self, at);
    }

    fn draw(&mut self, screen: Rect, buf: &mut Buffer, look: &DrawContext<'_>) -> Option<Position> {
        Picker::draw(self, screen, buf, look)
    }
}

#[cfg(test)]
mod tests;
