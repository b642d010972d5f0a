//! Lines in which nothing is hidden: what is to be decided upon is shown to the last character.
//!
//! What cannot be seen, or makes other text look different, is written out as `\u{202e}`, in the style of a
//! warning: so it is told from an agent that writes just these eight characters.

use acp_host::clean;
use ratatui::buffer::CellWidth;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use crate::Theme;

/// How many columns a tab takes.
const TAB: &str = "    ";

/// How many marks may stand on one letter; more would paint over the lines around it.
const MARKS: usize = 8;

/// Where a line may be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// Between words. Spaces at a break are left out.
    Words,
    /// Anywhere, and nothing is left out.
    Anywhere,
}

/// A line in which each character counts: a command, a path, an address. It has no line feeds.
pub(crate) fn exact(line: &str, style: Style, theme: &Theme) -> Vec<Span<'static>> {
    reveal(line, style, theme, is_seen)
}

/// A line for people to read. It has no line feeds.
pub(crate) fn prose(line: &str, style: Style, theme: &Theme) -> Vec<Span<'static>> {
    // Scripts and emoji join and part letters with these, and set spaces of many kinds.
    let joins = |c: char| matches!(c, '\u{200c}' | '\u{200d}');
    reveal(line, style, theme, |c| {
        joins(c) || (c.is_whitespace() && !c.is_control()) || is_seen(c)
    })
}

/// A text for people to read, wrapped by words.
pub(crate) fn paragraph(text: &str, style: Style, theme: &Theme, width: u16) -> Vec<Line<'static>> {
    let text = clean::clean(text);
    let lines = text.trim_end().lines();
    lines
        .flat_map(|line| wrap(&prose(line, style, theme), Break::Words, 0, width))
        .collect()
}

fn reveal(
    line: &str,
    style: Style,
    theme: &Theme,
    plain: impl Fn(char) -> bool,
) -> Vec<Span<'static>> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut text = String::new();
    let mut marks = 0;
    for c in line.chars() {
        let mark = !c.is_ascii() && c.to_string().as_str().cell_width() == 0;
        marks = if mark { marks + 1 } else { 0 };
        if c == '\t' {
            text.push_str(TAB);
        } else if plain(c) && (!mark || (marks <= MARKS && stands(&text, c))) {
            text.push(c);
        } else {
            if !text.is_empty() {
                spans.push(Span::styled(std::mem::take(&mut text), style));
            }
            let written = match c {
                '\r' => "\\r".to_owned(),
                c => c.escape_unicode().to_string(),
            };
            spans.push(Span::styled(written, theme.warn));
        }
    }
    if !text.is_empty() || spans.is_empty() {
        spans.push(Span::styled(text, style));
    }
    spans
}

/// Whether a mark becomes one with the letter before it: nobody sees one that stands alone.
fn stands(text: &str, mark: char) -> bool {
    let letter = text.graphemes(true).next_back();
    letter.is_some_and(|letter| {
        let both: String = letter.chars().chain([mark]).collect();
        both.graphemes(true).count() == 1
    })
}

/// Whether a character is seen as what it is.
fn is_seen(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_control();
    }
    // Blank or without any effect of their own, and yet no spaces to Unicode; selectors of variants can carry
    // text that nobody sees, but for the two that belong to emoji.
    let blank = matches!(
        c,
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{ffa0}' | '\u{e0100}'..='\u{e01ef}'
    );
    // The standard library knows what is printable; behind a letter it takes marks for that, too.
    let printable = || {
        !['a', c]
            .iter()
            .collect::<String>()
            .escape_debug()
            .any(|c| c == '\\')
    };
    !blank && printable()
}

/// Lines of at most `width` columns, at least one. All but the first begin with `hang` spaces.
pub(crate) fn wrap(
    spans: &[Span<'static>],
    at: Break,
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
                    Break::Anywhere => Vec::new(),
                    Break::Words if grapheme == " " => {
                        // It would be the first of the next line.
                        while row.pop_if(|(text, ..)| *text == " ").is_some() {}
                        finish(&mut rows, &mut row, &mut used, hang, Vec::new());
                        continue;
                    }
                    Break::Words => match last_word(&row, width - hang, columns) {
                        Some(word) => {
                            let rest = row.split_off(word);
                            while row.pop_if(|(text, ..)| *text == " ").is_some() {}
                            rest
                        }
                        None => Vec::new(),
                    },
                };
                finish(&mut rows, &mut row, &mut used, hang, rest);
            }
            let broken = !rows.is_empty() && row.is_empty() && at == Break::Words;
            if !(broken && grapheme == " ") {
                row.push((grapheme, span.style, columns));
                used += columns;
            }
        }
    }
    if !row.is_empty() || rows.is_empty() {
        finish(&mut rows, &mut row, &mut used, hang, Vec::new());
    }
    rows
}

