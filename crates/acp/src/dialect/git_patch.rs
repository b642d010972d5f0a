//! Formats a diff as a git patch for version 2.

use std::time::Duration;

use acp_wire::v1;
use similar::TextDiff;

/// The maximum total length of the old and the new text, in bytes. Version 2 allows diffs without a patch, so longer
/// texts get none.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// The maximum duration of a comparison. Any lines not compared by then count as changed.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

/// Formats a diff the way `git diff` does, with absolute paths. Returns `None` if the texts are too long.
pub(crate) fn format_git_patch(diff: &v1::Diff) -> Option<String> {
    let old = diff.old_text.as_deref();
    if old.map_or(0, str::len) + diff.new_text.len() > MAX_TEXT_BYTES {
        return None;
    }
    let path = quote_path(&diff.path);
    let (mode, before) = match old {
        Some(_) => ("", path.as_str()),
        None => ("new file mode 100644\n", "/dev/null"),
    };
    let compared = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_lines(old.unwrap_or_default(), &diff.new_text);
    let hunks = compared.unified_diff().context_radius(3).to_string();
    let mut text = format!("diff --git {path} {path}\n{mode}");
    if !hunks.is_empty() {
        text.push_str(&format!("--- {before}\n+++ {path}\n{hunks}"));
    }
    Some(text)
}

/// Returns a path the way git writes it, with unusual characters quoted and escaped.
fn quote_path(path: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn create_patch(path: &str, old: Option<&str>, new: &str) -> String {
        let mut diff = v1::Diff::new(path, new);
        diff.old_text = old.map(str::to_owned);
        format_git_patch(&diff).unwrap()
    }

    #[test]
    fn patches_apply_with_git() {
        assert_eq!(
            create_patch("/work/a b.txt", Some("one\ntwo\n"), "one\n2"),
            "diff --git /work/a b.txt /work/a b.txt\n--- /work/a b.txt\n+++ /work/a b.txt\n\
             @@ -1,2 +1,2 @@\n one\n-two\n+2\n\\ No newline at end of file\n"
        );
        assert_eq!(
            create_patch("/work/é\"", None, "new\n"),
            "diff --git \"/work/\\303\\251\\\"\" \"/work/\\303\\251\\\"\"\nnew file mode 100644\n\
             --- /dev/null\n+++ \"/work/\\303\\251\\\"\"\n@@ -0,0 +1 @@\n+new\n"
        );
        // An empty file and an unchanged file have no hunks.
        assert_eq!(
            create_patch("/e", None, ""),
            "diff --git /e /e\nnew file mode 100644\n"
        );
        assert_eq!(create_patch("/e", Some("x"), "x"), "diff --git /e /e\n");
    }
}
