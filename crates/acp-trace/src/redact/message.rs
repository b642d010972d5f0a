//! Redacts secrets in messages. A scanner finds strings and numbers, and the names of their fields. Messages are not
//! parsed into trees, because everything else must stay identical, byte for byte.
//!
//! The scanner must not fail on input that is not JSON, because truncated messages are redacted too.

use std::borrow::Cow;
use std::ops::Range;

use acp_rules::REDACTED;

use super::commands;
use super::names::{self, NameKind};
use super::text_redactor::TextRedactor;

/// Redacts secrets in a JSON message. Returns the redacted message and the number of secrets, or `None` if there are
/// none.
pub(super) fn redact_message(texts: &TextRedactor, json: &str) -> Option<(String, u64)> {
    let mut walk = RedactionScanner {
        texts,
        text: json,
        offset: 0,
        frames: Vec::new(),
        replacements: Vec::new(),
    };
    walk.scan();
    if walk.replacements.is_empty() {
        return None;
    }
    // Some replacements are known only when an object ends, so they are added late.
    let mut found = walk.replacements;
    found.sort_by_key(|(place, _)| place.start);
    let mut redacted = String::with_capacity(json.len());
    let mut end = 0;
    let mut count = 0;
    for (place, instead) in found {
        // A secret may be found twice: by its own form and by the text next to it.
        if place.start < end {
            continue;
        }
        redacted.push_str(json.get(end..place.start)?);
        redacted.push_str(&instead);
        end = place.end;
        count += 1;
    }
    redacted.push_str(json.get(end..)?);
    Some((redacted, count))
}

/// The names of fields that contain the arguments of a program.
const ARGUMENT_FIELDS: &[&str] = &["args", "arguments", "argv"];

/// The names of fields that contain a command line, or text that includes one.
const COMMAND_FIELDS: &[&str] = &["command", "cmd", "commandLine", "script", "title"];

/// The maximum number of strings in a list to keep for checking them together. No command has more arguments.
const MAX_ARGUMENTS: usize = 4096;

/// The rule that determines which strings and numbers to replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RedactionMode {
    /// Replace only values that look like secrets.
    Keep,
    /// Replace all strings.
    Strings,
    /// Replace all strings and numbers.
    All,
}

/// The meaning of an object or a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonContext {
    Plain,
    /// Environment variables or headers, as a list or as an object with their names as keys.
    Variables,
    /// One variable or header in a list.
    Variable,
    /// The fields of a form, with their schemas by name.
    Properties,
    /// The schema of a form field that contains a secret.
    SecretProperty,
}

/// An object or array that the scanner is currently inside.
#[derive(Debug)]
struct JsonFrame {
    is_object: bool,
    /// The mode for everything inside the object or array, at any depth.
    mode: RedactionMode,
    context: JsonContext,
    /// Whether the next string is the name of a field.
    awaits_name: bool,
    /// The name of the current field.
    name: String,
    /// Whether the value of the object's `name` field hints at a secret.
    has_secret_name: bool,
    /// The position of the object's `value` field, if it is a string.
    value: Option<Range<usize>>,
    /// Whether the previous argument was a flag whose value is a secret.
    is_after_flag: bool,
    /// For an object, the program that it runs and the program's arguments. For an array, its strings.
    program: Option<String>,
    arguments: Vec<(Range<usize>, String)>,
}

struct RedactionScanner<'a> {
    texts: &'a TextRedactor,
    text: &'a str,
    offset: usize,
    frames: Vec<JsonFrame>,
    /// The ranges to replace, with their replacements.
    replacements: Vec<(Range<usize>, String)>,
}

