//! Diffs. Version 1 has the texts before and after; version 2 has what changed, and a patch.

use std::time::Duration;

use acp_wire::{RawObject, v1};
use similar::TextDiff;

use super::json::raw;

/// Texts above this are not compared, in bytes: the patch is left out, which version 2 allows.
const LARGEST: usize = 4 * 1024 * 1024;

/// After this time what has not been compared yet is taken for changed.
const PATIENCE: Duration = Duration::from_millis(200);

/// A version 1 diff in version 2's words.
pub(super) fn to_v2(mut item: RawObject) -> Option<RawObject> {
    let diff: v1::Diff = item.read().ok()?;
    let operation = if diff.old_text.is_some() {
        "modify"
    } else {
        "add"
    };
    item = item.without(&["path", "oldText", "newText"]);
    let change = object! { "operation": operation, "path": diff.path, "fileType": "text" };
    item.push("changes".to_owned(), raw(&[change]));
    if let Some(text) = patch(&diff) {
        let patch = object! { "format": "git_patch", "text": text };
        item.push("patch".to_owned(), raw(&patch));
    }
    Some(item)
}

fn patch(diff: &v1::Diff) -> Option<String> {
    let old = diff.old_text.as_deref();
    if old.map_or(0, str::len) + diff.new_text.len() > LARGEST {
        return None;
    }
    let path = quoted(&diff.path);
    let (mode, before) = match old {
        Some(_) => ("", path.as_str()),
        None => ("new file mode 100644\n", "/dev/null"),
    };
    let compared = TextDiff::configure()
        .timeout(PATIENCE)
        .diff_lines(old.unwrap_or_default(), &diff.new_text);
    let hunks = compared.unified_diff().context_radius(3).to_string();
    let mut text = format!("diff --git {path} {path}\n{mode}");
    if !hunks.is_empty() {
        text.push_str(&format!("--- {before}\n+++ {path}\n{hunks}"));
    }
    Some(text)
}

/// A path as git writes it: in quotes when it has unusual characters.
fn quoted(path: &str) -> String {
    let plain = |b: u8| (b' '..0x7f).contains(&b) && b != b'"' && b != b'\\';
    if path.bytes().all(plain) {
        return path.to_owned();
    }
    let mut quoted = String::from("\"");
    for byte in path.bytes() {
        match byte {
            b'"' => quoted.push_str("\\\""),
            b'\\' => quoted.push_str("\\\\"),
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            byte if plain(byte) => quoted.push(char::from(byte)),
            byte => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted.push('"');
    quoted
}

/// A version 2 diff as text, and the files it is about.
pub(super) fn to_v1(item: &RawObject) -> (RawObject, Vec<String>) {
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
        Some(patch) => fenced(&patch),
        None => lines.join("\n"),
    };
    let block = object! { "type": "text", "text": text };
    let mut content = object! { "type": "content", "content": block };
    if let Some(meta) = item.get("_meta") {
        content.push("_meta".to_owned(), meta.to_owned());
    }
    (content, paths)
}

/// Text between fences that are longer than any within it.
fn fenced(text: &str) -> String {
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

    fn patch_of(path: &str, old: Option<&str>, new: &str) -> String {
        let mut diff = v1::Diff::new(path, new);
        diff.old_text = old.map(str::to_owned);
        patch(&diff).unwrap()
    }

    #[test]
    fn a_patch_is_one_that_git_reads() {
        assert_eq!(
            patch_of("/work/a b.txt", Some("one\ntwo\n"), "one\n2"),
            "diff --git /work/a b.txt /work/a b.txt\n--- /work/a b.txt\n+++ /work/a b.txt\n\
             @@ -1,2 +1,2 @@\n one\n-two\n+2\n\\ No newline at end of file\n"
        );
        assert_eq!(
            patch_of("/work/é\"", None, "new\n"),
            "diff --git \"/work/\\303\\251\\\"\" \"/work/\\303\\251\\\"\"\nnew file mode 100644\n\
             --- /dev/null\n+++ \"/work/\\303\\251\\\"\"\n@@ -0,0 +1 @@\n+new\n"
        );
        // An empty file, and one that is as it was, have no hunks.
        assert_eq!(
            patch_of("/e", None, ""),
            "diff --git /e /e\nnew file mode 100644\n"
        );
        assert_eq!(patch_of("/e", Some("x"), "x"), "diff --git /e /e\n");
    }

    #[test]
    fn a_fence_is_longer_than_any_within() {
        assert_eq!(fenced("+a\n"), "```diff\n+a\n```");
        assert_eq!(fenced("+````"), "`````diff\n+````\n`````");
    }
}
