//! Sandboxes, in which programs can read all files but can write only in a few places.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

use crate::sys::ConfinementThread;
use crate::undo::{UndoGuard, UndoWatch};

/// A sandbox for agents and commands, based on Landlock for Linux.
///
/// Programs in a sandbox, and all processes that they start, can read and execute everything that their user can. They
/// can write only
///
/// - under the directories that are given here,
/// - in the sandbox's own temporary directory, to which `TMPDIR`, `TMP` and `TEMP` are set. It is removed with the last
///   clone of this and the last process in the sandbox,
/// - to the devices `/dev/null`, `/dev/zero`, `/dev/full`, `/dev/random`, `/dev/urandom`, `/dev/tty`, `/dev/ptmx` and
///   `/dev/pts`. Not to `/dev/shm`, where other programs of the same user store what they share. A program that needs
///   it can be given access.
///
/// If the kernel supports it, they can send signals only to processes in the same sandbox, cannot connect to abstract
/// sockets outside of it, and cannot make device-specific `ioctl` calls on other devices. They gain no privileges when
/// they execute a program, so `sudo` does not work, and they cannot mount file systems.
///
/// With [`SandboxRules::without_tcp`], they can neither open nor accept TCP connections.
///
/// Landlock does not prevent other network access (UDP and therefore DNS, MPTCP, SCTP), the use of sockets with a path
/// (such as Docker's), reading secrets, or changes to the mode, the owner, the times and the extended attributes of
/// files outside the sandbox.
///
/// Clones share the same sandbox.
#[derive(Debug, Clone)]
pub struct Sandbox(Arc<SandboxInner>);

#[derive(Debug)]
struct SandboxInner {
    confined: ConfinementThread,
    temporary: TempDir,
    /// The guard that undoes changes to trusted files in the roots, that is, files that other programs run or trust.
    guard: Option<Arc<UndoGuard>>,
}

/// Two sandboxes are equal if one is a clone of the other.
impl PartialEq for Sandbox {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Sandbox {}

/// The rules of a sandbox: what it allows and denies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxRules {
    writable: Vec<PathBuf>,
    roots: Vec<PathBuf>,
    undone_directory: Option<PathBuf>,
    read_only: bool,
    tcp: Option<Vec<u16>>,
}

impl SandboxRules {
    /// Creates rules that allow network access, and writing only in the places that every sandbox allows.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows writing to these files and directories, which must exist.
    #[must_use]
    pub fn writable(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.writable.extend(paths);
        self
    }

    /// Makes the directories given to [`for_roots`](Self::for_roots) read-only.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Denies TCP connections, except to these ports. The exception applies to all machines, because Landlock does not
    /// check addresses. Requires Linux 6.7.
    #[must_use]
    pub fn without_tcp(mut self, reachable: impl IntoIterator<Item = u16>) -> Self {
        self.tcp = Some(reachable.into_iter().collect());
        self
    }

    /// Allows network access again, after [`without_tcp`](Self::without_tcp).
    #[must_use]
    pub fn with_network(mut self) -> Self {
        self.tcp = None;
        self
    }

    /// Sets the directory to which files are moved when changes to them are undone. See [`for_roots`](Self::for_roots).
    /// By default, these files are renamed and stay in their own directory.
    #[must_use]
    pub fn undone_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.undone_directory = Some(directory.into());
        self
    }

    /// Returns a copy of the rules that also allows writing to these directories, unless the rules are read-only.
    ///
    /// When a command or an agent has ended, its changes to files that other programs run
    /// ([`TRUSTED_PATHS`](crate::TRUSTED_PATHS); in `.git`, the hooks and settings) are undone, and its output reports
    /// that. All changes during that time are undone, no matter who made them. Changes to [`writable`](Self::writable)
    /// paths are not undone.
    #[must_use]
    pub fn for_roots(&self, roots: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut rules = self.clone();
        if !self.read_only {
            rules.roots.extend(roots);
        }
        rules
    }
}

/// The reason why a sandbox could not be created. If a sandbox is requested, nothing runs without it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The system does not support sandboxes.
    #[error("sandbox not available: {why}")]
    NotSupported {
        /// The reason why the system does not support sandboxes.
        why: String,
    },
    /// A path that should be writable cannot be opened.
    #[error("cannot make {} writable: {source}", path.display())]
    Path {
        /// The path that cannot be opened.
        path: PathBuf,
        /// The error from the operating system.
        source: io::Error,
    },
    /// The system supports sandboxes, but one could not be set up.
    #[error("cannot set up the sandbox: {source}")]
    System {
        /// The error from the operating system.
        source: io::Error,
    },
}

impl Sandbox {
    /// Creates a sandbox that allows writing to the files and directories in `writable`, which must exist. They are
    /// opened immediately, so renaming or replacing them later does not affect the sandbox.
    ///
    /// # Errors
    /// See [`SandboxError`]. Needs Linux 6.2 or later, with Landlock enabled.
    pub fn new(writable: impl IntoIterator<Item = PathBuf>) -> Result<Self, SandboxError> {
        Self::from_rules(SandboxRules::new().writable(writable))
    }

    /// Creates a sandbox with these rules.
    ///
    /// # Errors
    /// See [`SandboxError`]. Needs Linux 6.2 or later, with Landlock enabled, and 6.7 to deny TCP.
    pub fn from_rules(rules: SandboxRules) -> Result<Self, SandboxError> {
        let failed = |source| SandboxError::System { source };
        let temporary = tempfile::Builder::new()
            .prefix("acp-sandbox-")
            .tempdir()
            .map_err(failed)?;
        let guard = UndoGuard::new(&rules.roots, &rules.writable, rules.undone_directory)
            .map_err(failed)?;
        let mut writable = rules.writable;
        writable.extend(rules.roots);
        writable.push(temporary.path().to_owned());
        Ok(Self(Arc::new(SandboxInner {
            confined: ConfinementThread::new(writable, rules.tcp)?,
            temporary,
            guard,
        })))
    }

    /// Returns the temporary directory for programs in the sandbox.
    #[must_use]
    pub fn temporary_directory(&self) -> &Path {
        self.0.temporary.path()
    }

    /// Accepts a change just made to this file, so that it will not be undone. Reads files.
    pub fn accept_change(&self, file: &Path) {
        if let Some(guard) = &self.0.guard {
            let real = std::fs::canonicalize(file);
            guard.allow_change(real.as_deref().unwrap_or(file));
        }
    }

    /// Starts watching the files in the roots that other programs run or trust, if there are any. Reads files.
    pub(crate) fn watch(&self) -> Option<UndoWatch> {
        self.0.guard.as_ref().map(UndoGuard::watch)
    }

    /// Sets the temporary directory for a command that is about to be started in the sandbox.
    pub(crate) fn prepare(&self, command: &mut Command) {
        let temporary = self.temporary_directory();
        command.envs(["TMPDIR", "TMP", "TEMP"].map(|name| (name, temporary)));
    }

    /// Runs a function on the sandbox's confined thread and waits for it to return. Any processes that it starts are
    /// also confined.
    pub(crate) fn run_confined<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        self.0.confined.run(work)
    }
}
