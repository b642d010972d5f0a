//! Text that arrives in pieces of bytes, which may be cut within a character.

/// Puts characters together again. Bytes that are no text become U+FFFD.
#[derive(Debug, Clone, Default)]
pub(crate) struct Utf8Pieces {
    /// The bytes of a character that is not complete yet: at most three.
    partial: Vec<u8>,
}

impl Utf8Pieces {
    /// The text that is complete with these bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.partial);
        all.extend_from_slice(bytes);
        self.partial = all.split_off(all.len() - incomplete_len(&all));
        String::from_utf8_lossy(&all).into_owned()
    }

    /// Forgets what is not complete; says whether there was anything.
    pub(crate) fn clear(&mut self) -> bool {
        let was_cut = !self.partial.is_empty();
        self.partial.clear();
        was_cut
    }
}

/// How many bytes at the end are the beginning of a character.
fn incomplete_len(bytes: &[u8]) -> usize {
    for (n, byte) in bytes.iter().rev().take(3).enumerate() {
        let length = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            // In the middle of a character: it begins further in front.
            0x80..=0xBF => continue,
            _ => return 0,
        };
        return if n + 1 < length { n + 1 } else { 0 };
    }
    0
}
