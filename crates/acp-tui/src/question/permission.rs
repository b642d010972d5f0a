//! Asks the user about a permission request, showing its subject and its options (specification: Tool Calls,
//! "Requesting Permission").

use std::borrow::Cow;
use std::path::Path;
use std::time::Instant;

use acp::client::PermissionRequest;
use acp::thread::{FileTexts, ThreadToolCall, ThreadToolCallContent};
use acp::v1::{PermissionOptionId, PermissionOptionKind, TerminalId};
use acp_host::question::{self, QuestionPart};
use acp_host::{AlwaysEffect, terminal_text};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::text::{Line, Span};

use super::lines::{LineBreak, literal_line, literal_text, wrap_quoted, wrap_spans};
use super::{CANCEL_HINT, KeyHint, QuestionBody, QuestionOutcome, SETTLE_TIME};
use crate::agent::ChatAnswer;
use crate::draw_context::DrawContext;
use crate::text::columns::pluralize;
use crate::text::diff::{DiffLayout, DiffRequest, render_diff};
use crate::text::fit::truncate_to_width;

/// The maximum amount of a question's text to lay out, in bytes. Nobody reads more than that, and a request that is not
/// shown in full cannot be allowed.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// The maximum length of a title or option name, in characters.
const MAX_NAME_CHARS: usize = 16 * 1024;

/// The key that rejects the request and asks what to do instead.
const INSTEAD_KEY: char = 'w';
const INSTEAD_KEY_NAME: &str = "w";

/// The column where an option's name starts, after its keys.
const NAME_INDENT: u16 = 6;

pub(super) struct PermissionView {
    request: PermissionRequest,
    always: AlwaysEffect,
    /// The letter that chooses each option, if it has one.
    letters: Vec<Option<char>>,
    /// The index of the option that is highlighted with the arrow keys or by its letter, and chosen with Enter.
    highlighted_index: Option<usize>,
    /// The time at which an option was highlighted by its letter or number, if that was the last key.
    letter_pressed_at: Option<Instant>,
    /// Whether the tool's raw input is shown.
    shows_raw_input: bool,
}

impl PermissionView {
    pub(super) fn new(request: &PermissionRequest, always: &AlwaysEffect) -> Self {
        let request = request.clone();
        let letters = question::answer_letters(&request.options, always);
        Self {
            letters,
            always: always.clone(),
            highlighted_index: None,
            letter_pressed_at: None,
            shows_raw_input: false,
            request,
        }
    }

    fn tool_call(&self) -> &ThreadToolCall {
        &self.request.tool_call
    }

    pub(super) fn handle_key(&mut self, key: KeyEvent, now: Instant) -> QuestionOutcome {
        let last = self.request.options.len().saturating_sub(1);
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        let answers = plain && key.kind == KeyEventKind::Press;
        let letter_pressed_at = self.letter_pressed_at.take();
        match key.code {
            KeyCode::Up if plain => {
                let at = self.highlighted_index.map_or(last, |at| match at {
                    0 => last,
                    at => at - 1,
                });
                self.highlighted_index = Some(at);
            }
            KeyCode::Down | KeyCode::Tab if plain => {
                let at = self
                    .highlighted_index
                    .map_or(0, |at| if at >= last { 0 } else { at + 1 });
                self.highlighted_index = Some(at);
            }
            KeyCode::Enter if answers => {
                if let Some(at) = self.highlighted_index {
                    return self.choose(at);
                }
            }
            // The letter that selected an option has begun a word.
            KeyCode::Char(_)
                if letter_pressed_at
                    .is_some_and(|at| now.saturating_duration_since(at) < SETTLE_TIME) =>
            {
                return QuestionOutcome::Early;
            }
            KeyCode::Char('i') if answers && self.tool_call().raw_input.is_some() => {
                self.shows_raw_input = !self.shows_raw_input;
            }
            KeyCode::Char(INSTEAD_KEY) if answers && self.can_reject_once() => {
                return QuestionOutcome::Instead;
            }
            KeyCode::Char(c) if answers => return self.handle_letter(c, now),
            _ => return QuestionOutcome::Ignored,
        }
        QuestionOutcome::Changed
    }

