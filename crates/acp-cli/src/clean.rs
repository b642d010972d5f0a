//! Text of an agent's or a command's, made fit to be printed.

use anstyle_parse::{DefaultCharAccumulator, Parser, Perform};

/// Takes out what would command the terminal rather than be shown on it. Keeps its place between
/// pieces, so that a sequence that is split over two of them is taken out as well.
#[derive(Default)]
pub(crate) struct Clean {
    parser: Parser<DefaultCharAccumulator>,
    shown: Shown,
}

impl Clean {
    pub(crate) fn text(&mut self, piece: &str) -> String {
        for byte in piece.bytes() {
            self.parser.advance(&mut self.shown, byte);
        }
        std::mem::take(&mut self.shown.text)
    }
}

#[derive(Default)]
struct Shown {
    text: String,
    /// A carriage return that a line feed may follow.
    returned: bool,
}

impl Shown {
    /// A carriage return alone begins the line anew, as progress bars do; what is shown only grows, so
    /// each state is a line of its own.
    fn settle(&mut self) {
        if std::mem::take(&mut self.returned) && !self.text.is_empty() && !self.text.ends_with('\n')
        {
            self.text.push('\n');
        }
    }
}

impl Perform for Shown {
    fn print(&mut self, c: char) {
        // The marks that change the direction of text can make a command look like another.
        if !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{80}'..='\u{9f}' | '\u{7f}')
        {
            self.settle();
            self.text.push(c);
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.returned = false;
                self.text.push('\n');
            }
            b'\t' => {
                self.settle();
                self.text.push('\t');
            }
            b'\r' => self.returned = true,
            _ => {}
        }
    }
}

/// A piece that stands alone.
pub(crate) fn clean(text: &str) -> String {
    Clean::default().text(text)
}

/// A piece that stands alone on one line.
pub(crate) fn line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_the_terminal_is_taken_out_even_in_pieces() {
        let mut clean = Clean::default();
        let pieces = [
            "red \u{1b}[3",
            "1mtext\u{1b}[0m\u{7}",
            "\u{1b}]0;title",
            "\u{7}end\r\n",
        ];
        let text: String = pieces.iter().map(|piece| clean.text(piece)).collect();
        assert_eq!(text, "red textend\n");
        assert_eq!(super::clean("50%\r100%\n"), "50%\n100%\n");
        assert_eq!(line("a\nb\u{202e}c"), "a bc");
    }
}
