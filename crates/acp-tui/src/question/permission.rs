//! A permission request: all that it is about, and what can be answered. Tool calls, "Requesting Permission".

use std::borrow::Cow;
use std::path::Path;

use acp::client::PermissionRequest;
use acp::thread::{FileTexts, ThreadToolCall, ToolCallContent};
use acp::v1::{PermissionOption, PermissionOptionId, PermissionOptionKind, TerminalId};
use acp_host::question::{self, Part};
use acp_host::{Always, clean};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::text::{Line, Span};

use super::lines::{Break, exact, prose, quoted, wrap};
use super::{Body, Outcome};
use crate::agent::Answer;
use crate::look::Look;
use crate::text::diff::{DiffOf, Layout, diff};
use crate::text::fit::fit;

/// How much text of a question is laid out, in bytes. Nobody reads that much, and what is not shown cannot be allowed.
const LONGEST: usize = 1024 * 1024;

/// The same of a title and of an option's name, in characters.
const LONGEST_NAME: usize = 16 * 1024;

/// Where an option's name begins: behind its keys.
const NAME: u16 = 6;

pub(super) struct PermissionView {
    request: PermissionRequest,
    always: Always,
    /// The letter of each option, where there is one.
    letters: Vec<Option<char>>,
    /// The option that the arrow keys have gone to. Enter takes no other.
    highlighted: Option<usize>,
    /// What the tool is given is shown as it is.
    input: bool,
}

impl PermissionView {
    pub(super) fn new(request: &PermissionRequest, always: &Always) -> Self {
        let request = request.clone();
        let letters = letters(&request.options);
        Self {
            letters,
            always: always.clone(),
            highlighted: None,
            input: false,
            request,
        }
    }

    fn call(&self) -> &ThreadToolCall {
        &self.request.tool_call
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Outcome {
        let last = self.request.options.len().saturating_sub(1);
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        let answers = plain && key.kind == KeyEventKind::Press;
        match key.code {
            KeyCode::Up | KeyCode::BackTab if plain => {
                let at = self.highlighted.map_or(last, |at| match at {
                    0 => last,
                    at => at - 1,
                });
                self.highlighted = Some(at);
            }
            KeyCode::Down | KeyCode::Tab if plain => {
                let at = self
                    .highlighted
                    .map_or(0, |at| if at >= last { 0 } else { at + 1 });
                self.highlighted = Some(at);
            }
            KeyCode::Enter if answers => {
                if let Some(at) = self.highlighted {
                    return self.choose(at);
                }
            }
            KeyCode::Char('i') if answers && self.call().raw_input.is_some() => {
                self.input = !self.input;
            }
            KeyCode::Char(c) if answers => {
                let number = c.to_digit(10).and_then(|n| usize::try_from(n).ok());
                let by_number = number.and_then(|n| n.checked_sub(1));
                // Who holds Shift is understood, but for the one letter that is another with it.
                let is = |letter: &Option<char>| {
                    *letter == Some(c) || (c == 'N' && *letter == Some('x'))
                };
                let by_letter = || self.letters.iter().position(is);
                if let Some(at) = by_number.or_else(by_letter) {
                    return self.choose(at);
                }
            }
            _ => return Outcome::Ignored,
        }
        Outcome::Changed
    }

    fn choose(&self, at: usize) -> Outcome {
        match self.request.options.get(at) {
            Some(option) => Outcome::Answer(Answer::Permission(Some(option.option_id.clone()))),
            None => Outcome::Changed,
        }
    }

    pub(super) fn keys(&self) -> &'static [(&'static str, &'static str)] {
        match (&self.call().raw_input, self.input) {
            (None, _) => &[("↑↓ enter", "choose"), ("esc", "cancel the turn")],
            (Some(_), false) => &[
                ("↑↓ enter", "choose"),
                ("i", "raw input"),
                ("esc", "cancel the turn"),
            ],
            (Some(_), true) => &[
                ("↑↓ enter", "choose"),
                ("i", "hide raw input"),
                ("esc", "cancel the turn"),
            ],
        }
    }

