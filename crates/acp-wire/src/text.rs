//! Reads and writes the contents of a JSON string in pieces.
//!
//! `serde_json` reads and writes a string as a whole, and collects a string with escapes in a separate buffer. With
//! this module, content as large as a file can be sent while it is being written, and read while it arrives.

/// The outcome of reading a piece of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringProgress {
    /// The piece was read to its end, except for the last few bytes, which may be the start of a character or an
    /// escape.
    Incomplete,
    /// The piece was read up to the quote that ends the string.
    Complete,
    /// The piece was read up to a byte that is not valid in a JSON string.
    Invalid,
}

/// The length of the longest escape, a surrogate pair: `\ud83d\ude00`.
const MAX_ESCAPE_BYTES: usize = 12;

/// Decodes a piece of a JSON string and appends the result to `text`. Resolves escapes, and reads a lone surrogate as
/// U+FFFD. Returns how many bytes of the piece were read, and why reading stopped.
pub fn unescape(piece: &[u8], text: &mut String) -> (usize, StringProgress) {
    let (valid, mut end) = match std::str::from_utf8(piece) {
        Ok(valid) => (valid, StringProgress::Incomplete),
        Err(error) => {
            let valid = piece.get(..error.valid_up_to()).unwrap_or_default();
            // A whole but invalid character is an error, unless the string ends before it.
            let end = error
                .error_len()
                .map_or(StringProgress::Incomplete, |_| StringProgress::Invalid);
            (std::str::from_utf8(valid).unwrap_or_default(), end)
        }
    };
    let mut rest = valid;
    loop {
        let (plain, from) = rest.split_at(plain_len(rest.as_bytes()));
        text.push_str(plain);
        rest = from;
        if from.is_empty() {
            break;
        }
        if from.starts_with('"') {
            end = StringProgress::Complete;
            break;
        }
        if let Some((character, behind)) = read_escape(from) {
            text.push(character);
            rest = behind;
            continue;
        }
        // An unfinished escape can continue in the next piece. A control character is invalid in JSON.
        let cut = from.starts_with('\\')
            && from.len() < MAX_ESCAPE_BYTES
            && end == StringProgress::Incomplete;
        end = if cut {
            StringProgress::Incomplete
        } else {
            StringProgress::Invalid
        };
        break;
    }
    (valid.len() - rest.len(), end)
}

/// Returns the number of bytes before the first byte that must be escaped in a JSON string.
fn plain_len(bytes: &[u8]) -> usize {
    const WORD_SIZE: usize = size_of::<u64>();
    const ONE_PER_BYTE: u64 = 0x0101_0101_0101_0101;
    // Sets the highest bit of each byte that is below `n`. Bytes after the first such byte may have it set in error.
    let below =
        |word: u64, n: u64| word.wrapping_sub(ONE_PER_BYTE * n) & !word & (ONE_PER_BYTE << 7);
    let (words, _) = bytes.as_chunks::<WORD_SIZE>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let [quote, backslash] =
            [b'"', b'\\'].map(|c| below(word ^ (ONE_PER_BYTE * u64::from(c)), 1));
        let special = below(word, 0x20) | quote | backslash;
        if special != 0 {
            return at * WORD_SIZE + special.trailing_zeros() as usize / 8;
        }
    }
    let from = words.len() * WORD_SIZE;
    let rest = bytes.get(from..).unwrap_or_default();
    let special = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\');
    from + rest.iter().position(special).unwrap_or(rest.len())
}

/// Reads the escape at the start of a string. Returns its character and the rest of the string, or `None` if the escape
/// is invalid or may be incomplete.
fn read_escape(from: &str) -> Option<(char, &str)> {
    let mut chars = from.strip_prefix('\\')?.chars();
    let character = match chars.next()? {
        same @ ('"' | '\\' | '/') => same,
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => return read_unicode_escape(chars.as_str()),
        _ => return None,
    };
    Some((character, chars.as_str()))
}

fn read_unicode_escape(digits: &str) -> Option<(char, &str)> {
    let (first, behind) = read_code_unit(digits)?;
    if !matches!(first, 0xd800..=0xdbff) {
        // A low surrogate on its own is also a lone surrogate.
        let character = char::from_u32(first.into()).unwrap_or(char::REPLACEMENT_CHARACTER);
        return Some((character, behind));
    }
    let half = Some((char::REPLACEMENT_CHARACTER, behind));
    match behind.as_bytes() {
        [b'\\', b'u', _, _, _, _, ..] => match read_code_unit(behind.get(2..)?) {
            Some((second @ 0xdc00..=0xdfff, behind)) => {
                let character = char::decode_utf16([first, second]).next()?.ok()?;
                Some((character, behind))
            }
            _ => half,
        },
        // The low surrogate can still follow.
        [] | [b'\\'] | [b'\\', b'u', ..] => None,
        _ => half,
    }
}

