//! Replaces paths in messages to and from a remote agent whose machine has the same files at different paths.
//!
//! Only paths in fields of the protocol are replaced, in requests and notifications of its methods and in the response
//! to `session/list`. A path in the text of a message, in a tool's raw input or output, in `_meta`, in a form, in an
//! MCP server's command or in an extension method stays as it is: nothing says whose path it is.
//!
//! All other bytes of a message stay as they are, so a number does not lose precision, and a server that looks for
//! repeated members still finds them.

use std::borrow::Cow;
use std::ops::Range;

use acp_config::PathMapping;
use memchr::memmem;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Fields that contain a path.
const PATH_FIELDS: [&str; 3] = ["cwd", "oldPath", "path"];

/// Fields that contain a list of paths.
const PATH_LIST_FIELDS: [&str; 1] = ["additionalDirectories"];

/// Fields that contain a URI, which may refer to a file.
const URI_FIELDS: [&str; 1] = ["uri"];

/// Fields whose content belongs to the agent, the user or an MCP server. Paths in them are not replaced.
const OPAQUE_FIELDS: [&str; 6] = [
    "_meta",
    "rawInput",
    "rawOutput",
    "mcpServers",
    "env",
    "headers",
];

/// The maximum depth of nested objects and arrays in which to replace paths.
const MAX_DEPTH: usize = 32;

/// The characters that must be percent-encoded in the path of a URI.
const ENCODED_IN_PATHS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The direction in which a message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageDirection {
    /// From the client to the agent. Local paths become remote ones.
    ToAgent,
    /// From the agent to the client. Remote paths become local ones.
    ToClient,
}

/// Replaces the paths in messages.
#[derive(Debug, Clone)]
pub(crate) struct PathMapper {
    mappings: Vec<PathMapping>,
}

/// An object, with its members in order.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(name) = map.next_key::<JsonText<'de>>()? {
                    members.push((name.0, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

/// A string, borrowed from the message if it has no escapes.
#[derive(Deserialize)]
struct JsonText<'a>(#[serde(borrow)] Cow<'a, str>);

/// A replacement for a string: the range of the old string in the message, and the new JSON.
type Replacement = (Range<usize>, String);

impl PathMapper {
    /// Creates a mapper, or returns `None` if there are no mappings.
    pub(crate) fn new(mappings: &[PathMapping]) -> Option<Self> {
        (!mappings.is_empty()).then(|| Self {
            mappings: mappings.to_vec(),
        })
    }

    /// Replaces the paths in a message. Returns `None` if the message contains none or is not valid JSON.
    pub(crate) fn map_message(
        &self,
        message: &[u8],
        direction: MessageDirection,
    ) -> Option<Vec<u8>> {
        let fields = PATH_FIELDS
            .iter()
            .chain(&PATH_LIST_FIELDS)
            .chain(&URI_FIELDS);
        if !{ fields }.any(|field| memmem::find(message, field.as_bytes()).is_some()) {
            return None;
        }
        let Members(members) = serde_json::from_slice(message).ok()?;
        let member = |wanted: &str| {
            let mut named = members.iter().filter(|(name, _)| name == wanted);
            named.next_back().map(|(_, value)| *value)
        };
        let mut walk = MessageWalk {
            mapper: self,
            direction,
            start: message.as_ptr() as usize,
            replacements: Vec::new(),
        };
        match member("method") {
            Some(method) => {
                let method: Cow<'_, str> =
                    serde_json::from_str::<JsonText<'_>>(method.get()).ok()?.0;
                if method.starts_with('_') || method.starts_with("elicitation/") {
                    return None;
                }
                walk.visit_value(member("params")?, 0);
            }
            // Only the response to `session/list` contains paths.
            None => {
                let Members(result) = serde_json::from_str(member("result")?.get()).ok()?;
                for (name, value) in result {
                    if name == "sessions" {
                        walk.visit_value(value, 0);
                    }
                }
            }
        }
        walk.apply_to(message)
    }

    /// Returns the corresponding path on the other side, or `None` if no mapping applies.
    fn map_path(&self, path: &str, direction: MessageDirection) -> Option<String> {
        let mapped = self.mappings.iter().filter_map(|mapping| match direction {
            MessageDirection::ToAgent => Some((mapping.local.len(), mapping.to_remote(path)?)),
            MessageDirection::ToClient => Some((mapping.remote.len(), mapping.to_local(path)?)),
        });
        // The most specific directory.
        let (_, path) = mapped.max_by_key(|(length, _)| *length)?;
        Some(path)
    }

    /// Returns the URI of the corresponding file on the other side.
    fn map_uri(&self, uri: &str, direction: MessageDirection) -> Option<String> {
        let rest = uri.strip_prefix("file://")?;
        let rest = rest.strip_prefix("localhost").unwrap_or(rest);
        let end = rest.find(['?', '#']).unwrap_or(rest.len());
        let (encoded, suffix) = rest.split_at_checked(end)?;
        let decoded = percent_decode_str(encoded).decode_utf8().ok()?;
        // `file:///C:/x` is the path `C:/x`.
        let mapped = self
            .map_path(&decoded, direction)
            .or_else(|| self.map_path(decoded.strip_prefix('/')?, direction))?
            .replace('\\', "/");
        let slash = if mapped.starts_with('/') { "" } else { "/" };
        Some(format!(
            "file://{slash}{}{suffix}",
            utf8_percent_encode(&mapped, ENCODED_IN_PATHS)
        ))
    }
}

/// Walks a message and collects the replacements to make in it.
struct MessageWalk<'m> {
    mapper: &'m PathMapper,
    direction: MessageDirection,
    /// The address of the message's first byte.
    start: usize,
    replacements: Vec<Replacement>,
}

