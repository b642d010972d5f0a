//! How much memory a message takes once it has been read, told from its text.
//!
//! Small JSON can be large in memory: `[{"":0},{"":0}]` is a hundred times as large as a tree. What is counted
//! here is never much too low, so that a message can be refused before any of it is made.

/// The text itself, which is copied once where a part of it may be malformed.
const TEXT: usize = 2;
/// An object: a record of the protocol's, or a node of a B-tree, which has room for eleven.
const OBJECT: usize = 704;
/// A list: room for four.
const LIST: usize = 192;
/// One more of either: nodes are half full at worst, and lists grow by doubling.
const ITEM: usize = 192;
/// A string, beside its bytes.
const STRING: usize = 48;

/// What a message takes, in bytes. Of what is no JSON it tells something that is no less harmless.
pub(crate) fn memory(text: &[u8]) -> usize {
    let mut sum = text.len().saturating_mul(TEXT);
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        sum = sum.saturating_add(match byte {
            b'{' => OBJECT,
            b'[' => LIST,
            b',' => ITEM,
            b'"' => {
                rest = behind_string(rest);
                STRING
            }
            _ => 0,
        });
    }
    sum
}

/// What is behind the end of a string.
fn behind_string(mut text: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', text) {
        let escape = text.get(at) == Some(&b'\\');
        text = text.get(at + 1 + usize::from(escape)..).unwrap_or_default();
        if !escape {
            return text;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_string_is_only_text() {
        let plain = memory(br#"{"a":""}"#);
        let text = r#",,[[{{\"\\"#;
        let with_text = format!(r#"{{"a":"{text}"}}"#);
        assert_eq!(memory(with_text.as_bytes()), plain + TEXT * text.len());
        assert_eq!(memory(br#"{"a":[]}"#), plain + LIST - STRING);
        // Cut off anywhere, it is counted as far as it goes.
        assert!(memory(br#"{"a":"\"#) > 0);
        assert_eq!(memory(b""), 0);
    }
}
