//! Lays out lines of code in columns. Breaks long lines, and hides nothing.

use std::ops::Range;

use acp_host::literal;
use ratatui::style::Style;
use ratatui::text::Span;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// The number of columns between tab stops.
const TAB_WIDTH: usize = 4;

/// The maximum number of characters to show per line. Longer lines are usually data or generated code.
pub(super) const MAX_LINE_CHARS: usize = 4_000;

/// A line of code in which every character is visible.
///
/// Tabs become spaces, and characters that are invisible or change how others look are escaped, since a user cannot
/// judge a change without seeing it.
#[derive(Debug, Default)]
pub(super) struct VisibleLine {
    /// The line's text, with invisible characters escaped.
    pub text: String,
    /// The ranges to emphasize, in bytes of `text`.
    pub emphasis: Vec<Range<usize>>,
    /// The ranges of escaped characters, in bytes of `text`.
    pub escapes: Vec<Range<usize>>,
}

/// Makes up to `most` characters of a line visible.
///
/// Also maps the ranges `stressed`, which are in bytes of `raw` and in order.
pub(super) fn make_visible(most: usize, raw: &str, stressed: &[Range<usize>]) -> VisibleLine {
    let mut line = VisibleLine::default();
    let mut stressed = stressed.iter().peekable();
    let mut column = 0;
    for (characters, (at, grapheme)) in raw.grapheme_indices(true).enumerate() {
        let start = line.text.len();
        if characters == most {
            let left = raw.get(at..).unwrap_or_default().chars().count();
            line.text
                .push_str(&format!("… {}", pluralize(left, "more character")));
            line.escapes.push(start..line.text.len());
            break;
        }
        if grapheme == "\t" {
            let spaces = TAB_WIDTH - column % TAB_WIDTH;
            line.text.push_str(&" ".repeat(spaces));
        } else {
            let escape = raw.get(at..).is_some_and(|rest| rest.starts_with("\\u{"));
            for c in grapheme.chars() {
                line.push(c, escape);
            }
        }
        let end = line.text.len();
        column += line.text.get(start..end).map_or(0, str::width);
        while stressed.next_if(|range| range.end <= at).is_some() {}
        if stressed.peek().is_some_and(|range| range.start <= at) {
            push_merged(&mut line.emphasis, start..end);
        }
    }
    line
}

impl VisibleLine {
    /// Appends a character, escaped if it is invisible or `escape` is set.
    fn push(&mut self, c: char, escape: bool) {
        if literal::is_visible(c) && !escape {
            return self.text.push(c);
        }
        let start = self.text.len();
        self.text.extend(c.escape_unicode());
        push_merged(&mut self.escapes, start..self.text.len());
    }
}

/// Returns whether a character is invisible or changes the order in which other characters are displayed.
pub(super) fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Adds a range, or extends the last range if the two are adjacent.
fn push_merged(ranges: &mut Vec<Range<usize>>, range: Range<usize>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

/// A row of styled text and its width.
#[derive(Debug, Default)]
pub(super) struct TextRow {
    /// The text of the row, in styled pieces.
    pub spans: Vec<Span<'static>>,
    /// The width of the row, in columns.
    pub width: usize,
}

impl TextRow {
    /// Appends text in a style to the row.
    pub(super) fn push(&mut self, text: &str, style: Style) {
        self.width += text.width();
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            _ => self.spans.push(Span::styled(text.to_owned(), style)),
        }
    }

    /// Pads the row with spaces to the given width.
    pub(super) fn pad(&mut self, width: usize, style: Style) {
        if self.width < width {
            self.push(&" ".repeat(width - self.width), style);
        }
    }
}

/// Breaks visible text into at least one row of the given width.
///
/// Rows are broken between grapheme clusters rather than words, because columns matter in code.
pub(super) fn break_rows<'t>(
    pieces: impl IntoIterator<Item = (&'t str, Style)>,
    width: usize,
) -> Vec<TextRow> {
    let mut rows = vec![TextRow::default()];
    for (text, style) in pieces {
        for grapheme in text.graphemes(true) {
            // A combining mark without a base character would not be shown.
            let marked;
            let mut shown = grapheme;
            if grapheme.width() == 0 {
                marked = format!("◌{grapheme}");
                shown = &marked;
            }
            if shown.width() > width.max(1) {
                shown = "\u{fffd}";
            }
            let full = |row: &TextRow| row.width + shown.width() > width.max(1);
            if rows.last().is_none_or(full) {
                rows.push(TextRow::default());
            }
            if let Some(row) = rows.last_mut() {
                row.push(shown, style);
            }
        }
    }
    rows
}

/// Formats a number with thousands separators.
pub(crate) fn group_thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count and its noun, with an `s` unless the count is one.
pub(crate) fn pluralize(number: usize, one: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {one}{s}", group_thousands(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invisible_characters_are_made_visible() {
        let shown = |raw| make_visible(MAX_LINE_CHARS, raw, &[]).text;
        assert_eq!(shown("a\tb\t\tc"), "a   b       c");
        // A wide character takes two of the columns before the next tab stop.
        assert_eq!(shown("漢\tx"), "漢  x");
        assert_eq!(shown(r"a\u{1b}"), r"a\u{5c}u{1b}");
        assert_eq!(shown("\u{1b}[31mred\u{7}"), r"\u{1b}[31mred\u{7}");
        assert_eq!(shown("a\u{202e}b\u{85}"), r"a\u{202e}b\u{85}");
        let long = "x".repeat(MAX_LINE_CHARS + 1234);
        assert!(shown(&long).ends_with("x… 1,234 more characters"));
    }

    #[test]
    fn emphasized_ranges_are_mapped_across_tabs() {
        let line = make_visible(MAX_LINE_CHARS, "\tone two", &[1..4, 5..8]);
        assert_eq!(line.emphasis, [4..7, 8..11]);
        assert_eq!(&line.text[8..11], "two");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(group_thousands(0), "0");
        assert_eq!(group_thousands(999), "999");
        assert_eq!(group_thousands(1000), "1,000");
        assert_eq!(pluralize(1, "line"), "1 line");
        assert_eq!(pluralize(1_234_567, "line"), "1,234,567 lines");
    }

    #[test]
    fn grapheme_clusters_are_not_split() {
        let texts = |width| -> Vec<String> {
            break_rows([("a漢e\u{301}👩\u{200d}🚀", Style::new())], width)
                .iter()
                .map(|row| row.spans.iter().map(|span| &*span.content).collect())
                .collect()
        };
        assert_eq!(texts(3), ["a漢", "e\u{301}👩\u{200d}🚀"]);
        assert_eq!(texts(1), ["a", "\u{fffd}", "e\u{301}", "\u{fffd}"]);
        assert_eq!(texts(0), texts(1));
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_requested(raw in "\\PC{0,40}|[\\s\\S]{0,40}", width in 1_usize..60) {
            let line = make_visible(MAX_LINE_CHARS, &raw, &[]);
            for row in break_rows([(line.text.as_str(), Style::new())], width) {
                let text: String = row.spans.iter().map(|span| &*span.content).collect();
                prop_assert!(text.width() <= width, "{text:?}");
                prop_assert!(!text.contains(char::is_control), "{text:?}");
            }
        }
    }
}
