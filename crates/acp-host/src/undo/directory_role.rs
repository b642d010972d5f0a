//! Determines which files other programs run or trust.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::trusted_files::is_executed_by_programs;

/// The role of a directory in a scan. Determines how its entries are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirectoryRole {
    /// A directory that may contain trusted entries.
    Ordinary,
    /// A directory in which all entries are trusted.
    Trusted,
    /// The git directory of a repository, a submodule or a work tree.
    Git,
    /// The `modules` directory of a git directory, which contains the git directories of submodules.
    GitModules,
    /// The `worktrees` directory of a git directory.
    GitWorktrees,
    /// The `info` directory of a git directory.
    GitInfo,
}

/// The action that a scan takes on a directory entry.
pub(super) enum EntryAction {
    /// Record the entry because it is protected.
    Record,
    /// Scan the entry. It is not protected, but may contain protected entries.
    Descend(DirectoryRole),
    /// Skip the entry.
    Skip,
}

impl DirectoryRole {
    /// Returns what a scan does with the entry `name` in a directory with this role. `parent` is the name of the
    /// directory itself, and `bare` is true if git treats it as a repository.
    pub(super) fn entry_action(
        self,
        parent: Option<&OsStr>,
        name: &OsStr,
        bare: bool,
    ) -> EntryAction {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        let data = || ["objects", "refs", "logs", "lfs"].into_iter().any(is);
        match self {
            Self::Ordinary | Self::Trusted if is(".git") => EntryAction::Descend(Self::Git),
            Self::Trusted => EntryAction::Record,
            Self::Ordinary if bare && is_git_trusted(name) => EntryAction::Record,
            Self::Ordinary if bare && data() => EntryAction::Skip,
            Self::Ordinary if bare && is("modules") => EntryAction::Descend(Self::GitModules),
            Self::Ordinary if bare && is("worktrees") => EntryAction::Descend(Self::GitWorktrees),
            Self::Ordinary if bare && is("info") => EntryAction::Descend(Self::GitInfo),
            // Packages contain such files for their own developers.
            Self::Ordinary if is("node_modules") => EntryAction::Skip,
            Self::Ordinary => {
                let path = parent.map_or_else(PathBuf::new, PathBuf::from).join(name);
                match is_executed_by_programs(&path) {
                    true => EntryAction::Record,
                    false => EntryAction::Descend(Self::Ordinary),
                }
            }
            Self::GitInfo if is("attributes") => EntryAction::Record,
            Self::Git | Self::GitModules if is_git_trusted(name) => EntryAction::Record,
            Self::Git | Self::GitModules if is("info") => EntryAction::Descend(Self::GitInfo),
            Self::Git | Self::GitModules if is("modules") => EntryAction::Descend(Self::GitModules),
            Self::Git if is("worktrees") => EntryAction::Descend(Self::GitWorktrees),
            Self::GitModules if !data() => EntryAction::Descend(Self::GitModules),
            Self::GitWorktrees => EntryAction::Descend(Self::Git),
            Self::Git | Self::GitModules | Self::GitInfo => EntryAction::Skip,
        }
    }
}

/// Returns `true` for entries of a git directory that specify programs to run or other files to trust.
fn is_git_trusted(name: &OsStr) -> bool {
    ["hooks", "config", "config.worktree", "commondir", "gitdir"]
        .iter()
        .any(|other| name.eq_ignore_ascii_case(other))
}

/// Returns `true` if git treats a directory with these entries as a repository.
pub(super) fn looks_like_git_directory(names: &[OsString]) -> bool {
    let has = |wanted: &str| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}
