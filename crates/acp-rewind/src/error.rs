//! Errors of snapshots.

use std::io;
use std::path::{Path, PathBuf};

/// A reason why a snapshot cannot be taken or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewindError {
    /// The directory is not one whose files are kept.
    #[error("no snapshots of {}: it is {what}", path.display())]
    NotAProject {
        /// The directory.
        path: PathBuf,
        /// What the directory is, such as "the home directory".
        what: &'static str,
    },
    /// The project has too many files, or too large ones.
    #[error("the project is too large for snapshots: more than {0}")]
    TooLarge(String),
    /// There is no `git` program.
    #[error("snapshots need the program git, which is not installed")]
    GitNotFound,
    /// A git command failed.
    #[error("git {command} failed: {message}")]
    Git {
        /// The git command, such as `fast-import`.
        command: &'static str,
        /// The last lines of what it printed.
        message: String,
    },
    /// The snapshot was removed, or belongs to another project.
    #[error("snapshot not found: {0}")]
    SnapshotNotFound(String),
    /// Files were changed after a restoration was planned.
    #[error("files have changed in the meantime")]
    FilesChanged,
    /// A file or directory could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, such as "read".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl RewindError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
