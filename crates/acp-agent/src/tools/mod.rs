//! The tools that a model can call.
//!
//! Each tool has a file here, with a type for its arguments: its description for the model, its action, the change that
//! it would make, and its implementation. The common parts are in `tool.rs`. Calls are reported, and permission is
//! requested, in `turn/call.rs`.

pub(crate) mod draft_description;
mod edit;
mod fetch;
mod glob;
pub(crate) mod list;
mod nearest;
pub(crate) mod partial;
mod plan;
pub(crate) mod read;
mod run;
pub(crate) mod schema;
mod search;
pub(crate) mod switch_mode;
pub(crate) mod tool;
mod write;

use serde_json::Value;

use crate::model::interface::ToolSpec;
use edit::EditTool;
use fetch::FetchTool;
use glob::GlobTool;
use list::ListTool;
use plan::PlanTool;
use read::ReadTool;
use run::RunTool;
use schema::parameter_schema;
use search::SearchTool;
use switch_mode::SwitchModeTool;
use tool::{DraftSpec, Tool, ToolInvocation, parse_arguments};
use write::WriteTool;

/// An entry in the table of tools.
pub(crate) struct ToolEntry {
    pub(crate) name: &'static str,
    description: &'static str,
    pub(crate) draft: Option<DraftSpec>,
    parameters: fn() -> Value,
    read: fn(&Value) -> Result<Box<dyn ToolInvocation>, String>,
}

/// All tools, in the order in which they are offered to the model.
static TOOLS: [ToolEntry; 10] = [
    tool_entry::<ReadTool>(),
    tool_entry::<ListTool>(),
    tool_entry::<GlobTool>(),
    tool_entry::<SearchTool>(),
    tool_entry::<WriteTool>(),
    tool_entry::<EditTool>(),
    tool_entry::<RunTool>(),
    tool_entry::<FetchTool>(),
    tool_entry::<PlanTool>(),
    tool_entry::<SwitchModeTool>(),
];

const fn tool_entry<T: Tool>() -> ToolEntry {
    ToolEntry {
        name: T::NAME,
        description: T::DESCRIPTION,
        draft: T::DRAFT,
        parameters: parameter_schema::<T>,
        read: |arguments| {
            let call = parse_arguments::<T>(T::NAME, arguments)?;
            Ok(Box::new(call))
        },
    }
}

/// Finds the tool with this name.
pub(crate) fn find_tool(tool: &str) -> Option<&'static ToolEntry> {
    TOOLS.iter().find(|entry| entry.name == tool)
}

/// Parses the arguments of a call.
///
/// # Errors
/// There is no such tool, or it does not accept these arguments.
pub(crate) fn parse_call(tool: &str, arguments: &Value) -> Result<Box<dyn ToolInvocation>, String> {
    match find_tool(tool) {
        Some(entry) => (entry.read)(arguments),
        None => {
            let names: Vec<_> = TOOLS.iter().map(|entry| entry.name).collect();
            let names = names.join(", ");
            Err(format!("Unknown tool `{tool}`. Available tools: {names}."))
        }
    }
}

/// Returns the descriptions of all tools, for a model.
pub(crate) fn tool_specs() -> Vec<ToolSpec> {
    let tools = TOOLS.iter();
    tools
        .map(|entry| ToolSpec {
            name: entry.name.into(),
            description: entry.description.into(),
            parameters: (entry.parameters)(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_calls_are_explained() {
        let error = super::parse_call("frob", &json!({})).unwrap_err();
        assert!(error.contains("Unknown tool `frob`"), "{error}");
        let error = super::parse_call("read", &json!({"path": 3})).unwrap_err();
        assert!(error.contains("Invalid arguments for `read`"), "{error}");
        assert!(super::parse_call("list", &Value::Null).is_ok());
    }

    #[test]
    fn every_tool_has_a_schema() {
        for spec in tool_specs() {
            assert_eq!(spec.parameters["type"], "object", "{}", spec.name);
        }
    }
}
