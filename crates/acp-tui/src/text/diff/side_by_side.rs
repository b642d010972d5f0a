//! Lays out a hunk with the old lines on the left and the new ones on the right.

use ratatui::style::Style;
use ratatui::text::Line;

use super::change::DiffRowKind;
use super::paint::PaintedRow;
use super::unified::render_block;
use crate::Theme;
use crate::text::columns::TextRow;

/// The separator between the two sides.
const SIDE_SEPARATOR: &str = "│";

/// Lays out a hunk side by side. `digits` is the number of digits in the largest line number.
pub(super) fn render_lines(
    rows: &[PaintedRow],
    digits: usize,
    width: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let left_width = width.saturating_sub(1) / 2;
    let right_width = width.saturating_sub(1 + left_width);
    let mut lines = Vec::new();
    for (old, new) in pair_rows(rows) {
        let mut left = old.map_or_else(Vec::new, |row| {
            render_half(row, 0, digits, left_width, theme)
        });
        let mut right = new.map_or_else(Vec::new, |row| {
            render_half(row, 1, digits, right_width, theme)
        });
        let height = left.len().max(right.len());
        left.resize_with(height, TextRow::default);
        right.resize_with(height, TextRow::default);
        for (mut left, mut right) in left.into_iter().zip(right) {
            left.pad(left_width, Style::new());
            left.push(SIDE_SEPARATOR, theme.border);
            left.spans.append(&mut right.spans);
            lines.push(Line::from(left.spans));
        }
    }
    lines
}

/// Pairs lines to show next to each other. Removed lines are paired with their replacements, in order.
fn pair_rows(rows: &[PaintedRow]) -> Vec<(Option<&PaintedRow>, Option<&PaintedRow>)> {
    let mut pairs = Vec::new();
    let mut rest = rows.iter().peekable();
    while rest.peek().is_some() {
        while let Some(row) = rest.next_if(|row| row.kind == DiffRowKind::Context) {
            pairs.push((Some(row), Some(row)));
        }
        let mut run = |kind| -> Vec<&PaintedRow> {
            let mut run = Vec::new();
            while let Some(row) = rest.next_if(|row| row.kind == kind) {
                run.push(row);
            }
            run
        };
        let (removed, added) = (run(DiffRowKind::Removed), run(DiffRowKind::Added));
        for n in 0..removed.len().max(added.len()) {
            pairs.push((removed.get(n).copied(), added.get(n).copied()));
        }
    }
    pairs
}

/// Lays out a line in the column of its side.
fn render_half(
    row: &PaintedRow,
    side: usize,
    digits: usize,
    width: usize,
    theme: &Theme,
) -> Vec<TextRow> {
    let numbers = digits + 1;
    let numbers = if width >= numbers + 12 { numbers } else { 0 };
    let gutter = |first| match row.numbers.get(side) {
        Some(number) if first && numbers > 0 => format!("{number:>digits$} "),
        _ => " ".repeat(numbers),
    };
    render_block(row, gutter, numbers, width, theme)
}