/// Where the last word of a row begins, if it is not the only one and fits into the next row's `room` with what
/// follows.
fn last_word(row: &[(&str, Style, usize)], room: usize, follows: usize) -> Option<usize> {
    let first = row.iter().position(|(text, ..)| *text != " ")?;
    let space = row.iter().rposition(|(text, ..)| *text == " ")?;
    let word: usize = row
        .iter()
        .skip(space + 1)
        .map(|(.., columns)| columns)
        .sum();
    (first < space && word + follows <= room).then_some(space + 1)
}

/// Ends a row; `rest` begins the next one.
fn finish<'a>(
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

    fn plain(line: &Line<'_>) -> String {
        line.spans.iter().map(|span| &*span.content).collect()
    }

    #[test]
    fn words_are_kept_together_and_commands_to_the_last_space() {
        let spans = [Span::raw("one two  three fourfivesix")];
        let rows =
            |at, hang| -> Vec<String> { wrap(&spans, at, hang, 8).iter().map(plain).collect() };
        assert_eq!(
            rows(Break::Words, 0),
            ["one two", "three", "fourfive", "six"]
        );
        assert_eq!(
            rows(Break::Words, 2),
            ["one two", "  three", "  fourfi", "  vesix"]
        );
        let all = ["one two ", " three f", "ourfives", "ix"];
        assert_eq!(rows(Break::Anywhere, 0), all);
        // A word that does not fit behind the spaces either is broken where the line ends.
        let rows = wrap(&[Span::raw("0 abcd")], Break::Words, 2, 4);
        let rows: Vec<String> = rows.iter().map(plain).collect();
        assert_eq!(rows, ["0 ab", "  cd"]);
        assert_eq!(wrap(&[Span::raw("日本")], Break::Words, 0, 3).len(), 2);
    }

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        let theme = Theme::default();
        let said = |text: &str| {
            let spans = exact(text, theme.text, &theme);
            let warned = spans.iter().filter(|span| span.style == theme.warn);
            let warned: Vec<String> = warned.map(|span| span.content.to_string()).collect();
            (plain(&Line::from(spans)), warned.join(" "))
        };
        let shown = |text: &str| said(text).0;
        assert_eq!(
            said("rm\u{202e}fdp.x \\u{202e}"),
            (
                r"rm\u{202e}fdp.x \u{202e}".to_owned(),
                r"\u{202e}".to_owned()
            )
        );
        assert_eq!(
            shown("a\u{200b}b\u{a0}c\u{3164}d"),
            r"a\u{200b}b\u{a0}c\u{3164}d"
        );
        assert_eq!(shown("\u{1b}[2Jx\r\u{7}"), r"\u{1b}[2Jx\r\u{7}");
        assert_eq!(shown("\u{e0041}"), r"\u{e0041}");
        // What people write stays.
        let people = "naïve e\u{301}t 日本語 שלום नमस्ते ❤\u{fe0f} \"'\\";
        assert_eq!(shown(people), people);
        let family = "👩\u{200d}👧 x\u{3000}y";
        let spans = prose(family, theme.text, &theme);
        assert_eq!(plain(&Line::from(spans)), family);
        // Marks upon nothing, and towers of them.
        assert_eq!(shown("\u{301}a"), r"\u{301}a");
        let tower = shown(&format!("a{}", "\u{301}".repeat(20)));
        assert_eq!(tower.matches(r"\u{301}").count(), 12, "{tower}");
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_all_of_it_is_there(
            text in "(\\PC|[\u{0}-\u{20}\u{202e}\u{301}日👩\u{200d}]){0,80}",
            width in 1_u16..200,
            hang in 0_u16..9,
        ) {
            let theme = Theme::default();
            let spans = exact(&text, theme.text, &theme);
            let all: String = spans.iter().map(|span| &*span.content).collect();
            prop_assert!(!all.chars().any(char::is_control));
            for at in [Break::Words, Break::Anywhere] {
                let rows = wrap(&spans, at, hang, width);
                for row in &rows {
                    let columns: u16 = plain(row).graphemes(true).map(CellWidth::cell_width).sum();
                    prop_assert!(columns <= width, "{row:?}");
                }
                let without = |text: &str| text.replace(' ', "");
                let shown: String = rows.iter().map(|row| without(&plain(row))).collect();
                if width > 20 {
                    prop_assert_eq!(shown, without(&all));
                }
            }
            let rows = wrap(&spans, Break::Anywhere, 0, width.max(20));
            let shown: String = rows.iter().map(plain).collect();
            prop_assert_eq!(shown, all);
        }
    }
}
