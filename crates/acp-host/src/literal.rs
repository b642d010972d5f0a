//! Escapes text that the user bases a decision on, so that all of it is visible.
//!
//! Text that an agent prints is [cleaned](mod@crate::terminal_text). Text on which the user bases a decision must not
//! be cleaned, because a terminal hides the content of an escape sequence, but a shell does not. So nothing is omitted
//! here. A character that is invisible, or that changes how other characters look, is written as an escape such as
//! `\u{1b}`, with its hexadecimal number. If the text itself contains `\u{`, that backslash is written as `\u{5c}`. So
//! each text has exactly one displayed form, which no other text has.
//!
//! Letters that look like letters of another script are not escaped.

use std::fmt::Write as _;

/// The maximum number of combining marks after a letter. More of them would obscure the lines above and below.
const MAX_COMBINING_MARKS: usize = 8;

/// A piece of text as it is displayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiteralPiece<'t> {
    /// Text whose characters are all displayed unchanged.
    Plain(&'t str),
    /// An escaped character. Shown in the warning color on terminals that support color.
    Escaped(String),
}

/// Splits text to be shown on a single line, such as a title or a path, into pieces. Also escapes line breaks and tabs.
#[must_use]
pub fn escape_pieces(text: &str) -> Vec<LiteralPiece<'_>> {
    split_pieces(text, false)
}

/// Splits one line of a longer text, such as a file, into pieces. Does not escape tabs.
#[must_use]
pub fn escape_line_pieces(line: &str) -> Vec<LiteralPiece<'_>> {
    split_pieces(line, true)
}

/// Returns text as one line, escaped as in [`escape_pieces`].
#[must_use]
pub fn escape_line(text: &str) -> String {
    join_pieces(escape_pieces(text))
}

/// Returns the lines of a text, escaped as in [`escape_line_pieces`] and with each tab replaced by four spaces. Returns
/// at least one line. A trailing line feed does not start a new line.
#[must_use]
pub fn escape_lines(text: &str) -> Vec<String> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let shown = |line| join_pieces(escape_line_pieces(line)).replace('\t', "    ");
    text.split('\n').map(shown).collect()
}

fn join_pieces(pieces: Vec<LiteralPiece<'_>>) -> String {
    let parts = pieces.iter().map(|piece| match piece {
        LiteralPiece::Plain(text) => *text,
        LiteralPiece::Escaped(text) => text,
    });
    parts.collect()
}

fn split_pieces(text: &str, tabs: bool) -> Vec<LiteralPiece<'_>> {
    let mut pieces: Vec<LiteralPiece<'_>> = Vec::new();
    let mut plain = 0;
    // Whether the previous character is a letter or one of its marks, and how many marks the letter has so far.
    let (mut letter, mut marks) = (false, 0);
    for (at, c) in text.char_indices() {
        let rest = text.get(at..).unwrap_or_default();
        let mark = is_combining_mark(c);
        let seen = match c {
            '\t' => tabs,
            '\\' => !rest.starts_with("\\u{"),
            c if mark => letter && marks < MAX_COMBINING_MARKS && is_visible(c),
            c => is_visible(c),
        };
        marks = if mark { marks + 1 } else { 0 };
        letter = seen && (mark || c.is_alphabetic());
        if seen {
            continue;
        }
        if plain < at {
            pieces.push(LiteralPiece::Plain(text.get(plain..at).unwrap_or_default()));
        }
        plain = at + c.len_utf8();
        match pieces.last_mut() {
            Some(LiteralPiece::Escaped(escaped)) => escape(c, escaped),
            _ => {
                let mut escaped = String::new();
                escape(c, &mut escaped);
                pieces.push(LiteralPiece::Escaped(escaped));
            }
        }
    }
    if plain < text.len() {
        pieces.push(LiteralPiece::Plain(text.get(plain..).unwrap_or_default()));
    }
    pieces
}

fn escape(c: char, into: &mut String) {
    // Writing to a `String` never fails.
    let _ = write!(into, "{}", c.escape_unicode());
}

