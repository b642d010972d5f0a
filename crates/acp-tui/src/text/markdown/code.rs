//! Lays out code blocks in their frames.

use std::collections::VecDeque;

use ratatui::text::{Line, Span};

use crate::text::highlight::{HighlightedCode, Language};
use crate::text::wrap::{LineIndent, wrap_line_into};
use crate::theme::Theme;

/// Builds the upper edge of a frame, with the language's name.
pub(super) fn render_top(info: &str, theme: &Theme) -> Line<'static> {
    let info = info.trim();
    let edge = Span::styled("╭─", theme.border);
    if info.is_empty() {
        Line::from(edge)
    } else {
        Line::from(vec![edge, Span::styled(format!(" {info}"), theme.dim)])
    }
}

/// Builds the lower edge of a frame.
pub(super) fn render_bottom(theme: &Theme) -> Line<'static> {
    Line::from(Span::styled("╰─", theme.border))
}

/// Returns the indent of a code line and its continuation rows.
pub(super) fn line_indent(theme: &Theme) -> LineIndent {
    LineIndent {
        first: vec![Span::styled("│ ", theme.border)],
        rest: vec![Span::styled("┊ ", theme.border)],
    }
}

/// Code that is shown but not fully highlighted yet.
pub(super) struct PendingCode {
    code: HighlightedCode,
    indent: LineIndent,
    /// The row of the first line that is not fully highlighted.
    row: usize,
    /// The number of rows that each line occupies, from this line on.
    rows: VecDeque<usize>,
}

impl PendingCode {
    pub(super) fn new(language: &str, indent: LineIndent, theme: &Theme) -> Option<Self> {
        Some(Self {
            code: HighlightedCode::new(Language::Name(language), theme)?,
            indent,
            row: 0,
            rows: VecDeque::new(),
        })
    }

    /// Adds a line that was laid out without highlighting and occupies the rows `from..to`.
    pub(super) fn push(&mut self, line: &str, from: usize, to: usize) {
        if self.code.push(line) {
            if self.rows.is_empty() {
                self.row = from;
            }
            self.rows.push_back(to - from);
        }
    }

    /// Moves the code down by `to` rows.
    pub(super) fn shift(mut self, to: usize) -> Self {
        self.row += to;
        self
    }

    /// Returns `true` if all lines are highlighted.
    pub(super) fn is_done(&self) -> bool {
        self.rows.is_empty()
    }

    /// Replaces newly highlighted lines in place.
    pub(super) fn paint(&mut self, width: u16, lines: &mut [Line<'static>]) {
        for line in self.code.take() {
            let Some(rows) = self.rows.pop_front() else {
                return;
            };
            let mut colored = Vec::with_capacity(rows);
            wrap_line_into(&line, width, &self.indent, &mut colored);
            let place = lines.get_mut(self.row..self.row + rows);
            // A color change within a grapheme cluster could move a line break. If it does, the line stays plain.
            if let Some(place) = place.filter(|_| colored.len() == rows) {
                for (place, line) in place.iter_mut().zip(colored) {
                    *place = line;
                }
            }
            self.row += rows;
        }
    }
}

/// A top-level code fence, which is laid out line by line.
pub(super) struct CodeFence {
    marker: char,
    /// The number of fence characters on the opening line.
    count: usize,
    /// The indentation of the opening line. It is also removed from each code line.
    indent: usize,
    info: String,
    /// The code whose highlighting is pending, or `None` if it is not highlighted.
    pub(super) pending_code: Option<PendingCode>,
}

impl CodeFence {
    /// Opens a fence whose first line is `line`. `info` is the text after the fence characters.
    pub(super) fn open(line: &str, info: &str, theme: &Theme) -> Self {
        let marks = line.trim_start_matches(' ');
        let marker = if marks.starts_with('~') { '~' } else { '`' };
        Self {
            marker,
            count: marks.chars().take_while(|c| *c == marker).count().max(3),
            indent: line.len() - marks.len(),
            info: info.to_owned(),
            pending_code: PendingCode::new(info, line_indent(theme), theme),
        }
    }

    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let marks = line.trim_start_matches(' ');
        let rest = marks.trim_start_matches(self.marker);
        line.len() - marks.len() < 4
            && marks.len() - rest.len() >= self.count
            && rest.trim_matches([' ', '\t', '\n']).is_empty()
    }

    /// Returns `true` if `line`, once complete, may turn out to close the fence.
    pub(super) fn may_be_closed_by(&self, line: &str) -> bool {
        let marks = line.trim_start_matches(' ');
        line.len() - marks.len() < 4 && !marks.is_empty() && marks.chars().all(|c| c == self.marker)
    }

    pub(super) fn push_top(&self, width: u16, theme: &Theme, out: &mut Vec<Line<'static>>) {
        wrap_line_into(
            &render_top(&self.info, theme),
            width,
            &LineIndent::default(),
            out,
        );
    }

    /// Adds a complete line, which will be highlighted.
    pub(super) fn push_line(
        &mut self,
        line: &str,
        width: u16,
        theme: &Theme,
        out: &mut Vec<Line<'static>>,
    ) {
        let from = out.len();
        self.push_partial_line(line, width, theme, out);
        let line = self.strip_indent(line);
        if let Some(waiting) = &mut self.pending_code {
            waiting.push(line, from, out.len());
        }
    }

    /// Adds a line that is still incomplete.
    pub(super) fn push_partial_line(
        &self,
        line: &str,
        width: u16,
        theme: &Theme,
        out: &mut Vec<Line<'static>>,
    ) {
        let line = Line::from(self.strip_indent(line));
        wrap_line_into(&line, width, &line_indent(theme), out);
    }

    /// Returns a line without the fence's indentation.
    fn strip_indent<'l>(&self, line: &'l str) -> &'l str {
        let spaces = line.bytes().take_while(|byte| *byte == b' ').count();
        line.get(spaces.min(self.indent)..).unwrap_or(line)
    }

    pub(super) fn push_bottom(&self, width: u16, theme: &Theme, out: &mut Vec<Line<'static>>) {
        wrap_line_into(&render_bottom(theme), width, &LineIndent::default(), out);
    }
}
