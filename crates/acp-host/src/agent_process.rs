//! Runs agents as child processes. Explains why an agent could not be started, and ends agents along with everything
//! they started.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::process::{ChildStdin, ChildStdout};

use crate::environment::{self, Environment};
use crate::output::BoundedText;
use crate::process::{ProcessEvent, ProcessExit, RunningProcess};
use crate::program::{self, ProgramError};
use crate::sandbox::Sandbox;
use crate::sys;

/// How many bytes to keep of the end of an agent's standard error.
const MAX_TAIL_BYTES: usize = 64 * 1024;

/// The maximum number of lines that [`AgentProcess::output_tail`] returns.
const MAX_TAIL_LINES: usize = 200;

/// The maximum number of lines of agent output to include in an error message.
const MAX_EXCERPT_LINES: usize = 20;

/// The maximum length of a line of standard error, in bytes. Longer lines are passed on in parts.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// A command that starts an agent.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentCommand {
    /// The program: a name to look up in `PATH`, or a path.
    pub program: OsString,
    /// The program's arguments.
    pub args: Vec<OsString>,
    /// The base environment. By default, it includes only what the platform needs.
    pub environment: Environment,
    /// Variables to add to the environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory. `None` means the working directory of this process.
    pub cwd: Option<PathBuf>,
    /// The sandbox for the agent and everything it starts, if any.
    pub sandbox: Option<Sandbox>,
}

/// Omits the values of variables, which may be secret.
impl fmt::Debug for AgentCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentCommand")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("environment", &self.environment)
            .field("env", &environment::variable_names(&self.env))
            .field("cwd", &self.cwd)
            .finish()
    }
}

impl AgentCommand {
    /// Creates a command that runs the program without arguments.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            environment: Environment::new(),
            env: Vec::new(),
            cwd: None,
            sandbox: None,
        }
    }

    /// Parses a program and its arguments from a single line, for example in a settings file. Words are separated by
    /// spaces and quoted as in a shell: `npx -y "some agent"`. Other shell syntax is not interpreted.
    ///
    /// A backslash is also a quoting character, so put Windows paths in single quotes.
    ///
    /// # Errors
    /// The line has no words, or has an unclosed quote.
    pub fn from_line(line: &str) -> Result<Self, ParseLineError> {
        let mut words = split_command_line(line)?.into_iter();
        let program = words.next().ok_or(ParseLineError::Empty)?;
        Ok(Self::new(program).args(words))
    }

    /// Adds arguments to the agent's command line.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds a variable to the agent's environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the base environment. [`env`](Self::env) adds to it.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Sets the working directory of the agent.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Runs the agent, and everything it starts, in this sandbox.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// Returns the path of the executable file, and the [`Command`] that starts it.
    pub(crate) fn to_command(&self) -> Result<(PathBuf, Command), SpawnError> {
        let file = self.find_program()?;
        if let Some(cwd) = self.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Err(SpawnError::DirectoryNotFound { cwd: cwd.clone() });
        }
        let mut child = sys::program(&file, OsStr::new(&self.program));
        self.environment.apply_to(&mut child);
        child.args(&self.args);
        if let Some(cwd) = &self.cwd {
            child.current_dir(cwd).env("PWD", cwd);
        }
        child.envs(self.env.iter().map(|(name, value)| (name, value)));
        Ok((file, child))
    }

    /// Returns the path of the executable file, without starting it.
    ///
    /// # Errors
    /// The program does not exist or is not executable.
    pub fn find_executable(&self) -> Result<PathBuf, SpawnError> {
        self.find_program()
    }

    /// Finds the executable file. A relative path is resolved against this process's working directory rather than
    /// `cwd`, because that is where the user wrote the path.
    fn find_program(&self) -> Result<PathBuf, SpawnError> {
        let shown = || self.program.to_string_lossy().into_owned();
        let path = self
            .env
            .iter()
            .rev()
            .find(|(name, _)| name == "PATH")
            .map(|(_, value)| value.clone())
            .or_else(|| self.environment.get("PATH"));
        let base = std::env::current_dir().unwrap_or_default();
        program::find_program(&self.program, path.as_deref(), &base).map_err(|e| match e {
            ProgramError::NotExecutable(file) => SpawnError::NotExecutable { file },
            ProgramError::NotFound => {
                let program = shown();
                if program.split_whitespace().nth(1).is_some() {
                    SpawnError::ArgumentsInProgram { program }
                } else if Path::new(&self.program).components().count() > 1 {
                    SpawnError::NoSuchFile { program }
                } else {
                    SpawnError::NotInPath { program }
                }
            }
        })
    }
}

