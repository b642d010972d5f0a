//! A form: all of its fields, and what is done with it. Elicitation, forms.

mod entry;

use std::collections::BTreeMap;

use acp::v1::{
    ElicitationAcceptAction, ElicitationAction, ElicitationContentValue as Value, ElicitationSchema,
};
use acp_host::elicitation::Field;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::{Line, Span};

use self::entry::{Entry, Key};
use super::lines::{Break, paragraph, wrap};
use super::{Body, Outcome, cancelled, declined};
use crate::agent::Answer;
use crate::look::Look;

/// What is done with a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Button {
    Submit,
    Decline,
    Cancel,
}

pub(super) struct FormView {
    message: String,
    title: Option<String>,
    description: Option<String>,
    entries: Vec<Entry>,
    /// Why it cannot be filled in.
    broken: Option<String>,
    /// What has the keyboard: an entry, or a button behind all of them.
    focus: usize,
}

impl FormView {
    pub(super) fn new(message: &str, form: &ElicitationSchema) -> Self {
        let fields = Field::of(form);
        let broken = fields.as_ref().err().map(ToString::to_string);
        let fields = fields.unwrap_or_default();
        Self {
            message: message.to_owned(),
            title: form.title.clone(),
            description: form.description.clone(),
            entries: fields.into_iter().map(Entry::new).collect(),
            broken,
            focus: 0,
        }
    }

    /// One of a kind unknown here.
    pub(super) fn unknown(message: &str) -> Self {
        Self {
            message: message.to_owned(),
            title: None,
            description: None,
            entries: Vec::new(),
            broken: Some("the agent asks in a way that is unknown here".to_owned()),
            focus: 0,
        }
    }

    fn buttons(&self) -> &'static [Button] {
        match self.broken {
            None => &[Button::Submit, Button::Decline, Button::Cancel],
            Some(_) => &[Button::Decline, Button::Cancel],
        }
    }

    /// The button that has the keyboard.
    fn button(&self) -> Option<Button> {
        let at = self.focus.checked_sub(self.entries.len())?;
        self.buttons().get(at).copied()
    }

    fn forward(&mut self) -> Outcome {
        let last = self.entries.len() + self.buttons().len() - 1;
        self.focus = if self.focus >= last {
            0
        } else {
            self.focus + 1
        };
        if let Some(entry) = self.entries.get_mut(self.focus) {
            entry.enter(false);
        }
        Outcome::Changed
    }

    fn back(&mut self) -> Outcome {
        let last = self.entries.len() + self.buttons().len() - 1;
        self.focus = self.focus.checked_sub(1).unwrap_or(last);
        if let Some(entry) = self.entries.get_mut(self.focus) {
            entry.enter(true);
        }
        Outcome::Changed
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Outcome {
        if key.modifiers == KeyModifiers::CONTROL && key.code == KeyCode::Char('s') {
            return self.submit();
        }
        if let Some(entry) = self.entries.get_mut(self.focus) {
            match entry.key(key) {
                Key::Done => return Outcome::Changed,
                Key::Next => return self.forward(),
                Key::Ignored => {}
            }
        }
        match (key.code, self.button()) {
            (KeyCode::BackTab | KeyCode::Up, _) => self.back(),
            (KeyCode::Tab | KeyCode::Down | KeyCode::Enter, None) => self.forward(),
            (KeyCode::Tab | KeyCode::Down | KeyCode::Right, Some(_)) => self.forward(),
            (KeyCode::Left, Some(_)) => self.back(),
            (KeyCode::Enter | KeyCode::Char(' '), Some(button)) => match button {
                Button::Submit => self.submit(),
                Button::Decline => declined(),
                Button::Cancel => cancelled(),
            },
            _ => Outcome::Ignored,
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(entry) = self.entries.get_mut(self.focus) {
            entry.paste(text);
        }
    }

    /// Sends it, or goes to the first field that cannot be sent.
    fn submit(&mut self) -> Outcome {
        if self.broken.is_some() {
            return Outcome::Changed;
        }
        let mut content: BTreeMap<String, Value> = BTreeMap::new();
        let mut wrong = None;
        for (at, entry) in self.entries.iter_mut().enumerate() {
            match entry.check() {
                Ok(Some(value)) => {
                    content.insert(entry.name().to_owned(), value);
                }
                Ok(None) => {}
                Err(_) => wrong = wrong.or(Some(at)),
            }
        }
        if let Some(at) = wrong {
            self.focus = at;
            return Outcome::Changed;
        }
        let action = ElicitationAction::Accept(ElicitationAcceptAction::new(content));
        Outcome::Answer(Answer::Elicitation(action))
    }

    pub(super) fn keys(&self) -> &'static [(&'static str, &'static str)] {
        match &self.broken {
            None => &[
                ("tab", "next"),
                ("ctrl-s", "submit"),
                ("esc", "cancel the turn"),
            ],
            Some(_) => &[
                ("tab", "next"),
                ("enter", "choose"),
                ("esc", "cancel the turn"),
            ],
        }
    }

    pub(super) fn body(&self, agent: &str, width: u16, look: &Look<'_>) -> Body {
        let theme = look.theme;
        let asks = format!("{agent} asks: {}", self.message);
        let mut lines = paragraph(&asks, theme.text, theme, width);
        let title = self.title.as_deref().unwrap_or_default();
        lines.extend(paragraph(title, theme.heading, theme, width));
        let description = self.description.as_deref().unwrap_or_default();
        lines.extend(paragraph(description, theme.dim, theme, width));
        if let Some(why) = &self.broken {
            let why = format!("This form cannot be filled in: {why}.");
            // It is fit to be shown already.
            let spans = [Span::styled(why, theme.warn)];
            lines.extend(wrap(&spans, Break::Words, 0, width));
        }
        let mut body = Body {
            lines,
            ..Body::default()
        };
        for (at, entry) in self.entries.iter().enumerate() {
            let focused = at == self.focus;
            let first = body.lines.len();
            let (lines, cursor) = entry.lines(width, focused, look);
            body.lines.extend(lines);
            if focused {
                // With the text above it, the first one has all of that in sight, too.
                body.focus = Some(if at == 0 { 0 } else { first }..body.lines.len());
                body.cursor = cursor.map(|(line, column)| (first + line, column));
            }
        }
        if body.focus.is_none() && !self.entries.is_empty() {
            // At the buttons the end of the form is seen.
            let end = body.lines.len();
            body.focus = Some(end.saturating_sub(1)..end);
        }
        body
    }

    pub(super) fn choices(&self, look: &Look<'_>) -> Vec<Line<'static>> {
        let theme = look.theme;
        let mut line = Line::default();
        for button in self.buttons() {
            let style = match self.button() == Some(*button) {
                true => theme.accent.patch(theme.selected),
                false => theme.accent,
            };
            let (before, after) = match self.button() == Some(*button) {
                true => ("›", "‹"),
                false => (" ", " "),
            };
            let text = format!("{before}[ {button:?} ]{after}");
            line.spans.push(Span::styled(text, style));
            line.spans.push(Span::raw(" "));
        }
        vec![line]
    }
}
