//! Decodes the output of commands and stores it in a limited amount of memory.

use std::collections::VecDeque;

/// Decodes UTF-8 that arrives in pieces. An incomplete character at the end of a piece is kept until the rest arrives.
/// Invalid bytes become U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Utf8Decoder {
    /// The first bytes of an incomplete character. At most three.
    pending: Vec<u8>,
}

impl Utf8Decoder {
    /// Decodes `bytes` and appends the result to `text`.
    pub(crate) fn decode(&mut self, bytes: &[u8], text: &mut String) {
        if self.pending.is_empty() {
            self.decode_all(bytes, text);
        } else {
            let mut joined = std::mem::take(&mut self.pending);
            joined.extend_from_slice(bytes);
            self.decode_all(&joined, text);
        }
    }

    fn decode_all(&mut self, mut bytes: &[u8], text: &mut String) {
        loop {
            match std::str::from_utf8(bytes) {
                Ok(valid) => return text.push_str(valid),
                Err(e) => {
                    let (valid, rest) = bytes.split_at(e.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    match e.error_len() {
                        Some(invalid) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            bytes = rest.get(invalid..).unwrap_or_default();
                        }
                        None => {
                            self.pending.extend_from_slice(rest);
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Finishes decoding at the end of the input. An incomplete character becomes U+FFFD.
    pub(crate) fn finish(&mut self, text: &mut String) {
        if !self.pending.is_empty() {
            self.pending.clear();
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// The last part of a text, limited to a number of bytes. It never starts in the middle of a character.
#[derive(Debug)]
pub(crate) struct BoundedText {
    limit: usize,
    /// The part of the text that is stored, in UTF-8.
    bytes: VecDeque<u8>,
    is_truncated: bool,
}

impl BoundedText {
    /// Creates a buffer that stores at most `limit` bytes. Memory is allocated only as text arrives.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            bytes: VecDeque::new(),
            is_truncated: false,
        }
    }

    pub(crate) fn push(&mut self, text: &str) {
        // Text that would be dropped is not copied, so that memory never exceeds the limit.
        let skip = text.len().saturating_sub(self.limit);
        let kept = text.as_bytes().get(skip..).unwrap_or_default();
        let excess = (self.bytes.len() + kept.len()).saturating_sub(self.limit);
        if skip > 0 || excess > 0 {
            self.is_truncated = true;
            self.bytes.drain(..excess.min(self.bytes.len()));
        }
        self.bytes.extend(kept);
        if self.is_truncated {
            while self.bytes.front().is_some_and(|byte| byte & 0xC0 == 0x80) {
                self.bytes.pop_front();
            }
        }
    }

    pub(crate) fn text(&self) -> String {
        let (front, back) = self.bytes.as_slices();
        let bytes = [front, back].concat();
        // Always valid UTF-8. The fallback only avoids a panic.
        String::from_utf8(bytes)
            .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
    }

    /// Returns `true` if text has been dropped because of the limit.
    pub(crate) fn is_truncated(&self) -> bool {
        self.is_truncated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_characters_are_joined_and_invalid_bytes_replaced() {
        let bytes = "aé€🦀".as_bytes();
        for cut in 0..=bytes.len() {
            let (mut decoder, mut text) = (Utf8Decoder::default(), String::new());
            decoder.decode(&bytes[..cut], &mut text);
            assert!("aé€🦀".starts_with(&text), "{text}");
            decoder.decode(&bytes[cut..], &mut text);
            decoder.finish(&mut text);
            assert_eq!(text, "aé€🦀");
        }
        let (mut decoder, mut text) = (Utf8Decoder::default(), String::new());
        decoder.decode(b"a\xFFb\xE2\x82", &mut text);
        assert_eq!(text, "a\u{FFFD}b");
        decoder.decode(b"c\xE2", &mut text);
        decoder.finish(&mut text);
        assert_eq!(text, "a\u{FFFD}b\u{FFFD}c\u{FFFD}");
    }

    #[test]
    fn truncation_respects_char_boundaries() {
        for limit in 0..12 {
            let mut kept = BoundedText::new(limit);
            let mut all = String::new();
            for piece in ["é", "a", "€€", "🦀", "xyz€"] {
                kept.push(piece);
                all.push_str(piece);
                let mut start = all.len().saturating_sub(limit);
                while !all.is_char_boundary(start) {
                    start += 1;
                }
                assert_eq!(kept.text(), all[start..], "limit {limit}");
                assert_eq!(kept.is_truncated(), all.len() > limit);
            }
        }
    }
}
