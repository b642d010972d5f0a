//! The temporary directory of a comparison, which contains the copies of the project.

use std::path::{Path, PathBuf};

use crate::exit::CommandExit;

/// A private temporary directory. It is deleted with everything in it when this is dropped.
#[derive(Debug)]
pub(super) struct CompareDirectory {
    path: PathBuf,
    is_kept: bool,
}

impl CompareDirectory {
    /// Creates the directory. If it `is_kept`, it is not deleted.
    pub(super) fn create(is_kept: bool) -> Result<Self, CommandExit> {
        let failed = |e| {
            let place = std::env::temp_dir();
            let place = place.display();
            CommandExit::failed(format!("cannot create a directory in {place}: {e}"))
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix("acp-compare-");
        #[cfg(unix)]
        builder.permissions(private_permissions());
        let created = builder.tempdir().map_err(failed)?.keep();
        // Git and agents compare paths as text.
        let path = std::fs::canonicalize(&created).unwrap_or(created);
        Ok(Self { path, is_kept })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for CompareDirectory {
    fn drop(&mut self) {
        if self.is_kept || std::fs::remove_dir_all(&self.path).is_ok() {
            return;
        }
        // Some programs write directories that do not allow deleting what is in them.
        make_writable(&self.path);
        if let Err(e) = std::fs::remove_dir_all(&self.path) {
            eprintln!("acp: cannot delete {}: {e}", self.path.display());
        }
    }
}

/// Lets the user delete what is in a directory. Does not follow symlinks.
fn make_writable(directory: &Path) {
    #[cfg(unix)]
    let _ = std::fs::set_permissions(directory, private_permissions());
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_writable(&entry.path());
        }
    }
}

/// Returns the permissions of a directory that only the user can use.
#[cfg(unix)]
fn private_permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o700)
}
