//! Translates diffs. A version 1 diff contains the text of a file before and after the change. A version 2 diff
//! contains a list of changes and a patch.

use acp_wire::{RawObject, v1};

use super::json::to_raw_value;
use crate::dialect::format_git_patch;

/// Converts a version 1 diff to version 2.
pub(super) fn diff_to_v2(mut item: RawObject) -> Option<RawObject> {
    let diff: v1::Diff = item.read().ok()?;
    let operation = if diff.old_text.is_some() {
        "modify"
    } else {
        "add"
    };
    item = item.without(&["path", "oldText", "newText"]);
    let change = object! { "operation": operation, "path": diff.path, "fileType": "text" };
    item.push("changes".to_owned(), to_raw_value(&[change]));
    if let Some(text) = format_git_patch(&diff) {
        let patch = object! { "format": "git_patch", "text": text };
        item.push("patch".to_owned(), to_raw_value(&patch));
    }
    Some(item)
}

/// Converts a version 2 diff to text content, and also returns the paths of the changed files.
pub(super) fn diff_to_v1(item: &RawObject) -> (RawObject, Vec<String>) {
    let mut lines = Vec::new();
    let mut paths = Vec::new();
    for change in item.field::<Vec<RawObject>>("changes").unwrap_or_default() {
        let word = |key: &str| change.field::<String>(key);
        let path = word("path").unwrap_or_default();
        lines.push(match (word("operation").as_deref(), word("oldPath")) {
            (Some("add"), _) => format!("added {path}"),
            (Some("delete"), _) => format!("deleted {path}"),
            (Some("modify"), _) => format!("modified {path}"),
            (Some("move"), Some(old)) => format!("moved {old} to {path}"),
            (Some("copy"), Some(old)) => format!("copied {old} to {path}"),
            (other, _) => format!("{} {path}", other.unwrap_or("changed")),
        });
        if !path.is_empty() {
            paths.push(path);
        }
    }
    let patch: Option<RawObject> = item.field("patch");
    let patch = patch.and_then(|patch| patch.field::<String>("text"));
    let text = match patch {
        Some(patch) => to_fenced_block(&patch),
        None => lines.join("\n"),
    };
    let block = object! { "type": "text", "text": text };
    let mut content = object! { "type": "content", "content": block };
    if let Some(meta) = item.get("_meta") {
        content.push("_meta".to_owned(), meta.to_owned());
    }
    (content, paths)
}

/// Wraps text in a Markdown code fence that is longer than any run of backticks in the text.
fn to_fenced_block(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}diff\n{text}{end}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_backticks_in_the_text() {
        assert_eq!(to_fenced_block("+a\n"), "```diff\n+a\n```");
        assert_eq!(to_fenced_block("+````"), "`````diff\n+````\n`````");
    }
}
