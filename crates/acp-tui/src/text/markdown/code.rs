//! Code in its frame.

use std::collections::VecDeque;

use ratatui::text::{Line, Span};

use crate::text::highlight::{HighlightedCode, Language};
use crate::text::wrap::{LineIndent, wrap_into};
use crate::theme::Theme;

/// The upper edge, with what the code is written in.
pub(super) fn top(info: &str, theme: &Theme) -> Line<'static> {
    let info = info.trim();
    let edge = Span::styled("╭─", theme.border);
    if info.is_empty() {
        Line::from(edge)
    } else {
        Line::from(vec![edge, Span::styled(format!(" {info}"), theme.dim)])
    }
}

/// The lower one.
pub(super) fn bottom(theme: &Theme) -> Line<'static> {
    Line::from(Span::styled("╰─", theme.border))
}

/// What stands in front of a line of code, and in front of what of it had no room.
pub(super) fn edge(theme: &Theme) -> LineIndent {
    LineIndent {
        first: vec![Span::styled("│ ", theme.border)],
        rest: vec![Span::styled("┊ ", theme.border)],
    }
}

/// Code that is shown and whose colours are not all there yet.
pub(super) struct PendingCode {
    code: HighlightedCode,
    indent: LineIndent,
    /// The row of the first line without colours.
    row: usize,
    /// How many rows that line and those below it take.
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

    /// A line was laid out, without colours, from this row on up to that one.
    pub(super) fn push(&mut self, line: &str, from: usize, to: usize) {
        if self.code.push(line) {
            if self.rows.is_empty() {
                self.row = from;
            }
            self.rows.push_back(to - from);
        }
    }

    /// What was laid out from the first row on now is from this one on.
    pub(super) fn shift(mut self, to: usize) -> Self {
        self.row += to;
        self
    }

    /// Whether all that was pushed has its colours.
    pub(super) fn is_done(&self) -> bool {
        self.rows.is_empty()
    }

    /// Lays out again what has got its colours, in the same rows.
    pub(super) fn paint(&mut self, width: u16, lines: &mut [Line<'static>]) {
        for line in self.code.take() {
            let Some(rows) = self.rows.pop_front() else {
                return;
            };
            let mut coloured = Vec::with_capacity(rows);
            wrap_into(&line, width, &self.indent, &mut coloured);
            let place = lines.get_mut(self.row..self.row + rows);
            // Colours within one sign could break it elsewhere: then it stays plain.
            if let Some(place) = place.filter(|_| coloured.len() == rows) {
                for (place, line) in place.iter_mut().zip(coloured) {
                    *place = line;
                }
            }
            self.row += rows;
        }
    }
}

/// A fence at the top, which is laid out line by line.
pub(super) struct CodeFence {
    marker: char,
    /// How many of them opened it.
    count: usize,
    /// Spaces in front of them, which each line may have too.
    indent: usize,
    info: String,
    /// `None` where it has no colours.
    pub(super) pending_code: Option<PendingCode>,
}

impl CodeFence {
    /// `line` opens it, `info` is what was found behind it.
    pub(super) fn open(line: &str, info: &str, theme: &Theme) -> Self {
        let marks = line.trim_start_matches(' ');
        let marker = if marks.starts_with('~') { '~' } else { '`' };
        Self {
            marker,
            count: marks.chars().take_while(|c| *c == marker).count().max(3),
            indent: line.len() - marks.len(),
            info: info.to_owned(),
            pending_code: PendingCode::new(info, edge(theme), theme),
        }
    }

    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let marks = line.trim_start_matches(' ');
        let rest = marks.trim_start_matches(self.marker);
        line.len() - marks.len() < 4
            && marks.len() - rest.len() >= self.count
            && rest.trim_matches([' ', '\t', '\n']).is_empty()
    }

    /// Whether it might be closed by `line` when more of that has come.
    pub(super) fn may_be_closed_by(&self, line: &str) -> bool {
        let marks = line.trim_start_matches(' ');
        line.len() - marks.len() < 4 && !marks.is_empty() && marks.chars().all(|c| c == self.marker)
    }

    pub(super) fn top(&self, width: u16, theme: &Theme, out: &mut Vec<Line<'static>>) {
        wrap_into(&top(&self.info, theme), width, &LineIndent::default(), out);
    }

    /// A line that is complete, and gets its colours.
    pub(super) fn line(
        &mut self,
        line: &str,
        width: u16,
        theme: &Theme,
        out: &mut Vec<Line<'static>>,
    ) {
        let from = out.len();
        self.partial_line(line, width, theme, out);
        let line = self.strip_indent(line);
        if let Some(waiting) = &mut self.pending_code {
            waiting.push(line, from, out.len());
        }
    }

    /// A line that may still become longer.
    pub(super) fn partial_line(
        &self,
        line: &str,
        width: u16,
        theme: &Theme,
        out: &mut Vec<Line<'static>>,
    ) {
        let line = Line::from(self.strip_indent(line));
        wrap_into(&line, width, &edge(theme), out);
    }

    /// A line without the spaces that the fence has, too.
    fn strip_indent<'l>(&self, line: &'l str) -> &'l str {
        let spaces = line.bytes().take_while(|byte| *byte == b' ').count();
        line.get(spaces.min(self.indent)..).unwrap_or(line)
    }

    pub(super) fn bottom(&self, width: u16, theme: &Theme, out: &mut Vec<Line<'static>>) {
        wrap_into(&bottom(theme), width, &LineIndent::default(), out);
    }
}
