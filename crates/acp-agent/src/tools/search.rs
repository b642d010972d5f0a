//! Searching files.

use std::path::{Path, PathBuf};

use acp::v1::{ToolCallLocation, ToolKind};
use acp_host::{Action, Permissions, Verdict};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::glob::Names;
use super::tool::{About, Call, Draft, Execution, Outcome, Output, Tool, location};
use crate::permission::circumstances::Circumstances;
use crate::permission::deed::Deed;
use crate::permission::permit::Permit;
use crate::permission::rules::left_out;
use crate::reported::text;
use crate::text::{fenced, head, one_line};
use crate::workspace::Workspace;
use crate::workspace::fault::Fault;
use crate::workspace::tree::{Demand, Look, Tree};

/// How many lines that match are given back at most.
const MOST: usize = 200;

/// How much of everything found is given back, in bytes: lines around the matches may be many.
const MOST_TEXT: usize = 64 * 1024;

/// How many lines around each match a call may ask for.
const MOST_CONTEXT: u32 = 10;

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
    /// Which files to search, such as `*.rs` or `src/**`; all if absent. Hidden files are searched only if a
    /// pattern names them, such as `.github/**`.
    glob: Option<String>,
    /// A directory to search, or a file; the working directory if absent.
    #[serde(default)]
    path: String,
    /// How many lines to show before and behind each that matches; none if absent, 10 at most.
    #[serde(default)]
    context: u32,
    /// Case does not count.
    #[serde(default)]
    ignore_case: bool,
    /// The pattern is a text to be found as it is, not a regular expression.
    #[serde(default)]
    literal: bool,
}

/// A line that was found, or is near one that was.
struct Line {
    path: String,
    number: u32,
    text: String,
    matches: bool,
    /// Lines are left out before it.
    gap: bool,
}

#[derive(Default)]
struct Matches {
    lines: Vec<Line>,
    matches: usize,
    files: usize,
    /// How much text there is in the lines, in bytes.
    size: usize,
    truncated: bool,
    /// Files that rules keep from being read.
    withheld: usize,
}

impl Tool for Search {
    const NAME: &'static str = "search";

    const DESCRIPTION: &'static str = "\
        Searches files for a regular expression (the syntax of Rust's `regex`: no look-around, no \
        back-references), line by line: 200 matching lines at most. Hidden files, binary files, and what \
        .gitignore names are left out.";

    const DRAFT: Option<Draft> = Some(Draft {
        kind: ToolKind::Search,
        title: "Search",
        names: "pattern",
        needs: &[],
    });
}

impl Call for Search {
    fn tool(&self) -> &str {
        Self::NAME
    }

    fn about(&self, workspace: &Workspace) -> About {
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

    fn deed(&self, workspace: &Workspace) -> Option<Deed> {
        Some(Deed::Look {
            kind: ToolKind::Search,
            path: workspace.absolute(&self.path),
        })
    }

    fn run<'a>(&'a self, execution: &'a mut Execution<'_>, _: Permit) -> Outcome<'a> {
        Box::pin(self.search_files(execution))
    }
}

impl Search {
    async fn search_files(&self, execution: &mut Execution<'_>) -> Result<Output, Fault> {
        let workspace = execution.workspace;
        if self.context > MOST_CONTEXT {
            let asked = self.context;
            let why = format!("`context` is {asked}; it can be up to {MOST_CONTEXT}.");
            return Err(Fault::failed(why));
        }
        let path = PathBuf::from(workspace.absolute(&self.path));
        let names = Names::of(&path, self.glob.as_deref()).map_err(Fault::Failed)?;
        let matcher = self.matcher().map_err(Fault::Failed)?;
        let context = usize::try_from(self.context).unwrap_or_default();
        let (rules, session) = (execution.rules.clone(), Circumstances::of(workspace));
        let found = workspace
            .look(move |tree, demand| {
                let may = rules.looking(&session)?;
                find(tree, &path, &names, &matcher, context, may.as_ref(), demand)
            })
            .await?;
        Ok(self.output(workspace, &found))
    }

