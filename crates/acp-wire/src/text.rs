//! The text of a JSON string, made in one piece.
//!
//! `serde_json` puts a string that has escapes together in a buffer of its own and copies it from there. For
//! what is as large as a file that is one copy too many.

/// The text between the quotes of a JSON string, with its escapes resolved; half a character reads as U+FFFD.
/// `None` if there is a quote in it, or if it is not from JSON that has been checked.
pub(crate) fn unescaped(inner: &str) -> Option<String> {
    // Escapes are longer than what they stand for.
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr2(b'\\', b'"', rest.as_bytes()) {
        text.push_str(rest.get(..at)?);
        // A quote begins with no backslash.
        rest = rest.get(at..)?.strip_prefix('\\')?;
        let escape = rest.chars().next()?;
        rest = rest.get(escape.len_utf8()..)?;
        text.push(match escape {
            '"' | '\\' | '/' => escape,
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let (first, behind) = unit(rest)?;
                rest = behind;
                let second = match first {
                    0xd800..=0xdbff => rest.strip_prefix("\\u").and_then(unit),
                    _ => None,
                };
                match second {
                    Some((second @ 0xdc00..=0xdfff, behind)) => {
                        rest = behind;
                        char::decode_utf16([first, second]).next()?.ok()?
                    }
                    _ => char::from_u32(first.into()).unwrap_or(char::REPLACEMENT_CHARACTER),
                }
            }
            _ => return None,
        });
    }
    text.push_str(rest);
    Some(text)
}

/// Four hexadecimal digits, and what is behind them.
fn unit(text: &str) -> Option<(u16, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    Some((code_unit(digits.as_bytes())?, rest))
}

/// What hexadecimal digits stand for.
pub(crate) fn code_unit(digits: &[u8]) -> Option<u16> {
    // `from_str_radix` would take a sign, too.
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn halves_of_characters_are_replaced() {
        for (inner, text) in [
            (r"\ud83d\ude00!", "😀!"),
            (r"\ud83d!", "\u{fffd}!"),
            (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
        ] {
            assert_eq!(unescaped(inner).as_deref(), Some(text), "{inner}");
        }
    }

    #[test]
    fn what_is_no_text_of_a_string_is_none() {
        for inner in [r#"a"b"#, r"\x", r"\u12", r"\u+123", "\\"] {
            assert_eq!(unescaped(inner), None, "{inner}");
        }
    }

    proptest! {
        #[test]
        fn it_is_what_serde_json_reads(text: String) {
            let json = serde_json::to_string(&text).unwrap();
            let inner = json.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
            prop_assert_eq!(unescaped(inner), Some(text));
        }

        #[test]
        fn nothing_makes_it_panic(inner: String) {
            let json = format!("\"{inner}\"");
            // What both read, they read alike.
            if let (Some(text), Ok(read)) = (unescaped(&inner), serde_json::from_str::<String>(&json)) {
                prop_assert_eq!(text, read);
            }
        }
    }
}
