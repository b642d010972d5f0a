//! Lays out tool calls as cards. The first line has the title and the status, and the details follow below.
//!
//! A collapsed card shows the essential part: the change, the end of a command's output, or why the call failed. An
//! expanded card shows everything: the paths, the input and the output.

use std::collections::HashMap;
use std::time::Instant;

use acp::Thread;
use acp::thread::{ThreadToolCall, ThreadToolCallContent, ToolCallStatus};
use acp::v1::{ContentBlock, TerminalId, ToolKind};
use acp_host::terminal_text;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::image::{self, ImagePlacement};
use super::item::ItemRequest;
use crate::draw_context::{DrawContext, SPINNER_FRAMES};
use crate::text::ansi::TerminalText;
use crate::text::columns::pluralize;
use crate::text::diff::{DiffRequest, render_diff};
use crate::text::highlight;
use crate::text::markdown::MarkdownView;
use crate::text::wrap::{LineIndent, wrap_line, wrap_line_into};

/// The prefix of a card's lines, except the first.
const BODY_INDENT: &str = "  ";

/// The maximum number of lines that a collapsed card shows of a change.
const MAX_DIFF_LINES: usize = 14;

/// The maximum number of lines that a collapsed card shows of a command's output.
const MAX_OUTPUT_LINES: usize = 6;

/// The maximum number of lines that a collapsed card shows of a failed call's text.
const MAX_FAILURE_LINES: usize = 6;

/// The maximum number of lines that an expanded card shows of raw input or output.
const MAX_RAW_LINES: usize = 200;

/// The maximum number of times to lay out a change again because of new highlighting. If a change has more texts than
/// fit into the cache, some are missing each time, so there must be a limit.
const MAX_RELAYOUTS: usize = 16;

/// The maximum length of a raw value to pretty-print, in bytes.
const MAX_PRETTY_BYTES: usize = 64 * 1024;

/// The laid-out card of a tool call.
#[derive(Default)]
pub(super) struct ToolCallLayout {
    head: Vec<Line<'static>>,
    body: Vec<Line<'static>>,
    images: Vec<ImagePlacement>,
    terminals: HashMap<TerminalId, TerminalText>,
    /// The texts of an expanded card, by their index in the call's content.
    texts: HashMap<usize, MarkdownView>,
    /// Whether a change contains code whose highlighting is pending.
    is_highlight_pending: bool,
    /// The number of times the card has been laid out again because of new highlighting.
    highlight_retries: usize,
    /// Whether more command output remains to be processed.
    pub(super) unfinished: bool,
}

/// Returns a number that grows whenever a call's terminals print something or exit.
pub(super) fn output_byte_count(call: &ThreadToolCall, thread: &Thread) -> u64 {
    let terminals = call.content.iter().filter_map(|content| match content {
        ThreadToolCallContent::Terminal(id) => thread.terminal(id),
        _ => None,
    });
    terminals
        .map(|terminal| terminal.total_bytes() + u64::from(terminal.exit_status.is_some()))
        .sum()
}

impl ToolCallLayout {
    /// Updates the layout and returns whether the card is expanded.
    pub(super) fn update(
        &mut self,
        call: &ThreadToolCall,
        wanted: &ItemRequest<'_>,
        look: &DrawContext<'_>,
    ) -> bool {
        let open = wanted.is_open.unwrap_or(wanted.detail.all);
        self.update_head(call, wanted.width, look);
        self.unfinished = false;
        self.highlight_retries = if self.is_highlight_pending {
            self.highlight_retries + 1
        } else {
            0
        };
        self.is_highlight_pending = false;
        if !open {
            self.texts.clear();
        }
        let mut body = ToolCallBody {
            lines: Vec::new(),
            images: Vec::new(),
            width: wanted.width.saturating_sub(2).max(1),
            open,
            look,
            deadline: wanted.deadline,
            shown_texts: Vec::new(),
        };
        if open {
            body.push_locations(call);
        }
        self.push_content(call, wanted, &mut body);
        if open {
            body.push_raw("input", call.raw_input.as_ref());
            let rest = call
                .raw_output
                .as_ref()
                .and_then(|raw| body.without_shown_text(raw));
            body.push_raw("output", rest.as_ref());
        }
        if call.is_truncated {
            body.push_note("truncated");
        }
        self.unfinished |= self.texts.values().any(MarkdownView::is_unfinished);
        self.body = body.lines;
        self.images = body.images;
        for line in &mut self.body {
            line.spans.insert(0, Span::raw(BODY_INDENT));
        }
        open
    }