    /// Handles the letter or number of an option. What is for this time only is chosen at once. Anything else is
    /// selected, and Enter confirms it: a letter of a word must not grant anything that lasts.
    fn handle_letter(&mut self, c: char, now: Instant) -> QuestionOutcome {
        let number = c.to_digit(10).and_then(|n| usize::try_from(n).ok());
        let by_number = number.and_then(|n| n.checked_sub(1));
        // Shift is ignored, except for the one letter that means something else with it.
        let is = |letter: &Option<char>| *letter == Some(c) || (c == 'N' && *letter == Some('x'));
        let by_letter = || self.letters.iter().position(is);
        let at = by_number.or_else(by_letter);
        let Some((at, option)) = at.and_then(|at| Some((at, self.request.options.get(at)?))) else {
            return QuestionOutcome::Early;
        };
        let is_for_once = matches!(
            option.kind,
            PermissionOptionKind::AllowOnce | PermissionOptionKind::RejectOnce
        );
        if is_for_once && self.always.option_prefix(option).is_none() {
            return self.choose(at);
        }
        self.highlighted_index = Some(at);
        self.letter_pressed_at = Some(now);
        QuestionOutcome::Changed
    }

    /// Takes back the selection of an option.
    pub(super) fn deselect(&mut self) {
        self.highlighted_index = None;
        self.letter_pressed_at = None;
    }

    fn choose(&self, at: usize) -> QuestionOutcome {
        match self.request.options.get(at) {
            Some(option) => {
                QuestionOutcome::Answer(ChatAnswer::Permission(Some(option.option_id.clone())))
            }
            None => QuestionOutcome::Changed,
        }
    }

    fn can_reject_once(&self) -> bool {
        let mut options = self.request.options.iter();
        options.any(|option| option.kind == PermissionOptionKind::RejectOnce)
            && !self.letters.contains(&Some(INSTEAD_KEY))
    }

    pub(super) fn keys(&self) -> Vec<KeyHint> {
        let mut keys = vec![match self.highlighted_index {
            None => ("↑↓ enter", "choose", ""),
            Some(_) => ("enter", "confirm", "confirm"),
        }];
        if self.tool_call().raw_input.is_some() {
            keys.push(match self.shows_raw_input {
                false => ("i", "raw input", "raw"),
                true => ("i", "hide raw input", "hide raw"),
            });
        }
        if self.can_reject_once() {
            keys.push((INSTEAD_KEY_NAME, "reject and explain", "explain"));
        }
        keys.push(CANCEL_HINT);
        keys
    }

    pub(super) fn build_body(
        &self,
        agent: &str,
        width: u16,
        look: &DrawContext<'_>,
    ) -> QuestionBody {
        let theme = look.theme;
        let mut lines = self.render_head(agent, width, look);
        let mut left = MAX_TEXT_BYTES;
        let description = self.request.description.as_deref().unwrap_or_default();
        if let Some(rest) = left.checked_sub(description.len()) {
            left = rest;
            lines.extend(wrap_quoted(description, theme.text, theme, width));
        } else {
            left = 0;
        }
        for part in question::parts(&self.request, look.cwd) {
            // A layout takes many times the memory of its text.
            let Some(rest) = left.checked_sub(part_len(&part)) else {
                let cut = "Truncated: the rest is too long to show.";
                lines.push(Line::styled(cut, theme.warn));
                left = 0;
                break;
            };
            left = rest;
            self.render_part(&part, width, look, &mut lines);
        }
        if let (true, Some(input)) = (self.shows_raw_input, &self.tool_call().raw_input) {
            lines.push(Line::styled("raw input", theme.dim));
            let text = serde_json::to_string_pretty(input).unwrap_or_else(|_| input.to_string());
            for line in text.split('\n') {
                let mut spans = vec![Span::raw("  ")];
                spans.extend(literal_text(line, theme.code, theme));
                lines.extend(wrap_spans(&spans, LineBreak::Anywhere, 4, width));
            }
        }
        let whole = question::is_complete(&self.request);
        if !whole {
            let cut = "Incomplete: the session exceeded its memory limit, and details of this tool call were dropped.";
            let spans = [Span::styled(cut, theme.warn)];
            lines.extend(wrap_spans(&spans, LineBreak::Words, 0, width));
        }
        QuestionBody {
            lines,
            partial: !whole || left == 0 || self.has_long_names(),
            ..QuestionBody::default()
        }
    }

