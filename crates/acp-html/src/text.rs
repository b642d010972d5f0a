//! Makes text from agents and clients safe to show in a browser. Removes terminal control sequences, and makes
//! bidirectional controls visible.

use std::iter::Peekable;
use std::str::Chars;

/// Makes multi-line text safe to show.
#[must_use]
pub fn sanitize_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' => {
                // A terminal would overwrite the line.
                if chars.peek() != Some(&'\n') {
                    out.push('\n');
                }
            }
            '\u{1b}' => skip_escape(&mut chars),
            c if is_layout_control(c) => out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c))),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Skips the rest of an escape sequence.
fn skip_escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.next() {
        // A control sequence ends with its final byte.
        Some('[') => {
            while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
            chars.next_if(|c| matches!(c, '@'..='~'));
        }
        // A string sequence ends with its terminator, or at the end of the line if it has none.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while chars
                .next_if(|c| !matches!(c, '\u{7}' | '\u{1b}' | '\n'))
                .is_some()
            {}
            if chars.next_if_eq(&'\u{1b}').is_some() {
                chars.next_if_eq(&'\\');
            } else {
                chars.next_if_eq(&'\u{7}');
            }
        }
        _ => {}
    }
}

/// Makes single-line text safe to show.
#[must_use]
pub fn sanitize_line(line: &str) -> String {
    let line = sanitize_text(line);
    if line.contains(['\n', '\t']) {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        line
    }
}

/// Truncates text to at most `length` characters.
#[must_use]
pub fn truncate_text(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns `true` for characters that change the direction of text, or that end a line invisibly.
fn is_layout_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_removed_and_bidi_controls_made_visible() {
        assert_eq!(
            sanitize_text("a\u{1b}[1;31mb\u{1b}]0;title\u{7}c\u{1b}]8;;x\u{1b}\\d"),
            "abcd"
        );
        assert_eq!(sanitize_text("50%\r100%\r\n\u{0}ok\u{1b}"), "50%\n100%\nok");
        assert_eq!(sanitize_text("\u{1b}]never ended\nnext"), "\nnext");
        assert_eq!(
            sanitize_line("a\u{202e}b\u{2028}c\n d"),
            "a⟨U+202E⟩b⟨U+2028⟩c d"
        );
        assert_eq!(truncate_text("äöü", 2), "äö…");
    }
}
