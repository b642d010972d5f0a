//! Checks for the file changes that an agent reports (Tool calls, section "Diffs").

use serde_json::Value;

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};

use super::content::visit_objects;

checks! { V2 Agent "tool-calls";
    21 Should "A diff includes a patch whenever possible." => includes_patch, shared;
    22 Must "Paths in a patch are absolute." => uses_absolute_paths, shared;
    23 Must "A patch has no commit metadata or email header." => starts_with_git_header, shared;
    24 Must "Every file in a patch is listed in `changes`." => lists_all_files, shared;
}

/// Makes the agent edit a file, and returns the diffs that it shows.
async fn collect_diffs(harness: &mut AgentHarness) -> Result<Vec<Value>, CheckStop> {
    let session = harness.new_session_v2().await?;
    harness.run_task_v2(&session, AgentTask::Edit).await?;
    let mut diffs = Vec::new();
    for params in harness
        .updates()
        .chain(harness.requests().map(|(_, params)| params))
    {
        visit_objects(params, &mut |object| {
            if object["type"] == "diff" && object["changes"].is_array() {
                diffs.push(object.clone());
            }
        });
    }
    if diffs.is_empty() {
        return skip("the agent sent no diff");
    }
    Ok(diffs)
}

/// Returns the patches in Git's format, each with the diff that contains it.
async fn collect_patches(harness: &mut AgentHarness) -> Result<Vec<(String, Value)>, CheckStop> {
    let diffs = collect_diffs(harness).await?;
    let git = diffs
        .into_iter()
        .filter(|diff| diff["patch"]["format"] == "git_patch");
    let patches: Vec<(String, Value)> = git
        .filter_map(|diff| Some((diff["patch"]["text"].as_str()?.to_owned(), diff)))
        .collect();
    if patches.is_empty() {
        return skip("the agent sent no Git patch");
    }
    Ok(patches)
}

/// Returns the paths in a patch, from the headers before each file's first hunk. Escapes in quoted paths are not
/// decoded.
fn patch_paths(patch: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut head = false;
    for line in patch.lines() {
        if line.starts_with("diff --git ") {
            head = true;
        } else if line.starts_with("@@") {
            head = false;
        }
        let marks = [
            "--- ",
            "+++ ",
            "rename from ",
            "rename to ",
            "copy from ",
            "copy to ",
        ];
        let path = marks.iter().find_map(|mark| line.strip_prefix(mark));
        if let (true, Some(path)) = (head, path) {
            let path = path.split('\t').next().unwrap_or_default();
            let path = path.trim().trim_matches('"').to_owned();
            if path != "/dev/null" {
                paths.push(path);
            }
        }
    }
    paths
}

/// Returns `true` if a path is absolute on some system: `/a`, `C:\a` or `\\host\a`.
fn is_absolute(path: &str) -> bool {
    let drive =
        matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    path.starts_with('/') || path.starts_with("\\\\") || drive
}

async fn includes_patch(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let diffs = collect_diffs(harness).await?;
    // Other files may have nothing to show.
    let other = |change: &Value| {
        matches!(
            change["fileType"].as_str(),
            Some("binary" | "directory" | "symlink")
        )
    };
    let without = diffs.iter().any(|diff| {
        let mut changes = diff["changes"].as_array().into_iter().flatten();
        diff["patch"].is_null() && !changes.any(other)
    });
    require(!without, || {
        "a diff of a text file has no `patch`".to_owned()
    })
}

async fn uses_absolute_paths(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    for (patch, _) in collect_patches(harness).await? {
        if let Some(path) = patch_paths(&patch)
            .into_iter()
            .find(|path| !is_absolute(path))
        {
            return fail(format!("the path {path:?} in a patch is not absolute"));
        }
    }
    Ok(())
}

async fn starts_with_git_header(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    for (patch, _) in collect_patches(harness).await? {
        let first = patch.lines().next().unwrap_or_default();
        require(first.starts_with("diff --git "), || {
            format!("a patch begins with {first:?}, not with `diff --git`")
        })?;
    }
    Ok(())
}

async fn lists_all_files(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    for (patch, diff) in collect_patches(harness).await? {
        let changes = diff["changes"].as_array().into_iter().flatten();
        let named = changes.flat_map(|change| [&change["path"], &change["oldPath"]]);
        let named: Vec<&str> = named.filter_map(Value::as_str).collect();
        // A quoted path is written differently in its change, so the two cannot be compared.
        let plain = |path: &String| !path.contains('\\');
        let other = |path: &String| !named.contains(&path.as_str());
        let of_patch = patch_paths(&patch).into_iter().filter(plain);
        if let Some(path) = of_patch.into_iter().find(other) {
            return fail(format!(
                "the patch changes {path:?}, which is not listed in `changes`"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patch_paths_are_parsed_from_the_headers() {
        let patch = "diff --git /a b /a b\n--- /a b\n+++ /a b\n@@ -1 +1 @@\n--- not a path\n+++ nor this\n\
                     diff --git /c /d\nsimilarity index 100%\nrename from /c\nrename to /d\n\
                     diff --git /n /n\nnew file mode 100644\n--- /dev/null\n+++ /n\n@@ -0,0 +1 @@\n+x\n";
        assert_eq!(patch_paths(patch), ["/a b", "/a b", "/c", "/d", "/n"]);
    }
}
