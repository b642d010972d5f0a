//! Lays out a hunk with the old lines above the new ones.

use ratatui::style::Style;
use ratatui::text::Line;

use super::change::DiffRowKind;
use super::paint::PaintedRow;
use crate::Theme;
use crate::text::columns::{TextRow, break_rows};

/// The minimum number of columns for code beside line numbers. In a narrower view, line numbers are hidden.
const MIN_CODE_WIDTH: usize = 20;

/// Lays out a hunk in unified form. `digits` is the number of digits in the largest line number.
pub(super) fn render_lines(
    rows: &[PaintedRow],
    digits: usize,
    width: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let numbers = 2 * (digits + 1);
    let numbers = if width >= numbers + 2 + MIN_CODE_WIDTH {
        numbers
    } else {
        0
    };
    let mut lines = Vec::new();
    for row in rows {
        let gutter = |first| {
            if first && numbers > 0 {
                let number = |side: usize| {
                    let of_side = row.kind == DiffRowKind::Context
                        || (row.kind == DiffRowKind::Removed) == (side == 0);
                    let number = row.numbers.get(side).filter(|_| of_side);
                    number.map_or_else(String::new, usize::to_string)
                };
                format!("{:>digits$} {:>digits$} ", number(0), number(1))
            } else {
                " ".repeat(numbers)
            }
        };
        let block = render_block(row, gutter, numbers, width, theme);
        lines.extend(block.into_iter().map(|row| Line::from(row.spans)));
    }
    lines
}

/// Lays out a changed line in as many rows as it needs.
///
/// Each row has the gutter, the sign and the text. If the line lacks a final line feed, a last row says so. `numbers`
/// is the width of the strings that `gutter` returns for the first row and for the others.
pub(super) fn render_block(
    row: &PaintedRow,
    gutter: impl Fn(bool) -> String,
    numbers: usize,
    width: usize,
    theme: &Theme,
) -> Vec<TextRow> {
    let (sign, base, mark) = match row.kind {
        DiffRowKind::Context => (" ", theme.text, Style::new()),
        DiffRowKind::Removed => ("-", theme.removed, theme.bad),
        DiffRowKind::Added => ("+", theme.added, theme.good),
    };
    // In a very narrow area, only the sign is shown beside the text.
    let sign_width = match width.saturating_sub(numbers) {
        0..=1 => 0,
        2..=3 => 1,
        _ => 2,
    };
    let room = width.saturating_sub(numbers + sign_width);
    let pieces = row.pieces.iter();
    let texts = break_rows(pieces.map(|(text, style)| (text.as_str(), *style)), room);
    let fill = Style {
        bg: base.bg,
        ..Style::new()
    };
    let mut rows = Vec::with_capacity(texts.len());
    for (n, mut text) in texts.into_iter().enumerate() {
        let mut row = TextRow::default();
        let gutter = gutter(n == 0);
        if !gutter.is_empty() {
            row.push(&gutter, fill.patch(theme.dim));
        }
        if sign_width > 0 {
            // Every row has the sign, because without colors a row that lacks it would look unchanged.
            row.push(sign, fill.patch(mark));
            if sign_width > 1 {
                row.push(if n == 0 { " " } else { "…" }, fill.patch(theme.dim));
            }
        }
        row.width += text.width;
        row.spans.append(&mut text.spans);
        if base.bg.is_some() {
            row.pad(width, fill);
        }
        rows.push(row);
    }
    if row.lacks_final_newline {
        for mut said in break_rows([("no newline at end of file", theme.dim)], room) {
            let mut row = TextRow::default();
            row.pad(numbers + sign_width, Style::new());
            row.width += said.width;
            row.spans.append(&mut said.spans);
            rows.push(row);
        }
    }
    rows
}
