//! The `glob` tool, which finds files by name.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use acp::v1::{ToolCallLocation, ToolKind};
use acp_host::Permissions;
use ignore::overrides::{Override, OverrideBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::tool::{
    CallDescription, DraftSpec, Tool, ToolExecution, ToolFuture, ToolInvocation, ToolOutput,
    location,
};
use crate::permission::action::ToolAction;
use crate::permission::context::PermissionContext;
use crate::permission::permit::Permit;
use crate::permission::rules::{can_show_name, omission_note};
use crate::reported_call::text_content;
use crate::text::{first_line, to_code_block};
use crate::workspace::Workspace;
use crate::workspace::tool_failure::ToolFailure;
use crate::workspace::tree::{CancelFlag, DirectoryTree, WalkStep};

/// The maximum number of files to return.
const MAX_FILES: usize = 200;

/// The maximum number of files to consider. If there are more, the newest ones may be missed.
const MAX_CONSIDERED_FILES: usize = 20_000;

/// The maximum number of locations to send to the client.
const MAX_LOCATIONS: usize = 20;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GlobTool {
    /// Glob pattern, such as `*.rs` (in any directory), `src/**/*.{ts,tsx}` or `**/Cargo.toml`. Hidden files
    /// match only if the pattern names them, such as `.github/**`.
    pattern: String,
    /// Directory to search. Default: the working directory.
    #[serde(default)]
    path: String,
}

/// A filter for files that match a glob pattern. Also used by the `search` tool.
pub(super) struct GlobFilter {
    pub(super) overrides: Override,
    /// Whether hidden files can match.
    pub(super) includes_hidden: bool,
}

impl GlobFilter {
    /// Creates a filter for the files under `path` that match `glob`, or for all files under it if `glob` is `None`.
    pub(super) fn new(path: &Path, glob: Option<&str>) -> Result<Self, String> {
        let mut builder = OverrideBuilder::new(path);
        let mut hidden = false;
        if let Some(glob) = glob {
            // Models also write absolute patterns.
            let within = Path::new(glob).strip_prefix(path).ok();
            let within = within.map(|within| format!("/{}", within.to_string_lossy()));
            let glob = within.as_deref().unwrap_or(glob);
            let named = glob.trim_start_matches(['!', '/']).trim_start_matches("./");
            hidden = named.starts_with('.') || named.contains("/.");
            let glob = glob.strip_prefix("./").unwrap_or(glob);
            builder
                .add(glob)
                .map_err(|e| format!("Invalid glob pattern `{glob}`: {e}"))?;
        }
        let only = builder.build().map_err(|e| e.to_string())?;
        Ok(Self {
            overrides: only,
            includes_hidden: hidden,
        })
    }
}

#[derive(Default)]
struct GlobMatches {
    /// The matching files, newest first.
    files: Vec<(SystemTime, String)>,
    /// Whether there are more matching files than were considered.
    has_more: bool,
    /// The number of matching files omitted because a rule denies reading them.
    withheld_count: usize,
}

impl Tool for GlobTool {
    const NAME: &'static str = "glob";

    const DESCRIPTION: &'static str = "\
        Find files whose path matches a glob pattern. Returns at most 200 files, newest first. Files ignored by .gitignore are skipped.";

    const DRAFT: Option<DraftSpec> = Some(DraftSpec {
        kind: ToolKind::Search,
        title: "Find files",
        subject_field: "pattern",
        required_fields: &[],
    });
}

impl ToolInvocation for GlobTool {
    fn tool(&self) -> &str {
        Self::NAME
    }

    fn describe(&self, workspace: &Workspace) -> CallDescription {
        let path = workspace.absolute_path(&self.path);
        let mut title = format!("Find `{}`", first_line(&self.pattern));
        if !self.path.is_empty() {
            title.push_str(&format!(" under `{}`", workspace.display_path(&path)));
        }
        CallDescription::new(title, ToolKind::Search, vec![location(&path, None)])
    }

    fn action(&self, workspace: &Workspace) -> Option<ToolAction> {
        Some(ToolAction::Inspect {
            kind: ToolKind::Search,
            path: workspace.absolute_path(&self.path),
        })
    }

    fn run<'a>(&'a self, execution: &'a mut ToolExecution<'_>, _: Permit) -> ToolFuture<'a> {
        Box::pin(self.find_files(execution))
    }
}