impl RedactionScanner<'_> {
    fn scan(&mut self) {
        while let Some(&byte) = self.text.as_bytes().get(self.offset) {
            match byte {
                b'{' | b'[' => self.open(byte == b'{'),
                b'}' | b']' => self.close(),
                b',' => {
                    if let Some(frame) = self.frames.last_mut() {
                        frame.awaits_name = frame.is_object;
                    }
                    self.offset += 1;
                }
                b'"' => self.read_string(),
                b':' | b' ' | b'\t' | b'\r' | b'\n' => self.offset += 1,
                _ => self.read_scalar(),
            }
        }
        while !self.frames.is_empty() {
            self.pop_frame();
        }
    }

    /// Returns the mode and the context of a value that starts at the current position.
    fn mode_and_context(&self, object: bool) -> (RedactionMode, JsonContext) {
        let Some(frame) = self.frames.last() else {
            return (RedactionMode::Keep, JsonContext::Plain);
        };
        let hide = |also: RedactionMode| (frame.mode.max(also), JsonContext::Plain);
        match frame.context {
            JsonContext::Properties => {
                let secret = names::is_secret_name(&frame.name);
                match (secret, frame.is_object) {
                    (true, true) => (frame.mode, JsonContext::SecretProperty),
                    _ => hide(RedactionMode::Keep),
                }
            }
            JsonContext::SecretProperty => match frame.name.as_str() {
                "default" | "const" | "enum" | "examples" | "value" => hide(RedactionMode::All),
                _ => hide(RedactionMode::Keep),
            },
            JsonContext::Variables if !frame.is_object && object => {
                (frame.mode, JsonContext::Variable)
            }
            JsonContext::Variable if frame.name == "name" => hide(RedactionMode::Keep),
            JsonContext::Variables | JsonContext::Variable => hide(RedactionMode::All),
            JsonContext::Plain if !frame.is_object => hide(if frame.is_after_flag {
                RedactionMode::All
            } else {
                RedactionMode::Keep
            }),
            JsonContext::Plain => match names::name_kind(&frame.name) {
                NameKind::Plain => hide(RedactionMode::Keep),
                NameKind::Secret => hide(RedactionMode::All),
                NameKind::Token => hide(RedactionMode::Strings),
                NameKind::Variables => (frame.mode, JsonContext::Variables),
                NameKind::Properties => (frame.mode, JsonContext::Properties),
            },
        }
    }

    fn open(&mut self, object: bool) {
        let (hide, place) = self.mode_and_context(object);
        self.frames.push(JsonFrame {
            is_object: object,
            mode: hide,
            context: place,
            awaits_name: object,
            name: String::new(),
            has_secret_name: false,
            value: None,
            is_after_flag: false,
            program: None,
            arguments: Vec::new(),
        });
        self.offset += 1;
    }

    fn close(&mut self) {
        self.pop_frame();
        self.offset += 1;
    }

    fn pop_frame(&mut self) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
        if let (true, Some(value)) = (frame.has_secret_name, frame.value) {
            self.replacements.push((value, format!("\"{REDACTED}\"")));
        }
        if frame.arguments.is_empty() {
            return;
        }
        match self.frames.last_mut() {
            // The field with the program may come after the field with its arguments.
            Some(parent) if !frame.is_object && ARGUMENT_FIELDS.contains(&parent.name.as_str()) => {
                parent.arguments = frame.arguments;
            }
            _ => self.redact_arguments(frame.program.as_deref(), &frame.arguments),
        }
    }

    /// Redacts the arguments of a program.
    fn redact_arguments(&mut self, program: Option<&str>, arguments: &[(Range<usize>, String)]) {
        let words: Vec<&str> = arguments.iter().map(|(_, word)| word.as_str()).collect();
        for (at, without) in commands::redact_arguments(program, &words) {
            if let Some((place, _)) = arguments.get(at) {
                let instead = serde_json::to_string(&without);
                let instead = instead.unwrap_or_else(|_| format!("\"{REDACTED}\""));
                self.replacements.push((place.clone(), instead));
            }
        }
    }

    /// Returns `true` if the next string is a command line or may contain one.
    fn is_command(&self) -> bool {
        self.frames.last().is_some_and(|frame| {
            frame.is_object && !frame.awaits_name && COMMAND_FIELDS.contains(&frame.name.as_str())
        })
    }

    /// Skips a number, `true`, `false`, `null`, or invalid text, and redacts it if necessary.
    fn read_scalar(&mut self) {
        let start = self.offset;
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        let ends = |byte: &u8| {
            matches!(
                byte,
                b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' | b':'
            )
        };
        self.offset += rest.iter().position(ends).unwrap_or(rest.len()).max(1);
        let number = rest
            .first()
            .is_some_and(|byte| matches!(byte, b'-' | b'0'..=b'9'));
        let (hide, place) = self.mode_and_context(false);
        let all = hide == RedactionMode::All || place == JsonContext::Variables;
        if number && all {
            let place = start..self.offset;
            self.replacements.push((place, format!("\"{REDACTED}\"")));
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.is_after_flag = false;
        }
    }

    fn read_string(&mut self) {
        let start = self.offset;
        self.offset = self.end_of_string(start + 1);
        let place = start..self.offset;
        let Some(text) = self.text.get(place.clone()) else {
            return;
        };
        let text = text.strip_prefix('"').unwrap_or(text);
        let text = text.strip_suffix('"').unwrap_or(text);
        let read = unescape(text);
        if self.frames.last().is_some_and(|frame| frame.awaits_name) {
            self.redact_text(place, text, &read);
            if let Some(frame) = self.frames.last_mut() {
                frame.awaits_name = false;
                frame.name = read.into_owned();
            }
            return;
        }
        let (hide, what) = self.mode_and_context(false);
        if hide == RedactionMode::Keep && what != JsonContext::Variables {
            self.redact_text(place.clone(), text, &read);
        } else if !text.is_empty() {
            let instead = match read.split_once('=') {
                // This is an item of a list of variables, in the form in which programs get them.
                Some((name, _)) if self.is_in_variable_list() && is_variable_name(name) => {
                    format!("\"{name}={REDACTED}\"")
                }
                _ => format!("\"{REDACTED}\""),
            };
            self.replacements.push((place.clone(), instead));
        }
        if let Some(frame) = self.frames.last_mut() {
            if frame.is_object {
                if matches!(
                    frame.name.as_str(),
                    "command" | "cmd" | "program" | "executable"
                ) {
                    frame.program = Some(read.to_string());
                }
                match frame.name.as_str() {
                    "value" => frame.value = (!text.is_empty()).then_some(place),
                    "name" | "id" | "key" | "configId" => {
                        frame.has_secret_name |= names::is_secret_name(&read);
                    }
                    _ => {}
                }
            } else {
                frame.is_after_flag = names::is_secret_flag(&read);
                if hide == RedactionMode::Keep && frame.arguments.len() < MAX_ARGUMENTS {
                    frame.arguments.push((place, read.into_owned()));
                }
            }
        }
    }

    fn is_in_variable_list(&self) -> bool {
        let frame = self.frames.last();
        frame.is_some_and(|frame| frame.context == JsonContext::Variables && !frame.is_object)
    }

    /// Returns the position after the closing quote of a string. `at` is a position inside it.
    fn end_of_string(&self, mut at: usize) -> usize {
        let bytes = self.text.as_bytes();
        while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
            at += found + 1;
            if bytes.get(at - 1) == Some(&b'"') {
                return at;
            }
            at += 1;
        }
        bytes.len()
    }

    /// Redacts a string. `text` is the string as written in JSON, and `read` is its value.
    fn redact_text(&mut self, place: Range<usize>, text: &str, read: &str) {
        let Some(without) = self.texts.redact_string(read, self.is_command()) else {
            return;
        };
        // The peer's own escapes are lost, because the redacted string is escaped in the usual way.
        let instead = serde_json::to_string(&without).unwrap_or_else(|_| format!("\"{REDACTED}\""));
        debug_assert_ne!(text, without);
        self.replacements.push((place, instead));
    }
}

