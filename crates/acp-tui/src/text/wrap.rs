//! Wraps text between words.
//!
//! This is where text from others is sanitized: the result contains no control characters, no marks that change the
//! direction of text, and no tabs.

use std::borrow::Cow;
use std::collections::VecDeque;

use ratatui::buffer::CellWidth;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

/// The number of columns between tab stops.
const TAB_WIDTH: usize = 4;
/// The minimum number of columns for text. The indent is truncated to leave enough.
const MIN_TEXT_WIDTH: usize = 8;
/// The maximum number of characters in one grapheme cluster.
///
/// The longest meaningful clusters (families with skin tones, regional flags) have about ten. A thousand combining
/// marks on one letter would be drawn over the lines around it.
const MAX_CLUSTER_CHARS: usize = 16;
/// The replacement for a cluster that is wider than the line.
const TOO_WIDE_REPLACEMENT: &str = "\u{fffd}";

/// The indent of wrapped text, such as a bullet with spaces below it, or the bar of a quotation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LineIndent {
    /// The indent before the first line.
    pub(crate) first: Vec<Span<'static>>,
    /// The indent before every other line.
    pub(crate) rest: Vec<Span<'static>>,
}

/// Wraps a line into at least one line of at most `width` columns.
///
/// Breaks between words and beside wide characters. A word that is longer than a line is broken at the end of the line.
/// Spaces at the end of a line and at a break are dropped, but leading spaces are kept. A width of 0 counts as 1.
pub(crate) fn wrap_line(line: &Line<'_>, width: u16) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    wrap_line_into(line, width, &LineIndent::default(), &mut out);
    out
}

/// Wraps a line like [`wrap_line`] and puts an indent before each resulting line.
///
/// The indent is truncated if it would leave no space for the text.
pub(crate) fn wrap_line_into(
    line: &Line<'_>,
    width: u16,
    indent: &LineIndent,
    out: &mut Vec<Line<'static>>,
) {
    let width = usize::from(width).max(1);
    let (first, first_width) = fit_front(&indent.first, width);
    let (rest, rest_width) = fit_front(&indent.rest, width);
    let runs = style_runs(line);
    let narrowest = width - first_width.max(rest_width);
    let mut source = text_cells(&runs, narrowest);
    let begin = out.len();
    let finish = |front: &[Span<'static>], cells: &[TextCell<'_>]| {
        let mut made = Line::from(front.to_vec()).style(line.style);
        made.alignment = line.alignment;
        let cells = trim_cells(cells);
        if cells.is_empty() {
            trim_end(&mut made.spans);
        }
        push_cells(&mut made.spans, cells);
        made
    };
    let mut row: VecDeque<TextCell<'_>> = VecDeque::new();
    let mut used = 0;
    let mut broken = false;
    loop {
        let (front, room) = if broken {
            (&rest, width - rest_width)
        } else {
            (&first, width - first_width)
        };
        let mut ended = false;
        while used <= room {
            match source.next() {
                // The space at a break is dropped.
                Some(cell) if broken && row.is_empty() && cell.space => {}
                Some(cell) => {
                    used += cell.width;
                    row.push_back(cell);
                }
                None => {
                    ended = true;
                    break;
                }
            }
        }
        let row_cells = row.make_contiguous();
        if ended {
            if !row_cells.is_empty() || out.len() == begin {
                out.push(finish(front, row_cells));
            }
            return;
        }
        let at = break_position(row_cells, room);
        out.push(finish(front, row_cells.get(..at).unwrap_or(row_cells)));
        row.drain(..at);
        while row.front().is_some_and(|cell| cell.space) {
            row.pop_front();
        }
        used = row.iter().map(|cell| cell.width).sum();
        broken = true;
    }
}

/// Returns the width of a line in columns, with tabs expanded.
pub(crate) fn line_width(line: &Line<'_>) -> usize {
    let runs = style_runs(line);
    text_cells(&runs, usize::MAX).map(|cell| cell.width).sum()
}

