//! The section of the instructions that describes the session: directories, shell, repository and files.
//!
//! This information rarely changes during a session, so providers can cache the instructions from one request to the
//! next.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use acp_host::{Project, Roots};
use jiff::Timestamp;

use super::files;
use crate::permission::context::PermissionContext;
use crate::permission::rules::{RuleFiles, can_show_name, omission_note};
use crate::workspace::Workspace;
use crate::workspace::process::SHELL_AND_OPTION;
use crate::workspace::tool_failure::ToolFailure;
use crate::workspace::tree::{CancelFlag, DirectoryTree, TreeEntry, TreeEntryKind};

/// The maximum number of entries listed from the working directory.
const MAX_ENTRIES: usize = 100;

/// The maximum length of a file or branch name, in bytes. Longer names are omitted.
const MAX_NAME_LEN: usize = 200;

/// Returns the section that describes the session. The listing of the working directory contains only files that
/// `rules` allow to be read. If `rules` is `None`, the section contains neither the listing nor the state of the
/// repository.
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
        let _ = writeln!(text, "- Additional directory: `{root}`");
    }
    let _ = writeln!(
        text,
        "- Operating system: {} ({})",
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    let (shell, option) = SHELL_AND_OPTION;
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
    let (rules, context) = (rules.clone(), PermissionContext::from_workspace(workspace));
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
        // If the rules or the directory cannot be read, the turn starts without the listing of the directory.
        Err(ToolFailure::Failed(why)) => {
            tracing::warn!(why, "continuing without a listing of the working directory")
        }
        Err(stop) => return Err(stop),
    }
    Ok(text)
}

/// Describes the branch or commit that is checked out in `cwd`. Returns `None` if there is no repository, or if its
/// `HEAD` is outside the root, as in a worktree, where `.git` is a file.
fn read_git_head(cwd: &Path, is_shown: impl Fn(&Path) -> bool) -> Option<String> {
    let project = Project::find(cwd).ok()?;
    let path = project.root().join(".git").join("HEAD");
    if !is_shown(&path) {
        return None;
    }
    // Opened under the repository's root, so that no symlink leads out of it.
    let roots = Roots::open([project.root().to_owned()]).ok()?;
    let head = files::read_file_head(&roots, &path, MAX_NAME_LEN * 2).ok()??;
    let head = head.text.trim();
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => is_safe_to_quote(branch).then(|| format!("branch `{branch}`")),
        None => {
            let is_hash = head.len() >= 40 && head.bytes().all(|b| b.is_ascii_hexdigit());
            is_hash.then(|| format!("detached HEAD at `{}`", head.get(..12).unwrap_or(head)))
        }
    }
}

/// Lists the entries of the working directory, but not those of its subdirectories.
fn list_directory(
    tree: &DirectoryTree,
    cwd: &Path,
    is_shown: impl Fn(&Path) -> bool,
    cancel: &CancelFlag,
) -> Result<String, String> {
    let (mut entries, is_truncated) = tree.list_directory(cwd, MAX_ENTRIES, cancel)?;
    entries.retain(|entry| entry.name != ".git" && is_safe_to_quote(&entry.name));
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
        text.push_str("(no entries)\n");
    }
    text.push_str("```\n");
    if is_truncated {
        text.push_str("\nThe remaining entries are omitted.\n");
    }
    if let Some(note) = omission_note("Entries", all - entries.len()) {
        let _ = writeln!(text, "\n{note}");
    }
    Ok(text)
}

/// Returns `true` if a file or branch name is short and cannot break out of its line or quotes.
fn is_safe_to_quote(name: &str) -> bool {
    let breaks = |c: char| c.is_control() || c == '`' || c == '\u{2028}' || c == '\u{2029}';
    name.len() <= MAX_NAME_LEN && !name.contains(breaks)
}
