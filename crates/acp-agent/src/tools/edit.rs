//! The `edit` tool, which replaces text in a file.

use acp::v1::ToolKind;
use acp_host::TextForm;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::nearest::{explain_not_found, list_numbers};
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
pub(crate) struct EditTool {
    /// File path, absolute or relative to the working directory.
    path: String,
    /// Text to replace, exactly as in the file, including whitespace. Unless `replace_all` is set, include
    /// enough surrounding lines to make it unique.
    search: String,
    /// Replacement text.
    replacement: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl Tool for EditTool {
    const NAME: &'static str = "edit";

    const DESCRIPTION: &'static str = "\
        Replace text in a file. `search` must match the file exactly, without the line numbers that `read` adds, and must occur only once unless `replace_all` is set. Otherwise the file is not changed, and the error explains why. Read the file first.";

    const DRAFT: Option<DraftSpec> = Some(DraftSpec {
        kind: ToolKind::Edit,
        title: "Edit a file",
        subject_field: "path",
        required_fields: &["search", "replacement"],
    });
}

impl ToolInvocation for EditTool {
    fn tool(&self) -> &str {
        Self::NAME
    }

    fn describe(&self, workspace: &Workspace) -> CallDescription {
        let path = workspace.absolute_path(&self.path);
        CallDescription::new(
            format!("Edit `{}`", workspace.display_path(&path)),
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
        Box::pin(self.edit_file(execution, permit))
    }
}

impl EditTool {
    /// Computes the change to the file's current text.
    async fn compute_change(&self, workspace: &Workspace) -> Result<TextChange, ToolFailure> {
        let path = workspace.absolute_path(&self.path);
        let Some(old) = workspace.read_file_if_exists(&path).await? else {
            return Err(ToolFailure::failed(format!(
                "File not found: `{}`.",
                self.path
            )));
        };
        // Models write `\n`, whatever line endings the file has.
        let form = TextForm::detect(&old);
        let search = match old.contains(&self.search) {
            true => self.search.as_str().into(),
            false => form.apply_line_ends(&self.search),
        };
        let at = find_match(&old, &search, self.replace_all)
            .map_err(|why| ToolFailure::failed(format!("`{}`: {why}", self.path)))?;
        let replacement = form.apply_line_ends(&self.replacement);
        let new = match self.replace_all {
            true => old.replace(&*search, &replacement),
            false => old.replacen(&*search, &replacement, 1),
        };
        if new == old {
            return Err(ToolFailure::failed(
                "`replacement` is identical to the text it replaces. Nothing was changed.",
            ));
        }
        let line = u32::try_from(line_number(&old, at)).unwrap_or(u32::MAX);
        Ok(TextChange {
            path,
            old: Some(old),
            new,
            line: Some(line),
        })
    }

    async fn edit_file(
        &self,
        execution: &mut ToolExecution<'_>,
        permit: Permit,
    ) -> Result<ToolOutput, ToolFailure> {
        // Apply the change to the file as it is now, and not as it was when permission was requested. Other changes to
        // the file are kept. If the text no longer exists, the call fails.
        let change = self.compute_change(execution.workspace).await?;
        execution.workspace.write_file(&permit, &change.new).await?;
        let line = change.line.unwrap_or(1);
        let summary = format!("Edited `{}` at line {line}.", self.path);
        let data = json!({ "path": change.path, "line": line });
        let mut output = ToolOutput::completed(summary, vec![change.content()], data);
        output.locations = Some(vec![change.location()]);
        Ok(output)
    }
}

/// Returns the position of the text if it occurs exactly once. If `all` is set, returns the position of its first
/// occurrence.
fn find_match(file: &str, search: &str, all: bool) -> Result<usize, String> {
    if search.is_empty() {
        return Err("`search` is empty.".to_owned());
    }
    let mut places = match_positions(file, search);
    match (places.next(), places.next()) {
        (Some(at), None) => Ok(at),
        (Some(at), _) if all => Ok(at),
        (Some(first), Some(second)) => {
            let lines: Vec<usize> = [first, second]
                .into_iter()
                .chain(places)
                .map(|at| line_number(file, at))
                .collect();
            Err(format!(
                "the text occurs {} times, starting on lines {}. Add surrounding lines to make it unique, or set `replace_all` to change every occurrence.",
                lines.len(),
                list_numbers(&lines)
            ))
        }
        (None, _) => Err(explain_not_found(file, search)),
    }
}

/// Returns the positions of all occurrences of the text, including overlapping ones.
fn match_positions<'a>(file: &'a str, search: &'a str) -> impl Iterator<Item = usize> + 'a {
    let step = search.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + file.get(from..)?.find(search)?;
        from = at + step;
        Some(at)
    })
}

/// Returns the line number of a byte offset, counted from 1.
fn line_number(file: &str, at: usize) -> usize {
    file.get(..at).unwrap_or_default().matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_match_is_found() {
        assert_eq!(find_match("one\ntwo\nthree\n", "two\nth", false), Ok(4));
        assert_eq!(find_match("é€é", "€", false), Ok(2));
        assert_eq!(find_match("a b a", "a", true), Ok(0));
    }

    #[test]
    fn error_lists_the_matching_lines() {
        let error = |file: &str, search: &str| find_match(file, search, false).unwrap_err();
        assert!(error("a\nb\na\n", "a").contains("2 times, starting on lines 1, 3."));
        assert!(error("aaa", "aa").contains("2 times"));
        assert!(error("a\na\n", "a").contains("`replace_all`"));
        assert!(error("x\ny\n", "z").contains("2 lines"));
        assert!(error("x", "").contains("empty"));
    }
}
