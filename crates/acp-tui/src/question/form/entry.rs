//! Manages a form field and the user's input for it.

use acp::v1::ElicitationContentValue as Value;
use acp_host::elicitation::{FormField, FormFieldKind};
use acp_host::literal;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::super::lines::{LineBreak, literal_line, wrap_spans};
use crate::draw_context::DrawContext;
use crate::fuzzy::{self, FuzzyMatch, highlight_matches};
use crate::input::{InputOutcome, LineInput};

/// The maximum length of a field's input, in bytes.
const MAX_INPUT_BYTES: usize = 64 * 1024;
/// The maximum number of choices shown at once. If there are more, typing filters them.
const MAX_VISIBLE_CHOICES: usize = 8;

/// The effect of a key on a form entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldOutcome {
    /// The entry does not use this key.
    Ignored,
    /// The entry handled the key.
    Handled,
    /// The entry is complete, so the focus moves on.
    Next,
}

/// A form field and the user's input for it.
pub(super) struct FormEntry {
    field: FormField,
    state: FormEntryState,
    /// Whether to show errors. Set once the user has typed into the entry or tried to submit it.
    shows_errors: bool,
    /// Whether inserted text was truncated because it exceeded the limit.
    is_truncated: bool,
}

enum FormEntryState {
    Text(LineInput),
    /// A boolean: yes, no, or no answer yet.
    Boolean(Option<bool>),
    Choice(ChoiceList),
}

/// A list of a field's choices.
struct ChoiceList {
    titles: Vec<String>,
    chosen: Vec<bool>,
    many: bool,
    filter: LineInput,
    matches: Vec<FuzzyMatch>,
    /// The index of the highlighted choice among the matches.
    cursor: usize,
}

impl FormEntry {
    /// Creates an entry that contains the field's default.
    pub(super) fn new(field: FormField) -> Self {
        let default = field.default();
        let state = match field.kind() {
            FormFieldKind::Boolean => FormEntryState::Boolean(match default {
                Some(Value::Boolean(said)) => Some(said),
                _ => None,
            }),
            kind @ (FormFieldKind::SingleChoice | FormFieldKind::MultipleChoice) => {
                let values = match default {
                    Some(Value::String(value)) => vec![value],
                    Some(Value::StringArray(values)) => values,
                    _ => Vec::new(),
                };
                FormEntryState::Choice(ChoiceList::new(
                    &field,
                    kind == FormFieldKind::MultipleChoice,
                    &values,
                ))
            }
            kind => {
                let mut input = match kind {
                    FormFieldKind::Secret => LineInput::masked(MAX_INPUT_BYTES),
                    _ => LineInput::new(MAX_INPUT_BYTES),
                };
                // Use the default as received and not as shown, because it may be sent back.
                let text = match &default {
                    Some(Value::String(text)) => text.clone(),
                    Some(value) => field.format_value(value),
                    None => String::new(),
                };
                input.insert(&text, true);
                FormEntryState::Text(input)
            }
        };
        Self {
            field,
            state,
            shows_errors: false,
            is_truncated: false,
        }
    }

    pub(super) fn name(&self) -> &str {
        self.field.name()
    }

    /// Gives the entry the focus. `from_below` means that the focus was on the entry below.
    pub(super) fn focus(&mut self, from_below: bool) {
        if let FormEntryState::Choice(list) = &mut self.state {
            list.cursor = match from_below {
                true => list.matches.len().saturating_sub(1),
                false => list.initial_cursor(),
            };
        }
    }

