//! What there is to show of a tool call while the model still writes its arguments.

use acp::v1::ToolKind;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, json};

use super::{About, Call};
use crate::text::one_line;
use crate::workspace::Workspace;

/// What is shown of a tool's call before its arguments are whole.
struct Begun {
    tool: &'static str,
    kind: ToolKind,
    title: &'static str,
    /// The argument that says what the call is about: with it the title is the one the call keeps.
    names: &'static str,
    /// What it cannot do without beside that one, all of them texts.
    needs: &'static [&'static str],
}

const fn begun(
    tool: &'static str,
    kind: ToolKind,
    title: &'static str,
    names: &'static str,
    needs: &'static [&'static str],
) -> Begun {
    Begun {
        tool,
        kind,
        title,
        names,
        needs,
    }
}

/// All tools whose calls are shown.
static SHOWN: [Begun; 9] = [
    begun("read", ToolKind::Read, "Read a file", "path", &[]),
    begun("list", ToolKind::Read, "List a directory", "path", &[]),
    begun("glob", ToolKind::Search, "Find files", "pattern", &[]),
    begun("search", ToolKind::Search, "Search", "pattern", &[]),
    begun("write", ToolKind::Edit, "Write a file", "path", &["text"]),
    begun(
        "edit",
        ToolKind::Edit,
        "Edit a file",
        "path",
        &["search", "replacement"],
    ),
    begun("run", ToolKind::Execute, "Run a command", "command", &[]),
    begun("fetch", ToolKind::Fetch, "Fetch", "url", &[]),
    begun(
        "switch_mode",
        ToolKind::SwitchMode,
        super::switch_mode::TITLE,
        "mode",
        &[],
    ),
];

/// What a call of this tool is, for people, when nothing but its name is known; `None` for what is not shown as a
/// tool call.
pub(crate) fn about_begun(tool: &str) -> Option<About> {
    if tool == super::PLAN {
        return None;
    }
    Some(match SHOWN.iter().find(|begun| begun.tool == tool) {
        Some(begun) => About::new(begun.title, begun.kind.clone(), Vec::new()),
        None => About::new(
            format!("Call `{}`", one_line(tool)),
            ToolKind::default(),
            Vec::new(),
        ),
    })
}

/// Whether the arguments of a call of this tool will say more of it than its name does.
pub(crate) fn names_more(tool: &str) -> bool {
    SHOWN.iter().any(|begun| begun.tool == tool)
}

/// What a call is with the arguments that are whole; `None` as long as they do not say what it is about.
pub(crate) fn about_written(
    tool: &str,
    mut arguments: Map<String, Value>,
    workspace: &Workspace,
) -> Option<About> {
    let begun = SHOWN.iter().find(|begun| begun.tool == tool)?;
    if !arguments.contains_key(begun.names) {
        return None;
    }
    for needed in begun.needs {
        arguments.entry(*needed).or_insert_with(|| json!(""));
    }
    let call = Call::read(tool, &Value::Object(arguments)).ok()?;
    call.about(workspace)
}

/// The members of an object that have come whole, of JSON that is still being written.
pub(crate) fn whole_members(written: &str) -> Map<String, Value> {
    // More may come of a number or a word at the end.
    let ends = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let written = written.trim_end_matches(ends);
    let mut members = Map::new();
    let mut json = serde_json::Deserializer::from_str(written);
    // That it has no end is no error here, and the members before it have been taken.
    let _unfinished = json.deserialize_map(Members(&mut members));
    members
}

/// What has come of an object, for people: with the beginning of a text that is being written.
pub(crate) fn so_far(written: &str) -> Value {
    let ended = |text: &str| serde_json::from_str(&format!("{text}\"}}"));
    // The end may be in the middle of an escaped character, or of a pair of them.
    let unfinished = |at: &usize| {
        let mut rest = written.bytes().skip(*at);
        rest.all(|b| matches!(b, b'\\' | b'u') || b.is_ascii_hexdigit())
    };
    let escapes = written.rmatch_indices('\\').map(|(at, _)| at).take(2);
    let ends = std::iter::once(written.len()).chain(escapes.filter(unfinished));
    let mut texts = ends.filter_map(|end| written.get(..end));
    let object = texts.find_map(|text| ended(text).ok());
    object.unwrap_or_else(|| Value::Object(whole_members(written)))
}

/// Takes members until there are none that are whole.
struct Members<'a>(&'a mut Map<String, Value>);

impl<'de> Visitor<'de> for Members<'_> {
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
    use super::*;

    #[test]
    fn every_tool_is_known_but_the_plan() {
        let mut known: Vec<_> = SHOWN.iter().map(|begun| begun.tool).collect();
        known.push(super::super::PLAN);
        known.sort_unstable();
        let specs = super::super::specs();
        let mut all: Vec<_> = specs.iter().map(|spec| spec.name.as_ref()).collect();
        all.sort_unstable();
        assert_eq!(known, all);
        for begun in &SHOWN {
            let spec = specs.iter().find(|spec| spec.name == begun.tool);
            let parameters = &spec.unwrap().parameters;
            assert_eq!(
                parameters["properties"][begun.names]["type"], "string",
                "{}",
                begun.tool
            );
            let needs = parameters["required"].as_array().into_iter().flatten();
            let needs: Vec<_> = needs.filter(|needed| **needed != begun.names).collect();
            assert_eq!(needs, begun.needs, "{}", begun.tool);
        }
    }

    #[test]
    fn only_what_can_no_longer_change_is_whole() {
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
            assert_eq!(Value::Object(whole_members(written)), whole, "{written}");
        }
    }

    #[test]
    fn a_text_is_shown_while_it_grows_wherever_it_ends() {
        let whole = json!({"path": "a", "text": "two\nlines, \"quoted\" \u{1f980} \\ and \u{e9}"});
        let mut written = whole.to_string();
        // As some write it who write nothing but ASCII.
        written = written.replace('\u{1f980}', "\\ud83e\\udd80");
        let from = written.find("two").unwrap();
        let all = whole["text"].as_str().unwrap();
        let mut longest = 0;
        for (end, _) in written.char_indices().filter(|(at, _)| *at >= from) {
            let shown = so_far(&written[..end]);
            assert_eq!(shown["path"], "a");
            let text = shown["text"].as_str().unwrap();
            assert!(all.starts_with(text), "{text:?} of {:?}", &written[..end]);
            assert!(text.len() + 8 > longest, "{text:?}");
            longest = longest.max(text.len());
        }
        assert_eq!(so_far(r#"{"path": "a", "te"#), json!({"path": "a"}));
        let behind = json!({"text": "a\nb"});
        assert_eq!(so_far(r#"{"text":"a\nb","line":3"#), behind);
        assert_eq!(so_far("[1"), json!({}));
        assert_eq!(so_far(r#"{"path": "a"}"#), json!({"path": "a"}));
    }
}
