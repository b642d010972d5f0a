//! Agents as child processes: started with an error that helps, ended with all that they started.

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

/// How much is kept of what an agent prints to its standard error, in bytes.
const TAIL_BYTES: usize = 64 * 1024;

/// How many lines of that are shown.
const TAIL_LINES: usize = 200;

/// How many lines of that a person is shown with what went wrong.
const LAST_WORDS: usize = 20;

/// Lines of standard error are passed on in parts of this many bytes if they are longer.
const LONGEST_LINE: usize = 8 * 1024;

/// How to start an agent.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentCommand {
    /// The program: a name to be found in `PATH`, or a path.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The environment that it gets: what the platform needs, if nothing else is set.
    pub environment: Environment,
    /// Variables to add to that.
    pub env: Vec<(OsString, OsString)>,
    /// Where it runs; absent for where this process does.
    pub cwd: Option<PathBuf>,
    /// The sandbox in which it and all that it starts run, if there is one.
    pub sandbox: Option<Sandbox>,
}

/// Without the values of variables, which may be secret.
impl fmt::Debug for AgentCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentCommand")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("environment", &self.environment)
            .field("env", &environment::names(&self.env))
            .field("cwd", &self.cwd)
            .finish()
    }
}

impl AgentCommand {
    /// The program without arguments.
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

