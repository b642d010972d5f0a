//! A directory for one check, with a small project in it.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// What `notes.txt` says at first.
pub(super) const NOTES: &str = "alpha\nbeta\ngamma\n";

/// A directory of a check's own, gone when it is dropped.
#[derive(Debug)]
pub struct CheckDirectory {
    _directory: TempDir,
    project: PathBuf,
}

impl CheckDirectory {
    /// Makes one, with a project that has `notes.txt` in it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("acp-check-").tempdir()?;
        // The path as the system says it: an agent that resolves links tells this one.
        let project = directory.path().canonicalize()?.join("project");
        std::fs::create_dir(&project)?;
        std::fs::write(project.join("notes.txt"), NOTES)?;
        Ok(Self {
            _directory: directory,
            project,
        })
    }

    /// The project: sessions are opened here.
    #[must_use]
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// A file of the project, absolute.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.project.join(name)
    }
}