    /// Adds the call's content to its body.
    fn push_content(
        &mut self,
        call: &ThreadToolCall,
        wanted: &ItemRequest<'_>,
        body: &mut ToolCallBody<'_>,
    ) {
        let (open, look) = (body.open, body.look);
        for (place, content) in call.content.iter().enumerate() {
            match content {
                ThreadToolCallContent::Content(block) => {
                    body.push_content(place, block, call, || self.texts.entry(place).or_default());
                }
                ThreadToolCallContent::Diff(change) => {
                    let of = DiffRequest {
                        diff: change,
                        cwd: Some(look.cwd),
                        shows_all: false,
                    };
                    let layout = wanted.detail.layout;
                    let (lines, plain) = highlight::with_pending_flag(|| {
                        render_diff(of, layout, body.width, look.theme)
                    });
                    self.is_highlight_pending |= plain;
                    body.push_lines(lines, MAX_DIFF_LINES);
                }
                ThreadToolCallContent::Terminal(id) => {
                    let Some(terminal) = wanted.thread.terminal(id) else {
                        continue;
                    };
                    let known = self.terminals.entry(id.clone());
                    let text = known.or_insert_with(TerminalText::new);
                    self.unfinished |= text.update(terminal, body.width);
                    let lines = match open {
                        true => text.lines(0..text.len(), look.theme),
                        false => text.tail(MAX_OUTPUT_LINES, look.theme),
                    };
                    body.lines.extend(lines);
                    if open {
                        body.mark_shown(&terminal.output());
                    }
                    if open && let Some(exit) = &terminal.exit_status {
                        body.push_note(&exit_text(exit));
                    }
                }
                _ => {}
            }
        }
    }

    /// Updates the first line, the only one that is animated.
    pub(super) fn update_head(
        &mut self,
        call: &ThreadToolCall,
        width: u16,
        look: &DrawContext<'_>,
    ) {
        let (mark, style) = status_icon(call, look);
        let indent = LineIndent {
            first: vec![
                Span::styled(format!("{mark} "), style),
                Span::styled(format!("{} ", kind_icon(&call.kind)), look.theme.dim),
            ],
            rest: vec![Span::raw("    ")],
        };
        self.head.clear();
        wrap_line_into(&render_title(call, look), width, &indent, &mut self.head);
    }

    /// Returns whether the call contains code whose highlighting is pending.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_highlight_pending && self.highlight_retries < MAX_RELAYOUTS
            || self.texts.values().any(MarkdownView::is_waiting)
    }

    pub(super) fn height(&self) -> usize {
        self.head.len() + self.body.len()
    }

    pub(super) fn line(&self, n: usize) -> Option<&Line<'static>> {
        match n.checked_sub(self.head.len()) {
            None => self.head.get(n),
            Some(n) => self.body.get(n),
        }
    }

    /// Returns the image that covers line `n`, and the row of the image on that line.
    pub(super) fn image(&self, n: usize) -> Option<(ImagePlacement, u16)> {
        let n = n.checked_sub(self.head.len())?;
        let mut images = self.images.iter();
        images.find_map(|spot| Some((*spot, spot.row(n)?)))
    }
}

/// The body of a card: all lines below the first.
struct ToolCallBody<'a> {
    lines: Vec<Line<'static>>,
    images: Vec<ImagePlacement>,
    width: u16,
    open: bool,
    look: &'a DrawContext<'a>,
    deadline: Instant,
    /// The texts on the card so far, normalized so that differences invisible to users do not matter.
    shown_texts: Vec<String>,
}