/// Unescapes a JSON string without its quotes. A lone surrogate is replaced.
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut read = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        read.push_str(before);
        let mut chars = escape.chars();
        let c = match chars.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('u') => {
                let (c, behind) = read_unicode_escape(escape.get(1..).unwrap_or_default());
                read.push(c);
                rest = behind;
                continue;
            }
            Some(c) => c,
            None => '\\',
        };
        read.push(c);
        rest = chars.as_str();
    }
    read.push_str(rest);
    Cow::Owned(read)
}

/// Reads a `\u` escape or a surrogate pair. Returns the character and the text after it.
fn read_unicode_escape(text: &str) -> (char, &str) {
    let unit = |text: &str| u16::from_str_radix(text.get(..4)?, 16).ok();
    let Some(first) = unit(text) else {
        return (char::REPLACEMENT_CHARACTER, text);
    };
    let behind = text.get(4..).unwrap_or_default();
    let second = behind.strip_prefix("\\u");
    if let Some(c) = char::from_u32(first.into()) {
        return (c, behind);
    }
    if let Some(Ok(c)) = second
        .and_then(unit)
        .and_then(|second| char::decode_utf16([first, second]).next())
    {
        return (c, behind.get(6..).unwrap_or_default());
    }
    (char::REPLACEMENT_CHARACTER, behind)
}