impl MessageWalk<'_> {
    fn visit_value(&mut self, value: &RawValue, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match value.get().as_bytes().first() {
            Some(b'{') => {
                let Ok(Members(members)) = serde_json::from_str(value.get()) else {
                    return;
                };
                for (name, member) in members {
                    self.visit_member(&name, member, depth);
                }
            }
            Some(b'[') => {
                let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(value.get()) else {
                    return;
                };
                for item in items {
                    self.visit_value(item, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn visit_member(&mut self, name: &str, value: &RawValue, depth: usize) {
        if OPAQUE_FIELDS.contains(&name) {
            return;
        }
        if PATH_FIELDS.contains(&name) {
            self.visit_string(value, PathMapper::map_path);
        } else if URI_FIELDS.contains(&name) {
            self.visit_string(value, PathMapper::map_uri);
        } else if PATH_LIST_FIELDS.contains(&name) {
            for path in serde_json::from_str::<Vec<&RawValue>>(value.get()).unwrap_or_default() {
                self.visit_string(path, PathMapper::map_path);
            }
        } else {
            self.visit_value(value, depth + 1);
        }
    }

    fn visit_string(
        &mut self,
        value: &RawValue,
        map: fn(&PathMapper, &str, MessageDirection) -> Option<String>,
    ) {
        let json = value.get();
        let Ok(JsonText(text)) = serde_json::from_str(json) else {
            return;
        };
        let Some(mapped) = map(self.mapper, &text, self.direction) else {
            return;
        };
        // The value is a part of the message.
        let start = json.as_ptr() as usize - self.start;
        let mapped = serde_json::Value::String(mapped).to_string();
        self.replacements.push((start..start + json.len(), mapped));
    }

    fn apply_to(self, message: &[u8]) -> Option<Vec<u8>> {
        if self.replacements.is_empty() {
            return None;
        }
        let mut replacements = self.replacements;
        replacements.sort_by_key(|(range, _)| range.start);
        let mut mapped = Vec::with_capacity(message.len() + 1024);
        let mut end = 0;
        for (range, json) in replacements {
            mapped.extend_from_slice(message.get(end..range.start)?);
            mapped.extend_from_slice(json.as_bytes());
            end = range.end;
        }
        mapped.extend_from_slice(message.get(end..)?);
        Some(mapped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessageDirection::{ToAgent, ToClient};

    fn mapper(mappings: &[(&str, &str)]) -> PathMapper {
        let mapping = |&(local, remote): &(&str, &str)| PathMapping {
            local: local.to_owned(),
            remote: remote.to_owned(),
        };
        PathMapper {
            mappings: mappings.iter().map(mapping).collect(),
        }
    }

    fn project() -> PathMapper {
        mapper(&[("/home/me/project", "/srv/work")])
    }

    fn map(message: &str, direction: MessageDirection) -> Option<String> {
        let mapped = project().map_message(message.as_bytes(), direction);
        mapped.map(|mapped| String::from_utf8(mapped).unwrap())
    }

    #[test]
    fn directories_of_a_session_are_mapped_to_the_agent() {
        let new = r#"{"id":1,"method":"session/new","params":{"cwd":"/home/me/project/src", "additionalDirectories":["/home/me/project","/tmp"],"mcpServers":[{"command":"/home/me/project/mcp"}]}}"#;
        let expected = r#"{"id":1,"method":"session/new","params":{"cwd":"/srv/work/src", "additionalDirectories":["/srv/work","/tmp"],"mcpServers":[{"command":"/home/me/project/mcp"}]}}"#;
        assert_eq!(map(new, ToAgent).unwrap(), expected);
    }

    #[test]
    fn paths_and_uris_of_updates_are_mapped_to_the_client() {
        let update = r#"{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","rawInput":{"path":"/srv/work/a"},"_meta":{"path":"/srv/work"},"locations":[{"path":"/srv/work/a"}],"content":[{"type":"diff","path":"\/srv\/work\/b c","newText":"/srv/work"},{"type":"content","content":{"type":"resource_link","uri":"file:///srv/work/b%20c#L3"}}]}}}"#;
        let expected = r#"{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","rawInput":{"path":"/srv/work/a"},"_meta":{"path":"/srv/work"},"locations":[{"path":"/home/me/project/a"}],"content":[{"type":"diff","path":"/home/me/project/b c","newText":"/srv/work"},{"type":"content","content":{"type":"resource_link","uri":"file:///home/me/project/b%20c#L3"}}]}}}"#;
        assert_eq!(map(update, ToClient).unwrap(), expected);
    }

    #[test]
    fn listed_sessions_are_mapped_and_other_responses_are_not() {
        let listed =
            r#"{"id":1,"result":{"sessions":[{"cwd":"/srv/work"},{"cwd":"/srv/worker"}]}}"#;
        let expected =
            r#"{"id":1,"result":{"sessions":[{"cwd":"/home/me/project"},{"cwd":"/srv/worker"}]}}"#;
        assert_eq!(map(listed, ToClient).unwrap(), expected);
        assert_eq!(
            map(r#"{"id":1,"result":{"path":"/srv/work"}}"#, ToClient),
            None
        );
    }

    #[test]
    fn fields_outside_the_protocol_are_left_unchanged() {
        for message in [
            r#"{"method":"_goose/open","params":{"path":"/srv/work"}}"#,
            r#"{"method":"elicitation/create","params":{"path":"/srv/work"}}"#,
            r#"{"method":"session/update","params":{"path":"srv/work"}}"#,
            r#"{"method":"session/update","params":{"uri":"https://h/srv/work"}}"#,
            r#"{"method":"session/update","params":{"path":7}}"#,
            r#"{"method":"session/update","params":{"path":"/srv/work"}"#,
            r#"[{"method":"session/update","params":{"path":"/srv/work"}}]"#,
        ] {
            assert_eq!(map(message, ToClient), None, "{message}");
        }
        // Nested deeper than any protocol message.
        let deep = format!(
            "{{\"method\":\"x\",\"params\":{}{{\"path\":\"/srv/work\"}}{}}}",
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert_eq!(map(&deep, ToClient), None);
    }

    #[test]
    fn other_bytes_of_a_message_are_kept() {
        let message = r#"{ "params" : {"big":123456789012345678901234567890.10, "path":"/srv/work","path":"/srv/work/x"},"method":"fs/read_text_file" }"#;
        let expected = message
            .replace("/srv/work/x", "/home/me/project/x")
            .replace("\"/srv/work\"", "\"/home/me/project\"");
        assert_eq!(map(message, ToClient).unwrap(), expected);
    }

    #[test]
    fn most_specific_directory_is_used() {
        let both = mapper(&[("/a", "/remote"), ("/a/b", "/elsewhere"), ("/", "/root")]);
        for (local, remote) in [
            ("/a", "/remote"),
            ("/a/c", "/remote/c"),
            ("/a/b/c", "/elsewhere/c"),
            ("/ab", "/root/ab"),
            ("/", "/root"),
        ] {
            assert_eq!(both.map_path(local, ToAgent).as_deref(), Some(remote));
            assert_eq!(both.map_path(remote, ToClient).as_deref(), Some(local));
        }
    }

    #[test]
    fn paths_of_windows_have_its_separators() {
        let windows = mapper(&[("/home/me", r"C:\Users\me"), ("/data", "D:")]);
        for (local, remote) in [
            ("/home/me/a/b", r"C:\Users\me\a\b"),
            ("/home/me", r"C:\Users\me"),
            ("/data", r"D:\"),
            ("/data/x", r"D:\x"),
        ] {
            assert_eq!(windows.map_path(local, ToAgent).as_deref(), Some(remote));
        }
        for (remote, local) in [
            (r"c:/users/ME/a", "/home/me/a"),
            (r"D:\", "/data"),
            (r"D:\x\y", "/data/x/y"),
        ] {
            assert_eq!(windows.map_path(remote, ToClient).as_deref(), Some(local));
        }
        let uri = windows.map_uri("file:///home/me/a%20b", ToAgent).unwrap();
        assert_eq!(uri, "file:///C:/Users/me/a%20b");
        assert_eq!(
            windows.map_uri(&uri, ToClient).as_deref(),
            Some("file:///home/me/a%20b")
        );
    }

    /// Returns the names of the schema fields of this kind: paths, lists of paths, or URIs.
    fn fields_in_schema(kind: &str) -> std::collections::BTreeSet<String> {
        let schema =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../acp-rules/src/schema");
        let mut fields = std::collections::BTreeSet::new();
        for version in ["v1.shapes", "v2.shapes"] {
            let shapes = std::fs::read_to_string(schema.join(version)).unwrap();
            let words: Vec<&str> = shapes.split_whitespace().collect();
            for pair in words.windows(2) {
                if let Some(field) = pair[0].strip_suffix(':')
                    && pair[1].trim_end_matches(',') == kind
                {
                    fields.insert(field.trim_end_matches('?').to_owned());
                }
            }
        }
        fields
    }

    #[test]
    fn all_paths_of_the_schema_are_known() {
        // The program of an MCP server may be one of either machine.
        let mut paths = fields_in_schema("path");
        assert!(paths.remove("command"));
        assert!(paths.iter().eq(&PATH_FIELDS), "{paths:?}");
        assert!(fields_in_schema("[path]").iter().eq(&PATH_LIST_FIELDS));
        // The others are addresses on the Web.
        let mut uris = fields_in_schema("uri");
        for web in ["baseUrl", "src", "url"] {
            assert!(uris.remove(web), "{web}");
        }
        assert!(uris.iter().eq(&URI_FIELDS), "{uris:?}");
    }
}