impl ToolCallBody<'_> {
    fn push_note(&mut self, text: &str) {
        let line = Line::styled(terminal_text::clean_line(text), self.look.theme.dim);
        self.lines.extend(wrap_line(&line, self.width));
    }

    /// Adds all lines if the card is expanded. Otherwise adds the first `most` lines and a note about the rest.
    fn push_lines(&mut self, lines: Vec<Line<'static>>, most: usize) {
        let more = match self.open {
            true => 0,
            false => lines.len().saturating_sub(most),
        };
        // A note about one hidden line would take as much space as the line.
        let shown = if more > 1 { most } else { lines.len() };
        self.lines.extend(lines.into_iter().take(shown));
        if more > 1 {
            self.push_note(&format!("⋯ {more} more lines"));
        }
    }

    fn push_content<'m>(
        &mut self,
        place: usize,
        block: &ContentBlock,
        call: &ThreadToolCall,
        markdown: impl FnOnce() -> &'m mut MarkdownView,
    ) {
        let ContentBlock::Text(text) = block else {
            let (lines, key) = image::layout_block(block, self.width, self.look);
            self.lines.extend(lines);
            self.images.extend(key.map(|key| ImagePlacement {
                key,
                line: self.lines.len() - usize::from(key.rows),
                indent: 2,
                block: place,
            }));
            return;
        };
        let failed = call.status == ToolCallStatus::Failed;
        if self.open && self.is_shown(&text.text) {
            return;
        }
        if self.open {
            self.mark_shown(&text.text);
        }
        if self.open && call.kind == ToolKind::Execute && strip_fence(&text.text).is_some() {
            // The output of a command looks as it did while its terminal existed.
            let output = terminal_text::clean_text(strip_fence(&text.text).unwrap_or_default());
            for line in output.lines() {
                let line = Line::styled(line.to_owned(), self.look.theme.dim);
                self.lines.extend(wrap_line(&line, self.width));
            }
        } else if self.open {
            let theme = self.look.theme;
            let lines = markdown().lines(&text.text, self.width, theme, self.deadline);
            self.lines.extend_from_slice(lines);
        } else if failed || call.kind == ToolKind::Execute {
            let style = if failed {
                self.look.theme.bad
            } else {
                self.look.theme.dim
            };
            let text = terminal_text::clean_text(&text.text);
            // Agents put output inside fences, which mean nothing here.
            let lines = text.trim_end().lines();
            let all: Vec<&str> = lines.filter(|line| !line.starts_with("```")).collect();
            let from = all.len().saturating_sub(MAX_FAILURE_LINES);
            if from > 0 {
                self.push_note(&format!("⋯ {}", pluralize(from, "earlier line")));
            }
            for line in all.get(from..).unwrap_or_default() {
                let line = Line::styled((*line).to_owned(), style);
                self.lines.extend(wrap_line(&line, self.width));
            }
        }
    }

    /// Records that a text has been shown, to avoid showing it twice.
    fn mark_shown(&mut self, text: &str) {
        let text = normalize_text(text);
        if !text.is_empty() {
            self.shown_texts.push(text);
        }
    }

    fn is_shown(&self, text: &str) -> bool {
        !self.shown_texts.is_empty() && self.shown_texts.contains(&normalize_text(text))
    }

    /// Returns the raw output without the parts that are already shown. Most calls repeat their command's output there.
    fn without_shown_text(&self, value: &Value) -> Option<Value> {
        match value {
            Value::String(text) => (!self.is_shown(text)).then(|| value.clone()),
            Value::Object(members) => {
                let rest = members.iter().filter_map(|(name, member)| {
                    Some((name.clone(), self.without_shown_text(member)?))
                });
                let rest: serde_json::Map<_, _> = rest.collect();
                (!rest.is_empty() || members.is_empty()).then_some(Value::Object(rest))
            }
            Value::Array(items) => {
                let rest: Vec<_> = items
                    .iter()
                    .filter_map(|item| self.without_shown_text(item))
                    .collect();
                (!rest.is_empty() || items.is_empty()).then_some(Value::Array(rest))
            }
            _ => Some(value.clone()),
        }
    }

    fn push_locations(&mut self, call: &ThreadToolCall) {
        for location in &call.locations {
            let path = std::path::Path::new(&location.path);
            let path = path.strip_prefix(self.look.cwd).unwrap_or(path);
            let line = location.line.map(|line| format!(":{line}"));
            let text = format!("{}{}", path.display(), line.unwrap_or_default());
            let line = Line::styled(terminal_text::clean_line(&text), self.look.theme.link);
            self.lines.extend(wrap_line(&line, self.width));
        }
    }

    fn push_raw(&mut self, what: &str, value: Option<&Value>) {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return;
        };
        let text = value.to_string();
        let text = match value {
            Value::String(text) => text.clone(),
            _ if text.len() <= MAX_PRETTY_BYTES => {
                serde_json::to_string_pretty(value).unwrap_or(text)
            }
            _ => text.chars().take(MAX_PRETTY_BYTES).collect(),
        };
        self.push_note(&format!("{what}:"));
        let text = terminal_text::clean_text(&text);
        let lines: Vec<&str> = text.lines().collect();
        for line in lines.iter().take(MAX_RAW_LINES) {
            let line = Line::styled(format!("  {line}"), self.look.theme.dim);
            self.lines.extend(wrap_line(&line, self.width));
        }
        if lines.len() > MAX_RAW_LINES {
            self.push_note(&format!(
                "⋯ {}",
                pluralize(lines.len() - MAX_RAW_LINES, "more line")
            ));
        }
    }
}