/// Splits a line into words like [`AgentCommand::from_line`]. The first word is the program, and the others are its
/// arguments.
///
/// # Errors
/// The line has no words, or has an unclosed quote.
pub fn split_command_line(line: &str) -> Result<Vec<String>, ParseLineError> {
    let words = shell_words::split(line).map_err(|_| ParseLineError::UnclosedQuote)?;
    match words.is_empty() {
        true => Err(ParseLineError::Empty),
        false => Ok(words),
    }
}

/// An error in parsing a line into an [`AgentCommand`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseLineError {
    /// The line contains no words.
    #[error("the command is empty")]
    Empty,
    /// A quote is never closed.
    #[error("unclosed quote in the command")]
    UnclosedQuote,
}

/// The reason why an agent could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The program was not found in any directory of `PATH`.
    #[error("command not found: `{program}`; check that it is installed and in PATH")]
    NotInPath {
        /// The name that was looked up.
        program: String,
    },
    /// There is no file at the program's path.
    #[error("`{program}` does not exist")]
    NoSuchFile {
        /// The path that was given for the program.
        program: String,
    },
    /// The program was not found, and the string looks like a program followed by arguments.
    #[error("command not found: `{program}`; pass the program and its arguments separately")]
    ArgumentsInProgram {
        /// The string that was given as the program.
        program: String,
    },
    /// The file exists but cannot be run.
    #[error("not executable: `{}`", file.display())]
    NotExecutable {
        /// The file that cannot be run.
        file: PathBuf,
    },
    /// The working directory does not exist.
    #[error("the agent's working directory does not exist: `{}`", cwd.display())]
    DirectoryNotFound {
        /// The working directory that does not exist.
        cwd: PathBuf,
    },
    /// The operating system could not start the program.
    #[error("cannot start `{}`: {source}", file.display())]
    System {
        /// The program's executable file.
        file: PathBuf,
        /// The error from the operating system.
        source: io::Error,
    },
}

/// An agent running as a child process.
///
/// The agent leads its own process group and has no controlling terminal. Dropping an `AgentProcess` kills the agent
/// and everything it started, including processes that left its group (on Linux, where they can be found).
/// [`shutdown`](Self::shutdown) ends it gracefully.
#[derive(Debug)]
pub struct AgentProcess {
    running: RunningProcess,
    stdio: Mutex<Option<(ChildStdin, ChildStdout)>>,
    tail: Arc<Mutex<BoundedText>>,
    /// Reports about the changes that were undone when the agent ended. There are at most two.
    undo_reports: Arc<Mutex<Vec<String>>>,
}

impl AgentProcess {
    /// Starts an agent. Requires a tokio runtime.
    ///
    /// There is no timeout for the agent's first response, which the caller must set on its requests. Agents that are
    /// downloaded when they first start can take minutes.
    ///
    /// # Errors
    /// The agent cannot be started; see [`SpawnError`].
    pub fn spawn(command: &AgentCommand) -> Result<Self, SpawnError> {
        Self::spawn_with(command, |_| ())
    }

