//! Writing a file.

use acp::v1::ToolKind;
use acp_host::TextForm;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::tool::{About, Call, Change, Draft, Execution, Outcome, Output, Tool, location};
use crate::permission::deed::Deed;
use crate::permission::permit::Permit;
use crate::permission::subject::Subject;
use crate::workspace::Workspace;
use crate::workspace::fault::Fault;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    /// The file; a relative path begins at the working directory.
    path: String,
    /// All that is to be in it.
    text: String,
}

impl Tool for Write {
    const NAME: &'static str = "write";

    const DESCRIPTION: &'static str = "\
        Writes a text file whole, and makes the directories above it; what was in it is replaced. For a change \
        in a file use `edit`.";

    const DRAFT: Option<Draft> = Some(Draft {
        kind: ToolKind::Edit,
        title: "Write a file",
        names: "path",
        needs: &["text"],
    });
}

impl Call for Write {
    fn tool(&self) -> &str {
        Self::NAME
    }

    fn about(&self, workspace: &Workspace) -> About {
        let path = workspace.absolute(&self.path);
        About::new(
            format!("Write `{}`", workspace.shown(&path)),
            ToolKind::Edit,
            vec![location(&path, None)],
        )
    }

    fn deed(&self, workspace: &Workspace) -> Option<Deed> {
        Some(Deed::Change(workspace.absolute(&self.path)))
    }

    fn subject(&self) -> Option<Subject> {
        Some(Subject::Tool(Self::NAME.to_owned()))
    }

    fn preview<'a>(&'a self, workspace: &'a Workspace) -> Outcome<'a, Option<Change>> {
        Box::pin(async { self.change(workspace).await.map(Some) })
    }

    fn run<'a>(&'a self, execution: &'a mut Execution<'_>, permit: Permit) -> Outcome<'a> {
        Box::pin(self.write_file(execution, permit))
    }
}

impl Write {
    /// What it would change as the file is now.
    async fn change(&self, workspace: &Workspace) -> Result<Change, Fault> {
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

    async fn write_file(
        &self,
        execution: &mut Execution<'_>,
        permit: Permit,
    ) -> Result<Output, Fault> {
        let change = self.change(execution.workspace).await?;
        // What would be overwritten now is not what the person was shown.
        if execution
            .previewed
            .as_ref()
            .is_some_and(|previewed| previewed.old != change.old)
        {
            return Err(Fault::failed(format!(
                "`{}` has changed since the change was proposed. Nothing was written; try again.",
                self.path
            )));
        }
        execution.workspace.write(&permit, &change.new).await?;
        let created = change.old.is_none();
        let said = if created { "Created" } else { "Wrote" };
        let data = json!({ "path": change.path, "bytes": change.new.len(), "created": created });
        let said = format!("{said} `{}`, {} bytes.", self.path, change.new.len());
        Ok(Output::done(said, vec![change.content()], data))
    }
}
