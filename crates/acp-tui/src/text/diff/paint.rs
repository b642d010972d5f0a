//! Styles the lines of a diff before they are laid out.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use ratatui::style::Style;
use ratatui::text::Line;

use super::change::{DiffRow, DiffRowKind, FileDiff, Hunk};
use crate::text::columns::{VisibleLine, make_visible};
use crate::text::highlight::{Language, highlighted_lines};
use crate::theme::{Colors, Theme};

/// The number of lines at the start of a file that can be highlighted as one text.
///
/// Hunks further down are highlighted on their own, which may mistake the inside of a comment or a string for code.
const LAST_LINE_FROM_START: usize = 2_000;

/// A styled line of a diff.
#[derive(Debug)]
pub(super) struct PaintedRow {
    /// The kind of the line: unchanged, removed or added.
    pub kind: DiffRowKind,
    /// The old and new line numbers.
    pub numbers: [usize; 2],
    /// The text in styled pieces.
    pub pieces: Vec<(String, Style)>,
    /// Whether this is a changed line without a line feed at its end.
    pub lacks_final_newline: bool,
}

/// A painter that styles the lines of a file's diff.
pub(super) struct DiffPainter<'a, 't> {
    file: &'a FileDiff<'t>,
    theme: &'a Theme,
    deadline: Instant,
    /// The maximum number of characters to show per line.
    max_chars: usize,
    shows_carriage_returns: bool,
    digits: usize,
    /// The highlighted lines of the old and the new text, by line number.
    code: [HashMap<usize, Line<'static>>; 2],
    /// Whether the whole file is still being highlighted. Until that is done, hunks are not highlighted on their own,
    /// because their colors could differ.
    is_pending: bool,
}

impl<'a, 't> DiffPainter<'a, 't> {
    /// Creates a painter that compares words until the deadline `until`.
    pub(super) fn new(
        file: &'a FileDiff<'t>,
        theme: &'a Theme,
        until: Instant,
        longest: usize,
    ) -> Self {
        let rows = file.hunks.iter().flat_map(|hunk| &hunk.rows);
        let largest = rows.flat_map(|row| row.numbers).max().unwrap_or(0);
        let mut paint = Self {
            file,
            theme,
            deadline: until,
            max_chars: longest,
            shows_carriage_returns: file.shows_carriage_returns(),
            digits: largest.to_string().len(),
            code: [HashMap::new(), HashMap::new()],
            is_pending: false,
        };
        if let Some((old, new)) = &file.texts {
            for (side, lines) in [old, new].into_iter().enumerate() {
                let rows = file.hunks.iter().flat_map(|hunk| &hunk.rows);
                let of_side = rows.filter(|row| row.appears_on_side(side));
                let numbers = of_side.map(|row| row.line_number(side));
                let last = numbers
                    .filter(|number| *number <= LAST_LINE_FROM_START)
                    .max();
                let lines = lines.get(..last.unwrap_or(0)).unwrap_or(lines);
                paint.highlight_lines(side, lines.iter().copied().zip(1..));
            }
        }
        paint
    }

    /// Styles the lines of a hunk, up to `left` changed lines.
    pub(super) fn paint_hunk(&mut self, hunk: &Hunk<'t>, left: &mut usize) -> Vec<PaintedRow> {
        let mut count = 0;
        for row in &hunk.rows {
            if row.kind != DiffRowKind::Context {
                if *left == 0 {
                    break;
                }
                *left -= 1;
            }
            count += 1;
        }
        let rows = hunk.rows.get(..count).unwrap_or(&hunk.rows);
        for side in 0..2 {
            let of_side = || rows.iter().filter(|row| row.appears_on_side(side));
            let known = |row: &DiffRow<'_>| self.code_line(side, row).is_some();
            if !self.is_pending && !of_side().all(known) {
                self.highlight_lines(side, of_side().map(|row| (row.text, row.line_number(side))));
            }
        }
        let stressed = hunk.changed_ranges(count, self.deadline);
        let rows = rows.iter().zip(stressed);
        rows.map(|(row, stressed)| self.paint_row(row, &stressed))
            .collect()
    }

    /// Returns the number of digits in the largest line number.
    pub(super) fn digit_count(&self) -> usize {
        self.digits
    }

    fn paint_row(&self, row: &DiffRow<'t>, stressed: &[Range<usize>]) -> PaintedRow {
        let theme = self.theme;
        let (base, word) = match row.kind {
            DiffRowKind::Context => (theme.text, theme.text),
            DiffRowKind::Removed => (theme.removed, theme.removed_word),
            DiffRowKind::Added => (theme.added, theme.added_word),
        };
        let text = self.visible_part(row.text);
        let mut line = make_visible(self.max_chars, text, stressed);
        // In a changed line that consists of spaces, nothing else is visible.
        mark_trailing_spaces(&mut line, row.kind);
        let side = usize::from(row.kind != DiffRowKind::Removed);
        // With few colors, the letters have the color of the change, which syntax colors would hide.
        let code = if row.kind == DiffRowKind::Context || theme.colors == Colors::Full {
            self.code_line(side, row)
        } else {
            None
        };
        let pieces = split_styles(&line, code, base, word, theme.warn);
        PaintedRow {
            kind: row.kind,
            numbers: row.numbers,
            pieces,
            lacks_final_newline: row.lacks_final_newline && row.kind != DiffRowKind::Context,
        }
    }