/// Returns the text inside a code fence if there is nothing outside the fence.
fn strip_fence(text: &str) -> Option<&str> {
    let text = text.trim();
    let ticks = text.bytes().take_while(|byte| *byte == b'`').count();
    let fence = text.get(..ticks).filter(|_| ticks >= 3)?;
    let (_, inner) = text.get(ticks..)?.split_once('\n')?;
    let inner = inner.strip_suffix(fence)?;
    let inner = inner.strip_suffix('\n').unwrap_or(inner);
    (!inner.contains(fence)).then_some(inner)
}

/// Removes fences, colors and line ending differences, which users do not see.
fn normalize_text(text: &str) -> String {
    let text = terminal_text::clean_text(strip_fence(text).unwrap_or(text));
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim().to_owned()
}

/// Builds the title, with text between backquotes as code.
fn render_title(call: &ThreadToolCall, look: &DrawContext<'_>) -> Line<'static> {
    let title = terminal_text::clean_value(&call.title);
    let title = match title.trim() {
        "" => terminal_text::clean_value(call.name.as_deref().unwrap_or("tool call")),
        title => title.to_owned(),
    };
    // An unpaired backquote is part of the title.
    let quoted = title.matches('`').count() % 2 == 0;
    let parts = title.split('`').enumerate();
    let spans: Vec<Span<'static>> = match quoted {
        true => parts
            .filter(|(_, part)| !part.is_empty())
            .map(|(n, part)| {
                let style = match n % 2 {
                    0 => look.theme.strong,
                    _ => look.theme.code,
                };
                Span::styled(part.to_owned(), style)
            })
            .collect(),
        false => vec![Span::styled(title.clone(), look.theme.strong)],
    };
    Line::from(spans)
}

fn exit_text(exit: &acp::v2::TerminalExitStatus) -> String {
    match (&exit.signal, exit.exit_code) {
        (Some(signal), _) => format!("terminated by {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "ended".to_owned(),
    }
}

fn status_icon(call: &ThreadToolCall, look: &DrawContext<'_>) -> (&'static str, Style) {
    let theme = look.theme;
    if call.is_cancelled {
        return ("⊘", theme.dim);
    }
    match call.status {
        ToolCallStatus::Completed => ("✓", theme.good),
        ToolCallStatus::Failed => ("✗", theme.bad),
        ToolCallStatus::Cancelled => ("⊘", theme.dim),
        ToolCallStatus::Pending => ("○", theme.dim),
        ToolCallStatus::Paused => ("‖", theme.warn),
        _ => {
            let frame = SPINNER_FRAMES
                .get(look.frame % SPINNER_FRAMES.len())
                .copied();
            (frame.unwrap_or("●"), theme.accent)
        }
    }
}

/// Returns the symbol for a kind of tool call. It is one column wide on every terminal.
fn kind_icon(kind: &ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "▤",
        ToolKind::Edit => "✎",
        ToolKind::Delete => "⌫",
        ToolKind::Move => "→",
        ToolKind::Search => "⌕",
        ToolKind::Execute => "$",
        ToolKind::Think => "∴",
        ToolKind::Fetch => "↓",
        ToolKind::SwitchMode => "⇄",
        _ => "•",
    }
}
