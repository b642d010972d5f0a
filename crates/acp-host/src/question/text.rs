//! A permission request as text, with all its details. Truncates nothing, and escapes invisible characters.
//!
//! Text of the agent with several lines has a bar before each line, so that it cannot pass for text of this program.

use std::path::Path;
use std::time::Duration;

use acp::client::PermissionRequest;
use acp::thread::{FileTexts, ThreadDiff, ThreadToolCallContent};
use similar::TextDiff;

use super::{CONTEXT_LINES, QuestionPart, describe_block, is_complete, parts, titles};
use crate::literal;

/// The bar before each line of the agent's text.
pub const QUESTION_BAR: &str = "  | ";

/// The time limit for computing an exact diff. After that, a coarser diff is used.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

/// Returns the question without the possible answers. `cwd` is the session's working directory. Front ends show the text
/// as it is, with every character.
#[must_use]
pub fn question_text(request: &PermissionRequest, cwd: &Path) -> String {
    let mut text = String::new();
    let titles = titles(request);
    let kind = literal::escape_line(request.tool_call.kind.as_str());
    for (n, title) in titles.iter().enumerate() {
        let title = literal::escape_line(title);
        match n {
            0 => text.push_str(&format!("? {title} ({kind})\n")),
            _ => render_quoted(&title, &mut text),
        }
    }
    if let Some(description) = request.description.as_deref().filter(|d| !d.is_empty()) {
        render_quoted(description, &mut text);
    }
    for shown in parts(request, cwd) {
        render_part(&shown, request, &mut text);
    }
    if !is_complete(request) {
        text.push_str(
            "  Incomplete: the session exceeded its memory limit, and details of this tool call were dropped.\n  It can only be rejected.\n",
        );
    }
    text
}

fn render_part(part: &QuestionPart<'_>, request: &PermissionRequest, text: &mut String) {
    match part {
        QuestionPart::Command(line) => render_command(line, text),
        QuestionPart::Directory(cwd) => {
            text.push_str(&format!("  in {}\n", literal::escape_line(cwd)))
        }
        QuestionPart::Variable(name, value) => {
            let (name, value) = (literal::escape_line(name), literal::escape_line(value));
            text.push_str(&format!("  with {name}={value}\n"));
        }
        QuestionPart::Content(ThreadToolCallContent::Diff(shown)) => render_diff(shown, text),
        QuestionPart::Content(ThreadToolCallContent::Content(block)) => {
            let (label, said) = describe_block(block);
            if let Some(label) = label {
                text.push_str(&format!("  {}\n", literal::escape_line(&label)));
            }
            if let Some(said) = said {
                render_quoted(said, text);
            }
        }
        QuestionPart::Content(ThreadToolCallContent::Terminal(id)) => {
            let line = request
                .thread
                .read(|thread| thread.terminal(id)?.command.clone());
            match line {
                Some(line) => render_command(&line, text),
                None => text.push_str(&format!(
                    "  [terminal {}]\n",
                    literal::escape_line(id.as_str())
                )),
            }
        }
        QuestionPart::File(file) => {
            let line = file.line.map(|line| format!(":{line}")).unwrap_or_default();
            text.push_str(&format!(
                "  file {}{line}\n",
                literal::escape_line(&file.path)
            ));
        }
        QuestionPart::Field(key, value) if value.contains('\n') => {
            text.push_str(&format!("  {}:\n", literal::escape_line(key)));
            render_quoted(value, text);
        }
        QuestionPart::Field(key, value) => {
            let (key, value) = (literal::escape_line(key), literal::escape_line(value));
            text.push_str(&format!("  {key}: {value}\n"));
        }
        _ => text.push_str("  [unknown content type]\n"),
    }
}

/// Renders a command, with `$` before its first line and `>` before the others.
fn render_command(line: &str, text: &mut String) {
    for (n, line) in literal::escape_lines(line).iter().enumerate() {
        let mark = if n == 0 { '$' } else { '>' };
        text.push_str(&format!("  {mark} {line}\n"));
    }
}

/// Renders the agent's text with a bar before each line.
fn render_quoted(said: &str, text: &mut String) {
    for line in literal::escape_lines(said) {
        text.push_str(&format!("{QUESTION_BAR}{line}\n"));
    }
}

/// Renders file changes. For each file, renders the kind of change and a unified diff, followed by the agent's patch,
/// unchanged.
fn render_diff(diff: &ThreadDiff, text: &mut String) {
    for change in &diff.changes {
        let path = literal::escape_line(&change.path);
        let what = literal::escape_line(change.operation.as_str());
        let from = change.old_path.as_deref();
        let from = from.map(|from| format!(" (from {})", literal::escape_line(from)));
        let from = from.unwrap_or_default();
        text.push_str(&format!("  {what} {path}{from}\n"));
        if let Some(texts) = &change.texts {
            render_change(texts, text);
        }
    }
    if let Some(patch) = &diff.patch {
        render_quoted(&patch.text, text);
    }
}

fn render_change(texts: &FileTexts, text: &mut String) {
    let lines = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_lines(texts.old.as_deref().unwrap_or_default(), &texts.new);
    let mut unified = lines.unified_diff();
    unified.context_radius(CONTEXT_LINES);
    let unified = unified.to_string();
    if unified.is_empty() {
        text.push_str("  (no changes)\n");
        return;
    }
    for line in literal::escape_lines(&unified) {
        text.push_str(&format!("  {line}\n"));
    }
}
