//! The directories in which clients may open sessions.

use std::io;
use std::path::{Path, PathBuf};

/// The directories in which clients may open sessions: a set of roots, including everything below them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedRoots {
    /// Absolute paths without symlinks. `None` allows every directory.
    roots: Option<Vec<PathBuf>>,
}

/// The error for a directory that a client may not open. It does not reveal whether the directory exists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("directory not allowed: `{directory}`; this server allows {allowed}")]
pub struct RootError {
    directory: String,
    allowed: String,
}

impl AllowedRoots {
    /// Allows these directories.
    ///
    /// # Errors
    /// One of them does not exist.
    pub fn new(roots: impl IntoIterator<Item = impl AsRef<Path>>) -> io::Result<Self> {
        let canonical = |root: &Path| {
            std::fs::canonicalize(root)
                .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", root.display())))
        };
        let roots = roots.into_iter().map(|root| canonical(root.as_ref()));
        Ok(Self {
            roots: Some(roots.collect::<io::Result<_>>()?),
        })
    }

    /// Allows every directory.
    #[must_use]
    pub fn any() -> Self {
        Self { roots: None }
    }

    /// Returns the roots, or nothing if every directory is allowed.
    pub(crate) fn names(&self) -> Vec<String> {
        let roots = self.roots.iter().flatten();
        roots
            .map(|root| root.to_string_lossy().into_owned())
            .collect()
    }

    /// Checks that a client may open a directory. Symlinks are followed, so they cannot lead out of the roots.
    ///
    /// # Errors
    /// The directory is not allowed, does not exist, or is not absolute.
    pub fn check(&self, directory: &str) -> Result<(), RootError> {
        let Some(roots) = &self.roots else {
            return Ok(());
        };
        let path = Path::new(directory);
        let real = match path.is_absolute() {
            true => std::fs::canonicalize(path).ok(),
            false => None,
        };
        if real.is_some_and(|real| roots.iter().any(|root| real.starts_with(root))) {
            return Ok(());
        }
        let names: Vec<String> = roots
            .iter()
            .map(|root| format!("`{}`", root.display()))
            .collect();
        let allowed = match names.as_slice() {
            [] => "no directory".to_owned(),
            names => names.join(", "),
        };
        Err(RootError {
            directory: directory.to_owned(),
            allowed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_below_a_root_are_allowed() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path();
        for directory in ["root/below", "root-2", "other"] {
            std::fs::create_dir_all(base.join(directory)).unwrap();
        }
        let roots = AllowedRoots::new([base.join("root")]).unwrap();
        let is_allowed = |path: &str| roots.check(&base.join(path).to_string_lossy()).is_ok();
        assert!(is_allowed("root"));
        assert!(is_allowed("root/below"));
        assert!(is_allowed("root/below/.."));
        for path in [
            "",
            "other",
            "root-2",
            "root/..",
            "root/missing",
            "root/../other",
        ] {
            assert!(!is_allowed(path), "{path}");
        }
        assert!(roots.check("root").is_err(), "a relative path");
        let error = roots.check("/").unwrap_err().to_string();
        assert!(error.starts_with("directory not allowed: `/`; this server allows `"));
        assert!(AllowedRoots::new([base.join("missing")]).is_err());
        assert!(AllowedRoots::any().check("anything").is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_symlink_does_not_lead_out_of_a_root() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::os::unix::fs::symlink("/", root.join("out")).unwrap();
        std::os::unix::fs::symlink(&root, temp.path().join("in")).unwrap();
        let roots = AllowedRoots::new([temp.path().join("in")]).unwrap();
        assert!(
            roots
                .check(&root.join("out/etc").to_string_lossy())
                .is_err()
        );
        assert!(roots.check(&root.to_string_lossy()).is_ok());
    }
}