    pub(super) fn handle_key(&mut self, key: KeyEvent) -> FieldOutcome {
        let lines = self.field.kind() == FormFieldKind::Text;
        match &mut self.state {
            FormEntryState::Text(input) => {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                let feed = match key.code {
                    KeyCode::Enter => !key.modifiers.is_empty(),
                    KeyCode::Char('j') => control,
                    _ => false,
                };
                let edit = match feed && lines {
                    true => input.insert("\n", true),
                    false => input.handle_key(key),
                };
                match edit {
                    InputOutcome::Ignored => return FieldOutcome::Ignored,
                    InputOutcome::Moved => {}
                    edit => {
                        self.shows_errors = true;
                        self.is_truncated = edit == InputOutcome::Full;
                    }
                }
                FieldOutcome::Handled
            }
            FormEntryState::Boolean(said) => {
                *said = match key.code {
                    KeyCode::Char(' ') => Some(*said != Some(true)),
                    KeyCode::Char('y') => Some(true),
                    KeyCode::Char('n') => Some(false),
                    KeyCode::Backspace | KeyCode::Delete => None,
                    _ => return FieldOutcome::Ignored,
                };
                self.shows_errors = true;
                FieldOutcome::Handled
            }
            FormEntryState::Choice(list) => {
                let (key, touched) = list.handle_key(key);
                self.shows_errors |= touched;
                key
            }
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        let lines = matches!(self.field.kind(), FormFieldKind::Text);
        match &mut self.state {
            FormEntryState::Text(input) => {
                self.shows_errors = true;
                self.is_truncated = input.insert(text, lines) == InputOutcome::Full;
            }
            FormEntryState::Choice(list) if list.is_long() => {
                list.filter.insert(text, false);
                list.search();
            }
            _ => {}
        }
    }

    /// Returns the current value, or `None` to omit the field.
    fn value(&self) -> Result<Option<Value>, String> {
        let value = match &self.state {
            FormEntryState::Text(input) if input.is_empty() => None,
            FormEntryState::Text(input) => {
                Some(self.field.parse(input.text()).map_err(|e| e.to_string())?)
            }
            FormEntryState::Boolean(said) => said.map(Value::Boolean),
            FormEntryState::Choice(list) => {
                let chosen = list.chosen.iter().zip(self.field.choices());
                let chosen = chosen.filter(|(chosen, _)| **chosen);
                let mut chosen = chosen.map(|(_, choice)| choice.value.clone());
                match list.many {
                    false => chosen.next().map(Value::String),
                    // The field decides whether an empty selection is valid, once the user has made one.
                    true => {
                        let chosen: Vec<String> = chosen.collect();
                        let given = !chosen.is_empty() || self.field.is_required();
                        given.then_some(Value::StringArray(chosen))
                    }
                }
            }
        };
        match &value {
            Some(value) => self.field.check(value).map_err(|e| e.to_string())?,
            None if self.field.is_required() => return Err("Required.".to_owned()),
            None => {}
        }
        Ok(value)
    }

    /// Returns the value to send, or `None` to omit the field. Makes the entry show its errors from now on.
    pub(super) fn check(&mut self) -> Result<Option<Value>, String> {
        self.shows_errors = true;
        self.value()
    }

    /// Builds the entry's lines. Also returns the cursor's position in them.
    pub(super) fn build_lines(
        &self,
        width: u16,
        focused: bool,
        look: &DrawContext<'_>,
    ) -> (Vec<Line<'static>>, Option<(usize, u16)>) {
        let theme = look.theme;
        let label = if focused { theme.accent } else { theme.strong };
        let mark = if focused { "› " } else { "  " };
        let mut head = vec![Span::styled(mark, theme.accent)];
        if let FormEntryState::Boolean(said) = &self.state {
            let said = match said {
                Some(true) => "[x] ",
                Some(false) => "[ ] ",
                None => "[?] ",
            };
            head.push(Span::styled(said, label));
        }
        // The field's own texts have been cleaned already.
        head.push(Span::styled(self.field.label(), label));
        let mut hints = Vec::new();
        if self.field.is_required() {
            hints.push("required".to_owned());
        }
        hints.extend(self.field.describe_bounds());
        hints.extend(self.key_hint(focused));
        if !hints.is_empty() {
            let hints = format!("  {}", hints.join(" · "));
            head.push(Span::styled(hints, theme.dim));
        }
        let mut lines = wrap_spans(&head, LineBreak::Words, 2, width);
        let indented = |lines: Vec<Line<'static>>| {
            lines.into_iter().map(|mut line| {
                line.spans.insert(0, Span::raw("  "));
                line
            })
        };
        let inner = width.saturating_sub(2).max(1);
        let description = self.field.description();
        for line in description.lines() {
            let spans = [Span::styled(line.to_owned(), theme.dim)];
            lines.extend(indented(wrap_spans(&spans, LineBreak::Words, 0, inner)));
        }
        let mut cursor = None;
        match &self.state {
            FormEntryState::Text(input) => {
                let room = inner.min(72);
                let style = theme.text.add_modifier(Modifier::UNDERLINED);
                let (text, column) = input.visible_part(room, style);
                let blank = usize::from(room).saturating_sub(text.width());
                cursor = focused.then_some((lines.len(), 2 + column));
                let blank = Span::styled(" ".repeat(blank), style);
                lines.push(Line::from(vec![Span::raw("  "), text, blank]));
            }
            FormEntryState::Boolean(_) => {}
            FormEntryState::Choice(list) => {
                let first = lines.len();
                let (rows, at) = list.render_lines(&self.field, inner, focused, look);
                lines.extend(indented(rows));
                cursor = at.map(|(line, column)| (first + line, 2 + column));
            }
        }
        let wrong = self.value().err().filter(|_| self.shows_errors);
        let full = format!("Truncated: the limit is {MAX_INPUT_BYTES} bytes.");
        for wrong in wrong.into_iter().chain(self.is_truncated.then_some(full)) {
            let mut spans = vec![Span::styled("  ✗ ", theme.bad)];
            spans.push(Span::styled(wrong, theme.bad));
            lines.extend(wrap_spans(&spans, LineBreak::Words, 4, width));
        }
        (lines, cursor)
    }

