//! Code in its frame.

use ratatui::text::{Line, Span};

use crate::text::highlight::{Highlighter, Language};
use crate::text::wrap::{Indent, wrap_into};
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
pub(super) fn edge(theme: &Theme) -> Indent {
    Indent {
        first: vec![Span::styled("│ ", theme.border)],
        rest: vec![Span::styled("┊ ", theme.border)],
    }
}

/// A fence at the top, which is laid out line by line.
#[derive(Clone)]
pub(super) struct Fence {
    marker: char,
    /// How many of them opened it.
    count: usize,
    /// Spaces in front of them, which each line may have too.
    indent: usize,
    info: String,
    highlighter: Highlighter,
}

impl Fence {
    /// `line` opens it, `info` is what was found behind it.
    pub(super) fn open(line: &str, info: &str, theme: &Theme) -> Self {
        let marks = line.trim_start_matches(' ');
        let marker = if marks.starts_with('~') { '~' } else { '`' };
        Self {
            marker,
            count: marks.chars().take_while(|c| *c == marker).count().max(3),
            indent: line.len() - marks.len(),
            info: info.to_owned(),
            highlighter: Highlighter::new(Language::Name(info), "", theme),
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
        wrap_into(&top(&self.info, theme), width, &Indent::default(), out);
    }

    pub(super) fn line(
        &mut self,
        line: &str,
        width: u16,
        theme: &Theme,
        out: &mut Vec<Line<'static>>,
    ) {
        let spaces = line.bytes().take_while(|byte| *byte == b' ').count();
        let line = line.get(spaces.min(self.indent)..).unwrap_or(line);
        wrap_into(&self.highlighter.line(line), width, &edge(theme), out);
    }

    pub(super) fn bottom(&self, width: u16, theme: &Theme, out: &mut Vec<Line<'static>>) {
        wrap_into(&bottom(theme), width, &Indent::default(), out);
    }
}