    /// Starts an agent. Calls `on_stderr` with each line of its standard error, without the line ending. `on_stderr` is
    /// called from a task and must not block. Lines longer than 8 KiB arrive in several parts.
    ///
    /// # Errors
    /// The agent cannot be started; see [`SpawnError`].
    pub fn spawn_with(
        command: &AgentCommand,
        mut on_stderr: impl FnMut(&str) + Send + 'static,
    ) -> Result<Self, SpawnError> {
        let (file, mut child) = command.to_command()?;
        let failed = |source| SpawnError::System {
            file: file.clone(),
            source,
        };
        let (stderr, writer) = io::pipe().map_err(failed)?;
        child
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(writer);

        let tail = Arc::new(Mutex::new(BoundedText::new(MAX_TAIL_BYTES)));
        let kept = tail.clone();
        let mut line = String::new();
        let undone = Arc::<Mutex<Vec<String>>>::default();
        let reports = Arc::clone(&undone);
        let report = move |event: ProcessEvent<'_>| match event {
            ProcessEvent::Started => {}
            ProcessEvent::UndoReport(text) => reports
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(text.trim().to_owned()),
            ProcessEvent::Text(text) => {
                kept.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(text);
                emit_complete_lines(text, &mut line, &mut on_stderr);
            }
            ProcessEvent::Exited(_) | ProcessEvent::GroupEnded => {
                if !line.is_empty() {
                    on_stderr(&std::mem::take(&mut line));
                }
            }
        };
        let sandbox = command.sandbox.as_ref();
        let watch = sandbox.and_then(Sandbox::watch);
        let (running, pipes) =
            RunningProcess::start(child, sandbox, watch, stderr, report).map_err(failed)?;
        let stdio = Mutex::new(match pipes {
            (Some(stdin), Some(stdout)) => Some((stdin, stdout)),
            _ => None,
        });
        Ok(Self {
            running,
            stdio,
            tail,
            undo_reports: undone,
        })
    }

    /// Takes the agent's standard input and output for use by the connection. Returns `None` after the first call.
    /// Dropping the input tells the agent that it is no longer needed.
    pub fn take_stdio(&self) -> Option<(ChildStdin, ChildStdout)> {
        self.stdio
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Returns the agent's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.running.id()
    }

    /// Returns a handler for [`acp::Options::on_noise`]. It keeps noise from the agent's standard output together with
    /// its standard error.
    pub fn noise_handler(&self) -> impl Fn(&str) + Send + Sync + use<> {
        let tail = Arc::clone(&self.tail);
        move |line| {
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.push(line);
            tail.push("\n");
        }
    }

    /// Returns the last lines that the agent printed to standard error, or that were passed to a
    /// [`noise_handler`](Self::noise_handler): at most 200 lines and 64 KiB.
    #[must_use]
    pub fn output_tail(&self) -> String {
        let text = self
            .tail
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .text();
        let mut last = VecDeque::with_capacity(MAX_TAIL_LINES);
        for line in text.lines() {
            if last.len() == MAX_TAIL_LINES {
                last.pop_front();
            }
            last.push_back(line);
        }
        last.make_contiguous().join("\n")
    }

    /// Returns the end of [`output_tail`](Self::output_tail) for use in an error message: at most 20 lines, without
    /// control characters. Empty if nothing was printed.
    #[must_use]
    pub fn stderr_excerpt(&self) -> String {
        let tail = self.output_tail();
        let lines: Vec<&str> = tail.trim_end().lines().collect();
        let last = lines
            .iter()
            .skip(lines.len().saturating_sub(MAX_EXCERPT_LINES));
        let mut text = String::new();
        for line in last {
            if text.is_empty() {
                text.push_str("\nlast output:");
            }
            text.push_str("\n  ");
            text.extend(line.chars().filter(|c| !c.is_control() || *c == '\t'));
        }
        text
    }

    /// Undoes the changes made so far by the agent to files that other programs run or trust, if its sandbox allows
    /// such changes ([`SandboxRules::for_roots`](crate::SandboxRules::for_roots)). Returns a report for the user, if
    /// there is anything to report. Changes are also undone automatically when the agent ends.
    /// [`undo_report`](Self::undo_report) then returns the report.
    pub async fn undo(&self) -> Option<String> {
        let undone = self.running.undo().await?;
        Some(undone.trim().to_owned())
    }

    /// Takes the reports for the user about changes that were undone when the agent ended. Each report is returned only
    /// once.
    pub fn undo_report(&self) -> Vec<String> {
        std::mem::take(
            &mut self
                .undo_reports
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Returns the agent's exit status, or `None` if it is still running.
    #[must_use]
    pub fn try_wait(&self) -> Option<ProcessExit> {
        self.running.try_wait()
    }

    /// Waits for the agent to exit. After that, [`output_tail`](Self::output_tail) includes everything that the agent
    /// printed to standard error. Does not wait for processes that the agent has left running.
    pub async fn wait(&self) -> ProcessExit {
        self.running
            .wait()
            .await
            .unwrap_or_else(ProcessExit::unknown)
    }

    /// Waits until the agent and everything it started have exited, or until `patience` has elapsed. Returns `true` if
    /// all have exited. Does not end any process itself.
    pub async fn wait_all(&self, patience: Duration) -> bool {
        self.running.wait_all(patience).await
    }

    /// Ends the agent and everything it started. Each of these steps is taken only if the previous one was not enough:
    ///
    /// 1. Close the agent's standard input, and wait up to `grace`. A caller that took the input must close it itself.
    /// 2. Send SIGTERM to everything the agent started, and wait up to `grace` again.
    /// 3. Send SIGKILL.
    ///
    /// When this returns, none of these processes is running.
    ///
    /// The exit of the agent's own process is not enough to complete a step, because many agents are started through a
    /// wrapper, which may exit before the agent does.
    pub async fn shutdown(&self, grace: Duration) -> ProcessExit {
        drop(self.take_stdio());
        let ended = tokio::time::timeout(grace, self.wait()).await.is_ok();
        // After the agent itself has exited, nothing else tells the remaining processes to exit.
        if !ended || !self.running.wait_all(Duration::ZERO).await {
            self.running.terminate().await;
            self.running.wait_all(grace).await;
        }
        self.running.stop();
        self.running.wait_until_finished().await;
        self.wait().await
    }
}

/// Calls `pass` with each line that `text` completes. Between calls, `line` contains the incomplete last line.
fn emit_complete_lines(text: &str, line: &mut String, pass: &mut impl FnMut(&str)) {
    for part in text.split_inclusive('\n') {
        let (mut rest, whole) = part
            .strip_suffix('\n')
            .map_or((part, false), |part| (part, true));
        while line.len() + rest.len() > MAX_LINE_BYTES {
            let mut fits = MAX_LINE_BYTES.saturating_sub(line.len());
            while !rest.is_char_boundary(fits) {
                fits -= 1;
            }
            let (now, later) = rest.split_at(fits);
            line.push_str(now);
            pass(line);
            line.clear();
            rest = later;
        }
        line.push_str(rest);
        if whole {
            pass(line.strip_suffix('\r').unwrap_or(line));
            line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_split_into_program_and_arguments() {
        let command =
            AgentCommand::from_line(r#" npx -y "some agent" --key='a b' x\ y '' "#).unwrap();
        let expected = AgentCommand::new("npx").args(["-y", "some agent", "--key=a b", "x y", ""]);
        assert_eq!(command, expected);
        // No shell is involved.
        let command = AgentCommand::from_line("a $HOME > b; c").unwrap();
        assert_eq!(command.args, ["$HOME", ">", "b;", "c"]);
        assert_eq!(AgentCommand::from_line("  "), Err(ParseLineError::Empty));
        assert_eq!(
            AgentCommand::from_line("a 'b"),
            Err(ParseLineError::UnclosedQuote)
        );
    }

    #[test]
    fn complete_lines_are_emitted_and_long_ones_split() {
        let mut lines = Vec::new();
        let mut line = String::new();
        let long = "é".repeat(MAX_LINE_BYTES);
        for text in ["a", "b\r\nc\n\nd", "e\n", &long, "\nlast"] {
            emit_complete_lines(text, &mut line, &mut |line| lines.push(line.to_owned()));
            assert!(line.len() <= MAX_LINE_BYTES);
        }
        assert_eq!(lines[..4], ["ab", "c", "", "de"]);
        assert_eq!(lines[4..].concat(), long);
        assert!(lines[4..].iter().all(|line| line.len() <= MAX_LINE_BYTES));
        assert_eq!(line, "last");
    }
}