    /// Describes the keys that work in the entry, if there are any.
    fn key_hint(&self, focused: bool) -> Option<String> {
        let text = match &self.state {
            FormEntryState::Boolean(None) if !focused => "no answer",
            _ if !focused => return None,
            FormEntryState::Boolean(_) => "space: toggle",
            FormEntryState::Choice(list) if list.is_long() => "type to filter, space: select",
            FormEntryState::Choice(_) => "space: select",
            FormEntryState::Text(_) => return None,
        };
        Some(text.to_owned())
    }
}

impl ChoiceList {
    fn new(field: &FormField, many: bool, values: &[String]) -> Self {
        let choices = field.choices();
        let mut chosen: Vec<bool> = choices
            .iter()
            .map(|choice| values.contains(&choice.value))
            .collect();
        if !many {
            // A value that is listed twice is selected only once.
            let first = chosen.iter().position(|chosen| *chosen);
            for (at, chosen) in chosen.iter_mut().enumerate() {
                *chosen = Some(at) == first;
            }
        }
        let mut list = Self {
            titles: choices
                .iter()
                .map(|c| literal::escape_line(&c.title))
                .collect(),
            chosen,
            many,
            filter: LineInput::new(1024),
            matches: Vec::new(),
            cursor: 0,
        };
        list.search();
        list.cursor = list.initial_cursor();
        list
    }

    fn is_long(&self) -> bool {
        self.titles.len() > MAX_VISIBLE_CHOICES
    }

    fn search(&mut self) {
        self.matches =
            fuzzy::find_matches(self.filter.text(), self.titles.iter().map(String::as_str));
        self.cursor = 0;
    }

    /// Returns the index of the match to highlight first. This is the first match or, if only one choice can be
    /// selected, the selected one.
    fn initial_cursor(&self) -> usize {
        let is_chosen = |found: &FuzzyMatch| self.chosen.get(found.index) == Some(&true);
        let chosen = self.matches.iter().position(is_chosen);
        chosen.filter(|_| !self.many).unwrap_or(0)
    }

    /// Handles a key. Also returns whether the key selected a choice.
    fn handle_key(&mut self, key: KeyEvent) -> (FieldOutcome, bool) {
        let last = self.matches.len().saturating_sub(1);
        match key.code {
            KeyCode::Up if self.cursor > 0 => self.cursor -= 1,
            KeyCode::Down if self.cursor < last => self.cursor += 1,
            KeyCode::Char(' ') => {
                self.toggle();
                return (FieldOutcome::Handled, true);
            }
            KeyCode::Enter if !self.many && key.modifiers.is_empty() => {
                if let Some(found) = self.matches.get(self.cursor) {
                    self.chosen.fill(false);
                    if let Some(chosen) = self.chosen.get_mut(found.index) {
                        *chosen = true;
                    }
                }
                return (FieldOutcome::Next, true);
            }
            KeyCode::Up | KeyCode::Down => return (FieldOutcome::Ignored, false),
            _ if self.is_long() => match self.filter.handle_key(key) {
                InputOutcome::Ignored => return (FieldOutcome::Ignored, false),
                InputOutcome::Moved => {}
                InputOutcome::Changed | InputOutcome::Full => self.search(),
            },
            _ => return (FieldOutcome::Ignored, false),
        }
        (FieldOutcome::Handled, false)
    }

