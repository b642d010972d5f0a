//! Describes tool calls while the model is still writing their arguments.

use acp::v1::ToolKind;
use serde_json::{Map, Value, json};

use super::tool::{CallDescription, DraftSpec};
use super::{find_tool, parse_call};
use crate::text::first_line;
use crate::workspace::Workspace;

/// Describes a call using only its tool's name. Returns `None` if the tool is not shown as a tool call.
pub(crate) fn describe_by_tool(tool: &str) -> Option<CallDescription> {
    Some(match find_tool(tool) {
        Some(entry) => {
            let draft = entry.draft.as_ref()?;
            CallDescription::new(draft.title, draft.kind.clone(), Vec::new())
        }
        None => CallDescription::new(
            format!("Call `{}`", first_line(tool)),
            ToolKind::default(),
            Vec::new(),
        ),
    })
}

fn draft_spec(tool: &str) -> Option<&'static DraftSpec> {
    find_tool(tool)?.draft.as_ref()
}

/// Returns `true` if a call is better described by its arguments than by its tool's name.
pub(crate) fn arguments_improve_description(tool: &str) -> bool {
    draft_spec(tool).is_some()
}

/// Describes a call based on the arguments that are complete so far. Returns `None` until its subject is complete.
pub(crate) fn describe_partial(
    tool: &str,
    mut arguments: Map<String, Value>,
    workspace: &Workspace,
) -> Option<CallDescription> {
    let draft = draft_spec(tool)?;
    if !arguments.contains_key(draft.subject_field) {
        return None;
    }
    for needed in draft.required_fields {
        arguments.entry(*needed).or_insert_with(|| json!(""));
    }
    let call = parse_call(tool, &Value::Object(arguments)).ok()?;
    Some(call.describe(workspace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::interface::ToolSpec;
    use crate::tools::tool_specs;

    #[test]
    fn every_tool_except_plan_has_a_draft() {
        let specs = tool_specs();
        let shown = |spec: &&ToolSpec| arguments_improve_description(&spec.name);
        let (known, others): (Vec<_>, Vec<_>) = specs.iter().partition(shown);
        let others: Vec<_> = others.iter().map(|spec| spec.name.as_ref()).collect();
        assert_eq!(others, ["plan"]);
        for spec in known {
            let draft = draft_spec(&spec.name).unwrap();
            let parameters = &spec.parameters;
            assert_eq!(
                parameters["properties"][draft.subject_field]["type"], "string",
                "{}",
                spec.name
            );
            let needs = parameters["required"].as_array().into_iter().flatten();
            let needs: Vec<_> = needs
                .filter(|needed| **needed != draft.subject_field)
                .collect();
            assert_eq!(needs, draft.required_fields, "{}", spec.name);
        }
    }
}
