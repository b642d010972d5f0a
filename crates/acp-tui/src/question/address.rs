//! Asks the user to open a URL (specification: Elicitation, URL mode).
//!
//! The whole URL is shown, as a browser reads it, and it is opened only if the user presses the key for that.

use acp::v1::{ElicitationAcceptAction, ElicitationAction};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use url::Url;

use super::lines::{LineBreak, literal_line, literal_text, wrap_paragraph, wrap_spans};
use super::{QuestionBody, QuestionOutcome, decline_outcome};
use crate::agent::ChatAnswer;
use crate::draw_context::DrawContext;
use crate::web_address::{WebAddress, render_url, url_warnings};

pub(super) struct AddressView {
    message: String,
    /// The URL as the agent sent it.
    raw_url: String,
    /// The URL as a browser parses it.
    url: Option<Url>,
    /// The result of opening the URL.
    open_result: Option<Result<(), String>>,
}

impl AddressView {
    pub(super) fn new(message: &str, given: &str) -> Self {
        Self {
            message: message.to_owned(),
            raw_url: given.to_owned(),
            url: Url::parse(given).ok(),
            open_result: None,
        }
    }

    fn address(&self) -> Option<WebAddress> {
        self.url.as_ref().and_then(WebAddress::new)
    }

    pub(super) fn set_open_result(&mut self, result: Result<(), String>) {
        self.open_result = Some(result);
    }

    pub(super) fn handle_key(&mut self, key: KeyEvent) -> QuestionOutcome {
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        if !plain || key.kind != KeyEventKind::Press {
            return QuestionOutcome::Ignored;
        }
        match key.code {
            KeyCode::Char('o') => self
                .address()
                .map_or(QuestionOutcome::Changed, QuestionOutcome::OpenAddress),
            KeyCode::Char('y') => {
                let action = ElicitationAction::Accept(ElicitationAcceptAction::default());
                QuestionOutcome::Answer(ChatAnswer::Elicitation(action))
            }
            KeyCode::Char('n') => decline_outcome(),
            // The user is writing something else.
            KeyCode::Char(_) => QuestionOutcome::Early,
            KeyCode::Enter => QuestionOutcome::Changed,
            _ => QuestionOutcome::Ignored,
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
        let whole = |text: &str, style: Style| {
            wrap_spans(
                &literal_line(text, style, theme),
                LineBreak::Anywhere,
                2,
                width,
            )
        };
        lines.push(Line::default());
        match &self.url {
            Some(url) => {
                let spans = render_url(url, theme);
                lines.extend(wrap_spans(&spans, LineBreak::Anywhere, 2, width));
                // A browser may read the URL differently than a user does.
                let same = [url.as_str(), url.as_str().trim_end_matches('/')];
                if !same.contains(&self.raw_url.as_str()) {
                    lines.push(Line::styled("As written by the agent:", theme.dim));
                    lines.extend(whole(&self.raw_url, theme.dim));
                }
            }
            None => lines.extend(whole(&self.raw_url, theme.strong)),
        }
        lines.push(Line::default());
        for warning in self.warnings() {
            let mut spans = vec![Span::styled("! ", theme.warn)];
            spans.extend(literal_text(&warning, theme.warn, theme));
            lines.extend(wrap_spans(&spans, LineBreak::Words, 2, width));
        }
        match &self.open_result {
            Some(Ok(())) => lines.push(Line::styled("Opened in your browser.", theme.good)),
            Some(Err(why)) => {
                let why = format!("Cannot open the URL: {why}. Open it manually.");
                lines.extend(wrap_paragraph(&why, theme.bad, theme, width));
            }
            None => {}
        }
        if lines.last().is_some_and(|line| line.spans.is_empty()) {
            lines.pop();
        }
        QuestionBody {
            lines,
            ..QuestionBody::default()
        }
    }

    /// Returns the warnings to show before the URL is opened.
    fn warnings(&self) -> Vec<String> {
        let Some(url) = &self.url else {
            return vec!["Invalid URL.".to_owned()];
        };
        url_warnings(url)
    }

    pub(super) fn build_choices(&self, width: u16, look: &DrawContext<'_>) -> Vec<Line<'static>> {
        let theme = look.theme;
        let open = self.address().map(|_| ("o", "open in browser"));
        let others = [("y", "done: tell the agent to continue"), ("n", "decline")];
        let choices = open.into_iter().chain(others);
        choices
            .flat_map(|(key, what)| {
                let key = Span::styled(format!(" {key}  "), theme.accent);
                let spans = [key, Span::styled(what, theme.text)];
                wrap_spans(&spans, LineBreak::Words, 4, width)
            })
            .collect()
    }
}
