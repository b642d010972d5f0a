//! Splits text into words, as a shell does.

use std::ops::Range;

/// The maximum length of quoted text. A quote mark that is not closed within this length is an apostrophe.
const MAX_QUOTE_BYTES: usize = 64 * 1024;

/// A token of a command line.
pub(super) enum ShellToken {
    /// A word and its position. If the whole word is quoted, the position excludes the quotes.
    Word {
        place: Range<usize>,
        quoted: Vec<Range<usize>>,
    },
    /// A separator between commands.
    Separator,
}

/// An iterator over the words and separators in a text, as a shell splits it.
pub(super) struct ShellWords<'a> {
    pub(super) text: &'a str,
    pub(super) offset: usize,
    /// Whether the text is itself quoted. If so, an unmatched quote marks its end.
    pub(super) within_quotes: bool,
}

impl ShellWords<'_> {
    pub(super) fn next(&mut self) -> Option<ShellToken> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.offset)? {
                b' ' | b'\t' | b'\r' => self.offset += 1,
                b'\\' if bytes.get(self.offset + 1) == Some(&b'\n') => self.offset += 2,
                b'\n' | b';' | b'|' | b'&' | b'(' | b')' | b'<' | b'>' | b'`' | b'{' | b'}' => {
                    self.offset += 1;
                    return Some(ShellToken::Separator);
                }
                _ => return Some(self.read_word()),
            }
        }
    }

    fn read_word(&mut self) -> ShellToken {
        let bytes = self.text.as_bytes();
        let start = self.offset;
        let mut quoted = Vec::new();
        while let Some(&byte) = bytes.get(self.offset) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'|' | b'&' | b'(' | b')' | b'<' | b'>'
                | b'`' => break,
                b'\\' => self.offset += 2,
                b'"' | b'\'' if self.within_quotes && !self.can_open_quote(start) => {
                    let place = start..self.offset;
                    self.text = self.text.get(..self.offset).unwrap_or_default();
                    return ShellToken::Word {
                        place,
                        quoted: Vec::new(),
                    };
                }
                b'"' | b'\'' => match self.find_quote_end(byte) {
                    Some(end) => {
                        quoted.push(self.offset + 1..end);
                        self.offset = end + 1;
                    }
                    None => self.offset += 1,
                },
                _ => self.offset += 1,
            }
        }
        // A backslash may be the last byte.
        self.offset = self.offset.min(bytes.len());
        let place = match quoted.as_slice() {
            [all] if all.start == start + 1 && all.end + 1 == self.offset => all.clone(),
            _ => start..self.offset,
        };
        ShellToken::Word { place, quoted }
    }

    /// Returns `true` if a quote can start at the current position, in a word that started at `start`.
    fn can_open_quote(&self, start: usize) -> bool {
        let before = self.offset.checked_sub(1).filter(|_| self.offset > start);
        let before = before.and_then(|at| self.text.as_bytes().get(at));
        before.is_none_or(|before| b"=:,%".contains(before))
    }

    /// Returns the end of the quoted text that starts at the current position.
    fn find_quote_end(&self, quote: u8) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = self.offset + 1;
        loop {
            if at - self.offset > MAX_QUOTE_BYTES {
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
