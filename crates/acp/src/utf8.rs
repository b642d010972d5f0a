//! Decodes UTF-8 that arrives in pieces, which can end in the middle of a character.

/// Decodes UTF-8 that arrives in pieces. Invalid bytes become U+FFFD.
#[derive(Debug, Clone, Default)]
pub(crate) struct Utf8Pieces {
    /// The bytes of an incomplete character at the end, at most three.
    partial: Vec<u8>,
}

impl Utf8Pieces {
    /// Decodes more bytes, and returns the text up to the last complete character.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.partial);
        all.extend_from_slice(bytes);
        self.partial = all.split_off(all.len() - incomplete_len(&all));
        String::from_utf8_lossy(&all).into_owned()
    }

    /// Drops the bytes of an incomplete character. Returns `true` if there were any.
    pub(crate) fn clear(&mut self) -> bool {
        let was_cut = !self.partial.is_empty();
        self.partial.clear();
        was_cut
    }
}

/// Counts the bytes at the end that belong to an incomplete character.
fn incomplete_len(bytes: &[u8]) -> usize {
    for (n, byte) in bytes.iter().rev().take(3).enumerate() {
        let length = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            // A continuation byte: the character starts before it.
            0x80..=0xBF => continue,
            _ => return 0,
        };
        return if n + 1 < length { n + 1 } else { 0 };
    }
    0
}
