//! Parses incomplete JSON.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

/// Returns the complete members of an incomplete JSON object.
pub(crate) fn complete_members(written: &str) -> Map<String, Value> {
    // A number or a word at the end may be incomplete, so it is left out.
    let ends = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let written = written.trim_end_matches(ends);
    let mut members = Map::new();
    let mut json = serde_json::Deserializer::from_str(written);
    // The error at the end of the text is expected. The members before it have been collected.
    let _unfinished = json.deserialize_map(CompleteMembers(&mut members));
    members
}

/// Parses an incomplete JSON object for display, including a string that is cut off.
pub(crate) fn parse_partial(written: &str) -> Value {
    let ended = |text: &str| serde_json::from_str(&format!("{text}\"}}"));
    // The text may end inside an escape sequence, or between the two escapes of a surrogate pair.
    let unfinished = |at: &usize| {
        let mut rest = written.bytes().skip(*at);
        rest.all(|b| matches!(b, b'\\' | b'u') || b.is_ascii_hexdigit())
    };
    let escapes = written.rmatch_indices('\\').map(|(at, _)| at).take(2);
    let ends = std::iter::once(written.len()).chain(escapes.filter(unfinished));
    let mut texts = ends.filter_map(|end| written.get(..end));
    let object = texts.find_map(|text| ended(text).ok());
    object.unwrap_or_else(|| Value::Object(complete_members(written)))
}

/// A visitor that collects members up to the first incomplete one.
struct CompleteMembers<'a>(&'a mut Map<String, Value>);

impl<'de> Visitor<'de> for CompleteMembers<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((name, value)) = map.next_entry()? {
            self.0.insert(name, value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn incomplete_members_are_omitted() {
        for (written, whole) in [
            ("", json!({})),
            (r#"{"pa"#, json!({})),
            (r#"{"path":"src/ma"#, json!({})),
            (r#"{"path":"src/main.rs""#, json!({"path": "src/main.rs"})),
            (r#"{"path": "a", "line": 3"#, json!({"path": "a"})),
            (
                r#"{"path": "a", "line": 30, "li"#,
                json!({"path": "a", "line": 30}),
            ),
            (
                r#"{"a": [1, {"b": 2}], "c": [1, "#,
                json!({"a": [1, {"b": 2}]}),
            ),
            ("[1, 2]", json!({})),
            ("no JSON", json!({})),
        ] {
            assert_eq!(Value::Object(complete_members(written)), whole, "{written}");
        }
    }

    #[test]
    fn partial_json_is_parsed_wherever_it_ends() {
        let whole = json!({"path": "a", "text": "two\nlines, \"quoted\" \u{1f980} \\ and \u{e9}"});
        let mut written = whole.to_string();
        // Some models escape all non-ASCII characters.
        written = written.replace('\u{1f980}', "\\ud83e\\udd80");
        let from = written.find("two").unwrap();
        let all = whole["text"].as_str().unwrap();
        let mut longest = 0;
        for (end, _) in written.char_indices().filter(|(at, _)| *at >= from) {
            let shown = parse_partial(&written[..end]);
            assert_eq!(shown["path"], "a");
            let text = shown["text"].as_str().unwrap();
            assert!(all.starts_with(text), "{text:?} of {:?}", &written[..end]);
            assert!(text.len() + 8 > longest, "{text:?}");
            longest = longest.max(text.len());
        }
        assert_eq!(parse_partial(r#"{"path": "a", "te"#), json!({"path": "a"}));
        let behind = json!({"text": "a\nb"});
        assert_eq!(parse_partial(r#"{"text":"a\nb","line":3"#), behind);
        assert_eq!(parse_partial("[1"), json!({}));
        assert_eq!(parse_partial(r#"{"path": "a"}"#), json!({"path": "a"}));
    }
}
