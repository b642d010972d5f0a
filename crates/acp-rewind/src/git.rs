//! Runs git on the repository of snapshots.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::error::RewindError;

/// The maximum number of bytes of git's error messages that are kept.
const MAX_MESSAGE_BYTES: u64 = 16 * 1024;

/// Settings of every git command. Nothing else configures the repository, because the user's configuration is not read.
const SETTINGS: [&str; 6] = [
    // A snapshot that is lost in a crash of the system costs one undo. Waiting for the disk costs time in every turn.
    "core.fsync=none",
    "core.compression=1",
    "core.looseCompression=1",
    "pack.compression=1",
    "gc.auto=0",
    "core.quotePath=false",
];

/// Settings of glibc's allocator. Git allocates and frees 256 KiB for each object that it compresses. By default, the
/// system then maps and clears this memory each time, which takes as long as everything else.
const ALLOCATOR: [(&str, &str); 3] = [
    ("MALLOC_MMAP_THRESHOLD_", "1073741824"),
    ("MALLOC_TRIM_THRESHOLD_", "1073741824"),
    ("MALLOC_TOP_PAD_", "16777216"),
];

/// A bare git repository that stores snapshots.
#[derive(Debug)]
pub(crate) struct Repository {
    path: PathBuf,
}

impl Repository {
    /// Opens the repository at this path, or creates it.
    pub(crate) fn open(path: PathBuf) -> Result<Self, RewindError> {
        let repository = Self { path };
        // A repository that was being created when the system stopped has no HEAD.
        if !repository.path.join("HEAD").is_file() {
            repository.output("init", ["--bare", "--quiet", "--template="])?;
        }
        Ok(repository)
    }

    /// Returns a git command with these arguments.
    fn command<A: AsRef<OsStr>>(
        &self,
        command: &'static str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut git = Command::new("git");
        // Git would otherwise take over settings of a git command that runs this program, such as a hook.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"GIT_") {
                git.env_remove(name);
            }
        }
        git.env("GIT_DIR", &self.path)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", null_device())
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("LC_ALL", "C")
            .envs(ALLOCATOR);
        for setting in SETTINGS {
            git.args(["-c", setting]);
        }
        // Compressing all files would take most of the time of a first snapshot. Pruning compresses them.
        if command == "fast-import" {
            git.args(["-c", "pack.compression=0"]);
        }
        git.arg(command).args(arguments);
        // Not the project: a command without a working tree does not look at one.
        git.current_dir(self.path.parent().unwrap_or(&self.path));
        git.stdin(Stdio::null());
        git
    }

    /// Starts a git command whose stdin and stdout are pipes.
    pub(crate) fn start<A: AsRef<OsStr>>(
        &self,
        command: &'static str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<RunningGit, RewindError> {
        let mut git = self.command(command, arguments);
        git.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        RunningGit::spawn(command, &mut git)
    }

    /// Runs a git command and returns its stdout.
    pub(crate) fn output<A: AsRef<OsStr>>(
        &self,
        command: &'static str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Vec<u8>, RewindError> {
        self.output_up_to(u64::MAX, command, arguments)
    }

    /// Runs a git command and returns the first `limit` bytes of its stdout.
    pub(crate) fn output_up_to<A: AsRef<OsStr>>(
        &self,
        limit: u64,
        command: &'static str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Vec<u8>, RewindError> {
        let mut git = self.command(command, arguments);
        git.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = RunningGit::spawn(command, &mut git)?;
        let mut stdout = Vec::new();
        if let Some(pipe) = running.child.stdout.take() {
            let read = pipe.take(limit).read_to_end(&mut stdout);
            read.map_err(|e| running.failure(e.to_string()))?;
        }
        // Git is ended by the closed pipe if there is more.
        if u64::try_from(stdout.len()) == Ok(limit) {
            return Ok(stdout);
        }
        running.finish()?;
        Ok(stdout)
    }

    /// Returns the contents of an object, such as a file of a snapshot, or `None` if there is no such object.
    pub(crate) fn blob(&self, name: &str) -> Result<Option<Vec<u8>>, RewindError> {
        match self.output("cat-file", ["blob", name]) {
            Ok(contents) => Ok(Some(contents)),
            Err(RewindError::Git { .. }) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Returns the directory of the repository.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A running git command. Killed when dropped.
#[derive(Debug)]
pub(crate) struct RunningGit {
    command: &'static str,
    pub(crate) child: Child,
    stderr: Option<thread::JoinHandle<Vec<u8>>>,
}

impl RunningGit {
    fn spawn(command: &'static str, git: &mut Command) -> Result<Self, RewindError> {
        let mut child = git.spawn().map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => RewindError::GitNotFound,
            _ => RewindError::Git {
                command,
                message: e.to_string(),
            },
        })?;
        // A pipe that nobody reads would stop git.
        let stderr = child.stderr.take().map(|mut pipe| {
            thread::spawn(move || {
                let mut message = Vec::new();
                // A part of the message is better than none.
                let _ = pipe
                    .by_ref()
                    .take(MAX_MESSAGE_BYTES)
                    .read_to_end(&mut message);
                let _ = io::copy(&mut pipe, &mut io::sink());
                message
            })
        });
        Ok(Self {
            command,
            child,
            stderr,
        })
    }

    /// Returns the error of a command that failed, with what git printed, or else with `reason`.
    pub(crate) fn failure(&mut self, reason: String) -> RewindError {
        // It may still wait for input.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let printed = self.stderr.take().and_then(|thread| thread.join().ok());
        let printed = String::from_utf8_lossy(&printed.unwrap_or_default())
            .trim()
            .to_owned();
        RewindError::Git {
            command: self.command,
            message: if printed.is_empty() { reason } else { printed },
        }
    }

    /// Waits until the command has ended.
    pub(crate) fn finish(mut self) -> Result<(), RewindError> {
        drop(self.child.stdin.take());
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(self.failure(status.to_string())),
            Err(e) => Err(self.failure(e.to_string())),
        }
    }
}

impl Drop for RunningGit {
    fn drop(&mut self) {
        // Fails if the command has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn null_device() -> &'static str {
    if cfg!(windows) { "NUL" } else { "/dev/null" }
}

/// Returns a path as git writes it.
#[cfg(unix)]
pub(crate) fn path_bytes(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}

/// Returns a path as git writes it.
#[cfg(not(unix))]
pub(crate) fn path_bytes(path: &Path) -> Vec<u8> {
    path.to_string_lossy().replace('\\', "/").into_bytes()
}

/// Reads a path that git wrote. Returns `None` if it could not be one of a project.
pub(crate) fn path_from_bytes(bytes: &[u8]) -> Option<PathBuf> {
    #[cfg(unix)]
    let path = {
        use std::os::unix::ffi::OsStrExt;
        PathBuf::from(OsStr::from_bytes(bytes))
    };
    #[cfg(not(unix))]
    let path = PathBuf::from(std::str::from_utf8(bytes).ok()?);
    // The repository is private, but what is read from it decides where files are written.
    let is_normal = path.components().all(
        |part| matches!(part, std::path::Component::Normal(name) if !crate::scan::is_git(name)),
    );
    (is_normal && !bytes.is_empty()).then_some(path)
}
