//! The `write` tool, which writes a file.

use acp::v1::ToolKind;
use acp_host::TextForm;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::tool::{
    CallDescription, DraftSpec, TextChange, Tool, ToolExecution, ToolFuture, ToolInvocation,
    ToolOutput, location,
};
use crate::permission::action::ToolAction;
use crate::permission::permit::Permit;
use crate::permission::subject::AlwaysSubject;
use crate::workspace::Workspace;
use crate::workspace::tool_failure::ToolFailure;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteTool {
    /// File path, absolute or relative to the working directory.
    path: String,
    /// Complete contents of the file.
    text: String,
}

impl Tool for WriteTool {
    const NAME: &'static str = "write";

    const DESCRIPTION: &'static str = "\
        Write a whole text file, replacing its contents if it exists. Parent directories are created. To change part of a file, use `edit`. Read an existing file before you replace it.";

    const DRAFT: Option<DraftSpec> = Some(DraftSpec {
        kind: ToolKind::Edit,
        title: "Write a file",
        subject_field: "path",
        required_fields: &["text"],
    });
}

impl ToolInvocation for WriteTool {
    fn tool(&self) -> &str {
        Self::NAME
    }

    fn describe(&self, workspace: &Workspace) -> CallDescription {
        let path = workspace.absolute_path(&self.path);
        CallDescription::new(
            format!("Write `{}`", workspace.display_path(&path)),
            ToolKind::Edit,
            vec![location(&path, None)],
        )
    }

    fn action(&self, workspace: &Workspace) -> Option<ToolAction> {
        Some(ToolAction::Change(workspace.absolute_path(&self.path)))
    }

    fn subject(&self) -> Option<AlwaysSubject> {
        Some(AlwaysSubject::Tool(Self::NAME.to_owned()))
    }

    fn preview<'a>(&'a self, workspace: &'a Workspace) -> ToolFuture<'a, Option<TextChange>> {
        Box::pin(async { self.compute_change(workspace).await.map(Some) })
    }

    fn run<'a>(&'a self, execution: &'a mut ToolExecution<'_>, permit: Permit) -> ToolFuture<'a> {
        Box::pin(self.write_file(execution, permit))
    }
}

impl WriteTool {
    /// Computes the change to the file's current text.
    async fn compute_change(&self, workspace: &Workspace) -> Result<TextChange, ToolFailure> {
        let path = workspace.absolute_path(&self.path);
        let old = workspace.read_file_if_exists(&path).await?;
        // Models write `\n`, and most clients write the text unchanged.
        let form = old.as_deref().map(TextForm::detect).unwrap_or_default();
        Ok(TextChange {
            path,
            old,
            new: form.apply(&self.text).into_owned(),
            line: None,
        })
    }

    async fn write_file(
        &self,
        execution: &mut ToolExecution<'_>,
        permit: Permit,
    ) -> Result<ToolOutput, ToolFailure> {
        let change = self.compute_change(execution.workspace).await?;
        // The file has changed since the user saw the preview.
        if execution
            .preview
            .as_ref()
            .is_some_and(|previewed| previewed.old != change.old)
        {
            return Err(ToolFailure::failed(format!(
                "`{}` was modified since the change was proposed. Nothing was written; read it again and retry.",
                self.path
            )));
        }
        execution.workspace.write_file(&permit, &change.new).await?;
        let created = change.old.is_none();
        let summary = if created { "Created" } else { "Wrote" };
        let data = json!({ "path": change.path, "bytes": change.new.len(), "created": created });
        let summary = format!("{summary} `{}` ({} bytes).", self.path, change.new.len());
        Ok(ToolOutput::completed(summary, vec![change.content()], data))
    }
}
