//! The temporary directory of one check, with a small project in it.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The initial content of `notes.txt`.
pub(super) const NOTES_TEXT: &str = "alpha\nbeta\ngamma\n";

/// The temporary directory of one check. It is removed on drop.
#[derive(Debug)]
pub struct CheckDirectory {
    _directory: TempDir,
    project: PathBuf,
}

impl CheckDirectory {
    /// Creates a directory with a project that contains `notes.txt`.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn new() -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("acp-check-").tempdir()?;
        // Use the canonical path, because an agent that resolves links reports this one.
        let project = directory.path().canonicalize()?.join("project");
        std::fs::create_dir(&project)?;
        std::fs::write(project.join("notes.txt"), NOTES_TEXT)?;
        Ok(Self {
            _directory: directory,
            project,
        })
    }

    /// Returns the path of the project, which sessions use as their working directory.
    #[must_use]
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// Returns the absolute path of a file in the project.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.project.join(name)
    }
}
