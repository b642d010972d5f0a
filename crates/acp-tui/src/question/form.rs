//! Shows a form with its fields and buttons (specification: Elicitation, form mode).

mod entry;

use std::collections::BTreeMap;

use acp::v1::{
    ElicitationAcceptAction, ElicitationAction, ElicitationContentValue as Value, ElicitationSchema,
};
use acp_host::elicitation::FormField;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::{Line, Span};

use self::entry::{FieldOutcome, FormEntry};
use super::lines::{LineBreak, wrap_paragraph, wrap_spans};
use super::{CANCEL_HINT, KeyHint, QuestionBody, QuestionOutcome, cancel_outcome, decline_outcome};
use crate::agent::ChatAnswer;
use crate::draw_context::DrawContext;

/// A button below the fields of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormButton {
    Submit,
    Decline,
    Cancel,
}

pub(super) struct FormView {
    message: String,
    title: Option<String>,
    description: Option<String>,
    entries: Vec<FormEntry>,
    /// The reason why the form cannot be filled in.
    error: Option<String>,
    /// The index of the focused entry. Buttons are numbered after the last entry.
    focus: usize,
}

impl FormView {
    pub(super) fn new(message: &str, form: &ElicitationSchema) -> Self {
        let fields = FormField::from_schema(form);
        let broken = fields.as_ref().err().map(ToString::to_string);
        let fields = fields.unwrap_or_default();
        Self {
            message: message.to_owned(),
            title: form.title.clone(),
            description: form.description.clone(),
            entries: fields.into_iter().map(FormEntry::new).collect(),
            error: broken,
            focus: 0,
        }
    }

    /// Creates the view of an elicitation with an unknown mode.
    pub(super) fn unsupported(message: &str) -> Self {
        Self {
            message: message.to_owned(),
            title: None,
            description: None,
            entries: Vec::new(),
            error: Some("unknown elicitation mode".to_owned()),
            focus: 0,
        }
    }

    fn buttons(&self) -> &'static [FormButton] {
        match self.error {
            None => &[FormButton::Submit, FormButton::Decline, FormButton::Cancel],
            Some(_) => &[FormButton::Decline, FormButton::Cancel],
        }
    }

    /// Returns the focused button, if any.
    fn focused_button(&self) -> Option<FormButton> {
        let at = self.focus.checked_sub(self.entries.len())?;
        self.buttons().get(at).copied()
    }

    fn focus_next(&mut self) -> QuestionOutcome {
        let last = self.entries.len() + self.buttons().len() - 1;
        self.focus = if self.focus >= last {
            0
        } else {
            self.focus + 1
        };
        if let Some(entry) = self.entries.get_mut(self.focus) {
            entry.focus(false);
        }
        QuestionOutcome::Changed
    }

    fn focus_previous(&mut self) -> QuestionOutcome {
        let last = self.entries.len() + self.buttons().len() - 1;
        self.focus = self.focus.checked_sub(1).unwrap_or(last);
        if let Some(entry) = self.entries.get_mut(self.focus) {
            entry.focus(true);
        }
        QuestionOutcome::Changed
    }

    pub(super) fn handle_key(&mut self, key: KeyEvent) -> QuestionOutcome {
        if key.modifiers == KeyModifiers::CONTROL && key.code == KeyCode::Char('s') {
            return self.submit();
        }
        if let Some(entry) = self.entries.get_mut(self.focus) {
            match entry.handle_key(key) {
                FieldOutcome::Handled => return QuestionOutcome::Changed,
                FieldOutcome::Next => return self.focus_next(),
                FieldOutcome::Ignored => {}
            }
        }
        match (key.code, self.focused_button()) {
            (KeyCode::BackTab | KeyCode::Up, _) => self.focus_previous(),
            (KeyCode::Tab | KeyCode::Down | KeyCode::Enter, None) => self.focus_next(),
            (KeyCode::Tab | KeyCode::Down | KeyCode::Right, Some(_)) => self.focus_next(),
            (KeyCode::Left, Some(_)) => self.focus_previous(),
            (KeyCode::Enter | KeyCode::Char(' '), Some(button)) => match button {
                FormButton::Submit => self.submit(),
                FormButton::Decline => decline_outcome(),
                FormButton::Cancel => cancel_outcome(),
            },
            _ => QuestionOutcome::Ignored,
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(entry) = self.entries.get_mut(self.focus) {
            entry.paste(text);
        }
    }

    /// Submits the form or, if fields are invalid, moves the focus to the first of them.
    fn submit(&mut self) -> QuestionOutcome {
        if self.error.is_some() {
            return QuestionOutcome::Changed;
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
            return QuestionOutcome::Changed;
        }
        let action = ElicitationAction::Accept(ElicitationAcceptAction::new(content));
        QuestionOutcome::Answer(ChatAnswer::Elicitation(action))
    }

    pub(super) fn keys(&self) -> &'static [KeyHint] {
        match &self.error {
            None => &[
                ("tab", "next", "next"),
                ("ctrl-s", "submit", "submit"),
                CANCEL_HINT,
            ],
            Some(_) => &[
                ("tab", "next", "next"),
                ("enter", "choose", "choose"),
                CANCEL_HINT,
            ],
        }
    }

    pub(super) fn build_body(
        &self,
        agent: &str,
        width: u16,
        look: &DrawContext<'_>,
    ) -> QuestionBody {
        let theme = look.theme;
        let asks = format!("{agent} asks: {}", self.message);
        let mut lines = wrap_paragraph(&asks, theme.text, theme, width);
        let title = self.title.as_deref().unwrap_or_default();
        lines.extend(wrap_paragraph(title, theme.heading, theme, width));
        let description = self.description.as_deref().unwrap_or_default();
        lines.extend(wrap_paragraph(description, theme.dim, theme, width));
        if let Some(why) = &self.error {
            let why = format!("Cannot show this form: {why}.");
            // The text has been cleaned already.
            let spans = [Span::styled(why, theme.warn)];
            lines.extend(wrap_spans(&spans, LineBreak::Words, 0, width));
        }
        let mut body = QuestionBody {
            lines,
            ..QuestionBody::default()
        };
        for (at, entry) in self.entries.iter().enumerate() {
            let focused = at == self.focus;
            let first = body.lines.len();
            let (lines, cursor) = entry.build_lines(width, focused, look);
            body.lines.extend(lines);
            if focused {
                // If the first field has the focus, the text above the form is visible too.
                body.focus = Some(if at == 0 { 0 } else { first }..body.lines.len());
                body.cursor = cursor.map(|(line, column)| (first + line, column));
            }
        }
        if body.focus.is_none() && !self.entries.is_empty() {
            // If a button has the focus, the end of the form is visible.
            let end = body.lines.len();
            body.focus = Some(end.saturating_sub(1)..end);
        }
        body
    }

    pub(super) fn build_choices(&self, look: &DrawContext<'_>) -> Vec<Line<'static>> {
        let theme = look.theme;
        let mut line = Line::default();
        for button in self.buttons() {
            let style = match self.focused_button() == Some(*button) {
                true => theme.accent.patch(theme.selected),
                false => theme.accent,
            };
            let (before, after) = match self.focused_button() == Some(*button) {
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
