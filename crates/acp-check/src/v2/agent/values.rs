//! Helpers for testing values, shared by the checks of several pages.

use serde_json::Value;

/// Returns the first value that occurs more than once, ignoring nulls.
pub(super) fn find_duplicate<'a>(values: impl Iterator<Item = &'a Value>) -> Option<&'a Value> {
    let mut seen: Vec<&Value> = Vec::new();
    for value in values.filter(|value| !value.is_null()) {
        if seen.contains(&value) {
            return Some(value);
        }
        seen.push(value);
    }
    None
}

/// Returns `true` if `text` is base64 as defined in RFC 4648, with padding.
pub(super) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    text.len().is_multiple_of(4) && padding <= 2 && body.bytes().all(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_recognized_by_its_syntax() {
        for right in ["", "eA==", "eHg=", "eHh4", "+/+/"] {
            assert!(is_base64(right), "{right}");
        }
        for wrong in ["e", "eA=", "e===", "eA==eA==", "e\n==", "e-_=", "x x="] {
            assert!(!is_base64(wrong), "{wrong}");
        }
    }
}
