//! Tests whether lines are JSON. This is fast for a line that starts like the previous one.
//!
//! What is known about the start of a line is true of every line with the same start. The checker notes the positions
//! at which a name or a value starts, and parses the next line from the last position that the two lines share. For a
//! streamed message, only the text remains to be parsed.

use serde::de::IgnoredAny;

/// The maximum number of positions to remember for each line.
const MAX_POSITIONS: usize = 64;

/// The maximum nesting depth that this parser supports. Lines with deeper nesting are parsed by serde_json.
const MAX_DEPTH: u32 = u64::BITS;

/// The token that the parser expects next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedToken {
    Value,
    /// A value, or the end of an empty array.
    FirstItem,
    Name,
    /// A name, or the end of an empty object.
    FirstName,
    /// A comma, or the end of the object or array.
    AfterValue,
}

/// A position in a line, with the state of the parser there.
#[derive(Debug, Clone, Copy)]
struct JsonPosition {
    offset: usize,
    next: ExpectedToken,
    depth: u32,
    /// One bit for each open object or array, with the innermost in the lowest bit. The bit is set for an object.
    objects: u64,
}

impl JsonPosition {
    const START: Self = Self {
        offset: 0,
        next: ExpectedToken::Value,
        depth: 0,
        objects: 0,
    };

    fn open(&mut self, object: bool) -> Option<()> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        self.objects = (self.objects << 1) | u64::from(object);
        self.next = if object {
            ExpectedToken::FirstName
        } else {
            ExpectedToken::FirstItem
        };
        Some(())
    }

    fn close(&mut self, object: bool) -> Option<()> {
        if self.depth == 0 || self.is_in_object() != object {
            return None;
        }
        self.depth -= 1;
        self.objects >>= 1;
        self.next = ExpectedToken::AfterValue;
        Some(())
    }

    fn is_in_object(&self) -> bool {
        self.objects & 1 == 1
    }
}

/// A JSON checker for a sequence of lines.
#[derive(Debug, Default)]
pub(super) struct JsonChecker {
    /// The remembered positions in the previous line, in order. The line up to each position is valid UTF-8 and a
    /// prefix of valid JSON.
    positions: Vec<JsonPosition>,
}

impl JsonChecker {
    /// Returns `true` if the line is JSON, and therefore UTF-8. Its first `shared` bytes must equal those of the
    /// previous line.
    pub(super) fn is_json(&mut self, line: &[u8], shared: usize) -> bool {
        while self
            .positions
            .pop_if(|place| place.offset > shared)
            .is_some()
        {}
        let place = self
            .positions
            .last()
            .copied()
            .unwrap_or(JsonPosition::START);
        // A position is never inside a character.
        let rest = line.get(place.offset..).unwrap_or_default();
        let is_text = std::str::from_utf8(rest).is_ok();
        if is_text && self.parse(line, place).is_some() {
            return true;
        }
        self.positions.clear();
        is_text && serde_json::from_slice::<IgnoredAny>(line).is_ok()
    }

    /// Parses the line from a position to its end. Returns `None` if the line is not JSON, or nested too deeply for
    /// this parser.
    fn parse(&mut self, line: &[u8], mut place: JsonPosition) -> Option<()> {
        // The first position has been noted already.
        let mut noted = !self.positions.is_empty();
        loop {
            if matches!(place.next, ExpectedToken::Value | ExpectedToken::Name)
                && self.positions.len() < MAX_POSITIONS
            {
                if !noted {
                    self.positions.push(place);
                }
                noted = false;
            }
            place.offset = skip_space(line, place.offset);
            let Some(&byte) = line.get(place.offset) else {
                return (place.next == ExpectedToken::AfterValue && place.depth == 0).then_some(());
            };
            match (place.next, byte) {
                (ExpectedToken::Value | ExpectedToken::FirstItem, b'"') => {
                    place.offset = skip_string(line, place.offset + 1)?;
                    place.next = ExpectedToken::AfterValue;
                    continue;
                }
                (ExpectedToken::Value | ExpectedToken::FirstItem, b'{') => place.open(true)?,
                (ExpectedToken::Value | ExpectedToken::FirstItem, b'[') => place.open(false)?,
                (ExpectedToken::FirstItem, b']') => place.close(false)?,
                (ExpectedToken::Value | ExpectedToken::FirstItem, _) => {
                    place.offset = skip_scalar(line, place.offset)?;
                    place.next = ExpectedToken::AfterValue;
                    continue;
                }
                (ExpectedToken::Name | ExpectedToken::FirstName, b'"') => {
                    place.offset = skip_space(line, skip_string(line, place.offset + 1)?);
                    if line.get(place.offset) != Some(&b':') {
                        return None;
                    }
                    place.next = ExpectedToken::Value;
                }
                (ExpectedToken::FirstName, b'}') => place.close(true)?,
                (ExpectedToken::AfterValue, b',') if place.depth > 0 => {
                    place.next = if place.is_in_object() {
                        ExpectedToken::Name
                    } else {
                        ExpectedToken::Value
                    };
                }
                (ExpectedToken::AfterValue, b'}') => place.close(true)?,
                (ExpectedToken::AfterValue, b']') => place.close(false)?,
                _ => return None,
            }
            place.offset += 1;
        }
    }
}

/// Returns the position after any whitespace.
fn skip_space(line: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r' | b'\n') = line.get(at) {
        at += 1;
    }
    at
}

/// Returns the position after the closing quote. `at` is the position after the opening one.
fn skip_string(line: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += plain_len(line.get(at..)?);
        match line.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => {}
            _ => return None,
        }
        match line.get(at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
            b'u' => {
                let digits = line.get(at + 2..at + 6)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                at += 6;
            }
            _ => return None,
        }
    }
}