    pub(super) fn body(&self, agent: &str, width: u16, look: &Look<'_>) -> Body {
        let theme = look.theme;
        let mut lines = self.head(agent, width, look);
        let mut left = LONGEST;
        let description = self.request.description.as_deref().unwrap_or_default();
        if let Some(rest) = left.checked_sub(description.len()) {
            left = rest;
            lines.extend(quoted(description, theme.text, theme, width));
        } else {
            left = 0;
        }
        for part in question::parts(&self.request, look.cwd) {
            // Laid out, it takes many times the memory.
            let Some(rest) = left.checked_sub(weight(&part)) else {
                let cut = "This is not all of it: the rest is too long to be shown.";
                lines.push(Line::styled(cut, theme.warn));
                left = 0;
                break;
            };
            left = rest;
            self.part(&part, width, look, &mut lines);
        }
        if let (true, Some(input)) = (self.input, &self.call().raw_input) {
            lines.push(Line::styled("raw input", theme.dim));
            let text = serde_json::to_string_pretty(input).unwrap_or_else(|_| input.to_string());
            for line in text.split('\n') {
                let mut spans = vec![Span::raw("  ")];
                spans.extend(prose(line, theme.code, theme));
                lines.extend(wrap(&spans, Break::Anywhere, 4, width));
            }
        }
        let whole = question::is_whole(&self.request);
        if !whole {
            let cut = "This is not all of it: the session has become larger than is kept, and what the \
                       agent said of this call was cut.";
            let spans = [Span::styled(cut, theme.warn)];
            lines.extend(wrap(&spans, Break::Words, 0, width));
        }
        Body {
            lines,
            partial: !whole || left == 0 || self.has_long_names(),
            ..Body::default()
        }
    }

    fn part(&self, part: &Part<'_>, width: u16, look: &Look<'_>, lines: &mut Vec<Line<'static>>) {
        let theme = look.theme;
        let labelled = |label: Vec<Span<'static>>, value: Vec<Span<'static>>| {
            let spans: Vec<Span<'static>> = label.into_iter().chain(value).collect();
            wrap(&spans, Break::Anywhere, 2, width)
        };
        match part {
            Part::Command(line) => lines.extend(show_command(line, width, look)),
            Part::Directory(cwd) => {
                let spans = path_spans("in ", cwd, look);
                lines.extend(wrap(&spans, Break::Anywhere, 3, width));
            }
            Part::Variable(name, value) => {
                let mut label = vec![Span::styled("with ", theme.dim)];
                label.extend(exact(name, theme.warn, theme));
                label.push(Span::styled("=", theme.dim));
                lines.extend(labelled(label, exact(value, theme.code, theme)));
            }
            Part::Content(ToolCallContent::Diff(change)) => {
                let of = DiffOf {
                    diff: change,
                    cwd: Some(look.cwd),
                    whole: true,
                };
                lines.extend(diff(of, Layout::Unified, width, theme));
            }
            Part::Content(ToolCallContent::Content(block)) => {
                let (label, text) = question::block(block);
                if let Some(label) = label {
                    let spans = exact(&label, theme.dim, theme);
                    lines.extend(wrap(&spans, Break::Anywhere, 0, width));
                }
                lines.extend(quoted(text.unwrap_or_default(), theme.text, theme, width));
            }
            Part::Content(ToolCallContent::Terminal(id)) => {
                lines.extend(self.terminal(id, width, look));
            }
            Part::File(file) => {
                let at = file.line.map(|line| format!(":{line}"));
                let path = format!("{}{}", file.path, at.unwrap_or_default());
                let spans = path_spans("file ", &path, look);
                lines.extend(wrap(&spans, Break::Anywhere, 5, width));
            }
            Part::Field(key, value) => {
                let mut label = exact(key, theme.dim, theme);
                if value.contains('\n') {
                    label.push(Span::styled(":", theme.dim));
                    lines.extend(labelled(label, Vec::new()));
                    lines.extend(quoted(value, theme.code, theme, width));
                } else {
                    label.push(Span::styled(": ", theme.dim));
                    lines.extend(labelled(label, exact(value, theme.code, theme)));
                }
            }
            _ => lines.push(Line::styled("[content of a kind unknown here]", theme.warn)),
        }
    }

