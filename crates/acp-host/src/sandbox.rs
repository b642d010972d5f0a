//! Confining what is started: it reads everything and writes in a few places only.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

use crate::sys::Confined;

/// A sandbox for agents and commands, by Linux's Landlock.
///
/// What runs in it, with all that it starts, may read and execute everything that its user may, and write
/// only
///
/// - under the directories that are given here,
/// - in a temporary directory of its own, to which `TMPDIR`, `TMP` and `TEMP` are set. It goes with the last
///   clone of this and the last process in it,
/// - to the devices `/dev/null`, `/dev/zero`, `/dev/full`, `/dev/random`, `/dev/urandom`, `/dev/tty`,
///   `/dev/ptmx` and `/dev/pts`. Not to `/dev/shm`, where other programs of the same user keep what they
///   share; what needs it can be given it.
///
/// Where the kernel can, it sends signals only to others in the same sandbox, connects to no abstract
/// sockets that are outside, and does nothing special with other devices. It gains no rights by executing a
/// program, so that `sudo` is of no use, and mounts nothing.
///
/// What Landlock does not stop: the network, sockets that have a path (that of Docker's, for one), reading
/// secrets, and changing the mode, the owner, the times or the extended attributes of files outside.
///
/// Clones are the same sandbox.
#[derive(Debug, Clone)]
pub struct Sandbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    confined: Confined,
    temporary: TempDir,
}

/// They are the same if one is a clone of the other.
impl PartialEq for Sandbox {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Sandbox {}

/// Why there can be no sandbox. Then nothing is run: there is no falling back to a run without.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The system cannot do it.
    #[error("a sandbox is not possible here: {why}")]
    NotSupported {
        /// What it lacks.
        why: String,
    },
    /// What is to be writable cannot be opened.
    #[error("{} cannot be made writable: {source}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system could do it, and failed.
    #[error("the sandbox cannot be set up: {source}")]
    System {
        /// What the system says.
        source: io::Error,
    },
}

impl Sandbox {
    /// A sandbox in which `writable`, directories or files that are there now, may be written. They are
    /// pinned: what is renamed or replaced later does not move them.
    ///
    /// # Errors
    /// See [`SandboxError`]. Needs Linux 6.2 or later, with Landlock enabled.
    pub fn new(writable: impl IntoIterator<Item = PathBuf>) -> Result<Self, SandboxError> {
        let failed = |source| SandboxError::System { source };
        let temporary = tempfile::Builder::new()
            .prefix("acp-sandbox-")
            .tempdir()
            .map_err(failed)?;
        let mut writable: Vec<PathBuf> = writable.into_iter().collect();
        writable.push(temporary.path().to_owned());
        Ok(Self(Arc::new(Inner {
            confined: Confined::new(writable)?,
            temporary,
        })))
    }

    /// The temporary directory of what runs in it.
    #[must_use]
    pub fn temporary_directory(&self) -> &Path {
        self.0.temporary.path()
    }

    /// Tells a command that will be started in it where its temporary directory is.
    pub(crate) fn prepare(&self, command: &mut Command) {
        let temporary = self.temporary_directory();
        command.envs(["TMPDIR", "TMP", "TEMP"].map(|name| (name, temporary)));
    }

    /// Does something on the thread that is confined, and waits for it. What is started there is confined,
    /// too.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        self.0.confined.run(work)
    }
}
