//! Builds the lines of a question, showing all text in full.
//!
//! Characters that are invisible, or that change how other text looks, are written out as [`literal`] describes, in the
//! style of a warning.

use acp_host::literal::{self, LiteralPiece};
use ratatui::buffer::CellWidth;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use crate::Theme;

/// The spaces that replace a tab.
const TAB_SPACES: &str = "    ";

/// The places where a line may be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineBreak {
    /// Between words. Spaces at a break are dropped.
    Words,
    /// Anywhere. Nothing is dropped.
    Anywhere,
}

/// Builds a line for text in which every character matters, such as a path, a title or a name.
pub(crate) fn literal_line(text: &str, style: Style, theme: &Theme) -> Vec<Span<'static>> {
    to_spans(literal::escape_pieces(text), style, theme)
}

/// Builds one line of a multi-line text, such as a command or a message from the agent.
pub(crate) fn literal_text(line: &str, style: Style, theme: &Theme) -> Vec<Span<'static>> {
    to_spans(literal::escape_line_pieces(line), style, theme)
}

/// Builds a paragraph of prose, wrapped between words.
pub(crate) fn wrap_paragraph(
    text: &str,
    style: Style,
    theme: &Theme,
    width: u16,
) -> Vec<Line<'static>> {
    let text = text.trim_end_matches(['\n', ' ']);
    if text.is_empty() {
        return Vec::new();
    }
    text.split('\n')
        .flat_map(|line| {
            wrap_spans(
                &literal_text(line, style, theme),
                LineBreak::Words,
                0,
                width,
            )
        })
        .collect()
}

/// Builds quoted text, with a bar in front of each line.
pub(crate) fn wrap_quoted(
    text: &str,
    style: Style,
    theme: &Theme,
    width: u16,
) -> Vec<Line<'static>> {
    let bar = || Span::styled("| ", theme.border);
    let lines = wrap_paragraph(text, style, theme, width.saturating_sub(2).max(1));
    lines
        .into_iter()
        .map(|mut line| {
            line.spans.insert(0, bar());
            line
        })
        .collect()
}

