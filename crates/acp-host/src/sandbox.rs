//! Confining what is started: it reads everything and writes in a few places only.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

use crate::sys::ConfinementThread;
use crate::undo::{UndoGuard, UndoWatch};

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
/// With [`SandboxRules::without_tcp`] it opens no TCP connections and waits for none.
///
/// What Landlock does not stop: the network otherwise (UDP, and with it DNS; MPTCP; SCTP), sockets that have a
/// path (that of Docker's, for one), reading secrets, and changing the mode, the owner, the times or the
/// extended attributes of files outside.
///
/// Clones are the same sandbox.
#[derive(Debug, Clone)]
pub struct Sandbox(Arc<SandboxInner>);

#[derive(Debug)]
struct SandboxInner {
    confined: ConfinementThread,
    temporary: TempDir,
    /// Who watches what other programs obey in the directories that are worked in.
    guard: Option<Arc<UndoGuard>>,
}

/// They are the same if one is a clone of the other.
impl PartialEq for Sandbox {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Sandbox {}

/// What a sandbox forbids, and what it leaves open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxRules {
    writable: Vec<PathBuf>,
    roots: Vec<PathBuf>,
    undone_directory: Option<PathBuf>,
    read_only: bool,
    tcp: Option<Vec<u16>>,
}

impl SandboxRules {
    /// Nothing may be written but what every sandbox allows; the network is open.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Also lets these be written: directories or files that are there now.
    #[must_use]
    pub fn writable(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.writable.extend(paths);
        self
    }

    /// Keeps the directories of [`for_roots`](Self::for_roots) from being written.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Refuses TCP, except connections to these ports, whichever machine they are on: Landlock does not know
    /// addresses. Needs Linux 6.7.
    #[must_use]
    pub fn without_tcp(mut self, reachable: impl IntoIterator<Item = u16>) -> Self {
        self.tcp = Some(reachable.into_iter().collect());
        self
    }

    /// Opens the network again.
    #[must_use]
    pub fn with_network(mut self) -> Self {
        self.tcp = None;
        self
    }

    /// Where that is kept which is undone; see [`for_roots`](Self::for_roots). Without it that stays where it was,
    /// under another name.
    #[must_use]
    pub fn undone_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.undone_directory = Some(directory.into());
        self
    }

    /// The same for someone who works in these directories: they may be written, unless that was ruled out.
    ///
    /// What other programs obey in them ([`OBEYED`](crate::trusted_files::OBEYED); of `.git` the hooks and settings) is put
    /// back when a command has ended that has changed it, or an agent, and its output says so. That goes for all
    /// changes meanwhile, whoever made them. What is [`writable`](Self::writable) is left alone.
    #[must_use]
    pub fn for_roots(&self, roots: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut rules = self.clone();
        if !self.read_only {
            rules.roots.extend(roots);
        }
        rules
    }
}

/// Why there can be no sandbox. Then nothing is run: there is no falling back to a run without.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The system cannot do it.
    #[error("sandbox not available: {why}")]
    NotSupported {
        /// What it lacks.
        why: String,
    },
    /// What is to be writable cannot be opened.
    #[error("cannot make {} writable: {source}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system could do it, and failed.
    #[error("cannot set up the sandbox: {source}")]
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
        Self::with(SandboxRules::new().writable(writable))
    }

    /// A sandbox with these rules.
    ///
    /// # Errors
    /// See [`SandboxError`]. Needs Linux 6.2 or later, with Landlock enabled, and 6.7 to refuse TCP.
    pub fn with(rules: SandboxRules) -> Result<Self, SandboxError> {
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

    /// The temporary directory of what runs in it.
    #[must_use]
    pub fn temporary_directory(&self) -> &Path {
        self.0.temporary.path()
    }

    /// Says that a change to this file, which has just been made, was allowed: it is not undone. Reads files.
    pub fn accept(&self, file: &Path) {
        if let Some(guard) = &self.0.guard {
            let real = std::fs::canonicalize(file);
            guard.allow_change(real.as_deref().unwrap_or(file));
        }
    }

    /// Watches what other programs obey, if there is anything to be watched. Reads files.
    pub(crate) fn watch(&self) -> Option<UndoWatch> {
        self.0.guard.as_ref().map(UndoGuard::watch)
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