    /// Returns the visible part of a line. Leaves out a carriage return at the end unless carriage returns are shown.
    fn visible_part<'l>(&self, text: &'l str) -> &'l str {
        match text.strip_suffix('\r') {
            Some(text) if !self.shows_carriage_returns => text,
            _ => text,
        }
    }

    fn code_line(&self, side: usize, row: &DiffRow<'_>) -> Option<&Line<'static>> {
        self.code.get(side)?.get(&row.line_number(side))
    }

    /// Highlights numbered lines.
    fn highlight_lines<'l>(&mut self, side: usize, lines: impl Iterator<Item = (&'l str, usize)>) {
        if self.theme.colors == Colors::None {
            return;
        }
        let mut code = String::new();
        let mut numbers = Vec::new();
        for (line, number) in lines {
            let line = line.strip_suffix('\n').unwrap_or(line);
            code.push_str(&make_visible(self.max_chars, self.visible_part(line), &[]).text);
            code.push('\n');
            numbers.push(number);
        }
        let language = Language::Path(Path::new(&self.file.path));
        match (
            highlighted_lines(&code, language, self.theme),
            self.code.get_mut(side),
        ) {
            (Some(lines), Some(code)) => {
                code.extend(numbers.into_iter().zip(lines.iter().cloned()))
            }
            _ => self.is_pending = self.file.texts.is_some(),
        }
    }
}

impl DiffRow<'_> {
    /// Returns whether the line belongs to the old text (side 0) or the new text (side 1).
    fn appears_on_side(&self, side: usize) -> bool {
        match self.kind {
            DiffRowKind::Context => true,
            DiffRowKind::Removed => side == 0,
            DiffRowKind::Added => side == 1,
        }
    }

    fn line_number(&self, side: usize) -> usize {
        self.numbers.get(side).copied().unwrap_or(0)
    }
}

/// Emphasizes an added line's trailing spaces, which would otherwise be invisible.
fn mark_trailing_spaces(line: &mut VisibleLine, kind: DiffRowKind) {
    let end = line.text.trim_end_matches(' ').len();
    if kind != DiffRowKind::Added || end == line.text.len() {
        return;
    }
    line.emphasis.retain(|range| range.start < end);
    if let Some(last) = line.emphasis.last_mut() {
        last.end = last.end.min(end);
    }
    line.emphasis.push(end..line.text.len());
}

/// Splits a line into styled pieces. Applies the syntax style, if any, on top of the change's style.
fn split_styles(
    line: &VisibleLine,
    code: Option<&Line<'static>>,
    base: Style,
    word: Style,
    named: Style,
) -> Vec<(String, Style)> {
    // If the highlighter has changed the text, its colors would be misplaced.
    let code = code.filter(|code| {
        let mut rest = line.text.as_str();
        let fits = code.spans.iter().all(|span| {
            let after = rest.strip_prefix(&*span.content);
            rest = after.unwrap_or(rest);
            after.is_some()
        });
        fits && rest.is_empty()
    });
    let mut bounds: Vec<usize> = vec![0, line.text.len()];
    let mut spans = Vec::new();
    let mut at = 0;
    for span in code.iter().flat_map(|code| &code.spans) {
        let style = code.map_or(span.style, |code| code.style.patch(span.style));
        spans.push((at + span.content.len(), style));
        at += span.content.len();
    }
    bounds.extend(spans.iter().map(|(end, _)| *end));
    for range in line.emphasis.iter().chain(&line.escapes) {
        bounds.extend([range.start, range.end]);
    }
    bounds.sort_unstable();
    bounds.dedup();
    let within = |ranges: &[Range<usize>], at| ranges.iter().any(|range| range.contains(&at));
    let mut spans = spans.into_iter().peekable();
    let mut pieces = Vec::new();
    for (start, end) in bounds.iter().zip(bounds.iter().skip(1)) {
        while spans.next_if(|(until, _)| until <= start).is_some() {}
        let code = spans.peek().map_or(Style::new(), |(_, style)| *style);
        let mut style = base.patch(code);
        // The background is the one for the change.
        style.bg = base.bg.or(style.bg);
        if within(&line.emphasis, *start) {
            style = style.patch(word);
        }
        if within(&line.escapes, *start) {
            style = style.patch(named);
        }
        if let Some(text) = line.text.get(*start..*end) {
            pieces.push((text.to_owned(), style));
        }
    }
    pieces
}