/// Returns the number of bytes before the first special byte of a JSON string: a quote, a backslash or a control
/// character.
fn plain_len(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        // This sets the highest bit of each special byte, and of some bytes after one.
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (ONES * u64::from(b'"'));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let special = (word.wrapping_sub(ONES * 0x20) & !word)
            | (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash);
        let special = special & HIGH;
        if special != 0 {
            return index * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let own = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    let in_rest = rest.iter().position(own).unwrap_or(rest.len());
    words.len() * 8 + in_rest
}

/// Returns the position after the number or literal that starts at `at`, or `None` if it is invalid.
fn skip_scalar(line: &[u8], at: usize) -> Option<usize> {
    let rest = line.get(at..)?;
    for word in [&b"null"[..], b"true", b"false"] {
        if rest.starts_with(word) {
            return Some(at + word.len());
        }
    }
    let digits = |from: usize| {
        let digits = line.get(from..).unwrap_or_default().iter();
        from + digits.take_while(|byte| byte.is_ascii_digit()).count()
    };
    let start = at + usize::from(rest.first() == Some(&b'-'));
    let mut end = digits(start);
    if end == start || (end > start + 1 && line.get(start) == Some(&b'0')) {
        return None;
    }
    if line.get(end) == Some(&b'.') {
        let fraction = end + 1;
        end = digits(fraction);
        if end == fraction {
            return None;
        }
    }
    if let Some(b'e' | b'E') = line.get(end) {
        let sign = usize::from(matches!(line.get(end + 1), Some(b'+' | b'-')));
        let exponent = end + 1 + sign;
        end = digits(exponent);
        if end == exponent {
            return None;
        }
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn is_json(line: &[u8]) -> bool {
        serde_json::from_slice::<IgnoredAny>(line).is_ok() && std::str::from_utf8(line).is_ok()
    }

    /// Checks that the results for all lines agree with serde_json. Passes the checker the length of the prefix that
    /// each line shares with the previous one.
    fn assert_same_as_serde(lines: &[Vec<u8>]) {
        let mut checker = JsonChecker::default();
        let mut before: &[u8] = &[];
        for line in lines {
            let shared = before.iter().zip(line).take_while(|(a, b)| a == b).count();
            let checked = checker.is_json(line, shared);
            assert_eq!(checked, is_json(line), "{}", line.escape_ascii());
            before = line;
        }
    }

    fn arbitrary_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            "\\PC{0,20}".prop_map(Value::String),
            "[\"\\\\\u{1}-\u{7f}]{0,9}".prop_map(Value::String),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            Just(Value::Null),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z\"\\\\]{0,9}", inner, 0..4).prop_map(|members| {
                    members
                        .into_iter()
                        .collect::<serde_json::Map<_, _>>()
                        .into()
                }),
            ]
        })
    }

    #[test]
    fn valid_json_is_recognized() {
        let json = [
            r#" {"a" : [1, -0.5e+7, 0, 1E9, "x\u00e9\n\/", true, false, null, {}, []] } "#,
            "\"\"",
            "0",
            "-0.0",
            "[[[]]]\r",
            &format!("{}{}", "[".repeat(64), "]".repeat(64)),
            &format!("{}{}", "[".repeat(65), "]".repeat(65)),
        ];
        for json in json {
            assert!(JsonChecker::default().is_json(json.as_bytes(), 0), "{json}");
        }
        let no_json = [
            "",
            " ",
            "{",
            "}",
            "[1,]",
            "{,}",
            "{\"a\":1,}",
            "{\"a\"}",
            "{\"a\" 1}",
            "{1:1}",
            "[1}",
            "{\"a\":1]",
            "1 2",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "1e+",
            "+1",
            "nul",
            "nulll",
            "True",
            "\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\u12\"",
            "\"\t\"",
            "\"a\u{1f}b\"",
            "[1 2]",
            "]",
            ",",
            ":",
            "{\"a\":}",
            "[,1]",
            "{}{}",
            "\u{feff}1",
            "\"\\",
        ];
        for no_json in no_json {
            assert!(!is_json(no_json.as_bytes()), "{no_json}");
            assert!(
                !JsonChecker::default().is_json(no_json.as_bytes(), 0),
                "{no_json}"
            );
        }
        assert!(!JsonChecker::default().is_json(b"\"\xff\"", 0));
    }

    proptest! {
        /// Generates lines that start the same way but end differently. Most of them are JSON.
        #[test]
        fn results_agree_with_serde_json(
            values in prop::collection::vec((arbitrary_json(), any::<bool>()), 1..4),
            edits in prop::collection::vec(
                (any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::option::of(any::<u8>())), 0..12),
        ) {
            let mut lines: Vec<Vec<u8>> = Vec::new();
            for (value, pretty) in &values {
                lines.push(if *pretty {
                    serde_json::to_vec_pretty(value).unwrap()
                } else {
                    serde_json::to_vec(value).unwrap()
                });
            }
            for (which, place, byte) in edits {
                let mut line = lines[which.index(lines.len())].clone();
                if !line.is_empty() {
                    let at = place.index(line.len());
                    match byte {
                        Some(byte) if byte & 1 == 0 => line[at] = br#"{}[],:"\0e-. "#[usize::from(byte) / 2 % 13],
                        Some(byte) => line[at] = byte,
                        None => line.truncate(at),
                    }
                }
                let original = lines[which.index(lines.len())].clone();
                lines.extend([line, original]);
            }
            assert_same_as_serde(&lines);
        }
    }
}