    fn render_part(
        &self,
        part: &QuestionPart<'_>,
        width: u16,
        look: &DrawContext<'_>,
        lines: &mut Vec<Line<'static>>,
    ) {
        let theme = look.theme;
        let labelled = |label: Vec<Span<'static>>, value: Vec<Span<'static>>| {
            let spans: Vec<Span<'static>> = label.into_iter().chain(value).collect();
            wrap_spans(&spans, LineBreak::Anywhere, 2, width)
        };
        match part {
            QuestionPart::Command(line) => lines.extend(render_command(line, width, look)),
            QuestionPart::Directory(cwd) => {
                let spans = render_path("in ", cwd, look);
                lines.extend(wrap_spans(&spans, LineBreak::Anywhere, 3, width));
            }
            QuestionPart::Variable(name, value) => {
                let mut label = vec![Span::styled("with ", theme.dim)];
                label.extend(literal_line(name, theme.warn, theme));
                label.push(Span::styled("=", theme.dim));
                lines.extend(labelled(label, literal_line(value, theme.code, theme)));
            }
            QuestionPart::Content(ThreadToolCallContent::Diff(change)) => {
                let of = DiffRequest {
                    diff: change,
                    cwd: Some(look.cwd),
                    shows_all: true,
                };
                lines.extend(render_diff(of, DiffLayout::Unified, width, theme));
            }
            QuestionPart::Content(ThreadToolCallContent::Content(block)) => {
                let (label, text) = question::describe_block(block);
                if let Some(label) = label {
                    let spans = literal_line(&label, theme.dim, theme);
                    lines.extend(wrap_spans(&spans, LineBreak::Anywhere, 0, width));
                }
                lines.extend(wrap_quoted(
                    text.unwrap_or_default(),
                    theme.text,
                    theme,
                    width,
                ));
            }
            QuestionPart::Content(ThreadToolCallContent::Terminal(id)) => {
                lines.extend(self.render_terminal(id, width, look));
            }
            QuestionPart::File(file) => {
                let at = file.line.map(|line| format!(":{line}"));
                let path = format!("{}{}", file.path, at.unwrap_or_default());
                let spans = render_path("file ", &path, look);
                lines.extend(wrap_spans(&spans, LineBreak::Anywhere, 5, width));
            }
            QuestionPart::Field(key, value) => {
                let mut label = literal_line(key, theme.dim, theme);
                if value.contains('\n') {
                    label.push(Span::styled(":", theme.dim));
                    lines.extend(labelled(label, Vec::new()));
                    lines.extend(wrap_quoted(value, theme.code, theme, width));
                } else {
                    label.push(Span::styled(": ", theme.dim));
                    lines.extend(labelled(label, literal_line(value, theme.code, theme)));
                }
            }
            _ => lines.push(Line::styled("[unknown content type]", theme.warn)),
        }
    }

