//! A permission request: all that it is about, and what can be answered. Tool calls, "Requesting Permission".

use std::path::Path;

use acp::client::PermissionRequest;
use acp::thread::{ThreadToolCall, ToolCallContent};
use acp::v1::{
    ContentBlock, EmbeddedResourceResource, PermissionOption, PermissionOptionKind, TerminalId,
};
use acp_host::{Always, Subject};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::lines::{Break, exact, paragraph, prose, wrap};
use super::{Body, Outcome};
use crate::agent::Answer;
use crate::look::Look;
use crate::text::diff::{DiffOf, Layout, diff};
use crate::text::fit::fit;

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

/// A command that is asked about.
struct Command {
    line: String,
    cwd: Option<String>,
}

impl PermissionView {
    pub(super) fn new(request: &PermissionRequest, always: &Always) -> Self {
        let request = request.clone();
        let letters = letters(&request.options);
        let mut view = Self {
            letters,
            always: always.clone(),
            highlighted: None,
            input: false,
            request,
        };
        // Where nothing else says what it is about, this does.
        let call = &view.request.tool_call;
        view.input = call.content.is_empty() && view.commands().is_empty();
        view
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
        let call = self.call();
        let mut lines = self.head(agent, width, look);
        let description = self.request.description.as_deref().unwrap_or_default();
        lines.extend(paragraph(description, theme.text, theme, width));
        for command in self.commands() {
            lines.extend(show_command(&command, width, look));
        }
        let mut named: Vec<&str> = Vec::new();
        for content in &call.content {
            match content {
                ToolCallContent::Diff(change) => {
                    named.extend(change.changes.iter().map(|change| change.path.as_str()));
                    let of = DiffOf {
                        diff: change,
                        cwd: Some(look.cwd),
                    };
                    lines.extend(diff(of, Layout::Unified, width, look.theme));
                }
                ToolCallContent::Content(block) => lines.extend(show_block(block, width, look)),
                ToolCallContent::Terminal(id) => lines.extend(self.terminal(id, width, look)),
                ToolCallContent::Unknown(_) | _ => {
                    lines.push(Line::styled("[content of a kind unknown here]", theme.warn));
                }
            }
        }
        for location in &call.locations {
            if !named.contains(&location.path.as_str()) {
                let at = location.line.map(|line| format!(":{line}"));
                let path = format!("{}{}", location.path, at.unwrap_or_default());
                let spans = path_spans("file ", &path, look);
                lines.extend(wrap(&spans, Break::Anywhere, 5, width));
            }
        }
        if let (true, Some(input)) = (self.input, &call.raw_input) {
            lines.push(Line::styled("raw input", theme.dim));
            let text = serde_json::to_string_pretty(input).unwrap_or_else(|_| input.to_string());
            for line in text.split('\n') {
                let mut spans = vec![Span::raw("  ")];
                spans.extend(exact(line, theme.code, theme));
                lines.extend(wrap(&spans, Break::Anywhere, 4, width));
            }
        }
        if call.cut {
            let cut = "This is not all of it: the session has become larger than is kept, and what the \
                       agent said of this call was cut.";
            let spans = [Span::styled(cut, theme.warn)];
            lines.extend(wrap(&spans, Break::Words, 0, width));
        }
        Body {
            lines,
            ..Body::default()
        }
    }

    /// Who wants what.
    fn head(&self, agent: &str, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        let theme = look.theme;
        let call = self.call();
        let mut titles: Vec<&str> = Vec::new();
        for title in [&*self.request.title, &*call.title] {
            if !title.trim().is_empty() && !titles.contains(&title) {
                titles.push(title);
            }
        }
        if titles.is_empty() {
            titles.push(call.id.as_str());
        }
        let mut spans = vec![Span::styled(format!("{agent} wants to: "), theme.text)];
        let mut lines = Vec::new();
        let kind = format!(" ({})", call.kind.as_str());
        for (n, title) in titles.iter().enumerate() {
            let mut rows = title.trim_end().split('\n').peekable();
            while let Some(row) = rows.next() {
                spans.extend(exact(row, theme.strong, theme));
                if n == 0 && rows.peek().is_none() {
                    spans.extend(exact(&kind, theme.dim, theme));
                }
                lines.extend(wrap(&spans, Break::Words, 2, width));
                spans = vec![Span::raw("  ")];
            }
        }
        lines
    }

    /// The commands it says it runs: as it asks, and as its tool is given them.
    fn commands(&self) -> Vec<Command> {
        let mut commands: Vec<Command> = Vec::new();
        if let Some(command) = &self.request.command {
            commands.push(Command {
                line: command.command.clone(),
                cwd: Some(command.cwd.clone()),
            });
        }
        if let Some(input) = &self.call().raw_input {
            let text = |key: &str| input.get(key)?.as_str().map(str::to_owned);
            let cwd = text("cwd").or_else(|| text("workdir"));
            for key in ["command", "cmd"] {
                let Some(line) = input.get(key).and_then(line_of) else {
                    continue;
                };
                if commands.iter().all(|known| known.line != line) {
                    let cwd = cwd.clone();
                    commands.push(Command { line, cwd });
                }
            }
        }
        commands
    }

