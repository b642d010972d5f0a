//! Where the files are that other programs obey.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::obeyed::is_carried_out;

/// What a directory is to whoever looks through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Some of what is in it may be obeyed.
    Ordinary,
    /// All of it is.
    Obeyed,
    /// It is a repository's own, or one of a submodule or a working tree.
    Git,
    /// What is in such a one with more of them in it.
    GitModules,
    GitWorktrees,
    GitInfo,
}

/// What to do with an entry of a directory.
pub(super) enum Look {
    /// It is one of those that are protected.
    Record,
    /// It is none, but in it there may be some.
    Descend(Place),
    Pass,
}

impl Place {
    /// What is to be done with `name` in such a directory. `parent` is the directory's own name, and `bare` says that
    /// git takes it for a repository.
    pub(super) fn look(self, parent: Option<&OsStr>, name: &OsStr, bare: bool) -> Look {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        let data = || ["objects", "refs", "logs", "lfs"].into_iter().any(is);
        match self {
            Self::Ordinary | Self::Obeyed if is(".git") => Look::Descend(Self::Git),
            Self::Obeyed => Look::Record,
            Self::Ordinary if bare && is_of_git(name) => Look::Record,
            Self::Ordinary if bare && data() => Look::Pass,
            Self::Ordinary if bare && is("modules") => Look::Descend(Self::GitModules),
            Self::Ordinary if bare && is("worktrees") => Look::Descend(Self::GitWorktrees),
            Self::Ordinary if bare && is("info") => Look::Descend(Self::GitInfo),
            // Packages bring such files for those who work on them.
            Self::Ordinary if is("node_modules") => Look::Pass,
            Self::Ordinary => {
                let path = parent.map_or_else(PathBuf::new, PathBuf::from).join(name);
                match is_carried_out(&path) {
                    true => Look::Record,
                    false => Look::Descend(Self::Ordinary),
                }
            }
            Self::GitInfo if is("attributes") => Look::Record,
            Self::Git | Self::GitModules if is_of_git(name) => Look::Record,
            Self::Git | Self::GitModules if is("info") => Look::Descend(Self::GitInfo),
            Self::Git | Self::GitModules if is("modules") => Look::Descend(Self::GitModules),
            Self::Git if is("worktrees") => Look::Descend(Self::GitWorktrees),
            Self::GitModules if !data() => Look::Descend(Self::GitModules),
            Self::GitWorktrees => Look::Descend(Self::Git),
            Self::Git | Self::GitModules | Self::GitInfo => Look::Pass,
        }
    }
}

/// What git obeys in a repository's own directory: programs are named there, or where else such files are.
fn is_of_git(name: &OsStr) -> bool {
    ["hooks", "config", "config.worktree", "commondir", "gitdir"]
        .iter()
        .any(|other| name.eq_ignore_ascii_case(other))
}

/// Whether git takes a directory with these names in it for a repository.
pub(super) fn is_bare(names: &[OsString]) -> bool {
    let has = |wanted: &str| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}
