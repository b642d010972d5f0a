//! What a model can do.
//!
//! A tool is a file here, with its arguments as a type: how a model is told of it, what it is about to do, what it would
//! change, and how it is carried out. What all of them have in common is in `tool.rs`; a call is reported, and permission
//! asked for, in `turn/call.rs`.

mod edit;
mod fetch;
mod glob;
pub(crate) mod list;
mod nearest;
pub(crate) mod partial;
mod plan;
mod read;
mod run;
mod search;
pub(crate) mod switch_mode;
pub(crate) mod tool;
mod write;
pub(crate) mod written;

use schemars::JsonSchema;
use serde_json::Value;

use crate::model::interface::ToolSpec;
use edit::Edit;
use fetch::Fetch;
use glob::Glob;
use list::List;
use plan::Plan;
use read::Read;
use run::Run;
use search::Search;
use switch_mode::SwitchMode;
use tool::{Call, Draft, Tool, read_arguments};
use write::Write;

/// A tool, as it is found by its name.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    description: &'static str,
    pub(crate) draft: Option<Draft>,
    parameters: fn() -> Value,
    read: fn(&Value) -> Result<Box<dyn Call>, String>,
}

/// All tools, in the order in which a model is told of them.
static TOOLS: [Entry; 10] = [
    entry::<Read>(),
    entry::<List>(),
    entry::<Glob>(),
    entry::<Search>(),
    entry::<Write>(),
    entry::<Edit>(),
    entry::<Run>(),
    entry::<Fetch>(),
    entry::<Plan>(),
    entry::<SwitchMode>(),
];

const fn entry<T: Tool>() -> Entry {
    Entry {
        name: T::NAME,
        description: T::DESCRIPTION,
        draft: T::DRAFT,
        parameters: schema::<T>,
        read: |arguments| {
            let call = read_arguments::<T>(T::NAME, arguments)?;
            Ok(Box::new(call))
        },
    }
}

fn schema<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

/// The tool of this name.
pub(crate) fn find(tool: &str) -> Option<&'static Entry> {
    TOOLS.iter().find(|entry| entry.name == tool)
}

/// Reads a call.
///
/// # Errors
/// There is no such tool, or it does not take these arguments.
pub(crate) fn read(tool: &str, arguments: &Value) -> Result<Box<dyn Call>, String> {
    match find(tool) {
        Some(entry) => (entry.read)(arguments),
        None => {
            let names: Vec<_> = TOOLS.iter().map(|entry| entry.name).collect();
            let names = names.join(", ");
            Err(format!("There is no tool `{tool}`; there are {names}."))
        }
    }
}

/// The tools, as a model is told of them.
pub(crate) fn specs() -> Vec<ToolSpec> {
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
    fn wrong_calls_are_explained() {
        let error = super::read("frob", &json!({})).unwrap_err();
        assert!(error.contains("There is no tool `frob`"), "{error}");
        let error = super::read("read", &json!({"path": 3})).unwrap_err();
        assert!(error.contains("`read` cannot take"), "{error}");
        assert!(super::read("list", &Value::Null).is_ok());
    }

    #[test]
    fn every_tool_has_a_schema() {
        for spec in specs() {
            assert_eq!(spec.parameters["type"], "object", "{}", spec.name);
        }
    }
}
