//! Searching files.

use std::path::{Path, PathBuf};

use acp::v1::{ToolCallLocation, ToolKind};
use grep_regex::RegexMatcherBuilder;
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, SearcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{About, Doing, Output, fenced, head, location, text};
use crate::permission::one_line;
use crate::workspace::{Fault, Given, Look, Tree, Workspace};

/// How many lines are given back at most.
const MOST: usize = 200;

/// How many bytes of a line.
const LINE: usize = 300;

/// How many places an editor is told of.
const PLACES: usize = 20;

/// How long a line may be to be searched at all, in bytes.
const LONGEST: usize = 16 * 1024 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    /// A regular expression. It is matched against single lines, and case counts.
    pattern: String,
    /// Which files to search, such as `*.rs` or `src/**`; all if absent.
    glob: Option<String>,
    /// Where to search; the working directory if absent.
    #[serde(default)]
    path: String,
}

struct Match {
    path: String,
    line: u32,
    text: String,
}

#[derive(Default)]
struct Found {
    matches: Vec<Match>,
    files: usize,
    truncated: bool,
}

impl Search {
    pub(super) fn about(&self, workspace: &Workspace) -> About {
        let path = workspace.absolute(&self.path);
        let mut title = format!("Search for `{}`", one_line(&self.pattern));
        if let Some(glob) = &self.glob {
            title.push_str(&format!(" in `{glob}`"));
        }
        if !self.path.is_empty() {
            title.push_str(&format!(" under `{}`", workspace.shown(&path)));
        }
        About::new(title, ToolKind::Search, vec![location(&path, None)])
    }

    pub(super) async fn run(&self, doing: &mut Doing<'_>) -> Result<Output, Fault> {
        let workspace = doing.workspace;
        let path = PathBuf::from(workspace.absolute(&self.path));
        let only = only(&path, self.glob.as_deref()).map_err(Fault::Failed)?;
        let pattern = self.pattern.clone();
        let found = workspace
            .look(move |tree, given| find(tree, &path, &pattern, &only, given))
            .await?;

        let mut lines = String::new();
        for found in &found.matches {
            lines.push_str(&format!(
                "{}:{}: {}\n",
                workspace.shown(&found.path),
                found.line,
                found.text
            ));
        }
        if found.truncated {
            lines.push_str(&format!("… and more than these {MOST} lines\n"));
        }
        let shown = if found.matches.is_empty() {
            "Nothing was found.".to_owned()
        } else {
            fenced(&lines)
        };
        let places: Vec<ToolCallLocation> = found
            .matches
            .iter()
            .take(PLACES)
            .map(|found| location(&found.path, Some(found.line)))
            .collect();
        let data = json!({
            "matches": found.matches.len(),
            "files": found.files,
            "truncated": found.truncated,
        });
        let mut output = Output::done(lines, vec![text(shown)], data);
        output.locations = (!places.is_empty()).then_some(places);
        Ok(output)
    }
}

/// The files that a glob names.
fn only(path: &Path, glob: Option<&str>) -> Result<Override, String> {
    let mut builder = OverrideBuilder::new(path);
    if let Some(glob) = glob {
        builder
            .add(glob)
            .map_err(|e| format!("`{glob}` names no files: {e}"))?;
    }
    builder.build().map_err(|e| e.to_string())
}

fn find(
    tree: &Tree,
    path: &Path,
    pattern: &str,
    only: &Override,
    given: &Given,
) -> Result<Found, String> {
    let matcher = RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .build(pattern)
        .map_err(|e| format!("`{pattern}` is not a regular expression: {e}"))?;
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LONGEST))
        .build();
    let mut found = Found::default();
    tree.walk(path, only, given, |file, opened| {
        let before = found.matches.len();
        let searched = searcher.search_reader(
            &matcher,
            given.reader(opened),
            Lossy(|number, line| {
                if found.matches.len() == MOST {
                    found.truncated = true;
                    return Ok(false);
                }
                found.matches.push(Match {
                    path: file.to_string_lossy().into_owned(),
                    line: u32::try_from(number).unwrap_or(u32::MAX),
                    text: head(line.trim_end(), LINE).to_owned(),
                });
                Ok(true)
            }),
        );
        if let Err(error) = searched {
            tracing::debug!(file = %file.display(), %error, "a file could not be searched");
        }
        found.files += usize::from(found.matches.len() > before);
        if found.truncated {
            Look::NoFurther
        } else {
            Look::Further
        }
    })?;
    Ok(found)
}
