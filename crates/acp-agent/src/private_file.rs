//! Directories and files that their user alone can read.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Why something is not its user's alone.
#[derive(Debug)]
pub(crate) enum PrivateError {
    /// It is another user's.
    NotOurs { path: String },
    /// Anything else; the text says what.
    Failed(String),
}

/// A file that was opened to be read, and whose it is.
pub(crate) enum PrivateOpen {
    /// Its user's alone.
    Private(File),
    /// Its user's, and others can do something with it.
    #[cfg_attr(not(unix), allow(dead_code))]
    ReadableByOthers,
    /// Another's, or no file.
    NotOurs,
}

/// Opens a file, and finds out whose it is. A symbolic link is not followed, and nothing is waited for.
pub(crate) fn open(path: &Path) -> io::Result<PrivateOpen> {
    system::open(path)
}

/// Makes a new file that is its user's alone, to be written.
pub(crate) fn new(path: &Path) -> io::Result<File> {
    system::new(path)
}

/// Makes a directory its user's alone, or finds it so, and gives its path without symbolic links. One of the
/// user's own that others can enter is closed to them; one that is another's is refused.
pub(crate) fn make_private_dir(path: &Path) -> Result<PathBuf, PrivateError> {
    let failed = |e: io::Error| PrivateError::Failed(format!("{}: {e}", path.display()));
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    match system::make(path) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(failed(e)),
    }
    let path = path.canonicalize().map_err(failed)?;
    system::close(&path)?;
    Ok(path)
}

/// Makes a file its user's alone, or finds it so.
///
/// A file that is there is not opened: closing it again would take from this process the locks that SQLite
/// has on it.
pub(crate) fn make_private_file(path: &Path) -> Result<(), PrivateError> {
    match system::new(path).map(drop) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => system::close(path),
        Err(e) => Err(PrivateError::Failed(format!("{}: {e}", path.display()))),
    }
}

/// Closes a file to others, if it is there.
pub(crate) fn restrict_existing_file(path: &Path) -> Result<(), PrivateError> {
    match path.symlink_metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => system::close(path),
    }
}

#[cfg(unix)]
mod system {
    use std::fs::{DirBuilder, File, OpenOptions, Permissions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
    use std::path::Path;

    use crate::private_file::{PrivateError, PrivateOpen};

    pub(super) fn open(path: &Path) -> io::Result<PrivateOpen> {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path);
        let file = match file {
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                return Ok(PrivateOpen::NotOurs);
            }
            file => file?,
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
            return Ok(PrivateOpen::NotOurs);
        }
        Ok(match metadata.permissions().mode() & 0o077 {
            0 => PrivateOpen::Private(file),
            _ => PrivateOpen::ReadableByOthers,
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

    /// Takes from others what they may do with it.
    pub(super) fn close(path: &Path) -> Result<(), PrivateError> {
        let failed =
            |e: &dyn std::fmt::Display| PrivateError::Failed(format!("{}: {e}", path.display()));
        let metadata = path.symlink_metadata().map_err(|e| failed(&e))?;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(PrivateError::NotOurs {
                path: path.display().to_string(),
            });
        }
        if metadata.is_symlink() {
            // Put there while others could write, maybe.
            return Err(failed(&"symbolic links are not followed"));
        }
        let mode = metadata.permissions().mode();
        if mode & 0o077 != 0 {
            tracing::warn!(path = %path.display(), "was accessible to other users; access is now restricted to you");
            std::fs::set_permissions(path, Permissions::from_mode(mode & 0o700))
                .map_err(|e| failed(&e))?;
        }
        Ok(())
    }
}

/// What a user's directories are on Windows: in their profile, which is theirs alone.
#[cfg(not(unix))]
mod system {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::path::Path;

    use crate::private_file::{PrivateError, PrivateOpen};

    pub(super) fn open(path: &Path) -> io::Result<PrivateOpen> {
        let file = File::open(path)?;
        Ok(match file.metadata()?.is_file() {
            true => PrivateOpen::Private(file),
            false => PrivateOpen::NotOurs,
        })
    }

    pub(super) fn make(path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    pub(super) fn new(path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(path)
    }

    #[allow(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    pub(super) fn close(_: &Path) -> Result<(), PrivateError> {
        Ok(())
    }
}
