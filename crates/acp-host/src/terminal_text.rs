//! Text of an agent's or a command's, made fit to be shown.
//!
//! Whatever comes from another program may hold what commands a terminal: a title to set, a screen to erase, keys
//! to be typed back. None of it passes. What is left are printable characters, tabs and line feeds.
//!
//! This is for what an agent says and prints. What a person decides about is shown by [`literal`](mod@crate::literal),
//! which leaves nothing out.

use std::borrow::Cow;

use anstyle_parse::{DefaultCharAccumulator, Parser, Perform};

/// Cleans a text that comes in pieces. It keeps its place between them, so that a sequence that is split over two
/// is taken out as well.
#[derive(Default)]
pub struct TextCleaner {
    parser: Parser<DefaultCharAccumulator>,
    output: CleanedText,
}

impl TextCleaner {
    /// The next piece without what would command the terminal rather than be shown on it: control characters,
    /// escape sequences, and the marks that change the direction of text. A carriage return that begins a line anew
    /// begins a new line.
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
    /// A carriage return that a line feed may follow.
    pending_return: bool,
}

impl CleanedText {
    /// A carriage return alone begins the line anew, as progress bars do; what is shown only grows, so
    /// each state is a line of its own.
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

/// A text that stands alone, cleaned as [`TextCleaner::clean_piece`] says.
#[must_use]
pub fn clean_text(text: &str) -> String {
    TextCleaner::default().clean_piece(text)
}

/// A text that stands alone on one line: line feeds and tabs are spaces.
#[must_use]
pub fn clean_line(text: &str) -> String {
    clean_text(text).replace(['\n', '\t'], " ")
}

/// How much of a single value is shown outside of questions, in characters: of a title, a name, a command that runs.
pub const VALUE: usize = 300;

/// How much of a message about a fault is shown, in characters.
pub const MESSAGE: usize = 4_000;

/// A value such as a title, [on one line](clean_line()), cut in the middle where it is longer than [`VALUE`].
#[must_use]
pub fn clean_value(text: &str) -> String {
    cut_middle(&clean_line(text), VALUE).into_owned()
}

/// A text without its middle, if it has more than `most` characters; it says how many are left out. It is for what is
/// told, never for what a person decides about.
#[must_use]
pub fn cut_middle(text: &str, most: usize) -> Cow<'_, str> {
    // A character has one byte at least.
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
        "{before} [… {} characters left out …] {after}",
        all - most
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut_in_the_middle() {
        let long = format!("{}é{}", "a".repeat(200), "z".repeat(1000));
        let shown = clean_value(&long);
        assert!(shown.starts_with(&"a".repeat(200)), "{shown}");
        assert!(
            shown.contains(" [… 901 characters left out …] zzz"),
            "{shown}"
        );
        assert!(shown.chars().count() < 340, "{shown}");
        let whole = "é".repeat(VALUE);
        assert_eq!(clean_value(&whole), whole);
        assert_eq!(cut_middle("abc", 0), " [… 3 characters left out …] ");
    }

    #[test]
    fn what_commands_the_terminal_is_taken_out_even_in_pieces() {
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
