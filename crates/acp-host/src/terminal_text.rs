//! Removes control sequences from the output of agents and commands before it is printed to a terminal.
//!
//! Text from another program may contain escape sequences, for example to set a title, erase the screen, or send keys
//! back. All of them are removed. Printable characters, tabs and line feeds remain.
//!
//! This is for everything that an agent says or prints. Text on which the user bases a decision is shown with
//! [`literal`](mod@crate::literal), which omits nothing.

use std::borrow::Cow;

use anstyle_parse::{DefaultCharAccumulator, Parser, Perform};

/// A filter for text that arrives in pieces. Keeps state between them, so that a sequence split across two pieces is
/// removed, too.
#[derive(Default)]
pub struct TextCleaner {
    parser: Parser<DefaultCharAccumulator>,
    output: CleanedText,
}

impl TextCleaner {
    /// Returns the next piece without anything that controls the terminal: control characters, escape sequences, and
    /// marks that change the text direction. A carriage return that would restart a line begins a new line instead.
    #[must_use]
    pub fn clean_piece(&mut self, piece: &str) -> String {
        for byte in piece.bytes() {
            self.parser.advance(&mut self.output, byte);
        }
        std::mem::take(&mut self.output.text)
    }
}

#[derive(Debug, Default)]
struct CleanedText {
    text: String,
    /// Whether the last character was a carriage return, which may be followed by a line feed.
    pending_return: bool,
}

impl CleanedText {
    /// Starts a new line after a carriage return without a line feed. Programs use this to overwrite a line, for
    /// example for progress bars. Since output is only ever appended, each state of the line becomes a separate line.
    fn apply_pending_return(&mut self) {
        if std::mem::take(&mut self.pending_return)
            && !self.text.is_empty()
            && !self.text.ends_with('\n')
        {
            self.text.push('\n');
        }
    }
}

impl Perform for CleanedText {
    fn print(&mut self, c: char) {
        // The marks that change the direction of text can make a command look like another.
        if !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{80}'..='\u{9f}' | '\u{7f}')
        {
            self.apply_pending_return();
            self.text.push(c);
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.pending_return = false;
                self.text.push('\n');
            }
            b'\t' => {
                self.apply_pending_return();
                self.text.push('\t');
            }
            b'\r' => self.pending_return = true,
            _ => {}
        }
    }
}

/// Removes control sequences from a complete text in the same way as [`TextCleaner::clean_piece`].
#[must_use]
pub fn clean_text(text: &str) -> String {
    TextCleaner::default().clean_piece(text)
}

/// Removes control sequences from a complete text and joins its lines. Line feeds and tabs become spaces.
#[must_use]
pub fn clean_line(text: &str) -> String {
    clean_text(text).replace(['\n', '\t'], " ")
}

/// The maximum length, in characters, of a value shown outside questions, such as a title, a name or a running command.
pub const MAX_VALUE_CHARS: usize = 300;

/// The maximum length of an error message, in characters.
pub const MAX_MESSAGE_CHARS: usize = 4_000;

/// Removes control sequences from a value such as a title, and puts it [on one line](clean_line). If it is longer than
/// [`MAX_VALUE_CHARS`], truncates it in the middle.
#[must_use]
pub fn clean_value(text: &str) -> String {
    truncate_middle(&clean_line(text), MAX_VALUE_CHARS).into_owned()
}

/// Truncates text in the middle if it has more than `most` characters, showing how many were omitted. Use this only for
/// information, never for text that the user bases a decision on.
#[must_use]
pub fn truncate_middle(text: &str, most: usize) -> Cow<'_, str> {
    // A character has at least one byte.
    let all = match text.len() > most {
        true => text.chars().count(),
        false => 0,
    };
    if all <= most {
        return Cow::Borrowed(text);
    }
    let end = most / 3;
    let begin = most - end;
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (before, after) = (
        text.get(..at(begin)).unwrap_or_default(),
        text.get(at(all - end)..).unwrap_or_default(),
    );
    Cow::Owned(format!(
        "{before} [… {} characters omitted …] {after}",
        all - most
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_truncated_in_the_middle() {
        let long = format!("{}é{}", "a".repeat(200), "z".repeat(1000));
        let shown = clean_value(&long);
        assert!(shown.starts_with(&"a".repeat(200)), "{shown}");
        assert!(
            shown.contains(" [… 901 characters omitted …] zzz"),
            "{shown}"
        );
        assert!(shown.chars().count() < 340, "{shown}");
        let whole = "é".repeat(MAX_VALUE_CHARS);
        assert_eq!(clean_value(&whole), whole);
        assert_eq!(truncate_middle("abc", 0), " [… 3 characters omitted …] ");
    }

    #[test]
    fn split_escape_sequences_are_removed() {
        let mut clean = TextCleaner::default();
        let pieces = [
            "red \u{1b}[3",
            "1mtext\u{1b}[0m\u{7}",
            "\u{1b}]0;title",
            "\u{7}end\r\n",
        ];
        let text: String = pieces
            .iter()
            .map(|piece| clean.clean_piece(piece))
            .collect();
        assert_eq!(text, "red textend\n");
        assert_eq!(super::clean_text("50%\r100%\n"), "50%\n100%\n");
        assert_eq!(clean_line("a\nb\u{202e}c"), "a bc");
    }
}
