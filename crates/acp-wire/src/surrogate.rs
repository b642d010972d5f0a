//! Handles lone surrogates, which are escapes for only half of a character.
//!
//! In JavaScript, a string can be cut in the middle of an emoji. `JSON.stringify` then writes the half as a separate
//! escape, `"\ud83d"`. That is valid by the grammar of JSON, but it is not Unicode, and `serde_json` does not read it
//! into a string. One escape of this kind must not make the whole message unreadable. Text that cannot be read is
//! therefore read again with U+FFFD in place of each lone surrogate. Text without errors is read only once.

use crate::text::parse_hex_u16;

/// Reads `text`. If that fails and `text` contains lone surrogates, replaces them and reads it again.
pub(crate) fn read_lossy<T, E>(text: &str, read: impl Fn(&str) -> Result<T, E>) -> Result<T, E> {
    read(text).or_else(|error| match replace_lone_surrogates(text) {
        Some(repaired) => read(&repaired),
        None => Err(error),
    })
}

/// Replaces each escaped lone surrogate with `\ufffd`. Returns `None` if there is none.
///
/// All positions stay the same, so the positions in error messages remain correct.
fn replace_lone_surrogates(text: &str) -> Option<String> {
    let mut repaired: Option<Vec<u8>> = None;
    let bytes = text.as_bytes();
    let mut at = 0;
    // Backslashes occur only in strings, and each starts an escape.
    while let Some(found) = memchr::memchr(b'\\', bytes.get(at..)?) {
        at += found;
        at += match (
            parse_code_unit_escape(bytes, at),
            parse_code_unit_escape(bytes, at + 6),
        ) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                repaired
                    .get_or_insert_with(|| bytes.to_vec())
                    .get_mut(at..at + 6)?
                    .copy_from_slice(b"\\ufffd");
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
    }
    String::from_utf8(repaired?).ok()
}

/// Returns the code unit of the escape at this position, or `None` if it does not have the form `\uXXXX`.
fn parse_code_unit_escape(bytes: &[u8], at: usize) -> Option<u16> {
    parse_hex_u16(bytes.get(at..at + 6)?.strip_prefix(b"\\u")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced() {
        for (text, expected) in [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\uDE00!""#, r#""\ufffd!""#),
            (
                r#""\ud83d\ud83d\ude00\ude00""#,
                r#""\ufffd\ud83d\ude00\ufffd""#,
            ),
            (
                r#""\ud83d\n\ud83dx\ud83d\u0041""#,
                r#""\ufffd\n\ufffdx\ufffd\u0041""#,
            ),
            (r#""\\\ud83d\"\ude00""#, r#""\\\ufffd\"\ufffd""#),
            (r#"{"é\ud800":["\udfff",1]}"#, r#"{"é\ufffd":["\ufffd",1]}"#),
        ] {
            assert_eq!(
                replace_lone_surrogates(text).as_deref(),
                Some(expected),
                "{text}"
            );
            serde_json::from_str::<serde_json::Value>(expected).unwrap();
        }
    }

    #[test]
    fn other_text_is_unchanged() {
        for text in [
            "",
            "{}",
            r#""\ud83d\ude00""#,
            r#""\\ud83d""#,
            r#""\\\\ude00 \u00e9 \uffff""#,
            // Not valid JSON.
            r#""\ud83"#,
            r#""\ud8+1""#,
            r#""\u"#,
            r"\",
        ] {
            assert_eq!(replace_lone_surrogates(text), None, "{text}");
        }
    }

    #[test]
    fn reads_once_on_success_and_at_most_twice() {
        let tries = std::cell::Cell::new(0);
        let read = |text: &str| {
            tries.set(tries.get() + 1);
            serde_json::from_str::<String>(text)
        };
        for (text, expected, tried) in [
            (r#""\ud83d\ude00""#, Some("\u{1f600}"), 1),
            (r#""a\ud83d""#, Some("a\u{fffd}"), 2),
            (r#"5"#, None, 1),
            (r#"["\ud83d"]"#, None, 2),
        ] {
            tries.set(0);
            assert_eq!(read_lossy(text, read).ok().as_deref(), expected, "{text}");
            assert_eq!(tries.get(), tried, "{text}");
        }
    }
}