    /// Builds the first lines: the agent's name and the action that it requests.
    fn render_head(&self, agent: &str, width: u16, look: &DrawContext<'_>) -> Vec<Line<'static>> {
        let theme = look.theme;
        let mut lines = Vec::new();
        let kind = format!(" ({})", self.tool_call().kind.as_str());
        for (n, title) in question::titles(&self.request).into_iter().enumerate() {
            let mut spans = match n {
                0 => vec![Span::styled(format!("{agent} wants to: "), theme.text)],
                _ => vec![Span::raw("  ")],
            };
            let title = terminal_text::truncate_middle(title, MAX_NAME_CHARS);
            spans.extend(literal_line(&title, theme.strong, theme));
            if n == 0 {
                spans.extend(literal_line(&kind, theme.dim, theme));
            }
            lines.extend(wrap_spans(&spans, LineBreak::Words, 2, width));
        }
        lines
    }

    /// Returns whether a title or option name is so long that it is truncated.
    fn has_long_names(&self) -> bool {
        let options = self.request.options.iter().map(|option| &*option.name);
        let mut names = question::titles(&self.request).into_iter().chain(options);
        names.any(|name| {
            matches!(
                terminal_text::truncate_middle(name, MAX_NAME_CHARS),
                Cow::Owned(_)
            )
        })
    }

    /// Returns whether this answer allows something, or might do so.
    pub(super) fn allows(&self, id: &PermissionOptionId) -> bool {
        let mut options = self.request.options.iter();
        options.any(|option| option.option_id == *id && !option.kind.rejects())
    }

    /// Builds the lines for a terminal in the request, including its command if known.
    fn render_terminal(
        &self,
        id: &TerminalId,
        width: u16,
        look: &DrawContext<'_>,
    ) -> Vec<Line<'static>> {
        let command = self
            .request
            .thread
            .read(|thread| thread.terminal(id)?.command.clone());
        match command {
            Some(line) => render_command(&line, width, look),
            None => {
                let spans = literal_line(&format!("[terminal {id}]"), look.theme.dim, look.theme);
                wrap_spans(&spans, LineBreak::Anywhere, 0, width)
            }
        }
    }

    /// Builds the options, in the agent's order. If their descriptions do not fit, each option takes one line. If even
    /// that is too much, only the options around the highlighted one are shown.
    pub(super) fn build_choices(
        &self,
        width: u16,
        most: usize,
        look: &DrawContext<'_>,
    ) -> Vec<Line<'static>> {
        let theme = look.theme;
        if self.request.options.is_empty() {
            let none = "The agent offers no options. Press Esc to cancel the turn.";
            return wrap_spans(
                &[Span::styled(none, theme.warn)],
                LineBreak::Words,
                0,
                width,
            );
        }
        let mut lines: Vec<Line<'static>> = Vec::new();
        for at in 0..self.request.options.len() {
            let rows = wrap_spans(
                &self.render_option(at, true, look),
                LineBreak::Words,
                NAME_INDENT,
                width,
            );
            lines.extend(self.highlight(at, rows, look));
        }
        if lines.len() <= most {
            return lines;
        }
        let options = 0..self.request.options.len();
        let short: Vec<Line<'static>> = options
            .flat_map(|at| {
                let spans = self.render_option(at, false, look);
                let rows = wrap_spans(&spans, LineBreak::Words, NAME_INDENT, width);
                let more = rows.len() > 1;
                let mut row: Vec<Line<'static>> = rows.into_iter().take(1).collect();
                if let (true, Some(line)) = (more, row.first_mut()) {
                    let text: String = line.spans.drain(..).map(|span| span.content).collect();
                    let text = format!("{text} …");
                    line.spans
                        .push(Span::styled(truncate_to_width(&text, width), theme.strong));
                }
                self.highlight(at, row, look)
            })
            .collect();
        if short.len() <= most {
            return short;
        }
        let rows = most.saturating_sub(1).max(1);
        let top = (self.highlighted_index.unwrap_or(0) + 1).saturating_sub(rows);
        let mut some: Vec<Line<'static>> = short.into_iter().skip(top).take(rows).collect();
        let others = self.request.options.len() - some.len();
        some.push(Line::styled(
            format!("  {}: ↑↓", pluralize(others, "more option")),
            theme.warn,
        ));
        some
    }

    fn highlight(
        &self,
        at: usize,
        mut rows: Vec<Line<'static>>,
        look: &DrawContext<'_>,
    ) -> Vec<Line<'static>> {
        if self.highlighted_index == Some(at) {
            for line in &mut rows {
                *line = std::mem::take(line).patch_style(look.theme.selected);
                for span in &mut line.spans {
                    span.style = span.style.patch(look.theme.selected);
                }
            }
        }
        rows
    }

    /// Builds an option: its keys, its name, and its effect.
    fn render_option(
        &self,
        at: usize,
        meaning: bool,
        look: &DrawContext<'_>,
    ) -> Vec<Span<'static>> {
        let theme = look.theme;
        let Some(option) = self.request.options.get(at) else {
            return Vec::new();
        };
        let number = if at < 9 {
            format!("{}", at + 1)
        } else {
            " ".to_owned()
        };
        let letter = self.letters.get(at).copied().flatten().unwrap_or(' ');
        let mark = if self.highlighted_index == Some(at) {
            "›"
        } else {
            " "
        };
        let mut spans = vec![Span::styled(
            format!("{mark}{number} {letter}  "),
            theme.accent,
        )];
        let name = terminal_text::truncate_middle(&option.name, MAX_NAME_CHARS);
        spans.extend(literal_line(&name, theme.strong, theme));
        if meaning {
            let means = question::describe_answer(option, &self.always, &self.request, look.cwd);
            let (means, style) = match means {
                Some(means) => (means, theme.dim),
                None => (
                    "unknown whether this option allows or rejects".to_owned(),
                    theme.warn,
                ),
            };
            if !means.is_empty() {
                spans.push(Span::styled(" – ", theme.dim));
                spans.extend(literal_line(&means, style, theme));
            }
        }
        spans
    }
}

