//! A field that is being filled in.

use acp::v1::ElicitationContentValue as Value;
use acp_host::elicitation::{Field, FieldKind};
use acp_host::literal;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::super::lines::{Break, exact, wrap};
use crate::fuzzy::{self, Found, marked};
use crate::input::{Edit, Input};
use crate::look::Look;

/// How much may be typed into a field, in bytes.
const MOST: usize = 64 * 1024;
/// How many choices are seen at once. Where there are more one finds them by typing.
const SEEN: usize = 8;

/// What a key did to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// Nothing: it is for the form.
    Ignored,
    /// What it does.
    Done,
    /// It is filled in.
    Next,
}

/// A field that is being filled in.
pub(super) struct Entry {
    field: Field,
    state: State,
    /// What is wrong with it is said: the person has typed into it, or tried to send it.
    touched: bool,
    /// Not all that was put in had room.
    full: bool,
}

enum State {
    Typed(Input),
    /// Yes, no, or not said yet.
    Said(Option<bool>),
    Chosen(List),
}

/// What there is to choose from.
struct List {
    titles: Vec<String>,
    chosen: Vec<bool>,
    many: bool,
    filter: Input,
    found: Vec<Found>,
    /// Among those found.
    at: usize,
}

impl Entry {
    /// With its default filled in.
    pub(super) fn new(field: Field) -> Self {
        let default = field.default();
        let state = match field.kind() {
            FieldKind::Boolean => State::Said(match default {
                Some(Value::Boolean(said)) => Some(said),
                _ => None,
            }),
            kind @ (FieldKind::One | FieldKind::Some) => {
                let values = match default {
                    Some(Value::String(value)) => vec![value],
                    Some(Value::StringArray(values)) => values,
                    _ => Vec::new(),
                };
                State::Chosen(List::new(&field, kind == FieldKind::Some, &values))
            }
            kind => {
                let mut input = match kind {
                    FieldKind::Secret => Input::secret(MOST),
                    _ => Input::new(MOST),
                };
                // As it came, and not as it is shown: it may be sent back.
                let text = match &default {
                    Some(Value::String(text)) => text.clone(),
                    Some(value) => field.show(value),
                    None => String::new(),
                };
                input.insert(&text, true);
                State::Typed(input)
            }
        };
        Self {
            field,
            state,
            touched: false,
            full: false,
        }
    }

    pub(super) fn name(&self) -> &str {
        self.field.name()
    }

