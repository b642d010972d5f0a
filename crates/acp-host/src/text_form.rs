//! The properties of a text that editors preserve when the text changes: its line endings and byte order mark.

use std::borrow::Cow;
use std::io::{self, Read};

/// How many bytes of a file to examine for line endings. In longer files, line endings are written as given.
const MAX_EXAMINED_BYTES: usize = 64 * 1024 * 1024;

/// The size of the chunks to read, in bytes.
const CHUNK_SIZE: usize = 64 * 1024;

const BYTE_ORDER_MARK: &str = "\u{FEFF}";

/// The line endings of a text, and whether it starts with a byte order mark.
///
/// Models write `\n`, whatever the file contains, and omit a byte order mark that they did not see. So if all lines of
/// a file end with `\r\n`, these line ends are kept, and so is a byte order mark. Mixed line ends, and a new text that
/// contains `\r`, are left unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextForm {
    has_bom: bool,
    uses_crlf: bool,
}

impl TextForm {
    /// Returns the line endings and byte order mark of a text.
    #[must_use]
    pub fn detect(text: &str) -> Self {
        Self::read(text.as_bytes()).unwrap_or_default()
    }

    /// Returns the line endings and byte order mark of a file's text.
    pub(crate) fn read(mut file: impl Read) -> io::Result<Self> {
        let mut form = Self::default();
        let mut buffer = vec![0; CHUNK_SIZE];
        let (mut looked_at, mut last) = (0, 0);
        let mut lines = 0_usize;
        let mut beginning: Vec<u8> = Vec::with_capacity(BYTE_ORDER_MARK.len());
        loop {
            let read = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            let piece = buffer.get(..read).unwrap_or_default();
            let missing = BYTE_ORDER_MARK.len() - beginning.len();
            beginning.extend(piece.iter().take(missing));
            form.has_bom = beginning == BYTE_ORDER_MARK.as_bytes();
            for end in memchr::memchr_iter(b'\n', piece) {
                let before = match end.checked_sub(1) {
                    Some(before) => piece.get(before).copied(),
                    None => Some(last),
                };
                if before != Some(b'\r') {
                    return Ok(form);
                }
                lines += 1;
            }
            looked_at += read;
            last = piece.last().copied().unwrap_or_default();
            if looked_at > MAX_EXAMINED_BYTES {
                return Ok(form);
            }
        }
        form.uses_crlf = lines > 0;
        Ok(form)
    }

    /// Converts a text to this form: applies the form's line endings, and adds a byte order mark if the form has one.
    /// An empty text stays empty.
    #[must_use]
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let lines = self.apply_line_ends(text);
        if self.has_bom && !text.is_empty() && !text.starts_with(BYTE_ORDER_MARK) {
            return format!("{BYTE_ORDER_MARK}{lines}").into();
        }
        lines
    }

    /// Converts part of a longer text to this form's line endings.
    #[must_use]
    pub fn apply_line_ends<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.uses_crlf && !text.contains('\r') && text.contains('\n') {
            text.replace('\n', "\r\n").into()
        } else {
            text.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_consistent_properties_are_detected() {
        for (old, new, expected) in [
            ("a\r\nb\r\n", "1\n2\n", "1\r\n2\r\n"),
            ("a\r\nb", "1\n2", "1\r\n2"),
            // Mixed line ends, or none at all.
            ("a\r\nb\n", "1\n2\n", "1\n2\n"),
            ("\na\r\n", "1\n", "1\n"),
            ("a\nb\n", "1\r\n", "1\r\n"),
            ("a", "1\n", "1\n"),
            ("", "1\n", "1\n"),
            // The new text determines the line ends.
            ("a\r\n", "1\r\n2\n", "1\r\n2\n"),
            ("a\r\n", "1\r2\n", "1\r2\n"),
            ("a\r\n", "1", "1"),
            ("\u{FEFF}a\n", "b\n", "\u{FEFF}b\n"),
            ("\u{FEFF}a\n", "\u{FEFF}b\n", "\u{FEFF}b\n"),
            ("a\n", "\u{FEFF}b\n", "\u{FEFF}b\n"),
            ("\u{FEFF}a\r\n", "b\n", "\u{FEFF}b\r\n"),
            ("\u{FEFF}", "b", "\u{FEFF}b"),
            ("\u{FEFF}a\r\n", "", ""),
        ] {
            assert_eq!(
                TextForm::detect(old).apply(new),
                expected,
                "{old:?} {new:?}"
            );
        }
        assert_eq!(
            TextForm::detect("\u{FEFF}a\r\n").apply_line_ends("b\n"),
            "b\r\n"
        );
    }

    /// A reader that returns one byte at a time.
    struct OneByteReader<'a>(&'a [u8]);

    impl Read for OneByteReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(1);
            self.0.read(&mut buffer[..most])
        }
    }

    #[test]
    fn form_is_detected_across_split_reads() {
        for text in [
            "\u{FEFF}a\r\nb\r\n",
            "a\r\n\nb",
            "\r\n",
            "\n",
            "\u{FEFF}",
            "x",
        ] {
            let slowly = TextForm::read(OneByteReader(text.as_bytes())).unwrap();
            assert_eq!(slowly, TextForm::detect(text), "{text:?}");
        }
    }
}
