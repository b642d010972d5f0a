//! Writing a file.

use acp::v1::ToolKind;
use acp_host::TextForm;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::tool::{About, Change, Doing, Output, location};
use crate::workspace::Workspace;
use crate::workspace::fault::Fault;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    /// The file; a relative path begins at the working directory.
    pub(super) path: String,
    /// All that is to be in it.
    text: String,
}

impl Write {
    pub(super) fn about(&self, workspace: &Workspace) -> About {
        let path = workspace.absolute(&self.path);
        About::new(
            format!("Write `{}`", workspace.shown(&path)),
            ToolKind::Edit,
            vec![location(&path, None)],
        )
    }

    /// What it would change as the file is now.
    pub(super) async fn change(&self, workspace: &Workspace) -> Result<Change, Fault> {
        let path = workspace.absolute(&self.path);
        let old = workspace.read_if_there(&path).await?;
        // Models write `\n`, and most clients write what they are told.
        let form = old.as_deref().map(TextForm::of).unwrap_or_default();
        Ok(Change {
            path,
            old,
            new: form.apply(&self.text).into_owned(),
            line: None,
        })
    }

    pub(super) async fn run(
        &self,
        doing: &mut Doing<'_>,
        previewed: Option<&Change>,
    ) -> Result<Output, Fault> {
        let change = self.change(doing.workspace).await?;
        // What would be overwritten now is not what the person was shown.
        if previewed.is_some_and(|previewed| previewed.old != change.old) {
            return Err(Fault::failed(format!(
                "`{}` has changed since the change was proposed. Nothing was written; try again.",
                self.path
            )));
        }
        doing.workspace.write(&change.path, &change.new).await?;
        let created = change.old.is_none();
        let said = if created { "Created" } else { "Wrote" };
        let data = json!({ "path": change.path, "bytes": change.new.len(), "created": created });
        let said = format!("{said} `{}`, {} bytes.", self.path, change.new.len());
        Ok(Output::done(said, vec![change.content()], data))
    }
}
