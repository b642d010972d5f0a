//! Runs git. Each call says which repository, files and index it is about, so that neither variables of the user's shell
//! nor a `.git` that an agent has changed can lead it elsewhere.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::exit::CommandExit;

/// The maximum size of git's output, in bytes.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024 * 1024;

/// The maximum size of an error message from git, in bytes.
const MAX_ERROR_BYTES: u64 = 16 * 1024;

/// The variables that tell git which repository to use.
const REPOSITORY_VARIABLES: [&str; 20] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIFF_OPTS",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Settings that apply to every call. No hook and no file monitor runs, and no file is written next to the index.
const SETTINGS: [&str; 5] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "gc.auto=0",
];

/// A call of git.
#[derive(Debug, Clone)]
pub(super) struct GitCall {
    variables: Vec<(&'static str, OsString)>,
    directory: PathBuf,
    args: Vec<OsString>,
    input: Vec<u8>,
}

impl GitCall {
    /// Creates a call in a directory.
    pub(super) fn new(directory: impl Into<PathBuf>, args: &[&str]) -> Self {
        Self {
            variables: Vec::new(),
            directory: directory.into(),
            args: args.iter().map(OsString::from).collect(),
            input: Vec::new(),
        }
    }

    pub(super) fn variable(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name, value.as_ref().to_owned()));
        self
    }

    pub(super) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Sets what git reads from stdin.
    pub(super) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }

    /// Returns the output.
    ///
    /// # Errors
    /// Git cannot be started, fails, or prints too much.
    pub(super) async fn output(self) -> Result<Vec<u8>, CommandExit> {
        self.run(Stdio::piped()).await
    }

    /// Returns the output as text without the final line break.
    pub(super) async fn text(self) -> Result<String, CommandExit> {
        let output = self.output().await?;
        let text = String::from_utf8_lossy(&output);
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }

    /// Returns the output as a path.
    pub(super) async fn path(self) -> Result<PathBuf, CommandExit> {
        let output = self.output().await?;
        let path = output.strip_suffix(b"\n").unwrap_or(&output);
        Ok(path_from_bytes(path))
    }

    /// Writes the output to a file.
    pub(super) async fn write_to(self, file: &Path) -> Result<(), CommandExit> {
        let output = File::create(file).map_err(|e| io_exit("write", file, &e))?;
        self.run(Stdio::from(output)).await.map(drop)
    }

    async fn run(self, stdout: Stdio) -> Result<Vec<u8>, CommandExit> {
        let called = self.args.first().cloned().unwrap_or_default();
        let called = called.to_string_lossy();
        let failed = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound => {
                CommandExit::usage("git not found; check that it is installed and in PATH")
            }
            _ => CommandExit::failed(format!("git {called}: {e}")),
        };
        let mut child = self.command().stdout(stdout).spawn().map_err(failed)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (stdin, stdout, stderr) = pipes;
        let write = async {
            if let Some(mut stdin) = stdin {
                // Git says itself why it has stopped reading.
                let _ = stdin.write_all(&self.input).await;
            }
        };
        let read = async {
            let mut output = Vec::new();
            if let Some(stdout) = stdout {
                let mut stdout = stdout.take(MAX_OUTPUT_BYTES + 1);
                stdout.read_to_end(&mut output).await?;
            }
            Ok(output)
        };
        let read_error = async {
            let mut output = Vec::new();
            if let Some(mut stderr) = stderr {
                let mut beginning = (&mut stderr).take(MAX_ERROR_BYTES);
                let _ = beginning.read_to_end(&mut output).await;
                let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
            }
            output
        };
        let ((), output, error) = tokio::join!(write, read, read_error);
        let output: Vec<u8> = output.map_err(failed)?;
        if output.len() as u64 > MAX_OUTPUT_BYTES {
            return Err(CommandExit::failed(format!(
                "git {called}: too much output (limit: {MAX_OUTPUT_BYTES} bytes)"
            )));
        }
        let status = child.wait().await.map_err(failed)?;
        if status.success() {
            return Ok(output);
        }
        let error = String::from_utf8_lossy(&error);
        Err(CommandExit::failed(match error.trim() {
            "" => format!("git {called} failed: {status}"),
            error => format!("git {called} failed: {error}"),
        }))
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        for name in REPOSITORY_VARIABLES {
            command.env_remove(name);
        }
        command
            .args(&self.args)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C")
            .current_dir(&self.directory)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

/// Creates an exit for a file that cannot be used.
pub(super) fn io_exit(what: &str, path: &Path, error: &std::io::Error) -> CommandExit {
    CommandExit::failed(format!("cannot {what} {}: {error}", path.display()))
}

/// Returns the parts of git's output with `-z`.
pub(super) fn split_at_nul(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = output.split(|byte| *byte == 0);
    parts.filter(|part| !part.is_empty())
}

#[cfg(unix)]
pub(super) fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
pub(super) fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}
