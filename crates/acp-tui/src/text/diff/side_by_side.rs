//! A hunk with what was on the left and what is on the right.

use ratatui::style::Style;
use ratatui::text::Line;

use super::change::DiffRowKind;
use super::paint::PaintedRow;
use super::unified::block;
use crate::Theme;
use crate::text::columns::TextRow;

/// What is between the halves.
const BETWEEN: &str = "│";

/// The lines of a hunk. `digits`: how many the largest number has.
pub(super) fn lines(
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
            left.push(BETWEEN, theme.border);
            left.spans.append(&mut right.spans);
            lines.push(Line::from(left.spans));
        }
    }
    lines
}

/// The lines that stand beside each other: those that are gone and those that came in their place, in order.
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

/// A line in its half.
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
    block(row, gutter, numbers, width, theme)
}
