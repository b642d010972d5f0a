//! Text with half of a character in it.
//!
//! In JavaScript a string may be cut within an emoji, and `JSON.stringify` writes the half as an escape
//! of its own, `"\ud83d"`. That is JSON by its grammar, but no Unicode: `serde_json` refuses to read it
//! into a string. One such half must not lose the whole message, so what cannot be read is read once more
//! with U+FFFD in place of each half. What can be read costs nothing.

use crate::text::code_unit;

/// Reads `text`; if that fails for halves of characters, reads it without them.
pub(crate) fn read_lossy<T, E>(text: &str, read: impl Fn(&str) -> Result<T, E>) -> Result<T, E> {
    read(text).or_else(|error| match replace_lone_surrogates(text) {
        Some(mended) => read(&mended),
        None => Err(error),
    })
}

/// The JSON text with `\ufffd` for each escape of a lone surrogate; `None` if there is none.
///
/// A place in the one is the same place in the other, so what is said of an error stays true.
fn replace_lone_surrogates(text: &str) -> Option<String> {
    let mut mended: Option<Vec<u8>> = None;
    let bytes = text.as_bytes();
    let mut at = 0;
    // Backslashes are in strings only, and each begins an escape.
    while let Some(found) = memchr::memchr(b'\\', bytes.get(at..)?) {
        at += found;
        at += match (
            escaped_code_unit(bytes, at),
            escaped_code_unit(bytes, at + 6),
        ) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                mended
                    .get_or_insert_with(|| bytes.to_vec())
                    .get_mut(at..at + 6)?
                    .copy_from_slice(b"\\ufffd");
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
    }
    String::from_utf8(mended?).ok()
}

/// What the escape at a place stands for, if it is one of the form `\uXXXX`.
fn escaped_code_unit(bytes: &[u8], at: usize) -> Option<u16> {
    code_unit(bytes.get(at..at + 6)?.strip_prefix(b"\\u")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced() {
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
    fn all_else_stays_as_it_is() {
        for text in [
            "",
            "{}",
            r#""\ud83d\ude00""#,
            r#""\\ud83d""#,
            r#""\\\\ude00 \u00e9 \uffff""#,
            // Not JSON at all.
            r#""\ud83"#,
            r#""\ud8+1""#,
            r#""\u"#,
            r"\",
        ] {
            assert_eq!(replace_lone_surrogates(text), None, "{text}");
        }
    }

    #[test]
    fn reading_is_tried_once_when_it_succeeds_and_at_most_twice() {
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
