//! A permission request as text: all that it is about, and what can be answered. Nothing is cut, and what is not seen
//! is written out.
//!
//! What the agent says in several lines stands behind a bar, so that it cannot pass for what this program says.

use std::path::Path;

use acp::client::PermissionRequest;
use acp::thread::{Diff, FileTexts, ToolCallContent};
use acp_host::question::{self, Part};
use acp_host::{Always, literal};
use similar::TextDiff;

use super::tool_call::DIFFING;
use crate::screen::{BAR, Out, wrapped};

/// Draws the question. `cwd` is the session's directory.
pub(crate) fn question(request: &PermissionRequest, always: &Always, cwd: &Path, out: &mut Out) {
    let mut text = String::new();
    let titles = question::titles(request);
    let kind = literal::line(request.tool_call.kind.as_str());
    for (n, title) in titles.iter().enumerate() {
        let title = literal::line(title);
        match n {
            0 => text.push_str(&format!("? {title} ({kind})\n")),
            _ => bar(&title, &mut text),
        }
    }
    if let Some(description) = request.description.as_deref().filter(|d| !d.is_empty()) {
        bar(description, &mut text);
    }
    for shown in question::parts(request, cwd) {
        part(&shown, request, &mut text);
    }
    if !question::is_whole(request) {
        text.push_str(
            "  This is not all of it: the session has become larger than is kept, and what the agent said of this\n  \
             call was cut. What is not shown can only be rejected.\n",
        );
    }
    let (rows, most) = rows(&text);
    if rows + request.options.len() + 2 > most {
        text.push_str(&format!(
            "  (the question has {rows} lines and began further up: scroll up to read all of it)\n"
        ));
    }
    for (n, option) in request.options.iter().enumerate() {
        let meaning = question::meaning(&option.kind, always, request, cwd);
        let meaning = meaning.unwrap_or_else(|| {
            let kind = option.kind.as_str();
            format!("the agent does not say whether this is a yes (its kind is {kind:?})")
        });
        let name = literal::line(&option.name);
        text.push_str(&format!("  {}) {name}", n + 1));
        if !meaning.is_empty() {
            text.push_str(&format!(" – {}", literal::line(&meaning)));
        }
        text.push('\n');
    }
    out.text(&text);
}

/// How many rows of the terminal a text takes, and how many there are.
fn rows(text: &str) -> (usize, usize) {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    let most = size.map_or(usize::MAX, |(_, rows)| usize::from(rows.0));
    (wrapped(text).lines().count(), most)
}

fn part(part: &Part<'_>, request: &PermissionRequest, text: &mut String) {
    match part {
        Part::Command(line) => command(line, text),
        Part::Directory(cwd) => text.push_str(&format!("  in {}\n", literal::line(cwd))),
        Part::Variable(name, value) => {
            let (name, value) = (literal::line(name), literal::line(value));
            text.push_str(&format!("  with {name}={value}\n"));
        }
        Part::Content(ToolCallContent::Diff(shown)) => diff(shown, text),
        Part::Content(ToolCallContent::Content(block)) => {
            let (label, said) = question::block(block);
            if let Some(label) = label {
                text.push_str(&format!("  {}\n", literal::line(&label)));
            }
            if let Some(said) = said {
                bar(said, text);
            }
        }
        Part::Content(ToolCallContent::Terminal(id)) => {
            let line = request
                .thread
                .read(|thread| thread.terminal(id)?.command.clone());
            match line {
                Some(line) => command(&line, text),
                None => text.push_str(&format!("  [terminal {}]\n", literal::line(id.as_str()))),
            }
        }
        Part::File(file) => {
            let line = file.line.map(|line| format!(":{line}")).unwrap_or_default();
            text.push_str(&format!("  file {}{line}\n", literal::line(&file.path)));
        }
        Part::Field(key, value) if value.contains('\n') => {
            text.push_str(&format!("  {}:\n", literal::line(key)));
            bar(value, text);
        }
        Part::Field(key, value) => {
            let (key, value) = (literal::line(key), literal::line(value));
            text.push_str(&format!("  {key}: {value}\n"));
        }
        _ => text.push_str("  [content of a kind unknown here]\n"),
    }
}

/// A command: its first line behind `$`, each further one behind `>`.
fn command(line: &str, text: &mut String) {
    for (n, line) in literal::lines(line).iter().enumerate() {
        let mark = if n == 0 { '$' } else { '>' };
        text.push_str(&format!("  {mark} {line}\n"));
    }
}

/// Words of the agent's, line by line.
fn bar(said: &str, text: &mut String) {
    for line in literal::lines(said) {
        text.push_str(&format!("{BAR}{line}\n"));
    }
}

/// Changes of files: of each what happens to it, and its texts as a unified diff; and the patch, as it is.
fn diff(diff: &Diff, text: &mut String) {
    for change in &diff.changes {
        let path = literal::line(&change.path);
        let what = literal::line(change.operation.as_str());
        let from = change.old_path.as_deref();
        let from = from.map(|from| format!(" (from {})", literal::line(from)));
        let from = from.unwrap_or_default();
        text.push_str(&format!("  {what} {path}{from}\n"));
        if let Some(texts) = &change.texts {
            changed(texts, text);
        }
    }
    if let Some(patch) = &diff.patch {
        bar(&patch.text, text);
    }
}

fn changed(texts: &FileTexts, text: &mut String) {
    let lines = TextDiff::configure()
        .timeout(DIFFING)
        .diff_lines(texts.old.as_deref().unwrap_or_default(), &texts.new);
    let mut unified = lines.unified_diff();
    unified.context_radius(question::CONTEXT);
    let unified = unified.to_string();
    if unified.is_empty() {
        text.push_str("  (no change)\n");
        return;
    }
    for line in literal::lines(&unified) {
        text.push_str(&format!("  {line}\n"));
    }
}