/// Returns the length of a part's text, in bytes.
fn part_len(part: &QuestionPart<'_>) -> usize {
    match part {
        QuestionPart::Command(line) => line.len(),
        QuestionPart::Directory(cwd) => cwd.len(),
        QuestionPart::Variable(name, value) => name.len() + value.len(),
        QuestionPart::Field(key, value) => key.len() + value.len(),
        QuestionPart::File(file) => file.path.len(),
        QuestionPart::Content(ThreadToolCallContent::Content(block)) => {
            let (label, text) = question::describe_block(block);
            label.map_or(0, |label| label.len()) + text.map_or(0, str::len)
        }
        QuestionPart::Content(ThreadToolCallContent::Diff(diff)) => {
            let texts = diff
                .changes
                .iter()
                .filter_map(|change| change.texts.as_ref());
            let patch = diff.patch.as_ref().map_or(0, |patch| patch.text.len());
            // Lines that the two texts have in common are not shown.
            let changed = |texts: &FileTexts| {
                let old = texts.old.as_deref().unwrap_or_default();
                let longest = old.len().max(texts.new.len());
                let same = old.lines().zip(texts.new.lines());
                let same = same.take_while(|(old, new)| old == new);
                longest.saturating_sub(same.map(|(line, _)| line.len() + 1).sum())
            };
            texts.map(changed).sum::<usize>() + patch
        }
        _ => 0,
    }
}

/// Builds a whole command. The first line starts with `$`, the others with `>`.
fn render_command(command: &str, width: u16, look: &DrawContext<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    let mut lines = Vec::new();
    for (n, line) in command.split('\n').enumerate() {
        let prompt = if n == 0 { "$ " } else { "> " };
        let mut spans = vec![Span::styled(prompt, theme.accent)];
        spans.extend(literal_text(line, theme.code, theme));
        lines.extend(wrap_spans(&spans, LineBreak::Anywhere, 2, width));
    }
    lines
}

/// Builds a path. Paths in the session's directory are shown relative to it, and others are styled as a warning.
fn render_path(what: &'static str, path: &str, look: &DrawContext<'_>) -> Vec<Span<'static>> {
    let theme = look.theme;
    let plain = Path::new(path).strip_prefix(look.cwd).ok();
    // A path with `..` can lead anywhere, and is shown as it is.
    let inside = plain.filter(|path| {
        let mut parts = path.components();
        parts.all(|part| matches!(part, std::path::Component::Normal(_)))
    });
    let (shown, style) = match inside.map(Path::to_str) {
        Some(Some("")) => (".", theme.dim),
        Some(Some(inside)) => (inside, theme.dim),
        _ => (path, theme.warn),
    };
    let mut spans = vec![Span::styled(what, theme.dim)];
    spans.extend(literal_line(shown, style, theme));
    spans
}