    /// It has got the keyboard, from below or from above.
    pub(super) fn enter(&mut self, from_below: bool) {
        if let State::Chosen(list) = &mut self.state {
            list.at = match from_below {
                true => list.found.len().saturating_sub(1),
                false => list.first(),
            };
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Key {
        let lines = self.field.kind() == FieldKind::Text;
        match &mut self.state {
            State::Typed(input) => {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                let feed = match key.code {
                    KeyCode::Enter => !key.modifiers.is_empty(),
                    KeyCode::Char('j') => control,
                    _ => false,
                };
                let edit = match feed && lines {
                    true => input.insert("\n", true),
                    false => input.key(key),
                };
                match edit {
                    Edit::Ignored => return Key::Ignored,
                    Edit::Moved => {}
                    edit => {
                        self.touched = true;
                        self.full = edit == Edit::Full;
                    }
                }
                Key::Done
            }
            State::Said(said) => {
                *said = match key.code {
                    KeyCode::Char(' ') => Some(*said != Some(true)),
                    KeyCode::Char('y') => Some(true),
                    KeyCode::Char('n') => Some(false),
                    KeyCode::Backspace | KeyCode::Delete => None,
                    _ => return Key::Ignored,
                };
                self.touched = true;
                Key::Done
            }
            State::Chosen(list) => {
                let (key, touched) = list.key(key);
                self.touched |= touched;
                key
            }
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        let lines = matches!(self.field.kind(), FieldKind::Text);
        match &mut self.state {
            State::Typed(input) => {
                self.touched = true;
                self.full = input.insert(text, lines) == Edit::Full;
            }
            State::Chosen(list) if list.is_long() => {
                list.filter.insert(text, false);
                list.search();
            }
            _ => {}
        }
    }

    /// What it is now; `None` if it is left out.
    fn value(&self) -> Result<Option<Value>, String> {
        let value = match &self.state {
            State::Typed(input) if input.is_empty() => None,
            State::Typed(input) => Some(self.field.parse(input.text()).map_err(|e| e.to_string())?),
            State::Said(said) => said.map(Value::Boolean),
            State::Chosen(list) => {
                let chosen = list.chosen.iter().zip(self.field.choices());
                let chosen = chosen.filter(|(chosen, _)| **chosen);
                let mut chosen = chosen.map(|(_, choice)| choice.value.clone());
                match list.many {
                    false => chosen.next().map(Value::String),
                    // Whether none is enough is for the field to say, where one has been asked for.
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
            None if self.field.is_required() => return Err("This is required.".to_owned()),
            None => {}
        }
        Ok(value)
    }

    /// What it is, to be sent. What is wrong is said from now on.
    pub(super) fn check(&mut self) -> Result<Option<Value>, String> {
        self.touched = true;
        self.value()
    }

    /// How it looks, and where in that the cursor is.
    pub(super) fn lines(
        &self,
        width: u16,
        focused: bool,
        look: &Look<'_>,
    ) -> (Vec<Line<'static>>, Option<(usize, u16)>) {
        let theme = look.theme;
        let label = if focused { theme.accent } else { theme.strong };
        let mark = if focused { "› " } else { "  " };
        let mut head = vec![Span::styled(mark, theme.accent)];
        if let State::Said(said) = &self.state {
            let said = match said {
                Some(true) => "[x] ",
                Some(false) => "[ ] ",
                None => "[?] ",
            };
            head.push(Span::styled(said, label));
        }
        // The field's own texts are fit to be shown already.
        head.push(Span::styled(self.field.label(), label));
        let mut hints = Vec::new();
        if self.field.is_required() {
            hints.push("required".to_owned());
        }
        hints.extend(self.field.bounds());
        hints.extend(self.manual(focused));
        if !hints.is_empty() {
            let hints = format!("  {}", hints.join(" · "));
            head.push(Span::styled(hints, theme.dim));
        }
        let mut lines = wrap(&head, Break::Words, 2, width);
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
            lines.extend(indented(wrap(&spans, Break::Words, 0, inner)));
        }
        let mut cursor = None;
        match &self.state {
            State::Typed(input) => {
                let room = inner.min(72);
                let style = theme.text.add_modifier(Modifier::UNDERLINED);
                let (text, column) = input.view(room, style);
                let blank = usize::from(room).saturating_sub(text.width());
                cursor = focused.then_some((lines.len(), 2 + column));
                let blank = Span::styled(" ".repeat(blank), style);
                lines.push(Line::from(vec![Span::raw("  "), text, blank]));
            }
            State::Said(_) => {}
            State::Chosen(list) => {
                let first = lines.len();
                let (rows, at) = list.lines(&self.field, inner, focused, look);
                lines.extend(indented(rows));
                cursor = at.map(|(line, column)| (first + line, 2 + column));
            }
        }
        let wrong = self.value().err().filter(|_| self.touched);
        let full = format!("There is room for {MOST} bytes; the rest was left out.");
        for wrong in wrong.into_iter().chain(self.full.then_some(full)) {
            let mut spans = vec![Span::styled("  ✗ ", theme.bad)];
            spans.push(Span::styled(wrong, theme.bad));
            lines.extend(wrap(&spans, Break::Words, 4, width));
        }
        (lines, cursor)
    }

    /// What keys do here.
    fn manual(&self, focused: bool) -> Option<String> {
        let text = match &self.state {
            State::Said(None) if !focused => "not answered",
            _ if !focused => return None,
            State::Said(_) => "space: yes or no",
            State::Chosen(list) if list.is_long() => "type to find, space chooses",
            State::Chosen(_) => "space chooses",
            State::Typed(_) => return None,
        };
        Some(text.to_owned())
    }
}

impl List {
    fn new(field: &Field, many: bool, values: &[String]) -> Self {
        let choices = field.choices();
        let mut chosen: Vec<bool> = choices
            .iter()
            .map(|choice| values.contains(&choice.value))
            .collect();
        if !many {
            // A value that is offered twice is chosen once.
            let first = chosen.iter().position(|chosen| *chosen);
            for (at, chosen) in chosen.iter_mut().enumerate() {
                *chosen = Some(at) == first;
            }
        }
        let mut list = Self {
            titles: choices.iter().map(|c| literal::line(&c.title)).collect(),
            chosen,
            many,
            filter: Input::new(1024),
            found: Vec::new(),
            at: 0,
        };
        list.search();
        list.at = list.first();
        list
    }

    fn is_long(&self) -> bool {
        self.titles.len() > SEEN
    }

    fn search(&mut self) {
        self.found = fuzzy::find(self.filter.text(), self.titles.iter().map(String::as_str));
        self.at = 0;
    }

    /// Where among those found one begins: at the one that is chosen, where only one can be.
    fn first(&self) -> usize {
        let is_chosen = |found: &Found| self.chosen.get(found.index) == Some(&true);
        let chosen = self.found.iter().position(is_chosen);
        chosen.filter(|_| !self.many).unwrap_or(0)
    }

    /// Whether something was chosen by it, too.
    fn key(&mut self, key: KeyEvent) -> (Key, bool) {
        let last = self.found.len().saturating_sub(1);
        match key.code {
            KeyCode::Up if self.at > 0 => self.at -= 1,
            KeyCode::Down if self.at < last => self.at += 1,
            KeyCode::Char(' ') => {
                self.toggle();
                return (Key::Done, true);
            }
            KeyCode::Enter if !self.many && key.modifiers.is_empty() => {
                if let Some(found) = self.found.get(self.at) {
                    self.chosen.fill(false);
                    if let Some(chosen) = self.chosen.get_mut(found.index) {
                        *chosen = true;
                    }
                }
                return (Key::Next, true);
            }
            KeyCode::Up | KeyCode::Down => return (Key::Ignored, false),
            _ if self.is_long() => match self.filter.key(key) {
                Edit::Ignored => return (Key::Ignored, false),
                Edit::Moved => {}
                Edit::Changed | Edit::Full => self.search(),
            },
            _ => return (Key::Ignored, false),
        }
        (Key::Done, false)
    }

    fn toggle(&mut self) {
        let Some(found) = self.found.get(self.at) else {
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

    fn lines(
        &self,
        field: &Field,
        width: u16,
        focused: bool,
        look: &Look<'_>,
    ) -> (Vec<Line<'static>>, Option<(usize, u16)>) {
        let theme = look.theme;
        if self.is_long() && !focused {
            let chosen = self.titles.iter().zip(&self.chosen);
            let chosen: Vec<&str> = chosen
                .filter_map(|(title, chosen)| chosen.then_some(&**title))
                .collect();
            let said = match chosen.is_empty() {
                true => format!("none of {}", self.titles.len()),
                false => chosen.join(", "),
            };
            let spans = [Span::styled(said, theme.text)];
            return (wrap(&spans, Break::Words, 0, width), None);
        }
        let mut lines = Vec::new();
        let mut cursor = None;
        if self.is_long() {
            let room = width.saturating_sub(2).max(1);
            let (text, column) = self.filter.view(room, theme.text);
            cursor = Some((0, 2 + column));
            lines.push(Line::from(vec![Span::styled("> ", theme.accent), text]));
        }
        let top = (self.at + 1).saturating_sub(SEEN);
        for (n, found) in self.found.iter().enumerate().skip(top).take(SEEN) {
            let here = focused && n == self.at;
            let rows = wrap(&self.choice(field, found, look), Break::Words, 4, width);
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
        let rest = self.found.len().saturating_sub(top + SEEN);
        match self.found.is_empty() {
            true => lines.push(Line::styled("nothing fits what you typed", theme.dim)),
            false if rest + top > 0 => {
                let more = format!("⋯ {} more", rest + top);
                lines.push(Line::styled(more, theme.dim));
            }
            false => {}
        }
        (lines, cursor)
    }

    fn choice(&self, field: &Field, found: &Found, look: &Look<'_>) -> Vec<Span<'static>> {
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
        spans.extend(marked(title, 0, &found.letters, style, theme.matched));
        let description = field.choices().get(found.index);
        let description = description.and_then(|choice| choice.description.as_deref());
        if let Some(description) = description {
            spans.push(Span::styled(" – ", theme.dim));
            spans.extend(exact(description, theme.dim, theme));
        }
        spans
    }
}