/// Appends a string, escaped as the contents of a JSON string.
pub fn escape_into(out: &mut Vec<u8>, text: &str) {
    const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut rest = text.as_bytes();
    loop {
        let (plain, from) = rest.split_at(plain_len(rest));
        out.extend_from_slice(plain);
        let Some((byte, behind)) = from.split_first() else {
            return;
        };
        rest = behind;
        let short = match byte {
            b'\n' => b'n',
            b'\t' => b't',
            b'\r' => b'r',
            0x08 => b'b',
            0x0c => b'f',
            b'"' | b'\\' => *byte,
            _ => {
                let digits = [byte >> 4, byte & 0xf].map(|d| HEX_DIGITS[usize::from(d)]);
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&digits);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
}

/// Reads four hexadecimal digits. Returns their value and the rest of the string.
fn read_code_unit(text: &str) -> Option<(u16, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    Some((parse_hex_u16(digits.as_bytes())?, rest))
}

/// Parses up to four hexadecimal digits. Returns `None` if there is any other character.
pub(crate) fn parse_hex_u16(digits: &[u8]) -> Option<u16> {
    // `from_str_radix` would accept a sign, too.
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the text between the quotes of a JSON string. Returns `None` if the string is invalid or contains a
    /// quote.
    fn unescape_all(inner: &str) -> Option<String> {
        let mut text = String::new();
        let (used, end) = unescape(format!("{inner}\"").as_bytes(), &mut text);
        (end == StringProgress::Complete && used == inner.len()).then_some(text)
    }

    #[test]
    fn lone_surrogates_are_replaced() {
        for (inner, text) in [
            (r"\ud83d\ude00!", "😀!"),
            (r"\ud83d!", "\u{fffd}!"),
            (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
        ] {
            assert_eq!(unescape_all(inner).as_deref(), Some(text), "{inner}");
        }
    }

    #[test]
    fn invalid_strings_cannot_be_unescaped() {
        for inner in [r#"a"b"#, r"\x", r"\u12", r"\u+123", "\\"] {
            assert_eq!(unescape_all(inner), None, "{inner}");
        }
    }

    /// Reads bytes in pieces of `size` bytes. The unread rest of each piece is prepended to the next piece.
    fn unescape_in_pieces(bytes: &[u8], size: usize) -> (String, StringProgress) {
        let (mut text, mut waiting) = (String::new(), Vec::new());
        for piece in bytes.chunks(size) {
            waiting.extend_from_slice(piece);
            let (used, end) = unescape(&waiting, &mut text);
            waiting.drain(..used);
            assert!(waiting.len() < MAX_ESCAPE_BYTES || end != StringProgress::Incomplete);
            if end != StringProgress::Incomplete {
                return (text, end);
            }
        }
        (text, StringProgress::Incomplete)
    }

    #[test]
    fn control_characters_and_invalid_utf8_are_invalid() {
        for bytes in [
            &b"a\x01b\""[..],
            b"a\xffb\"",
            b"\\x and more text\"",
            b"\\u12g4 and more text\"",
        ] {
            for size in 1..bytes.len() {
                assert_eq!(
                    unescape_in_pieces(bytes, size).1,
                    StringProgress::Invalid,
                    "{bytes:?} by {size}"
                );
            }
        }
        // Bytes after the end are ignored.
        assert_eq!(
            unescape_in_pieces(b"a\"\xff", 9),
            ("a".to_owned(), StringProgress::Complete)
        );
    }

    proptest! {
        #[test]
        fn splitting_the_input_does_not_change_the_result(
            parts: Vec<(String, proptest::sample::Index)>,
            size in 1..40_usize,
        ) {
            const ESCAPES: [&str; 6] = [r"\ud83d\ude00", r"\ud83d", r"\ude00", r"\u00e9", r"\n", r#"\""#];
            let mut inner = Vec::new();
            for (text, escape) in &parts {
                escape_into(&mut inner, text);
                inner.extend_from_slice(escape.get(&ESCAPES).as_bytes());
            }
            let whole = unescape_all(std::str::from_utf8(&inner).unwrap()).unwrap();
            inner.extend_from_slice(b"\"}}");
            prop_assert_eq!(unescape_in_pieces(&inner, size), (whole, StringProgress::Complete));
        }

        #[test]
        fn escaping_in_pieces_equals_escaping_the_whole(text: String, at: proptest::sample::Index) {
            let mut cut = at.index(text.len() + 1);
            while !text.is_char_boundary(cut) {
                cut -= 1;
            }
            let (before, behind) = text.split_at(cut);
            let mut out = b"\"".to_vec();
            escape_into(&mut out, before);
            escape_into(&mut out, behind);
            out.push(b'"');
            prop_assert_eq!(out, serde_json::to_vec(&text).unwrap());
        }

        #[test]
        fn unescape_agrees_with_serde_json(text: String) {
            let json = serde_json::to_string(&text).unwrap();
            let inner = json.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
            prop_assert_eq!(unescape_all(inner), Some(text));
        }

        #[test]
        fn no_input_causes_a_panic(inner: String) {
            let json = format!("\"{inner}\"");
            // If both readers accept the string, they read the same text.
            if let (Some(text), Ok(read)) = (unescape_all(&inner), serde_json::from_str::<String>(&json)) {
                prop_assert_eq!(text, read);
            }
        }
    }
}
