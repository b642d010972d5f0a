//! The `search` tool, which searches the contents of files.

use std::path::{Path, PathBuf};

use acp::v1::{ToolCallLocation, ToolKind};
use acp_host::{Action, PermissionDecision, Permissions};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::glob::GlobFilter;
use super::tool::{
    CallDescription, DraftSpec, Tool, ToolExecution, ToolFuture, ToolInvocation, ToolOutput,
    location,
};
use crate::permission::action::ToolAction;
use crate::permission::context::PermissionContext;
use crate::permission::permit::Permit;
use crate::permission::rules::omission_note;
use crate::reported_call::text_content;
use crate::text::{first_line, to_code_block, truncate_to_head};
use crate::workspace::Workspace;
use crate::workspace::tool_failure::ToolFailure;
use crate::workspace::tree::{CancelFlag, DirectoryTree, WalkStep};

/// The maximum number of matching lines to return.
const MAX_MATCHES: usize = 200;

/// The maximum total length of the returned lines, in bytes. This includes context lines, of which there may be many.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The maximum number of context lines before and after each match.
const MAX_CONTEXT_LINES: u32 = 10;

/// The maximum length of a returned line, in bytes.
const MAX_SHOWN_LINE_BYTES: usize = 300;

/// The maximum number of locations to send to the client.
const MAX_LOCATIONS: usize = 20;

/// The maximum length of a line that can be searched, in bytes.
const MAX_SEARCHED_LINE_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchTool {
    /// Regular expression. Case-sensitive unless `ignore_case` is set.
    pattern: String,
    /// Glob pattern for the files to search, such as `*.rs` or `src/**`. Default: all files. Hidden files are
    /// searched only if the pattern names them, such as `.github/**`.
    glob: Option<String>,
    /// Directory or file to search. Default: the working directory.
    #[serde(default)]
    path: String,
    /// Number of context lines to show before and after each match. Default: 0, maximum: 10.
    #[serde(default)]
    context: u32,
    /// Ignore case.
    #[serde(default)]
    ignore_case: bool,
    /// Treat the pattern as literal text instead of a regular expression.
    #[serde(default)]
    literal: bool,
}

/// A line of the result: a match or a context line.
struct SearchLine {
    path: String,
    number: u32,
    text: String,
    is_match: bool,
    /// Whether any lines were omitted before this one.
    follows_gap: bool,
}

#[derive(Default)]
struct SearchMatches {
    lines: Vec<SearchLine>,
    match_count: usize,
    file_count: usize,
    /// The total size of the lines and their paths, in bytes.
    total_bytes: usize,
    is_truncated: bool,
    /// The number of files omitted because a rule denies reading them.
    withheld_count: usize,
}

impl Tool for SearchTool {
    const NAME: &'static str = "search";

    const DESCRIPTION: &'static str = "\
        Search the contents of files, line by line, for a regular expression (Rust `regex` syntax, without look-around or backreferences). Returns at most 200 matching lines as `path:line`. Hidden files, binary files and files ignored by .gitignore are skipped.";

    const DRAFT: Option<DraftSpec> = Some(DraftSpec {
        kind: ToolKind::Search,
        title: "Search",
        subject_field: "pattern",
        required_fields: &[],
    });
}

impl ToolInvocation for SearchTool {
    fn tool(&self) -> &str {
        Self::NAME
    }

    fn describe(&self, workspace: &Workspace) -> CallDescription {
        let path = workspace.absolute_path(&self.path);
        let mut title = format!("Search for `{}`", first_line(&self.pattern));
        if let Some(glob) = &self.glob {
            title.push_str(&format!(" in `{glob}`"));
        }
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
        Box::pin(self.search_files(execution))
    }
}

impl SearchTool {
    async fn search_files(
        &self,
        execution: &mut ToolExecution<'_>,
    ) -> Result<ToolOutput, ToolFailure> {
        let workspace = execution.workspace;
        if self.context > MAX_CONTEXT_LINES {
            let context_lines = self.context;
            let why =
                format!("Invalid `context` {context_lines}: the maximum is {MAX_CONTEXT_LINES}.");
            return Err(ToolFailure::failed(why));
        }
        let path = PathBuf::from(workspace.absolute_path(&self.path));
        let names = GlobFilter::new(&path, self.glob.as_deref()).map_err(ToolFailure::Failed)?;
        let matcher = self.build_matcher().map_err(ToolFailure::Failed)?;
        let context = usize::try_from(self.context).unwrap_or_default();
        let (rules, session) = (
            execution.rules.clone(),
            PermissionContext::from_workspace(workspace),
        );
        let found = workspace
            .with_tree(move |tree, demand| {
                let may = rules.read_permissions(&session)?;
                find_matches(tree, &path, &names, &matcher, context, may.as_ref(), demand)
            })
            .await?;
        Ok(self.to_output(workspace, &found))
    }