/// Returns the width of a line's widest unbreakable part, which sets the minimum width of a table column.
pub(crate) fn widest_word(line: &Line<'_>) -> usize {
    let runs = style_runs(line);
    let (mut widest, mut word) = (0, 0);
    let mut before: Option<TextCell<'_>> = None;
    for cell in text_cells(&runs, usize::MAX) {
        if cell.space {
            word = 0;
        } else {
            if before.is_some_and(|before| can_break(&before, &cell)) {
                word = 0;
            }
            word += cell.width;
        }
        widest = widest.max(word);
        before = Some(cell);
    }
    widest
}

/// Removes characters that control the terminal or change the direction of text. Keeps line feeds and tabs.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| match c {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    };
    if text.contains(harmful) {
        Cow::Owned(acp_host::terminal_text::clean_text(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// A grapheme cluster on the screen.
#[derive(Clone, Copy)]
struct TextCell<'a> {
    text: &'a str,
    width: usize,
    style: Style,
    space: bool,
}

/// Splits sanitized text into runs that have the same style.
///
/// Adjacent spans of the same style are joined, since a cluster may start in one and end in the next.
fn style_runs(line: &Line<'_>) -> Vec<(String, Style)> {
    let mut runs: Vec<(String, Style)> = Vec::new();
    for span in &line.spans {
        match runs.last_mut() {
            Some((text, style)) if *style == span.style => text.push_str(&span.content),
            _ => runs.push((span.content.as_ref().to_owned(), span.style)),
        }
    }
    for (text, _) in &mut runs {
        if let Cow::Owned(clean) = sanitize(text) {
            *text = clean;
        }
    }
    runs
}

fn text_cells(runs: &[(String, Style)], widest: usize) -> impl Iterator<Item = TextCell<'_>> {
    let mut column = 0;
    runs.iter()
        .flat_map(|(text, style)| text.graphemes(true).map(move |sign| (sign, *style)))
        .map(move |(sign, style)| {
            let (text, width, space) = match sign {
                "\t" => {
                    let width = TAB_WIDTH - column % TAB_WIDTH;
                    // A narrow line has space for fewer columns of indent.
                    (&"    "[..width.min(widest)], width.min(widest), true)
                }
                " " | "\n" | "\r\n" => (" ", 1, true),
                sign => {
                    let sign = sign
                        .char_indices()
                        .nth(MAX_CLUSTER_CHARS)
                        .and_then(|(end, _)| sign.get(..end))
                        .unwrap_or(sign);
                    match usize::from(sign.cell_width()) {
                        width if width > widest => (TOO_WIDE_REPLACEMENT, 1, false),
                        width => (sign, width, false),
                    }
                }
            };
            column += width;
            TextCell {
                text,
                width,
                style,
                space,
            }
        })
}

/// Returns the index of the cell at which to break a row that is wider than `room` columns.
///
/// The break is after at least one cell, and at the latest before the first cell that does not fit.
fn break_position(row: &[TextCell<'_>], room: usize) -> usize {
    let mut used = 0;
    let last = row
        .iter()
        .position(|cell| {
            used += cell.width;
            used > room
        })
        .unwrap_or(row.len());
    let Some(text) = row.iter().position(|cell| !cell.space) else {
        return last.max(1);
    };
    (text + 1..=last)
        .rev()
        .find(|&at| match (row.get(at - 1), row.get(at)) {
            (Some(before), Some(after)) => can_break(before, after),
            _ => false,
        })
        .unwrap_or(last.max(1))
}

fn can_break(before: &TextCell<'_>, after: &TextCell<'_>) -> bool {
    // Closing punctuation does not start a line, and opening punctuation does not end one.
    const CLOSING_PUNCTUATION: &str =
        "、。，．：；！？」』）】》〉］｝〕…ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ,.:;!?)]}%";
    const OPENING_PUNCTUATION: &str = "「『（【《〈［｛〔([{";
    if before.space || after.space {
        return true;
    }
    (before.width > 1 || after.width > 1)
        && after.width > 0
        && !CLOSING_PUNCTUATION.contains(after.text)
        && !OPENING_PUNCTUATION.contains(before.text)
}

/// Returns as much of the indent as leaves enough space for the text, and the width of that part.
fn fit_front(front: &[Span<'static>], width: usize) -> (Vec<Span<'static>>, usize) {
    let room = width.saturating_sub(MIN_TEXT_WIDTH.min(width.div_ceil(2).max(1)));
    let mut used = 0;
    let mut fitting: Vec<Span<'static>> = Vec::new();
    let line = Line::from(front.to_vec());
    let runs = style_runs(&line);
    let cells: Vec<_> = text_cells(&runs, usize::MAX)
        .take_while(|cell| {
            used += cell.width;
            used <= room
        })
        .collect();
    push_cells(&mut fitting, &cells);
    (fitting, cells.iter().map(|cell| cell.width).sum())
}

/// Returns the cells without trailing spaces.
fn trim_cells<'c, 'a>(cells: &'c [TextCell<'a>]) -> &'c [TextCell<'a>] {
    let end = cells
        .iter()
        .rposition(|cell| !cell.space)
        .map_or(0, |last| last + 1);
    cells.get(..end).unwrap_or(cells)
}

fn trim_end(spans: &mut Vec<Span<'static>>) {
    while let Some(last) = spans.last_mut() {
        let text = last.content.to_mut();
        text.truncate(text.trim_end_matches(' ').len());
        if !text.is_empty() {
            return;
        }
        spans.pop();
    }
}

fn push_cells(spans: &mut Vec<Span<'static>>, cells: &[TextCell<'_>]) {
    for same in cells.chunk_by(|a, b| a.style == b.style) {
        if let Some(cell) = same.first() {
            let text: String = same.iter().map(|cell| cell.text).collect();
            spans.push(Span::styled(text, cell.style));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::style::Stylize;

    fn line_texts(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(Line::to_string).collect()
    }

    /// Returns the number of columns in which ratatui draws a line.
    pub(crate) fn drawn_width(line: &Line<'_>) -> usize {
        line.spans
            .iter()
            .flat_map(|span| span.content.graphemes(true))
            .map(|sign| usize::from(sign.cell_width()))
            .sum()
    }

    #[test]
    fn text_breaks_between_words_and_keeps_its_styles() {
        let line = Line::from(vec!["one ".into(), "two three".bold(), " four".into()]);
        let lines = wrap_line(&line, 9);
        assert_eq!(line_texts(&lines), ["one two", "three", "four"]);
        assert_eq!(lines[0].spans[1], "two".bold());
        assert_eq!(lines[1].spans[0], "three".bold());
        assert_eq!(lines[2].spans[0], Span::raw("four"));
    }

    #[test]
    fn indent_appears_once_or_on_each_line() {
        let indent = LineIndent {
            first: vec!["• ".into()],
            rest: vec!["  ".into()],
        };
        let mut lines = Vec::new();
        wrap_line_into(&Line::from("a list of words"), 12, &indent, &mut lines);
        assert_eq!(line_texts(&lines), ["• a list of", "  words"]);
        // If the continuation lines are narrower than the first, the rest is broken again.
        let indent = LineIndent {
            first: Vec::new(),
            rest: vec!["       ".into()],
        };
        lines.clear();
        wrap_line_into(&Line::from("a bcdefghijklmn"), 12, &indent, &mut lines);
        assert_eq!(
            line_texts(&lines),
            ["a", "      bcdefg", "      hijklm", "      n"]
        );
        let indent = LineIndent {
            first: vec!["• ".into()],
            rest: vec!["  ".into()],
        };
        // If there is no space for both, the text takes precedence.
        lines.clear();
        wrap_line_into(&Line::from("abc"), 1, &indent, &mut lines);
        assert_eq!(line_texts(&lines), ["a", "b", "c"]);
    }

    #[test]
    fn long_words_tabs_and_spaces_are_wrapped() {
        assert_eq!(
            line_texts(&wrap_line(&Line::from("abcdefgh"), 3)),
            ["abc", "def", "gh"]
        );
        assert_eq!(
            line_texts(&wrap_line(&Line::from("a\tb\t\tc"), 80)),
            ["a   b       c"]
        );
        assert_eq!(
            line_texts(&wrap_line(&Line::from("  in front  "), 80)),
            ["  in front"]
        );
        assert_eq!(
            line_texts(&wrap_line(&Line::from("  abcdef"), 5)),
            ["  abc", "def"]
        );
        assert_eq!(line_texts(&wrap_line(&Line::from(""), 5)), [""]);
        assert_eq!(line_texts(&wrap_line(&Line::from("   "), 2)), [""]);
        assert_eq!(line_texts(&wrap_line(&Line::from("ab   "), 2)), ["ab"]);
        assert_eq!(line_texts(&wrap_line(&Line::from("ab"), 0)), ["a", "b"]);
    }

    #[test]
    fn wide_characters_break_anywhere_except_before_closing_punctuation() {
        assert_eq!(
            line_texts(&wrap_line(&Line::from("日本語の文章。"), 6)),
            ["日本語", "の文", "章。"]
        );
        assert_eq!(
            line_texts(&wrap_line(&Line::from("日本"), 1)),
            ["\u{fffd}", "\u{fffd}"]
        );
        let family = "👩‍👩‍👧‍👦";
        assert_eq!(
            line_texts(&wrap_line(&Line::from(format!("{family}{family}")), 3)),
            [family, family]
        );
        assert_eq!(
            line_texts(&wrap_line(&Line::from("e\u{301}e\u{301}"), 1)),
            ["e\u{301}"; 2]
        );
    }

    #[test]
    fn control_sequences_are_removed() {
        let line = Line::from(Span::raw("a\u{1b}[31mred\u{202e}b\u{7}\u{9b}1mc\nd"));
        assert_eq!(line_texts(&wrap_line(&line, 80)), ["aredb1mc d"]);
        let piled = format!("a{}", "\u{301}".repeat(1000));
        assert!(
            line_texts(&wrap_line(&Line::from(piled), 80))[0]
                .chars()
                .count()
                <= MAX_CLUSTER_CHARS
        );
    }

    proptest! {
        #[test]
        fn arbitrary_text_fits_completely(
            words in proptest::collection::vec("\\PC{0,12}|[a-z]{1,30}|[日本語👍🏽é\u{200d}\u{fe0f}🇩🇪ﾞ]{1,9}", 0..12),
            width in 0u16..200,
            front in " {0,12}|•|日本",
        ) {
            let line = Line::from(words.iter().enumerate().flat_map(|(at, word)| {
                let style = if at % 3 == 0 { Style::new().bold() } else { Style::new() };
                [Span::styled(word.clone(), style), Span::raw(" ")]
            }).collect::<Vec<_>>());
            let indent = LineIndent { first: vec![front.clone().into()], rest: vec!["  ".into()] };
            let mut lines = Vec::new();
            wrap_line_into(&line, width, &indent, &mut lines);
            for line in &lines {
                prop_assert!(drawn_width(line) <= usize::from(width.max(1)), "{line:?}");
                prop_assert!(!line.to_string().chars().any(char::is_control));
            }
            if width > 12 {
                let lines = wrap_line(&line, width);
                let kept = |text: String| text.chars().filter(|c| *c != ' ').collect::<String>();
                let all = kept(sanitize(&line.to_string()).into_owned());
                prop_assert_eq!(kept(line_texts(&lines).concat()), all);
            }
        }

        #[test]
        fn arbitrary_text_fits_without_control_characters(text in any::<String>(), width in 0u16..40) {
            for line in wrap_line(&Line::from(text), width) {
                prop_assert!(drawn_width(&line) <= usize::from(width.max(1)), "{line:?}");
                prop_assert!(!line.to_string().chars().any(char::is_control));
            }
        }
    }
}