    /// A program with its arguments as they are written in a setting, in one line. Words are separated by
    /// spaces, and quoted as in a shell: `npx -y "some agent"`. Nothing else that a shell does is done.
    ///
    /// A backslash is a quote, too: a path of Windows is to be put in single quotes.
    ///
    /// # Errors
    /// There is no word, or a quote without its end.
    pub fn from_line(line: &str) -> Result<Self, ParseLineError> {
        let mut words = words_of_line(line)?.into_iter();
        let program = words.next().ok_or(ParseLineError::Empty)?;
        Ok(Self::new(program).args(words))
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the environment that it gets, to which [`env`](Self::env) adds.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Sets where it runs.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Runs it, with all that it starts, in a sandbox.
    #[must_use]
    pub fn sandboxed(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// The file of the program, and how it is started.
    pub(crate) fn command(&self) -> Result<(PathBuf, Command), SpawnError> {
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

    /// The file of the program that would be started; nothing is.
    ///
    /// # Errors
    /// There is no such program, or it is not executable.
    pub fn find(&self) -> Result<PathBuf, SpawnError> {
        self.find_program()
    }

    /// The file of the program. A relative path is meant from where this process runs, as the person
    /// who wrote it sees it, not from `cwd`.
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
        program::find(&self.program, path.as_deref(), &base).map_err(|e| match e {
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

/// The words of a line as [`AgentCommand::from_line`] reads it: the program, and its arguments.
///
/// # Errors
/// There is no word, or a quote without its end.
pub fn words_of_line(line: &str) -> Result<Vec<String>, ParseLineError> {
    let words = shell_words::split(line).map_err(|_| ParseLineError::UnclosedQuote)?;
    match words.is_empty() {
        true => Err(ParseLineError::Empty),
        false => Ok(words),
    }
}

/// Why a line does not say how to start an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseLineError {
    /// There is nothing in it.
    #[error("the command is empty")]
    Empty,
    /// A quote begins and does not end.
    #[error("a quote in the command is not closed")]
    UnclosedQuote,
}

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// No directory of `PATH` has it.
    #[error("`{program}` was not found in PATH; is it installed?")]
    NotInPath {
        /// The program.
        program: String,
    },
    /// It was given as a path, and there is no such file.
    #[error("`{program}` does not exist")]
    NoSuchFile {
        /// The program.
        program: String,
    },
    /// There is no such program, and it looks like a program with its arguments in one.
    #[error(
        "there is no program named `{program}`; give the program and each of its arguments separately"
    )]
    ArgumentsInProgram {
        /// What was given as the program.
        program: String,
    },
    /// There is such a file, but it cannot be run.
    #[error("`{}` is not executable", file.display())]
    NotExecutable {
        /// The file.
        file: PathBuf,
    },
    /// Its working directory is not there.
    #[error("the agent's working directory `{}` is not there", cwd.display())]
    DirectoryNotFound {
        /// The directory.
        cwd: PathBuf,
    },
    /// The system could not start it.
    #[error("cannot start `{}`: {source}", file.display())]
    System {
        /// The file of the program.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// An agent that was started.
///
/// It leads its own process group and has no controlling terminal. Dropping this ends it at once with all
/// that it has started, also what has left its group (on Linux, and where it can be seen);
/// [`shutdown`](Self::shutdown) does it kindly.
#[derive(Debug)]
pub struct AgentProcess {
    running: RunningProcess,
    stdio: Mutex<Option<(ChildStdin, ChildStdout)>>,
    tail: Arc<Mutex<BoundedText>>,
    /// What is to be said of what was undone as it ended: at most twice something.
    undo_notes: Arc<Mutex<Vec<String>>>,
}

impl AgentProcess {
    /// Starts an agent. Needs a tokio runtime.
    ///
    /// How long it may take until it answers is for the caller to say, as it does of its requests: agents
    /// that are downloaded when they are first started take minutes.
    ///
    /// # Errors
    /// It cannot be started; see [`SpawnError`].
    pub fn spawn(command: &AgentCommand) -> Result<Self, SpawnError> {
        Self::spawn_with(command, |_| ())
    }

    /// Starts an agent, and passes on each line that it prints to its standard error as it arrives,
    /// without its line end. `on_stderr` is called from a task and must not block. Lines of more than
    /// 8 KiB come in parts.
    ///
    /// # Errors
    /// It cannot be started; see [`SpawnError`].
    pub fn spawn_with(
        command: &AgentCommand,
        mut on_stderr: impl FnMut(&str) + Send + 'static,
    ) -> Result<Self, SpawnError> {
        let (file, mut child) = command.command()?;
        let failed = |source| SpawnError::System {
            file: file.clone(),
            source,
        };
        let (stderr, writer) = io::pipe().map_err(failed)?;
        child
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(writer);

        let tail = Arc::new(Mutex::new(BoundedText::new(TAIL_BYTES)));
        let kept = tail.clone();
        let mut line = String::new();
        let undone = Arc::<Mutex<Vec<String>>>::default();
        let told = Arc::clone(&undone);
        let report = move |event: ProcessEvent<'_>| match event {
            ProcessEvent::Started => {}
            ProcessEvent::UndoReport(text) => told
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(text.trim().to_owned()),
            ProcessEvent::Text(text) => {
                kept.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(text);
                pass_lines(text, &mut line, &mut on_stderr);
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
            undo_notes: undone,
        })
    }

    /// The agent's standard input and output, for the connection; once. Dropping the input is how an
    /// agent is told that it is no longer needed.
    pub fn take_stdio(&self) -> Option<(ChildStdin, ChildStdout)> {
        self.stdio
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.running.id()
    }

    /// For [`acp::Options::on_noise`]: keeps what the agent prints to its standard output that is no message beside
    /// what it prints to its standard error.
    pub fn noise_handler(&self) -> impl Fn(&str) + Send + Sync + use<> {
        let tail = Arc::clone(&self.tail);
        move |line| {
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.push(line);
            tail.push("\n");
        }
    }

    /// The end of what the agent has printed to its standard error, and of what a
    /// [`noise_handler`](Self::noise_handler) was shown: at most 200 lines and 64 KiB.
    #[must_use]
    pub fn output_tail(&self) -> String {
        let text = self
            .tail
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .text();
        let mut last = VecDeque::with_capacity(TAIL_LINES);
        for line in text.lines() {
            if last.len() == TAIL_LINES {
                last.pop_front();
            }
            last.push_back(line);
        }
        last.make_contiguous().join("\n")
    }

    /// The end of [`output_tail`](Self::output_tail) as a person is shown it behind what went wrong: on lines of its
    /// own, at most 20, and without control characters. Empty if nothing was printed.
    #[must_use]
    pub fn stderr_excerpt(&self) -> String {
        let tail = self.output_tail();
        let lines: Vec<&str> = tail.trim_end().lines().collect();
        let last = lines.iter().skip(lines.len().saturating_sub(LAST_WORDS));
        let mut text = String::new();
        for line in last {
            if text.is_empty() {
                text.push_str("\nthe last it printed:");
            }
            text.push_str("\n  ");
            text.extend(line.chars().filter(|c| !c.is_control() || *c == '\t'));
        }
        text
    }

    /// Undoes what the agent has changed so far of the files that other programs obey, if it is in a sandbox where it
    /// could ([`SandboxRules::for_roots`](crate::SandboxRules::for_roots)). What a person is to be told of that, if
    /// anything. When the agent has ended, that is done by itself, and [`undo_report`](Self::undo_report) has what is to
    /// be told.
    pub async fn undo(&self) -> Option<String> {
        let undone = self.running.undo().await?;
        Some(undone.trim().to_owned())
    }

    /// What a person is to be told of what was undone as the agent ended. It is given once.
    pub fn undo_report(&self) -> Vec<String> {
        std::mem::take(
            &mut self
                .undo_notes
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// How the agent ended, if it has.
    #[must_use]
    pub fn try_wait(&self) -> Option<ProcessExit> {
        self.running.try_exit()
    }

    /// Waits for the agent to end. All that it printed to its standard error before is in
    /// [`output_tail`](Self::output_tail) then. Processes that it has left running are not waited for.
    pub async fn wait(&self) -> ProcessExit {
        self.running
            .wait()
            .await
            .unwrap_or_else(ProcessExit::unknown)
    }

    /// Waits, at most this long, until neither the agent nor anything that it has started runs. Returns whether that
    /// is so. It ends nothing.
    pub async fn wait_empty(&self, patience: Duration) -> bool {
        self.running.wait_empty(patience).await
    }

    /// Ends the agent and all that it has started, step by step, each step only if the one before was
    /// not enough: its standard input is closed, which is for the caller to do who took it, and it is
    /// given the time of `grace` to end; all that it has started is sent SIGTERM and given the time of
    /// `grace` again; then it is sent SIGKILL. When this returns, none of it runs.
    ///
    /// An agent that has ended is not enough for a step: agents are started through wrappers, and what
    /// they wrap may go on.
    pub async fn shutdown(&self, grace: Duration) -> ProcessExit {
        drop(self.take_stdio());
        let ended = tokio::time::timeout(grace, self.wait()).await.is_ok();
        // Once the agent itself has ended, nobody tells the rest that they should, too.
        if !ended || !self.running.wait_empty(Duration::ZERO).await {
            self.running.terminate().await;
            self.running.wait_empty(grace).await;
        }
        self.running.stop();
        self.running.wait_finished().await;
        self.wait().await
    }
}

/// Passes on the lines that `text` completes; `line` is the beginning of the next.
fn pass_lines(text: &str, line: &mut String, pass: &mut impl FnMut(&str)) {
    for part in text.split_inclusive('\n') {
        let (mut rest, whole) = part
            .strip_suffix('\n')
            .map_or((part, false), |part| (part, true));
        while line.len() + rest.len() > LONGEST_LINE {
            let mut fits = LONGEST_LINE.saturating_sub(line.len());
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
    fn a_line_of_a_setting_is_a_program_with_its_arguments() {
        let command =
            AgentCommand::from_line(r#" npx -y "some agent" --key='a b' x\ y '' "#).unwrap();
        let expected = AgentCommand::new("npx").args(["-y", "some agent", "--key=a b", "x y", ""]);
        assert_eq!(command, expected);
        // No shell sees it.
        let command = AgentCommand::from_line("a $HOME > b; c").unwrap();
        assert_eq!(command.args, ["$HOME", ">", "b;", "c"]);
        assert_eq!(AgentCommand::from_line("  "), Err(ParseLineError::Empty));
        assert_eq!(
            AgentCommand::from_line("a 'b"),
            Err(ParseLineError::UnclosedQuote)
        );
    }

    #[test]
    fn lines_come_whole_and_long_ones_in_parts() {
        let mut lines = Vec::new();
        let mut line = String::new();
        let long = "é".repeat(LONGEST_LINE);
        for text in ["a", "b\r\nc\n\nd", "e\n", &long, "\nlast"] {
            pass_lines(text, &mut line, &mut |line| lines.push(line.to_owned()));
            assert!(line.len() <= LONGEST_LINE);
        }
        assert_eq!(lines[..4], ["ab", "c", "", "de"]);
        assert_eq!(lines[4..].concat(), long);
        assert!(lines[4..].iter().all(|line| line.len() <= LONGEST_LINE));
        assert_eq!(line, "last");
    }
}