    /// Who wants what.
    fn head(&self, agent: &str, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        let theme = look.theme;
        let mut lines = Vec::new();
        let kind = format!(" ({})", self.call().kind.as_str());
        for (n, title) in question::titles(&self.request).into_iter().enumerate() {
            let mut spans = match n {
                0 => vec![Span::styled(format!("{agent} wants to: "), theme.text)],
                _ => vec![Span::raw("  ")],
            };
            let title = clean::cut(title, LONGEST_NAME);
            spans.extend(exact(&title, theme.strong, theme));
            if n == 0 {
                spans.extend(exact(&kind, theme.dim, theme));
            }
            lines.extend(wrap(&spans, Break::Words, 2, width));
        }
        lines
    }

    /// Whether a title or the name of an option is so long that it is cut.
    fn has_long_names(&self) -> bool {
        let options = self.request.options.iter().map(|option| &*option.name);
        let mut names = question::titles(&self.request).into_iter().chain(options);
        names.any(|name| matches!(clean::cut(name, LONGEST_NAME), Cow::Owned(_)))
    }

    /// Whether this answer allows something, or may.
    pub(super) fn allows(&self, id: &PermissionOptionId) -> bool {
        let mut options = self.request.options.iter();
        options.any(|option| option.option_id == *id && !option.kind.rejects())
    }

    /// A terminal that is part of it: by its command, if that is known.
    fn terminal(&self, id: &TerminalId, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        let command = self
            .request
            .thread
            .read(|thread| thread.terminal(id)?.command.clone());
        match command {
            Some(line) => show_command(&line, width, look),
            None => {
                let spans = exact(&format!("[terminal {id}]"), look.theme.dim, look.theme);
                wrap(&spans, Break::Anywhere, 0, width)
            }
        }
    }

    /// The options, in the agent's order. Where there is no room for all that is said of them each has one line,
    /// and where there is no room for all of those, there are those around the one that is highlighted.
    pub(super) fn choices(&self, width: u16, most: usize, look: &Look<'_>) -> Vec<Line<'static>> {
        let theme = look.theme;
        if self.request.options.is_empty() {
            let none = "The agent offers nothing to answer: esc cancels the turn.";
            return wrap(&[Span::styled(none, theme.warn)], Break::Words, 0, width);
        }
        let mut lines: Vec<Line<'static>> = Vec::new();
        for at in 0..self.request.options.len() {
            let rows = wrap(&self.option(at, true, look), Break::Words, NAME, width);
            lines.extend(self.highlight(at, rows, look));
        }
        if lines.len() <= most {
            return lines;
        }
        let options = 0..self.request.options.len();
        let short: Vec<Line<'static>> = options
            .flat_map(|at| {
                let spans = self.option(at, false, look);
                let rows = wrap(&spans, Break::Words, NAME, width);
                let more = rows.len() > 1;
                let mut row: Vec<Line<'static>> = rows.into_iter().take(1).collect();
                if let (true, Some(line)) = (more, row.first_mut()) {
                    let text: String = line.spans.drain(..).map(|span| span.content).collect();
                    let text = format!("{text} …");
                    line.spans
                        .push(Span::styled(fit(&text, width), theme.strong));
                }
                self.highlight(at, row, look)
            })
            .collect();
        if short.len() <= most {
            return short;
        }
        let rows = most.saturating_sub(1).max(1);
        let top = (self.highlighted.unwrap_or(0) + 1).saturating_sub(rows);
        let mut some: Vec<Line<'static>> = short.into_iter().skip(top).take(rows).collect();
        let others = self.request.options.len() - some.len();
        some.push(Line::styled(
            format!("  {others} other options: ↑↓"),
            theme.warn,
        ));
        some
    }

    fn highlight(
        &self,
        at: usize,
        mut rows: Vec<Line<'static>>,
        look: &Look<'_>,
    ) -> Vec<Line<'static>> {
        if self.highlighted == Some(at) {
            for line in &mut rows {
                *line = std::mem::take(line).patch_style(look.theme.selected);
                for span in &mut line.spans {
                    span.style = span.style.patch(look.theme.selected);
                }
            }
        }
        rows
    }

