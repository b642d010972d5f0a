//! Listing a directory.

use std::path::PathBuf;

use acp::v1::ToolKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::tool::{About, Call, Draft, Execution, Outcome, Output, Tool, location};
use crate::permission::circumstances::Circumstances;
use crate::permission::deed::Deed;
use crate::permission::permit::Permit;
use crate::permission::rules::{left_out, may_be_named};
use crate::reported::text;
use crate::text::fenced;
use crate::workspace::Workspace;
use crate::workspace::fault::Fault;
use crate::workspace::tree::EntryKind;

/// How many entries are listed at most.
const MOST: usize = 1000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// The directory; the working directory if absent.
    #[serde(default)]
    path: String,
}

impl Tool for List {
    const NAME: &'static str = "list";

    const DESCRIPTION: &'static str = "\
        Lists a directory, 1000 entries at most, with the sizes of its files. To find files in a whole tree \
        use `glob`.";

    const DRAFT: Option<Draft> = Some(Draft {
        kind: ToolKind::Read,
        title: "List a directory",
        names: "path",
        needs: &[],
    });
}

impl Call for List {
    fn tool(&self) -> &str {
        Self::NAME
    }

    fn about(&self, workspace: &Workspace) -> About {
        let path = workspace.absolute(&self.path);
        About::new(
            format!("List `{}`", workspace.shown(&path)),
            ToolKind::Read,
            vec![location(&path, None)],
        )
    }

    fn deed(&self, workspace: &Workspace) -> Option<Deed> {
        Some(Deed::Look {
            kind: ToolKind::Read,
            path: workspace.absolute(&self.path),
        })
    }

    fn run<'a>(&'a self, execution: &'a mut Execution<'_>, _: Permit) -> Outcome<'a> {
        Box::pin(self.list_entries(execution))
    }
}

impl List {
    async fn list_entries(&self, execution: &mut Execution<'_>) -> Result<Output, Fault> {
        let path = PathBuf::from(execution.workspace.absolute(&self.path));
        let (rules, session) = (
            execution.rules.clone(),
            Circumstances::of(execution.workspace),
        );
        let (entries, truncated, withheld) = execution
            .workspace
            .look(move |tree, demand| {
                let may = rules.looking(&session)?;
                let (mut entries, truncated) = tree.list(&path, MOST, demand)?;
                let all = entries.len();
                entries.retain(|entry| {
                    may_be_named(may.as_ref(), &path.join(&entry.name), tree.roots())
                });
                let withheld = all - entries.len();
                Ok((entries, truncated, withheld))
            })
            .await?;
        let mut lines = String::new();
        let mut listed = Vec::new();
        for entry in &entries {
            let (end, kind) = match entry.kind {
                EntryKind::Directory => ("/", "directory"),
                EntryKind::File => ("", "file"),
                EntryKind::Symlink => ("@", "symlink"),
                EntryKind::Other => ("", "other"),
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
            lines.push_str(&format!("… and more than these {MOST}\n"));
        }
        let withheld = left_out("Entries", withheld);
        let mut shown = Vec::new();
        if !entries.is_empty() {
            shown.push(text(fenced(&lines)));
        } else if withheld.is_none() {
            lines.push_str("It is empty.");
            shown.push(text("It is empty."));
        }
        if let Some(withheld) = withheld {
            lines.push_str(&withheld);
            shown.push(text(withheld));
        }
        let data = json!({ "entries": listed, "truncated": truncated });
        Ok(Output::done(lines, shown, data))
    }
}

/// The names in a listing's data; those of directories end with `/`.
pub(crate) fn names(data: &Value) -> Vec<String> {
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
