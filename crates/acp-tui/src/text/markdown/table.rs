//! Lays out tables within the available width.

use pulldown_cmark::Alignment;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::text::wrap::{LineIndent, line_width, widest_word, wrap_line, wrap_line_into};
use crate::theme::Theme;

/// The separator between two columns.
const COLUMN_SEPARATOR: &str = " │ ";
/// The maximum word length to widen a column for. Longer words are broken.
const MAX_WORD_WIDTH: usize = 16;
/// The minimum width of a column in which words are broken.
const MIN_COLUMN_WIDTH: usize = 3;

/// The lines of a table cell: one line, plus one for each hard break.
type TableCell = Vec<Line<'static>>;

/// A table whose rows are being collected. The first row is the header.
pub(super) struct MarkdownTable {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<TableCell>>,
    row: Vec<TableCell>,
}

impl MarkdownTable {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
            row: Vec::new(),
        }
    }

    pub(super) fn push_cell(&mut self, cell: TableCell) {
        self.row.push(cell);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// Lays out the table in `room` columns.
    ///
    /// Cells are next to each other. If they do not fit, they are below each other, with the names of their columns.
    pub(super) fn render(mut self, room: usize, theme: &Theme) -> Vec<Line<'static>> {
        if let Some(head) = self.rows.first_mut() {
            for line in head.iter_mut().flatten() {
                for span in &mut line.spans {
                    span.style = span.style.patch(theme.strong);
                }
            }
        }
        match self.column_widths(room) {
            Some(widths) => self.render_grid(&widths, theme),
            None => self.render_stacked(room, theme),
        }
    }

    /// Returns the width of each column, if all columns fit.
    fn column_widths(&self, room: usize) -> Option<Vec<usize>> {
        let columns = self.alignments.len();
        let between = columns.saturating_sub(1) * line_width(&Line::from(COLUMN_SEPARATOR));
        let room = room.checked_sub(between)?;
        let widest = |column: usize, of: fn(&Line<'_>) -> usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .flatten()
                .map(of)
                .max()
                .unwrap_or(0)
                .max(1)
        };
        if columns > room {
            return None;
        }
        let whole: Vec<usize> = (0..columns).map(|at| widest(at, line_width)).collect();
        if whole.iter().sum::<usize>() <= room {
            return Some(whole);
        }
        let least: Vec<usize> = whole
            .iter()
            .enumerate()
            .map(|(at, whole)| {
                let word = widest(at, widest_word);
                word.clamp(MIN_COLUMN_WIDTH, MAX_WORD_WIDTH).min(*whole)
            })
            .collect();
        if least.iter().sum::<usize>() > room {
            return None;
        }
        // This is the largest common limit at which all columns fit, and the width that remains.
        let limited = |limit: usize| -> Vec<usize> {
            whole
                .iter()
                .zip(&least)
                .map(|(whole, least)| *whole.min(&limit.max(*least)))
                .collect()
        };
        let limit = (1..=room)
            .rev()
            .find(|limit| limited(*limit).iter().sum::<usize>() <= room)?;
        let mut widths = limited(limit);
        let mut left = room.saturating_sub(widths.iter().sum());
        for (width, whole) in widths.iter_mut().zip(&whole) {
            if left > 0 && *width < *whole {
                *width += 1;
                left -= 1;
            }
        }
        Some(widths)
    }

    fn render_grid(&self, widths: &[usize], theme: &Theme) -> Vec<Line<'static>> {
        let rule = |style: Style| {
            let parts: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            Line::styled(parts.join("─┼─"), style)
        };
        let rows: Vec<Vec<Line<'static>>> = self
            .rows
            .iter()
            .map(|row| self.render_grid_row(row, widths, theme))
            .collect();
        // If a row takes several lines, rules show where the next row starts.
        let ruled = rows.iter().skip(1).any(|row| row.len() > 1);
        let mut out = Vec::new();
        for (at, row) in rows.into_iter().enumerate() {
            if at == 1 || (at > 1 && ruled) {
                out.push(rule(theme.border));
            }
            out.extend(row);
        }
        if self.rows.len() == 1 {
            out.push(rule(theme.border));
        }
        out
    }

    fn render_grid_row(
        &self,
        row: &[TableCell],
        widths: &[usize],
        theme: &Theme,
    ) -> Vec<Line<'static>> {
        let cells: Vec<Vec<Line<'static>>> = widths
            .iter()
            .enumerate()
            .map(|(at, width)| {
                let width = u16::try_from(*width).unwrap_or(u16::MAX);
                row.get(at)
                    .into_iter()
                    .flatten()
                    .flat_map(|line| wrap_line(line, width))
                    .collect()
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
        (0..height)
            .map(|at| {
                let mut spans = Vec::new();
                for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                    if column > 0 {
                        spans.push(Span::styled(COLUMN_SEPARATOR, theme.border));
                    }
                    let line = cell.get(at).cloned().unwrap_or_default();
                    let free = width.saturating_sub(line_width(&line));
                    let before = match self.alignments.get(column) {
                        Some(Alignment::Right) => free,
                        Some(Alignment::Center) => free / 2,
                        _ => 0,
                    };
                    spans.push(Span::raw(" ".repeat(before)));
                    spans.extend(line.spans);
                    spans.push(Span::raw(" ".repeat(free - before)));
                }
                Line::from(spans)
            })
            .collect()
    }

    fn render_stacked(&self, room: usize, theme: &Theme) -> Vec<Line<'static>> {
        let room = u16::try_from(room).unwrap_or(u16::MAX);
        let rest = vec![Span::raw("  ")];
        let mut out = Vec::new();
        let mut rows = self.rows.iter();
        let head = rows.next().map(Vec::as_slice).unwrap_or_default();
        if self.rows.len() == 1 {
            for line in head.iter().flatten() {
                out.extend(wrap_line(line, room));
            }
        }
        for (at, row) in rows.enumerate() {
            if at > 0 {
                out.push(Line::styled(
                    "─".repeat(usize::from(room.min(8))),
                    theme.border,
                ));
            }
            for (column, cell) in row.iter().enumerate() {
                let name = head.get(column).and_then(|name| name.first());
                for (at, line) in cell.iter().enumerate() {
                    let mut spans = Vec::new();
                    if let Some(name) = name.filter(|name| at == 0 && line_width(name) > 0) {
                        spans.extend(name.spans.iter().cloned());
                        spans.push(Span::styled(": ", theme.dim));
                    }
                    spans.extend(line.spans.iter().cloned());
                    let indent = LineIndent {
                        first: if at == 0 { Vec::new() } else { rest.clone() },
                        rest: rest.clone(),
                    };
                    wrap_line_into(&Line::from(spans), room, &indent, &mut out);
                }
            }
        }
        out
    }
}
