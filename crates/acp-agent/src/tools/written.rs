//! What there is to show of a tool call while the model still writes its arguments.

use acp::v1::ToolKind;
use serde_json::{Map, Value, json};

use super::Call;
use super::tool::About;
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
}
