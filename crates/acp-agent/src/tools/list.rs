//! The `list` tool, which lists a directory.

use std::path::PathBuf;

use acp::v1::ToolKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::tool::{
    CallDescription, DraftSpec, Tool, ToolExecution, ToolFuture, ToolInvocation, ToolOutput,
    location,
};
use crate::permission::action::ToolAction;
use crate::permission::context::PermissionContext;
use crate::permission::permit::Permit;
use crate::permission::rules::{can_show_name, omission_note};
use crate::reported_call::text_content;
use crate::text::to_code_block;
use crate::workspace::Workspace;
use crate::workspace::tool_failure::ToolFailure;
use crate::workspace::tree::TreeEntryKind;

/// The maximum number of entries to list.
const MAX_ENTRIES: usize = 1000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListTool {
    /// Directory path. Default: the working directory.
    #[serde(default)]
    path: String,
}

impl Tool for ListTool {
    const NAME: &'static str = "list";

    const DESCRIPTION: &'static str = "\
        List the entries of a directory, with file sizes. Returns at most 1000 entries. To find files in a directory tree, use `glob`.";

    const DRAFT: Option<DraftSpec> = Some(DraftSpec {
        kind: ToolKind::Read,
        title: "List a directory",
        subject_field: "path",
        required_fields: &[],
    });
}

impl ToolInvocation for ListTool {
    fn tool(&self) -> &str {
        Self::NAME
    }

    fn describe(&self, workspace: &Workspace) -> CallDescription {
        let path = workspace.absolute_path(&self.path);
        CallDescription::new(
            format!("List `{}`", workspace.display_path(&path)),
            ToolKind::Read,
            vec![location(&path, None)],
        )
    }

    fn action(&self, workspace: &Workspace) -> Option<ToolAction> {
        Some(ToolAction::Inspect {
            kind: ToolKind::Read,
            path: workspace.absolute_path(&self.path),
        })
    }

    fn run<'a>(&'a self, execution: &'a mut ToolExecution<'_>, _: Permit) -> ToolFuture<'a> {
        Box::pin(self.list_entries(execution))
    }
}

impl ListTool {
    async fn list_entries(
        &self,
        execution: &mut ToolExecution<'_>,
    ) -> Result<ToolOutput, ToolFailure> {
        let path = PathBuf::from(execution.workspace.absolute_path(&self.path));
        let (rules, session) = (
            execution.rules.clone(),
            PermissionContext::from_workspace(execution.workspace),
        );
        let (entries, truncated, withheld) = execution
            .workspace
            .with_tree(move |tree, demand| {
                let may = rules.read_permissions(&session)?;
                let (mut entries, truncated) = tree.list_directory(&path, MAX_ENTRIES, demand)?;
                let all = entries.len();
                entries.retain(|entry| {
                    can_show_name(may.as_ref(), &path.join(&entry.name), tree.roots())
                });
                let withheld = all - entries.len();
                Ok((entries, truncated, withheld))
            })
            .await?;
        let mut lines = String::new();
        let mut listed = Vec::new();
        for entry in &entries {
            let (end, kind) = match entry.kind {
                TreeEntryKind::Directory => ("/", "directory"),
                TreeEntryKind::File => ("", "file"),
                TreeEntryKind::Symlink => ("@", "symlink"),
                TreeEntryKind::Other => ("", "other"),
            };
            lines.push_str(&entry.name);
            lines.push_str(end);
            let mut item = json!({ "name": entry.name, "kind": kind });
            if let (Some(size), Value::Object(item)) = (entry.size, &mut item) {
                lines.push_str(&format!("  ({size} bytes)"));
                item.insert("size".to_owned(), size.into());
            }
            lines.push('\n');
            listed.push(item);
        }
        if truncated {
            lines.push_str(&format!("… more entries omitted (limit: {MAX_ENTRIES})\n"));
        }
        let withheld = omission_note("Entries", withheld);
        let mut shown = Vec::new();
        if !entries.is_empty() {
            shown.push(text_content(to_code_block(&lines)));
        } else if withheld.is_none() {
            lines.push_str("The directory is empty.");
            shown.push(text_content("The directory is empty."));
        }
        if let Some(withheld) = withheld {
            lines.push_str(&withheld);
            shown.push(text_content(withheld));
        }
        let data = json!({ "entries": listed, "truncated": truncated });
        Ok(ToolOutput::completed(lines, shown, data))
    }
}

/// Returns the names of the entries in the tool's output data. Names of directories end with `/`.
pub(crate) fn entry_names(data: &Value) -> Vec<String> {
    let entries = data.get("entries").and_then(Value::as_array);
    entries
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let name = entry.get("name")?.as_str()?;
            let directory = entry.get("kind")?.as_str()? == "directory";
            Some(if directory {
                format!("{name}/")
            } else {
                name.to_owned()
            })
        })
        .collect()
}