    /// An option: its keys, its name, and what it means.
    fn option(&self, at: usize, meaning: bool, look: &Look<'_>) -> Vec<Span<'static>> {
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
        let mark = if self.highlighted == Some(at) {
            "›"
        } else {
            " "
        };
        let mut spans = vec![Span::styled(
            format!("{mark}{number} {letter}  "),
            theme.accent,
        )];
        let name = clean::cut(&option.name, LONGEST_NAME);
        spans.extend(exact(&name, theme.strong, theme));
        if meaning {
            let means = question::meaning(&option.kind, &self.always, &self.request, look.cwd);
            let (means, style) = match means {
                Some(means) => (means, theme.dim),
                None => (
                    "the agent does not say whether this is a yes".to_owned(),
                    theme.warn,
                ),
            };
            if !means.is_empty() {
                spans.push(Span::styled(" – ", theme.dim));
                spans.extend(exact(&means, style, theme));
            }
        }
        spans
    }
}

/// The letter of each option: where only one is of its kind.
fn letters(options: &[PermissionOption]) -> Vec<Option<char>> {
    let letter = |option: &PermissionOption| {
        let of_kind = options.iter().filter(|other| other.kind == option.kind);
        if of_kind.count() > 1 {
            return None;
        }
        match option.kind {
            PermissionOptionKind::AllowOnce => Some('y'),
            PermissionOptionKind::AllowAlways => Some('a'),
            PermissionOptionKind::RejectOnce => Some('n'),
            PermissionOptionKind::RejectAlways => Some('x'),
            _ => None,
        }
    };
    options.iter().map(letter).collect()
}

/// How much text a part has, in bytes.
fn weight(part: &Part<'_>) -> usize {
    match part {
        Part::Command(line) => line.len(),
        Part::Directory(cwd) => cwd.len(),
        Part::Variable(name, value) => name.len() + value.len(),
        Part::Field(key, value) => key.len() + value.len(),
        Part::File(file) => file.path.len(),
        Part::Content(ToolCallContent::Content(block)) => {
            let (label, text) = question::block(block);
            label.map_or(0, |label| label.len()) + text.map_or(0, str::len)
        }
        Part::Content(ToolCallContent::Diff(diff)) => {
            let texts = diff
                .changes
                .iter()
                .filter_map(|change| change.texts.as_ref());
            let patch = diff.patch.as_ref().map_or(0, |patch| patch.text.len());
            // What the two have in common is not shown.
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

/// A command, whole: its first line behind `$`, each further one behind `>`.
fn show_command(command: &str, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    let mut lines = Vec::new();
    for (n, line) in command.split('\n').enumerate() {
        let prompt = if n == 0 { "$ " } else { "> " };
        let mut spans = vec![Span::styled(prompt, theme.accent)];
        spans.extend(prose(line, theme.code, theme));
        lines.extend(wrap(&spans, Break::Anywhere, 2, width));
    }
    lines
}

/// A path, as from the session's directory if it is in it; a warning if it is not.
fn path_spans(what: &'static str, path: &str, look: &Look<'_>) -> Vec<Span<'static>> {
    let theme = look.theme;
    let plain = Path::new(path).strip_prefix(look.cwd).ok();
    // One with `..` in it can lead anywhere, and is shown as it is.
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
    spans.extend(exact(shown, style, theme));
    spans
}
