//! The project that a session works in, and its permission rules.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions};

use super::patterns::PERMISSION_DIRECTORY;
use super::rules::{PermissionRules, RulesError};
use crate::roots::PathError;
use crate::sys;

/// The name of a project's permissions file.
const PERMISSIONS_FILE: &str = "permissions.toml";

/// The entry that marks the root of a repository. It is a directory or, in a work tree, a file.
const REPOSITORY_ENTRY: &str = ".git";

/// The directories of a project, from the session's directory up to the root of the repository.
#[derive(Debug, Clone)]
pub struct Project {
    /// The directories from the session's directory up to the root of the repository, without symlinks.
    directories: Vec<PathBuf>,
}

impl Project {
    /// Returns the project that contains `cwd`: its repository or, if there is none, `cwd` itself.
    ///
    /// # Errors
    /// `cwd` does not exist.
    pub fn find(cwd: &Path) -> io::Result<Self> {
        let cwd = std::fs::canonicalize(cwd)?;
        let is_root =
            |directory: &&Path| directory.join(REPOSITORY_ENTRY).symlink_metadata().is_ok();
        let root = cwd.ancestors().find(is_root).unwrap_or(&cwd);
        let inside = |directory: &&Path| directory.starts_with(root);
        let directories = cwd.ancestors().take_while(inside);
        Ok(Self {
            directories: directories.map(Path::to_owned).collect(),
        })
    }

    /// Returns the project's root, without symlinks.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.directories.last().map_or(Path::new(""), |root| root)
    }

    /// Returns the directories from the session's directory up to the root, without symlinks.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.directories.iter().map(PathBuf::as_path)
    }

    /// Reads the rules in all of the project's directories, starting at the root. Relative paths in the rules are
    /// resolved against the directory that contains `.acp`.
    ///
    /// All of them apply: a project's rules can only make decisions stricter.
    ///
    /// # Errors
    /// A rules file exists but cannot be read, or leaves the project through a symlink. Ignoring it would allow more
    /// than the project does.
    pub fn read_rules(&self) -> Result<Vec<PermissionRules>, RulesError> {
        let read = |directory: &PathBuf| read_rules_in(directory).transpose();
        self.directories.iter().rev().filter_map(read).collect()
    }

    /// Opens the file called `name` in the nearest `.acp` directory that contains it, starting from the session's
    /// directory.
    ///
    /// # Errors
    /// The file exists but cannot be opened, is not a regular file, or leaves the project through a symlink.
    pub fn open_nearest(&self, name: &str) -> Result<Option<ProjectFile>, RulesError> {
        for directory in &self.directories {
            if let Some((path, opened)) = open_in(directory, name)? {
                return Ok(Some(ProjectFile {
                    directory: directory.clone(),
                    path,
                    file: opened.into_std(),
                }));
            }
        }
        Ok(None)
    }
}

/// An open file in a project's `.acp` directory.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProjectFile {
    /// The directory that contains `.acp`, without symlinks in its path.
    pub directory: PathBuf,
    /// The path of the file, for error messages.
    pub path: PathBuf,
    /// The open file. It stays the same file even if the path is renamed or replaced.
    pub file: std::fs::File,
}

fn read_rules_in(directory: &Path) -> Result<Option<PermissionRules>, RulesError> {
    match open_in(directory, PERMISSIONS_FILE)? {
        Some((file, opened)) => PermissionRules::read_from(opened, &file, directory).map(Some),
        None => Ok(None),
    }
}

/// Opens the file called `name` in the `.acp` directory of `directory`, if it exists.
fn open_in(directory: &Path, name: &str) -> Result<Option<(PathBuf, File)>, RulesError> {
    let below = Path::new(PERMISSION_DIRECTORY).join(name);
    let file = directory.join(&below);
    let failed = |error: io::Error| match PathError::from(error) {
        PathError::Io(source) => RulesError::Io {
            file: file.clone(),
            source,
        },
        _ => RulesError::Outside { file: file.clone() },
    };
    let dir = Dir::open_ambient_dir(directory, ambient_authority()).map_err(failed)?;
    let mut options = OpenOptions::new();
    options.read(true);
    sys::set_nonblocking(&mut options);
    let opened = match dir.open_with(&below, &options) {
        Ok(opened) => opened,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            // Even a dangling symlink was meant to lead to a file.
            let is_link = |path: &Path| dir.symlink_metadata(path).is_ok_and(|m| m.is_symlink());
            return match is_link(Path::new(PERMISSION_DIRECTORY)) || is_link(&below) {
                true => Err(failed(e)),
                false => Ok(None),
            };
        }
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(e) => return Err(failed(e)),
    };
    if !opened.metadata().map_err(failed)?.is_file() {
        return Err(RulesError::NotAFile { file });
    }
    Ok(Some((file, opened)))
}
