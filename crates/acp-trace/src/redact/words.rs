//! A text taken apart into words, as a shell does it.

use std::ops::Range;

/// What is quoted is no longer than this; a quote without an end is an apostrophe.
const LONGEST_QUOTE: usize = 64 * 1024;

/// What a line is made of.
pub(super) enum Token {
    /// Without the quotes, if all of it is in quotes; and what of it is.
    Word {
        place: Range<usize>,
        quoted: Vec<Range<usize>>,
    },
    /// What ends a command.
    End,
}

/// The words of a text, as a shell takes it apart.
pub(super) struct Words<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// The text is itself in quotes: one that is not opened ends it.
    pub(super) within_quotes: bool,
}

impl Words<'_> {
    pub(super) fn next(&mut self) -> Option<Token> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at)? {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if bytes.get(self.at + 1) == Some(&b'\n') => self.at += 2,
                b'\n' | b';' | b'|' | b'&' | b'(' | b')' | b'<' | b'>' | b'`' | b'{' | b'}' => {
                    self.at += 1;
                    return Some(Token::End);
                }
                _ => return Some(self.word()),
            }
        }
    }

    fn word(&mut self) -> Token {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut quoted = Vec::new();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'|' | b'&' | b'(' | b')' | b'<' | b'>'
                | b'`' => break,
                b'\\' => self.at += 2,
                b'"' | b'\'' if self.within_quotes && !self.may_open(start) => {
                    let place = start..self.at;
                    self.text = self.text.get(..self.at).unwrap_or_default();
                    return Token::Word {
                        place,
                        quoted: Vec::new(),
                    };
                }
                b'"' | b'\'' => match self.end_of_quoted(byte) {
                    Some(end) => {
                        quoted.push(self.at + 1..end);
                        self.at = end + 1;
                    }
                    None => self.at += 1,
                },
                _ => self.at += 1,
            }
        }
        // A backslash may be the last.
        self.at = self.at.min(bytes.len());
        let place = match quoted.as_slice() {
            [all] if all.start == start + 1 && all.end + 1 == self.at => all.clone(),
            _ => start..self.at,
        };
        Token::Word { place, quoted }
    }

    /// Whether a quote can begin here, in a word that began there.
    fn may_open(&self, start: usize) -> bool {
        let before = self.at.checked_sub(1).filter(|_| self.at > start);
        let before = before.and_then(|at| self.text.as_bytes().get(at));
        before.is_none_or(|before| b"=:,%".contains(before))
    }

    /// Where a quote that begins here ends.
    fn end_of_quoted(&self, quote: u8) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        loop {
            if at - self.at > LONGEST_QUOTE {
                return None;
            }
            match *bytes.get(at)? {
                b'\\' if quote == b'"' => at += 2,
                byte if byte == quote => return Some(at),
                _ => at += 1,
            }
        }
    }
}