    fn toggle(&mut self) {
        let Some(found) = self.matches.get(self.cursor) else {
            return;
        };
        let was = self.chosen.get(found.index) == Some(&true);
        if !self.many {
            self.chosen.fill(false);
        }
        if let Some(chosen) = self.chosen.get_mut(found.index) {
            *chosen = !was;
        }
    }

    fn render_lines(
        &self,
        field: &FormField,
        width: u16,
        focused: bool,
        look: &DrawContext<'_>,
    ) -> (Vec<Line<'static>>, Option<(usize, u16)>) {
        let theme = look.theme;
        if self.is_long() && !focused {
            let chosen = self.titles.iter().zip(&self.chosen);
            let chosen: Vec<&str> = chosen
                .filter_map(|(title, chosen)| chosen.then_some(&**title))
                .collect();
            let said = match chosen.is_empty() {
                true => format!("0 of {}", self.titles.len()),
                false => chosen.join(", "),
            };
            let spans = [Span::styled(said, theme.text)];
            return (wrap_spans(&spans, LineBreak::Words, 0, width), None);
        }
        let mut lines = Vec::new();
        let mut cursor = None;
        if self.is_long() {
            let room = width.saturating_sub(2).max(1);
            let (text, column) = self.filter.visible_part(room, theme.text);
            cursor = Some((0, 2 + column));
            lines.push(Line::from(vec![Span::styled("> ", theme.accent), text]));
        }
        let top = (self.cursor + 1).saturating_sub(MAX_VISIBLE_CHOICES);
        for (n, found) in self
            .matches
            .iter()
            .enumerate()
            .skip(top)
            .take(MAX_VISIBLE_CHOICES)
        {
            let here = focused && n == self.cursor;
            let rows = wrap_spans(
                &self.render_choice(field, found, look),
                LineBreak::Words,
                4,
                width,
            );
            if here && cursor.is_none() {
                cursor = Some((lines.len(), 1));
            }
            lines.extend(rows.into_iter().map(|mut row| {
                if here {
                    for span in &mut row.spans {
                        span.style = span.style.patch(theme.selected);
                    }
                }
                row
            }));
        }
        let rest = self.matches.len().saturating_sub(top + MAX_VISIBLE_CHOICES);
        match self.matches.is_empty() {
            true => lines.push(Line::styled("no matches", theme.dim)),
            false if rest + top > 0 => {
                let more = format!("⋯ {} more", rest + top);
                lines.push(Line::styled(more, theme.dim));
            }
            false => {}
        }
        (lines, cursor)
    }

    fn render_choice(
        &self,
        field: &FormField,
        found: &FuzzyMatch,
        look: &DrawContext<'_>,
    ) -> Vec<Span<'static>> {
        let theme = look.theme;
        let chosen = self.chosen.get(found.index) == Some(&true);
        let mark = match (self.many, chosen) {
            (true, true) => "[x] ",
            (true, false) => "[ ] ",
            (false, true) => "(•) ",
            (false, false) => "( ) ",
        };
        let style = if chosen { theme.strong } else { theme.text };
        let mut spans = vec![Span::styled(mark, style)];
        let title = self.titles.get(found.index).map_or("", String::as_str);
        spans.extend(highlight_matches(
            title,
            0,
            &found.letters,
            style,
            theme.matched,
        ));
        let description = field.choices().get(found.index);
        let description = description.and_then(|choice| choice.description.as_deref());
        if let Some(description) = description {
            spans.push(Span::styled(" – ", theme.dim));
            spans.extend(literal_line(description, theme.dim, theme));
        }
        spans
    }
}