    fn matcher(&self) -> Result<RegexMatcher, String> {
        let built = RegexMatcherBuilder::new()
            .line_terminator(Some(b'\n'))
            .case_insensitive(self.ignore_case)
            .fixed_strings(self.literal)
            .build(&self.pattern);
        built.map_err(|e| {
            format!(
                "`{}` is not a regular expression: {e}\nTo find it as it is, set `literal`.",
                self.pattern
            )
        })
    }

    fn output(&self, workspace: &Workspace, found: &Matches) -> Output {
        let mut lines = String::new();
        for line in &found.lines {
            if line.gap {
                lines.push_str("--\n");
            }
            let sign = if line.matches { ':' } else { '-' };
            let path = workspace.shown(&line.path);
            lines.push_str(&format!(
                "{path}{sign}{}{sign} {}\n",
                line.number, line.text
            ));
        }
        let mut told = lines.clone();
        if found.truncated {
            let more = format!(
                "… and more than these {} lines; narrow the pattern, the glob or the path\n",
                found.matches
            );
            lines.push_str(&more);
            told.push_str(&more);
        }
        let mut shown = vec![text(match found.lines.is_empty() {
            true => "Nothing was found.".to_owned(),
            false => fenced(&lines),
        })];
        if found.lines.is_empty() {
            told = "Nothing was found.".to_owned();
        }
        if let Some(withheld) = left_out("Files", found.withheld) {
            told.push_str(&format!("\n{withheld}"));
            shown.push(text(withheld));
        }
        let matches = found.lines.iter().filter(|line| line.matches);
        let places: Vec<ToolCallLocation> = matches
            .take(PLACES)
            .map(|line| location(&line.path, Some(line.number)))
            .collect();
        let data = json!({
            "matches": found.matches,
            "files": found.files,
            "truncated": found.truncated,
        });
        let mut output = Output::done(told, shown, data);
        output.locations = (!places.is_empty()).then_some(places);
        output
    }
}

fn find(
    tree: &Tree,
    path: &Path,
    names: &Names,
    matcher: &RegexMatcher,
    context: usize,
    may: Option<&Permissions>,
    demand: &Demand,
) -> Result<Matches, String> {
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LONGEST))
        .build();
    let mut found = Matches::default();
    tree.walk(path, &names.only, names.hidden, demand, |file, opened| {
        let shown = file.to_string_lossy();
        let read = |may: &Permissions| {
            may.judge(&Action::file(ToolKind::Read, &shown, tree.roots())) == Verdict::Allow
        };
        if !may.is_none_or(read) {
            found.withheld += 1;
            return Look::Further;
        }
        let before = found.matches;
        let sink = Lines {
            path: &shown,
            found: &mut found,
            gap: false,
        };
        if let Err(error) = searcher.search_reader(matcher, demand.reader(opened), sink) {
            tracing::debug!(file = %file.display(), %error, "a file could not be searched");
        }
        found.files += usize::from(found.matches > before);
        if found.truncated {
            Look::NoFurther
        } else {
            Look::Further
        }
    })?;
    Ok(found)
}

/// Keeps what is found in a file.
struct Lines<'a> {
    path: &'a str,
    found: &'a mut Matches,
    gap: bool,
}

impl Lines<'_> {
    /// Gives whether to go on.
    fn add(&mut self, number: Option<u64>, bytes: &[u8], matches: bool) -> bool {
        let line = String::from_utf8_lossy(bytes);
        let line = head(line.trim_end(), LINE);
        let full = self.found.size + line.len() + self.path.len() > MOST_TEXT;
        if full || (matches && self.found.matches == MOST) {
            self.found.truncated = true;
            return false;
        }
        self.found.size += line.len() + self.path.len();
        self.found.matches += usize::from(matches);
        self.found.lines.push(Line {
            path: self.path.to_owned(),
            number: number
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(u32::MAX),
            text: line.to_owned(),
            matches,
            gap: std::mem::take(&mut self.gap),
        });
        true
    }
}

impl Sink for Lines<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        Ok(self.add(line.line_number(), line.bytes(), true))
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, Self::Error> {
        Ok(self.add(line.line_number(), line.bytes(), false))
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        self.gap = true;
        Ok(true)
    }
}