/// Returns `true` if `name` can be the name of a variable and needs no escaping in JSON.
fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use crate::redact::Redactor;

    #[track_caller]
    fn assert_redacted(message: &str, expected: &str) {
        let redactor = Redactor::new();
        let (redacted, _) = redactor
            .redact_message(message)
            .unwrap_or_else(|| panic!("{message}"));
        assert_eq!(redacted, expected);
    }

    #[track_caller]
    fn assert_unchanged(message: &str) {
        assert_eq!(Redactor::new().redact_message(message), None);
    }

    #[test]
    fn values_of_variables_and_headers_are_redacted_but_not_their_names() {
        assert_redacted(
            r#"{"env":[{"name":"A","value":"x"},{"value":"","name":"B"}],"command":"run"}"#,
            r#"{"env":[{"name":"A","value":"[redacted]"},{"value":"","name":"B"}],"command":"run"}"#,
        );
        assert_redacted(
            r#"{"headers":{"name":"x","X-Id":7},"env":["A=b c","x"]}"#,
            r#"{"headers":{"name":"[redacted]","X-Id":"[redacted]"},"env":["A=[redacted]","[redacted]"]}"#,
        );
    }

    #[test]
    fn nested_values_of_secret_fields_are_redacted() {
        assert_redacted(
            r#"{ "clientSecret" : {"a":["x", 1, null, true]}, "b": "y" }"#,
            r#"{ "clientSecret" : {"a":["[redacted]", "[redacted]", null, true]}, "b": "y" }"#,
        );
        assert_redacted(
            r#"{"pass\u0077ord":"x","configId":"apiKey","value":"y"}"#,
            r#"{"pass\u0077ord":"[redacted]","configId":"apiKey","value":"[redacted]"}"#,
        );
        assert_redacted(
            r#"{"value":"y","name":"GH_TOKEN","args":["--token","z","--verbose"]}"#,
            r#"{"value":"[redacted]","name":"GH_TOKEN","args":["--token","[redacted]","--verbose"]}"#,
        );
        assert_unchanged(r#"{"usage":{"inputTokens":5,"maxToken":7},"key":"x"}"#);
    }

    #[test]
    fn program_may_follow_its_arguments() {
        assert_redacted(
            r#"{"args":["-u","me:x","-o","a:b"],"command":"curl"}"#,
            r#"{"args":["-u","me:[redacted]","-o","a:b"],"command":"curl"}"#,
        );
        assert_unchanged(r#"{"args":["-u","me:x"],"command":"sort","cwd":"/curl"}"#);
    }

    #[test]
    fn schema_of_a_secret_field_is_not_redacted() {
        assert_unchanged(r#"{"properties":{"password":{"type":"string","title":"Password"}}}"#);
        assert_redacted(
            r#"{"properties":{"password":{"type":"string","default":"x"}}}"#,
            r#"{"properties":{"password":{"type":"string","default":"[redacted]"}}}"#,
        );
    }

    #[test]
    fn secrets_in_text_are_redacted_in_place() {
        assert_redacted(
            r#"{"text":"a\n\u0073k-abcdefgh12 b","c":"\u00e9\/"}"#,
            r#"{"text":"a\nsk-[redacted] b","c":"\u00e9\/"}"#,
        );
        assert_unchanged(r#"{"text":"a\n\u0041 key \ud800 b"}"#);
    }

    #[test]
    fn truncated_or_invalid_json_is_scanned_to_its_end() {
        assert_redacted(
            r#"{"env":[{"name":"A","value":"x"#,
            r#"{"env":[{"name":"A","value":"[redacted]""#,
        );
        for text in ["", "}", "]]", "\"", "{\"a\\", "{:,\"\\u12", "[\\ud8"] {
            assert_unchanged(text);
        }
    }
}