fn to_spans(pieces: Vec<LiteralPiece<'_>>, style: Style, theme: &Theme) -> Vec<Span<'static>> {
    let span = |piece| match piece {
        LiteralPiece::Plain(text) => Span::styled(str::replace(text, '\t', TAB_SPACES), style),
        LiteralPiece::Escaped(text) => Span::styled(text, theme.warn),
    };
    let spans: Vec<Span<'static>> = pieces.into_iter().map(span).collect();
    match spans.is_empty() {
        true => vec![Span::styled("", style)],
        false => spans,
    }
}

/// Wraps text into lines of at most `width` columns, and returns at least one line. All lines except the first are
/// indented by `hang` spaces.
pub(crate) fn wrap_spans(
    spans: &[Span<'static>],
    at: LineBreak,
    hang: u16,
    width: u16,
) -> Vec<Line<'static>> {
    let width = usize::from(width.max(1));
    let hang = usize::from(hang).min(width / 2);
    let mut rows = Vec::new();
    let mut row: Vec<(&str, Style, usize)> = Vec::new();
    let mut used = 0;
    for span in spans {
        for grapheme in span.content.graphemes(true) {
            let mut grapheme = grapheme;
            let mut columns = usize::from(grapheme.cell_width());
            if columns > width - hang {
                (grapheme, columns) = ("\u{fffd}", 1);
            }
            if used + columns > width {
                let rest = match at {
                    LineBreak::Anywhere => Vec::new(),
                    LineBreak::Words if grapheme == " " => {
                        // A space here would start the next line.
                        while row.pop_if(|(text, ..)| *text == " ").is_some() {}
                        finish_row(&mut rows, &mut row, &mut used, hang, Vec::new());
                        continue;
                    }
                    LineBreak::Words => match last_word_start(&row, width - hang, columns) {
                        Some(word) => {
                            let rest = row.split_off(word);
                            while row.pop_if(|(text, ..)| *text == " ").is_some() {}
                            rest
                        }
                        None => Vec::new(),
                    },
                };
                finish_row(&mut rows, &mut row, &mut used, hang, rest);
            }
            let broken = !rows.is_empty() && row.is_empty() && at == LineBreak::Words;
            if !(broken && grapheme == " ") {
                row.push((grapheme, span.style, columns));
                used += columns;
            }
        }
    }
    if !row.is_empty() || rows.is_empty() {
        finish_row(&mut rows, &mut row, &mut used, hang, Vec::new());
    }
    rows
}

/// Returns the start of a row's last word if that word can move to the next row. It must not be the row's only word,
/// and must fit into `room` along with the text that follows it.
fn last_word_start(row: &[(&str, Style, usize)], room: usize, follows: usize) -> Option<usize> {
    let first = row.iter().position(|(text, ..)| *text != " ")?;
    let space = row.iter().rposition(|(text, ..)| *text == " ")?;
    let word: usize = row
        .iter()
        .skip(space + 1)
        .map(|(.., columns)| columns)
        .sum();
    (first < space && word + follows <= room).then_some(space + 1)
}

/// Ends a row and starts the next one with `rest`.
fn finish_row<'a>(
    rows: &mut Vec<Line<'static>>,
    row: &mut Vec<(&'a str, Style, usize)>,
    used: &mut usize,
    hang: usize,
    rest: Vec<(&'a str, Style, usize)>,
) {
    let mut line = Line::default();
    if !rows.is_empty() && hang > 0 {
        line.spans.push(Span::raw(" ".repeat(hang)));
    }
    for (text, style, _) in std::mem::replace(row, rest) {
        match line.spans.last_mut().filter(|last| last.style == style) {
            Some(last) => last.content.to_mut().push_str(text),
            None => line.spans.push(Span::styled(text.to_owned(), style)),
        }
    }
    rows.push(line);
    *used = hang + row.iter().map(|(_, _, columns)| columns).sum::<usize>();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain_text(line: &Line<'_>) -> String {
        line.spans.iter().map(|span| &*span.content).collect()
    }

    #[test]
    fn words_and_trailing_spaces_are_preserved_by_wrapping() {
        let spans = [Span::raw("one two  three fourfivesix")];
        let rows = |at, hang| -> Vec<String> {
            wrap_spans(&spans, at, hang, 8)
                .iter()
                .map(plain_text)
                .collect()
        };
        assert_eq!(
            rows(LineBreak::Words, 0),
            ["one two", "three", "fourfive", "six"]
        );
        assert_eq!(
            rows(LineBreak::Words, 2),
            ["one two", "  three", "  fourfi", "  vesix"]
        );
        let all = ["one two ", " three f", "ourfives", "ix"];
        assert_eq!(rows(LineBreak::Anywhere, 0), all);
        // A word that does not fit after the indentation either is broken at the end of the line.
        let rows = wrap_spans(&[Span::raw("0 abcd")], LineBreak::Words, 2, 4);
        let rows: Vec<String> = rows.iter().map(plain_text).collect();
        assert_eq!(rows, ["0 ab", "  cd"]);
        assert_eq!(
            wrap_spans(&[Span::raw("日本")], LineBreak::Words, 0, 3).len(),
            2
        );
    }

    #[test]
    fn invisible_characters_are_escaped_with_a_warning_style() {
        let theme = Theme::default();
        let spans = literal_line("rm\u{202e}fdp.x \\u{202e}", theme.text, &theme);
        let warned = spans.iter().filter(|span| span.style == theme.warn);
        let warned: Vec<String> = warned.map(|span| span.content.to_string()).collect();
        assert_eq!(warned, [r"\u{202e}", r"\u{5c}"]);
        assert_eq!(
            plain_text(&Line::from(spans)),
            r"rm\u{202e}fdp.x \u{5c}u{202e}"
        );
        let spans = literal_text("\tx\u{200d}", theme.text, &theme);
        assert_eq!(plain_text(&Line::from(spans)), r"    x\u{200d}");
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_no_text_is_lost(
            text in "(\\PC|[\u{0}-\u{20}\u{202e}\u{301}日👩\u{200d}]){0,80}",
            width in 1_u16..200,
            hang in 0_u16..9,
        ) {
            let theme = Theme::default();
            let spans = literal_line(&text, theme.text, &theme);
            let all: String = spans.iter().map(|span| &*span.content).collect();
            prop_assert!(!all.chars().any(char::is_control));
            for at in [LineBreak::Words, LineBreak::Anywhere] {
                let rows = wrap_spans(&spans, at, hang, width);
                for row in &rows {
                    let columns: u16 = plain_text(row).graphemes(true).map(CellWidth::cell_width).sum();
                    prop_assert!(columns <= width, "{row:?}");
                }
                let without = |text: &str| text.replace(' ', "");
                let shown: String = rows.iter().map(|row| without(&plain_text(row))).collect();
                if width > 20 {
                    prop_assert_eq!(shown, without(&all));
                }
            }
            let rows = wrap_spans(&spans, LineBreak::Anywhere, 0, width.max(20));
            let shown: String = rows.iter().map(plain_text).collect();
            prop_assert_eq!(shown, all);
        }
    }
}