impl GlobTool {
    async fn find_files(
        &self,
        execution: &mut ToolExecution<'_>,
    ) -> Result<ToolOutput, ToolFailure> {
        let workspace = execution.workspace;
        let path = PathBuf::from(workspace.absolute_path(&self.path));
        let names = GlobFilter::new(&path, Some(&self.pattern)).map_err(ToolFailure::Failed)?;
        let (rules, session) = (
            execution.rules.clone(),
            PermissionContext::from_workspace(workspace),
        );
        let found = workspace
            .with_tree(move |tree, demand| {
                let may = rules.read_permissions(&session)?;
                find_matches(tree, &path, &names, may.as_ref(), demand)
            })
            .await?;
        let (all, shown) = (found.files.len(), found.files.len().min(MAX_FILES));
        let mut lines = String::new();
        for (_, file) in found.files.iter().take(MAX_FILES) {
            lines.push_str(&workspace.display_path(file));
            lines.push('\n');
        }
        if found.has_more {
            lines.push_str(&format!(
                "… showing {shown} of the first {all} matching files; narrow the pattern or the path\n"
            ));
        } else if all > shown {
            lines.push_str(&format!("… showing the newest {shown} of {all} files\n"));
        }
        let places: Vec<ToolCallLocation> = found
            .files
            .iter()
            .take(MAX_LOCATIONS)
            .map(|(_, file)| location(file, None))
            .collect();
        let (mut model_text, content) = match all {
            0 => ("No files match.".to_owned(), "No files match.".to_owned()),
            _ => (lines.clone(), to_code_block(&lines)),
        };
        let mut content = vec![text_content(content)];
        if let Some(withheld) = omission_note("Files", found.withheld_count) {
            model_text.push_str(&format!("\n{withheld}"));
            content.push(text_content(withheld));
        }
        let data = json!({ "files": all, "truncated": found.has_more || all > shown });
        let mut output = ToolOutput::completed(model_text, content, data);
        output.locations = (!places.is_empty()).then_some(places);
        Ok(output)
    }
}

fn find_matches(
    tree: &DirectoryTree,
    path: &Path,
    names: &GlobFilter,
    may: Option<&Permissions>,
    demand: &CancelFlag,
) -> Result<GlobMatches, String> {
    let mut found = GlobMatches::default();
    tree.walk(
        path,
        &names.overrides,
        names.includes_hidden,
        demand,
        |file, opened| {
            if found.files.len() == MAX_CONSIDERED_FILES {
                found.has_more = true;
                return WalkStep::Stop;
            }
            if !can_show_name(may, file, tree.roots()) {
                found.withheld_count += 1;
                return WalkStep::Continue;
            }
            let changed = opened.metadata().and_then(|metadata| metadata.modified());
            let changed =
                changed.map_or(SystemTime::UNIX_EPOCH, cap_std::time::SystemTime::into_std);
            found
                .files
                .push((changed, file.to_string_lossy().into_owned()));
            WalkStep::Continue
        },
    )?;
    found
        .files
        .sort_by(|(a, x), (b, y)| b.cmp(a).then_with(|| x.cmp(y)));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_files_match_only_explicit_patterns() {
        let names = |glob: &str| GlobFilter::new(Path::new("/w"), Some(glob)).unwrap();
        for glob in [".github/**", "**/.env", "/w/.git", "./.x"] {
            assert!(names(glob).includes_hidden, "{glob}");
        }
        for glob in ["*.rs", "src/**", "./src/*", "/w/src/*"] {
            assert!(!names(glob).includes_hidden, "{glob}");
        }
        let src = names("/w/src/*.rs").overrides;
        assert!(src.matched("/w/src/a.rs", false).is_whitelist());
        assert!(!src.matched("/w/other/src/a.rs", false).is_whitelist());
        assert!(GlobFilter::new(Path::new("/w"), Some("a[")).is_err());
    }
}