    fn build_matcher(&self) -> Result<RegexMatcher, String> {
        let built = RegexMatcherBuilder::new()
            .line_terminator(Some(b'\n'))
            .case_insensitive(self.ignore_case)
            .fixed_strings(self.literal)
            .build(&self.pattern);
        built.map_err(|e| {
            format!(
                "Invalid regular expression `{}`: {e}\nTo search for it literally, set `literal`.",
                self.pattern
            )
        })
    }

    fn to_output(&self, workspace: &Workspace, found: &SearchMatches) -> ToolOutput {
        let mut lines = String::new();
        for line in &found.lines {
            if line.follows_gap {
                lines.push_str("--\n");
            }
            let sign = if line.is_match { ':' } else { '-' };
            let path = workspace.display_path(&line.path);
            lines.push_str(&format!(
                "{path}{sign}{}{sign} {}\n",
                line.number, line.text
            ));
        }
        let mut model_text = lines.clone();
        if found.is_truncated {
            let more = format!(
                "… more lines omitted (limit: {}); narrow the pattern, the glob or the path\n",
                found.match_count
            );
            lines.push_str(&more);
            model_text.push_str(&more);
        }
        let mut shown = vec![text_content(match found.lines.is_empty() {
            true => "No matches.".to_owned(),
            false => to_code_block(&lines),
        })];
        if found.lines.is_empty() {
            model_text = "No matches.".to_owned();
        }
        if let Some(withheld) = omission_note("Files", found.withheld_count) {
            model_text.push_str(&format!("\n{withheld}"));
            shown.push(text_content(withheld));
        }
        let matches = found.lines.iter().filter(|line| line.is_match);
        let places: Vec<ToolCallLocation> = matches
            .take(MAX_LOCATIONS)
            .map(|line| location(&line.path, Some(line.number)))
            .collect();
        let data = json!({
            "matches": found.match_count,
            "files": found.file_count,
            "truncated": found.is_truncated,
        });
        let mut output = ToolOutput::completed(model_text, shown, data);
        output.locations = (!places.is_empty()).then_some(places);
        output
    }
}

fn find_matches(
    tree: &DirectoryTree,
    path: &Path,
    names: &GlobFilter,
    matcher: &RegexMatcher,
    context: usize,
    may: Option<&Permissions>,
    demand: &CancelFlag,
) -> Result<SearchMatches, String> {
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MAX_SEARCHED_LINE_BYTES))
        .build();
    let mut found = SearchMatches::default();
    tree.walk(
        path,
        &names.overrides,
        names.includes_hidden,
        demand,
        |file, opened| {
            let shown = file.to_string_lossy();
            let read = |may: &Permissions| {
                may.decide(&Action::for_file(ToolKind::Read, &shown, tree.roots()))
                    == PermissionDecision::Allow
            };
            if !may.is_none_or(read) {
                found.withheld_count += 1;
                return WalkStep::Continue;
            }
            let before = found.match_count;
            let sink = SearchSink {
                path: &shown,
                matches: &mut found,
                has_gap: false,
            };
            if let Err(error) = searcher.search_reader(matcher, demand.wrap_reader(opened), sink) {
                tracing::debug!(file = %file.display(), %error, "cannot search a file");
            }
            found.file_count += usize::from(found.match_count > before);
            if found.is_truncated {
                WalkStep::Stop
            } else {
                WalkStep::Continue
            }
        },
    )?;
    Ok(found)
}

/// A sink that collects the matching lines and the context lines of one file.
struct SearchSink<'a> {
    path: &'a str,
    matches: &'a mut SearchMatches,
    has_gap: bool,
}

impl SearchSink<'_> {
    /// Adds a line to the result. Returns `false` to stop the search.
    fn add(&mut self, number: Option<u64>, bytes: &[u8], matches: bool) -> bool {
        let line = String::from_utf8_lossy(bytes);
        let line = truncate_to_head(line.trim_end(), MAX_SHOWN_LINE_BYTES);
        let full = self.matches.total_bytes + line.len() + self.path.len() > MAX_TEXT_BYTES;
        if full || (matches && self.matches.match_count == MAX_MATCHES) {
            self.matches.is_truncated = true;
            return false;
        }
        self.matches.total_bytes += line.len() + self.path.len();
        self.matches.match_count += usize::from(matches);
        self.matches.lines.push(SearchLine {
            path: self.path.to_owned(),
            number: number
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(u32::MAX),
            text: line.to_owned(),
            is_match: matches,
            follows_gap: std::mem::take(&mut self.has_gap),
        });
        true
    }
}

impl Sink for SearchSink<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        Ok(self.add(line.line_number(), line.bytes(), true))
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, Self::Error> {
        Ok(self.add(line.line_number(), line.bytes(), false))
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        self.has_gap = true;
        Ok(true)
    }
}
