//! Estimates a parsed message's memory from its text.

use super::{MAP_BYTES, STRING_BYTES};

/// The number of bytes of memory counted for each byte of text. Text counts twice because parts that may be malformed
/// are copied once.
const MEMORY_PER_TEXT_BYTE: usize = 2;
/// The memory counted for an object, in bytes. Protocol structs are smaller than maps, so this covers both.
const OBJECT_BYTES: usize = MAP_BYTES;
/// The memory of a list with capacity for four items, in bytes.
const LIST_BYTES: usize = 192;
/// The memory of each additional item in a list or an object, in bytes. Lists grow by doubling, and map nodes are at
/// least half full.
const ITEM_BYTES: usize = 192;

/// Estimates a message's memory, in bytes. Returns `None` if the estimate is within `limit`.
pub(crate) fn excess_memory(text: &[u8], limit: usize) -> Option<usize> {
    // No byte counts for more than this.
    if text.len() <= limit / (MEMORY_PER_TEXT_BYTE + OBJECT_BYTES)
        || memory_upper_bound(text) <= limit
    {
        return None;
    }
    Some(parsed_memory(text)).filter(|memory| *memory > limit)
}

/// Returns an upper bound of the estimate by also counting characters inside strings. This is much faster than the
/// estimate for a message that is mostly one string, such as the text of a file.
fn memory_upper_bound(text: &[u8]) -> usize {
    let mut sum = text.len().saturating_mul(MEMORY_PER_TEXT_BYTE);
    // Each count of a part fits into a byte, so that the compiler can vectorize the comparisons.
    for part in text.chunks(255) {
        let (mut objects, mut lists, mut items, mut quotes) = (0_u8, 0_u8, 0_u8, 0_u8);
        for byte in part {
            objects += u8::from(*byte == b'{');
            lists += u8::from(*byte == b'[');
            items += u8::from(*byte == b',');
            quotes += u8::from(*byte == b'"');
        }
        let part = usize::from(objects) * OBJECT_BYTES
            + usize::from(lists) * LIST_BYTES
            + usize::from(items) * ITEM_BYTES
            + usize::from(quotes) * STRING_BYTES;
        sum = sum.saturating_add(part);
    }
    sum
}

/// Estimates a message's memory once parsed, in bytes. The message need not be valid JSON.
pub(crate) fn parsed_memory(text: &[u8]) -> usize {
    let mut sum = text.len().saturating_mul(MEMORY_PER_TEXT_BYTE);
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        sum = sum.saturating_add(match byte {
            b'{' => OBJECT_BYTES,
            b'[' => LIST_BYTES,
            b',' => ITEM_BYTES,
            b'"' => {
                rest = skip_string(rest);
                STRING_BYTES
            }
            _ => 0,
        });
    }
    sum
}

/// Returns the text after the end of a string.
fn skip_string(mut text: &[u8]) -> &[u8] {
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
    fn no_message_is_rejected_by_the_upper_bound_alone() {
        let text = br#"{"a":[1,{"b":"[[[[{{{{,,,,"}]}"#;
        let exact = parsed_memory(text);
        assert!(memory_upper_bound(text) > exact);
        for limit in [exact - 1, exact, memory_upper_bound(text), 10 * exact] {
            let over = (limit < exact).then_some(exact);
            assert_eq!(excess_memory(text, limit), over, "{limit}");
        }
    }

    #[test]
    fn characters_inside_strings_count_as_text() {
        let plain = parsed_memory(br#"{"a":""}"#);
        let text = r#",,[[{{\"\\"#;
        let with_text = format!(r#"{{"a":"{text}"}}"#);
        assert_eq!(
            parsed_memory(with_text.as_bytes()),
            plain + MEMORY_PER_TEXT_BYTE * text.len()
        );
        assert_eq!(
            parsed_memory(br#"{"a":[]}"#),
            plain + LIST_BYTES - STRING_BYTES
        );
        // A truncated text is counted up to its end.
        assert!(parsed_memory(br#"{"a":"\"#) > 0);
        assert_eq!(parsed_memory(b""), 0);
    }
}
