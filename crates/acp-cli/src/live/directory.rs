//! The private directory of the sockets, and the lock that servers and their starters hold.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use acp_config::paths;

use crate::settings_hash::SettingsHash;

/// The maximum length of a socket's path, in bytes. Linux allows 107, macOS 103.
const MAX_SOCKET_PATH: usize = 100;

/// The name of the file that is locked while a server starts or exits.
const LOCK_FILE: &str = "lock";

/// The socket of the server for an agent and a working directory.
#[derive(Debug, Clone)]
pub(crate) struct LiveSocket {
    path: PathBuf,
}

impl LiveSocket {
    /// Returns the socket for an agent, by its storage key, and a working directory. Creates the private directory.
    ///
    /// # Errors
    /// There is no directory for it that only this user can write to.
    pub(crate) fn new(agent: &str, cwd: &Path) -> io::Result<Self> {
        let state = paths::state_dir().ok_or_else(|| io::Error::other("no state directory"))?;
        // Names of sessions are in the state directory. Another one has other sessions.
        let parts = [state.as_os_str(), OsStr::new(agent), cwd.as_os_str()];
        let name = SettingsHash::new().with_list(&parts).name();
        let directory = match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
            Some(runtime) if runtime.is_absolute() && runtime.is_dir() => runtime.join("acp"),
            _ => state.join("live"),
        };
        let path = directory.join(format!("{name}.sock"));
        if path.as_os_str().len() > MAX_SOCKET_PATH {
            let message = format!("the socket's path is too long: {}", path.display());
            return Err(io::Error::other(message));
        }
        make_private(&directory)?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file that the server writes its log to.
    pub(crate) fn log_file(&self) -> PathBuf {
        self.path.with_extension("log")
    }
}

/// Waits for the lock of a socket's directory. It is released when the file is dropped.
pub(crate) fn lock_directory(socket: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file = options.create(true).truncate(false).write(true);
    let file = file.open(socket.with_file_name(LOCK_FILE))?;
    file.lock()?;
    Ok(file)
}

/// Creates a directory that only this user can use, or checks that an existing one is such a directory.
fn make_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let metadata = std::fs::symlink_metadata(directory)?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    match metadata.is_dir() && is_own && metadata.mode() & 0o077 == 0 {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "{}: other users can use this directory",
            directory.display()
        ))),
    }
}