    /// A terminal that is part of it: by its command, if that is known.
    fn terminal(&self, id: &TerminalId, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        let command = self
            .request
            .thread
            .read(|thread| thread.terminal(id)?.command.clone());
        match command {
            Some(line) => show_command(&Command { line, cwd: None }, width, look),
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
        spans.extend(prose(&one_line(&option.name), theme.strong, theme));
        if meaning {
            let (means, style) = match self.means(&option.kind, look.cwd) {
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

    /// What an answer of this kind means here, whatever it is called; `None` if that is not known.
    fn means(&self, kind: &PermissionOptionKind, cwd: &Path) -> Option<String> {
        let yes = match kind {
            PermissionOptionKind::AllowOnce => return Some("yes, this time".to_owned()),
            PermissionOptionKind::RejectOnce => return Some("no, this time".to_owned()),
            PermissionOptionKind::AllowAlways => true,
            PermissionOptionKind::RejectAlways => false,
            _ => return None,
        };
        let word = if yes { "yes" } else { "no" };
        Some(match &self.always {
            Always::Remembered { kind, subjects } => {
                let subjects: Vec<String> = subjects
                    .iter()
                    .map(|subject| match subject {
                        Subject::Command(line) if self.is_shown(line) => {
                            "exactly this command".to_owned()
                        }
                        Subject::Command(line) => format!("exactly the command {line}"),
                        Subject::Path(path) => {
                            let path = path.strip_prefix(cwd).unwrap_or(path);
                            format!("any {} of {}", kind.as_str(), path.display())
                        }
                        _ => "exactly this".to_owned(),
                    })
                    .collect();
                format!(
                    "{word}, in this project until you revoke it: {}",
                    subjects.join("; ")
                )
            }
            Always::ByAgent => {
                format!("{word}, for as long and as much as the agent remembers it; not kept here")
            }
            Always::EachTime(by) => {
                format!("{word}, but you are asked again each time, as {by} wants")
            }
            // The names are ours, and say it.
            Always::AsNamed => String::new(),
            _ => word.to_owned(),
        })
    }

    /// Whether this is the only command that is shown.
    fn is_shown(&self, line: &str) -> bool {
        matches!(&self.commands()[..], [only] if only.line == line)
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

/// A command line of what a tool is given: a text, or words.
fn line_of(value: &Value) -> Option<String> {
    if let Some(line) = value.as_str() {
        return Some(line.to_owned());
    }
    let words = value.as_array()?.iter();
    let words: Option<Vec<&str>> = words.map(Value::as_str).collect();
    words.map(shell_words::join)
}

fn one_line(text: &str) -> String {
    acp_host::clean::line(text)
}

/// A command, whole: its first line behind `$`, each further one behind `>`.
fn show_command(command: &Command, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    let mut lines = Vec::new();
    for (n, line) in command.line.split('\n').enumerate() {
        let prompt = if n == 0 { "$ " } else { "> " };
        let mut spans = vec![Span::styled(prompt, theme.accent)];
        spans.extend(exact(line, theme.code, theme));
        lines.extend(wrap(&spans, Break::Anywhere, 2, width));
    }
    if let Some(cwd) = &command.cwd {
        let spans = path_spans("in ", cwd, look);
        lines.extend(wrap(&spans, Break::Anywhere, 3, width));
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
    for (n, line) in shown.split('\n').enumerate() {
        if n > 0 {
            spans.push(Span::styled("\\n", theme.warn));
        }
        spans.extend(exact(line, style, theme));
    }
    spans
}

fn show_block(block: &ContentBlock, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    let placeholder = match block {
        ContentBlock::Text(text) => return paragraph(&text.text, theme.text, theme, width),
        ContentBlock::Image(image) => format!("[image: {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[sound: {}]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[{}: {}]", link.name, link.uri),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::Text(text) => {
                let name = exact(&one_line(&format!("[{}]", text.uri)), theme.dim, theme);
                let mut lines = wrap(&name, Break::Anywhere, 0, width);
                lines.extend(paragraph(&text.text, theme.text, theme, width));
                return lines;
            }
            EmbeddedResourceResource::Blob(blob) => format!("[{}]", blob.uri),
            _ => "[a resource]".to_owned(),
        },
        _ => "[content of a kind unknown here]".to_owned(),
    };
    let spans = exact(&one_line(&placeholder), theme.dim, theme);
    wrap(&spans, Break::Anywhere, 0, width)
}