/// Returns `true` if the character combines with the preceding letter.
fn is_combining_mark(c: char) -> bool {
    !c.is_ascii() && is_escaped(c) && !is_escaped_after_letter(c)
}

/// Returns `true` if the character is visible and unambiguous on its own, or is a mark that is visible on a letter.
#[must_use]
pub fn is_visible(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_control();
    }
    // Characters that are blank or have no effect of their own, although Unicode counts them as neither spaces nor
    // format characters: joiners and fillers, vowels that are not pronounced, a blank pattern, a note without a head,
    // and variation selectors, in which text can be hidden.
    let blank = matches!(
        c,
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{16fe4}' | '\u{1d159}' | '\u{e0100}'..='\u{e01ef}'
    );
    !blank && !is_escaped_after_letter(c)
}

/// Returns `true` if the standard library considers the character unprintable and escapes it. That includes control and
/// format characters, all spaces but the usual one, line separators, private-use and unassigned characters, and
/// combining marks.
fn is_escaped(c: char) -> bool {
    c.escape_debug().len() > 1
}

/// Returns `true` if the character is escaped even after a letter. Combining marks are not.
fn is_escaped_after_letter(c: char) -> bool {
    let mut text = String::from("a");
    text.push(c);
    text.escape_debug().count() > 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped() {
        let unseen = "\0\u{7}\u{1b}\u{7f}\u{80}\u{9b}\u{a0}\u{ad}\u{34f}\u{61c}\u{115f}\u{1160}\u{17b4}\u{180b}\u{180e}\u{1680}\
            \u{2000}\u{200a}\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{202f}\u{205f}\u{2060}\
            \u{2064}\u{2066}\u{2069}\u{206f}\u{2800}\u{3000}\u{3164}\u{e000}\u{fdd0}\u{fe00}\u{fe0e}\u{fe0f}\u{feff}\u{ffa0}\
            \u{fff9}\u{ffff}\u{16fe4}\u{1d159}\u{1d173}\u{e0001}\u{e0041}\u{e007f}\u{e0100}\u{e01ef}\u{f0000}\u{10ffff}";
        for c in unseen.chars() {
            let number = format!("\\u{{{:x}}}", u32::from(c));
            for before in ["a", "1", "❤", ""] {
                assert_eq!(
                    escape_line(&format!("{before}{c}b")),
                    format!("{before}{number}b")
                );
                assert_eq!(
                    escape_lines(&format!("{before}{c}b")),
                    [format!("{before}{number}b")]
                );
            }
        }
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        let people = "naïve e\u{301}t 日本語 שלום नमस्ते สวัสดี ❤ 👧🏽 — “q” C:\\new 'a\\nb' `x` ~\"";
        assert_eq!(escape_line(people), people);
    }

    #[test]
    fn escaped_text_differs_from_literal_escapes() {
        assert_eq!(escape_line("\\u{202e}\u{202e}"), r"\u{5c}u{202e}\u{202e}");
        assert_eq!(escape_line("\\u{5c}u{202e}"), r"\u{5c}u{5c}u{202e}");
        assert_eq!(escape_line("\\\u{1b}"), r"\\u{1b}");
        assert_eq!(escape_line("\\\\u{1b}"), r"\\u{5c}u{1b}");
    }

    #[test]
    fn lines_end_at_line_breaks() {
        assert_eq!(escape_line("a\nb\tc\r"), r"a\u{a}b\u{9}c\u{d}");
        assert_eq!(escape_lines("a\r\n\tb\n\n"), [r"a\u{d}", "    b", ""]);
        assert_eq!(escape_lines(""), [""]);
    }

    #[test]
    fn combining_marks_are_limited() {
        assert_eq!(escape_line("\u{301}a"), r"\u{301}a");
        assert_eq!(escape_line("-\u{338}"), r"-\u{338}");
        let tower = escape_line(&format!("a{}", "\u{301}".repeat(20)));
        assert_eq!(tower.matches(r"\u{301}").count(), 12, "{tower}");
    }
}
