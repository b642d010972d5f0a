//! Creates and opens directories and files that only their owner can access.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// An error in making a file or directory private.
#[derive(Debug)]
pub(crate) enum PrivateFileError {
    /// The file or directory belongs to another user.
    #[cfg_attr(not(unix), allow(dead_code))]
    WrongOwner { path: String },
    /// Any other error, as a message.
    Failed(String),
}

/// The result of opening a file that must be private.
pub(crate) enum PrivateFileCheck {
    /// The open file. Only its owner can access it.
    Private(File),
    /// The file belongs to the user, but others can access it too.
    #[cfg_attr(not(unix), allow(dead_code))]
    ReadableByOthers,
    /// The file belongs to another user, or is not a regular file.
    #[cfg_attr(not(unix), allow(dead_code))]
    WrongOwner,
}

/// Opens a file for reading, and checks that only its owner can access it. Does not follow symlinks and does not block.
pub(crate) fn open(path: &Path) -> io::Result<PrivateFileCheck> {
    system::open(path)
}

/// Creates a file that only its owner can access, and opens it for writing.
pub(crate) fn new(path: &Path) -> io::Result<File> {
    system::new(path)
}

/// Creates a private directory, or makes an existing one private. Returns its path without symlinks. Fails if the
/// directory belongs to another user.
pub(crate) fn make_private_dir(path: &Path) -> Result<PathBuf, PrivateFileError> {
    let failed = |e: io::Error| PrivateFileError::Failed(format!("{}: {e}", path.display()));
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    match system::make(path) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(failed(e)),
    }
    let path = path.canonicalize().map_err(failed)?;
    if !path.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }
    system::restrict_access(&path)?;
    Ok(path)
}

/// Creates a private file, or makes an existing one private.
///
/// An existing file is not opened, because closing it would release the locks that SQLite holds on it in this process.
pub(crate) fn make_private_file(path: &Path) -> Result<(), PrivateFileError> {
    match system::new(path).map(drop) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => system::restrict_access(path),
        Err(e) => Err(PrivateFileError::Failed(format!("{}: {e}", path.display()))),
    }
}

/// Makes a file private, if it exists.
pub(crate) fn restrict_existing_file(path: &Path) -> Result<(), PrivateFileError> {
    match path.symlink_metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => system::restrict_access(path),
    }
}

#[cfg(unix)]
mod system {
    use std::fs::{DirBuilder, File, OpenOptions, Permissions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
    use std::path::Path;

    use crate::private_file::{PrivateFileCheck, PrivateFileError};

    pub(super) fn open(path: &Path) -> io::Result<PrivateFileCheck> {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path);
        let file = match file {
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                return Ok(PrivateFileCheck::WrongOwner);
            }
            file => file?,
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
            return Ok(PrivateFileCheck::WrongOwner);
        }
        Ok(match metadata.permissions().mode() & 0o077 {
            0 => PrivateFileCheck::Private(file),
            _ => PrivateFileCheck::ReadableByOthers,
        })
    }

    pub(super) fn make(path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }

    pub(super) fn new(path: &Path) -> io::Result<File> {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
    }

    /// Removes all access for other users.
    pub(super) fn restrict_access(path: &Path) -> Result<(), PrivateFileError> {
        let failed = |e: &dyn std::fmt::Display| {
            PrivateFileError::Failed(format!("{}: {e}", path.display()))
        };
        let metadata = path.symlink_metadata().map_err(|e| failed(&e))?;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(PrivateFileError::WrongOwner {
                path: path.display().to_string(),
            });
        }
        if metadata.is_symlink() {
            // Another user may have put the file there.
            return Err(failed(&"symbolic links are not followed"));
        }
        let mode = metadata.permissions().mode();
        if mode & 0o077 != 0 {
            tracing::warn!(path = %path.display(), "path was accessible to other users; access is now restricted to you");
            std::fs::set_permissions(path, Permissions::from_mode(mode & 0o700))
                .map_err(|e| failed(&e))?;
        }
        Ok(())
    }
}

/// Private files on Windows. A user's directories are in the user's profile, which is already private.
#[cfg(not(unix))]
mod system {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::path::Path;

    use crate::private_file::{PrivateFileCheck, PrivateFileError};

    pub(super) fn open(path: &Path) -> io::Result<PrivateFileCheck> {
        let file = File::open(path)?;
        Ok(match file.metadata()?.is_file() {
            true => PrivateFileCheck::Private(file),
            false => PrivateFileCheck::WrongOwner,
        })
    }

    pub(super) fn make(path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    pub(super) fn new(path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(path)
    }

    #[allow(clippy::unnecessary_wraps, reason = "returns an error on Unix")]
    pub(super) fn restrict_access(_: &Path) -> Result<(), PrivateFileError> {
        Ok(())
    }
}
