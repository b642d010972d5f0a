//! The section of the instructions that describes the session: directories, shell, repository, files.
//!
//! All of it changes rarely, so that providers can cache the instructions from one request to the next.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use acp_host::{Project, Roots};
use jiff::Timestamp;

use super::files;
use crate::permission::context::PermissionContext;
use crate::permission::rules::{RuleFiles, can_show_name, left_out_note};
use crate::workspace::Workspace;
use crate::workspace::process::SHELL;
use crate::workspace::tool_failure::ToolFailure;
use crate::workspace::tree::{CancelFlag, DirectoryTree, TreeEntry, TreeEntryKind};

/// The maximum number of entries listed from the working directory.
const MAX_ENTRIES: usize = 100;

/// The maximum length of a listed name and of a branch's name, in bytes. A longer name is left out.
const MAX_NAME: usize = 200;

/// Returns the section. `rules` filter the listing of the working directory; without them, nothing of the project is
/// read, neither its repository nor its directory.
pub(crate) async fn describe_session(
    workspace: &Workspace,
    rules: Option<&RuleFiles>,
) -> Result<String, ToolFailure> {
    let mut text = String::from("\n# The session\n\n");
    let (cwd, further) = match workspace.turn.roots().split_first() {
        Some((cwd, further)) => (cwd.as_str(), further),
        None => ("", workspace.turn.roots()),
    };
    // Writing to a string does not fail.
    let _ = writeln!(text, "- Working directory: `{cwd}`");
    for root in further {
        let _ = writeln!(text, "- Further directory: `{root}`");
    }
    let _ = writeln!(
        text,
        "- Operating system: {} ({})",
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    let (shell, option) = SHELL;
    let _ = writeln!(text, "- Shell: `{shell} {option}`");
    let _ = writeln!(
        text,
        "- Date: {} (UTC)",
        Timestamp::now().strftime("%Y-%m-%d")
    );
    let Some(rules) = rules.filter(|_| workspace.access().is_ok()) else {
        return Ok(text);
    };
    let cwd = PathBuf::from(workspace.turn.cwd());
    let (rules, context) = (rules.clone(), PermissionContext::of(workspace));
    let project = workspace.with_tree(move |tree, cancel| {
        let allowed = rules.read_permissions(&context)?;
        let is_shown = |path: &Path| can_show_name(allowed.as_ref(), path, tree.roots());
        let mut text = String::new();
        if let Some(head) = read_git_head(&cwd, is_shown) {
            let _ = writeln!(text, "- Git: {head}");
        }
        text.push_str(&list_directory(tree, &cwd, is_shown, cancel)?);
        Ok(text)
    });
    match project.await {
        Ok(project) => text.push_str(&project),
        // Rules or a directory that cannot be read show nothing. The turn can still start.
        Err(ToolFailure::Failed(why)) => tracing::warn!(why, "omitting the working directory"),
        Err(stop) => return Err(stop),
    }
    Ok(text)
}

/// Describes what is checked out in the repository that `cwd` is in. Returns `None` if it is in none, or if that cannot
/// be read from inside the repository, as in a worktree, whose `.git` is a file.
fn read_git_head(cwd: &Path, is_shown: impl Fn(&Path) -> bool) -> Option<String> {
    let project = Project::of(cwd).ok()?;
    let path = project.root().join(".git").join("HEAD");
    if !is_shown(&path) {
        return None;
    }
    // Opened under the repository's root, so that no symlink leads out of it.
    let roots = Roots::open([project.root().to_owned()]).ok()?;
    let head = files::read(&roots, &path, MAX_NAME * 2).ok()??;
    let head = head.text.trim();
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => is_plain(branch).then(|| format!("branch `{branch}`")),
        None => {
            let is_hash = head.len() >= 40 && head.bytes().all(|b| b.is_ascii_hexdigit());
            is_hash.then(|| format!("detached at `{}`", head.get(..12).unwrap_or(head)))
        }
    }
}

/// Lists the working directory itself, without what is in its directories.
fn list_directory(
    tree: &DirectoryTree,
    cwd: &Path,
    is_shown: impl Fn(&Path) -> bool,
    cancel: &CancelFlag,
) -> Result<String, String> {
    let (mut entries, is_truncated) = tree.list(cwd, MAX_ENTRIES, cancel)?;
    entries.retain(|entry| entry.name != ".git" && is_plain(&entry.name));
    let all = entries.len();
    entries.retain(|entry| is_shown(&cwd.join(&entry.name)));
    let mut text = String::from("\nThe working directory contains:\n\n```\n");
    for TreeEntry { name, kind, .. } in &entries {
        text.push_str(name);
        text.push_str(match kind {
            TreeEntryKind::Directory => "/\n",
            TreeEntryKind::Symlink => "@\n",
            TreeEntryKind::File | TreeEntryKind::Other => "\n",
        });
    }
    if entries.is_empty() {
        text.push_str("(nothing)\n");
    }
    text.push_str("```\n");
    if is_truncated {
        text.push_str("\nFurther entries are omitted.\n");
    }
    if let Some(note) = left_out_note("Entries", all - entries.len()) {
        let _ = writeln!(text, "\n{note}");
    }
    Ok(text)
}

/// Returns `true` if a name from the disk cannot be taken for anything but a name.
fn is_plain(name: &str) -> bool {
    let breaks = |c: char| c.is_control() || c == '`' || c == '\u{2028}' || c == '\u{2029}';
    name.len() <= MAX_NAME && !name.contains(breaks)
}
