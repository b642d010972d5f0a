//! Commands that an agent runs: the specification's page "Terminals".

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp_wire::jsonrpc::Error;
use acp_wire::v1::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse,
    ReleaseTerminalRequest, ReleaseTerminalResponse, SessionId, TerminalExitStatus, TerminalId,
    TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse,
};
use serde_json::json;

use crate::environment::Environment;
use crate::output::BoundedText;
use crate::process::{Event, Running};
use crate::program::{self, NoProgram};
use crate::sandbox::Sandbox;
use crate::sys;

/// How much output is kept where the request does not say, in bytes.
const DEFAULT_OUTPUT: usize = 1024 * 1024;

/// The most output that is kept, whatever the request says, in bytes.
const MAX_OUTPUT: usize = 8 * 1024 * 1024;

/// How many terminals a session may have at the same time.
const MAX_PER_SESSION: usize = 64;

/// How many terminals there may be at the same time, and how much output of theirs is kept, in bytes.
const MAX_TERMINALS: usize = 256;
const MAX_TOTAL_OUTPUT: usize = 64 * 1024 * 1024;

/// How long processes that were killed may take to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// What happens in a terminal, for those who show it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TerminalEvent {
    /// The session it belongs to.
    pub session_id: SessionId,
    /// The terminal.
    pub terminal_id: TerminalId,
    /// What happens.
    pub kind: TerminalEventKind,
}

/// What happens in a terminal. `Started` comes first and `Released` last; output may come after
/// `Exited`, from processes that the command has left running.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TerminalEventKind {
    /// The command runs.
    Started {
        /// The command with its arguments, as a person would write it.
        command: String,
        /// Where it runs.
        cwd: PathBuf,
    },
    /// It printed this: whole characters, with U+FFFD for what is no UTF-8. All of it passes here,
    /// whatever is kept for [`Terminals::output`].
    Output(String),
    /// It ended, and all that it printed itself has been reported.
    Exited(TerminalExitStatus),
    /// The terminal is gone, with all of its processes. What was shown of it should stay.
    Released,
}

type Events = Arc<dyn Fn(TerminalEvent) + Send + Sync>;

/// The terminals of all sessions of a connection.
///
/// Each command leads its own process group and has no controlling terminal; its standard input is
/// empty, and its standard output and error are one pipe, so that both arrive in the order they were
/// printed in. Ending a command ends all that it has started, also what has left its group (on Linux, and
/// where it can be seen). Dropping this ends all commands.
pub struct Terminals {
    events: Events,
    default_output: usize,
    max_output: usize,
    max_per_session: usize,
    max_terminals: usize,
    max_total_output: usize,
    used: Arc<Used>,
    environment: Environment,
    sandbox: Option<Sandbox>,
    state: Mutex<State>,
}

/// What all terminals take together.
#[derive(Debug, Default)]
struct Used {
    terminals: AtomicUsize,
    /// How much output they may keep, in bytes.
    output: AtomicUsize,
}

/// Room for a terminal, from before its command starts until its processes are gone.
#[derive(Debug)]
struct Room {
    used: Arc<Used>,
    output: usize,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.used.terminals.fetch_sub(1, Ordering::Relaxed);
        self.used.output.fetch_sub(self.output, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct State {
    sessions: HashMap<SessionId, Session>,
    /// How many terminals there have been; their ids are never used again.
    created: u64,
}

#[derive(Default)]
struct Session {
    cwd: PathBuf,
    terminals: HashMap<TerminalId, Arc<Terminal>>,
    /// How many terminals there had been when its last turn ended.
    turn_ended: u64,
    /// The same of its last turn that was cancelled.
    turn_cancelled: u64,
}

struct Terminal {
    /// How many there had been with this one.
    number: u64,
    running: Running,
    output: Arc<Mutex<BoundedText>>,
}

impl fmt::Debug for Terminals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sessions = self.state().sessions.len();
        f.debug_struct("Terminals")
            .field("sessions", &sessions)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Terminals {
    /// No terminals yet. `events` is told what happens in them; it is called from tasks and must not
    /// block.
    pub fn new(events: impl Fn(TerminalEvent) + Send + Sync + 'static) -> Self {
        Self {
            events: Arc::new(events),
            default_output: DEFAULT_OUTPUT,
            max_output: MAX_OUTPUT,
            max_per_session: MAX_PER_SESSION,
            max_terminals: MAX_TERMINALS,
            max_total_output: MAX_TOTAL_OUTPUT,
            used: Arc::default(),
            environment: Environment::new(),
            sandbox: None,
            state: Mutex::default(),
        }
    }

    /// How much output is kept where a request does not say, in bytes; 1 MiB if it is not set.
    #[must_use]
    pub fn default_output_limit(mut self, bytes: usize) -> Self {
        self.default_output = bytes;
        self
    }

    /// The most output that is kept, whatever a request says, in bytes; 8 MiB if it is not set.
    #[must_use]
    pub fn max_output_limit(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }

    /// How many terminals a session may have before it must release some; 64 if it is not set.
    #[must_use]
    pub fn max_per_session(mut self, terminals: usize) -> Self {
        self.max_per_session = terminals;
        self
    }

    /// How many terminals all sessions may have together; 256 if it is not set. One that was released counts until its
    /// processes are gone.
    #[must_use]
    pub fn max_terminals(mut self, terminals: usize) -> Self {
        self.max_terminals = terminals;
        self
    }

    /// How much output all terminals may keep together, in bytes; 64 MiB if it is not set. Each counts with all that it
    /// may keep.
    #[must_use]
    pub fn max_total_output(mut self, bytes: usize) -> Self {
        self.max_total_output = bytes;
        self
    }

    /// Runs all commands in a sandbox.
    #[must_use]
    pub fn sandboxed(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// The environment of commands, to which a request adds; what the platform needs if it is not set.
    /// What commands print, the agent reads.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Says that a change to this file was allowed, so that no command's end undoes it; see [`Sandbox::accept`].
    pub async fn accept(&self, file: PathBuf) {
        if let Some(sandbox) = self.sandbox.clone() {
            let accepted = tokio::task::spawn_blocking(move || sandbox.accept(&file));
            let _ = accepted.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Lets the session have terminals. `cwd`, an absolute path, is where commands run that do not
    /// say where. Doing it again changes that and nothing else.
    pub fn open_session(&self, session_id: impl Into<SessionId>, cwd: impl Into<PathBuf>) {
        let cwd = cwd.into();
        let mut state = self.state();
        let session = state.sessions.entry(session_id.into()).or_default();
        session.cwd = cwd;
    }

    /// Ends the session: its terminals are released, and when what this gives is done, their processes are
    /// gone. They go all the same if nobody waits for it.
    pub fn close_session(&self, session_id: &SessionId) -> impl Future<Output = ()> + Send + use<> {
        let session = self.state().sessions.remove(session_id);
        release(
            session
                .into_iter()
                .flat_map(|session| session.terminals.into_values()),
        )
    }

    /// A turn of the session has ended. If it was cancelled, the commands that were begun in it are ended,
    /// in case the agent has forgotten to; their terminals stay until they are released. What was begun in
    /// turns before goes on: a server for example. Must be called in a tokio runtime.
    pub fn turn_ended(&self, session_id: &SessionId, cancelled: bool) {
        let mut state = self.state();
        let created = state.created;
        let Some(session) = state.sessions.get_mut(session_id) else {
            return;
        };
        let before = std::mem::replace(&mut session.turn_ended, created);
        if !cancelled {
            return;
        }
        session.turn_cancelled = created;
        let of_this_turn = session.terminals.values();
        for terminal in of_this_turn.filter(|terminal| terminal.number > before) {
            terminal.running.kill();
            let terminal = Arc::clone(terminal);
            tokio::spawn(async move { terminal.kill().await });
        }
    }

    /// Ends all sessions, as [`close_session`](Self::close_session) does one.
    pub async fn close_all(&self) {
        let sessions = std::mem::take(&mut self.state().sessions);
        release(
            sessions
                .into_values()
                .flat_map(|session| session.terminals.into_values()),
        )
        .await;
    }

    /// Answers `terminal/create`: starts the command and returns at once.
    ///
    /// Agents are known to send a whole line for a shell as `command`, without `args`. It is given to
    /// the system's shell if it looks like such a line and is no program in `PATH` and no absolute path of one.
    ///
    /// # Errors
    /// `INVALID_PARAMS` if the session is unknown, if it or all sessions together have as many terminals or may keep as
    /// much output as they may, or if the command or its directory is not there or cannot be used. `INTERNAL_ERROR` if the system cannot
    /// start another process.
    pub async fn create(
        &self,
        request: &CreateTerminalRequest,
    ) -> Result<CreateTerminalResponse, Error> {
        let (number, terminal_id, cwd) = {
            let mut state = self.state();
            state.created += 1;
            let number = state.created;
            let terminal_id = TerminalId::from(format!("term_{number}"));
            let session = self.session_with_room(&mut state, &request.session_id)?;
            (number, terminal_id, session.cwd.clone())
        };
        let limit = request
            .output_byte_limit
            .map_or(self.default_output, |limit| {
                usize::try_from(limit).unwrap_or(usize::MAX)
            })
            .min(self.max_output);
        let room = self.room(limit)?;
        let cwd = request.cwd.as_ref().map_or(cwd, PathBuf::from);
        let mut command = command(request, &cwd, &self.environment)?;
        let cannot_start = |e: io::Error| cannot_start(request, &e);
        let (reader, writer) = io::pipe().map_err(cannot_start)?;
        command
            .stdin(Stdio::null())
            .stdout(writer.try_clone().map_err(cannot_start)?)
            .stderr(writer);

        let output = Arc::new(Mutex::new(BoundedText::new(limit)));
        let tell = {
            let events = self.events.clone();
            let (session_id, terminal_id) = (request.session_id.clone(), terminal_id.clone());
            move |kind| {
                let (session_id, terminal_id) = (session_id.clone(), terminal_id.clone());
                events(TerminalEvent {
                    session_id,
                    terminal_id,
                    kind,
                });
            }
        };
        let started = TerminalEventKind::Started {
            command: shown(request),
            cwd,
        };
        let kept = output.clone();
        let report = move |event: Event<'_>| {
            // Taken until the processes are gone and nothing is kept any more.
            let _ = &room;
            tell(match event {
                Event::Started => started.clone(),
                Event::Text(text) | Event::Undone(text) => {
                    lock(&kept).push(text);
                    TerminalEventKind::Output(text.to_owned())
                }
                Event::Exited(exit) => TerminalEventKind::Exited(exit.into()),
                Event::Ended => TerminalEventKind::Released,
            });
        };
        // What other programs obey is recorded first, which reads many files.
        let sandbox = self.sandbox.clone();
        let watch = tokio::task::spawn_blocking(move || sandbox.as_ref()?.watch());
        let watch = watch.await.ok().flatten();
        let (running, _) = Running::start(command, self.sandbox.as_ref(), watch, reader, report)
            .map_err(cannot_start)?;
        let terminal = Arc::new(Terminal {
            number,
            running,
            output,
        });

        // The session or its turn may have ended since, or it has got other terminals; this one is dropped
        // then, and ends.
        let mut state = self.state();
        let session = self.session_with_room(&mut state, &request.session_id)?;
        if number <= session.turn_cancelled {
            return Err(Error::request_cancelled());
        }
        session.terminals.insert(terminal_id.clone(), terminal);
        Ok(CreateTerminalResponse::new(terminal_id))
    }

    /// Room for a terminal that keeps so much output.
    fn room(&self, output: usize) -> Result<Room, Error> {
        // Counted first, so that two at once do not both find the last place.
        let room = Room {
            used: Arc::clone(&self.used),
            output,
        };
        let terminals = self.used.terminals.fetch_add(1, Ordering::Relaxed);
        let kept = self.used.output.fetch_add(output, Ordering::Relaxed);
        if terminals >= self.max_terminals {
            return Err(Error::invalid_params(format!(
                "there are {terminals} terminals in all sessions, which is the most there may be; release some first"
            )));
        }
        if kept.saturating_add(output) > self.max_total_output {
            return Err(Error::invalid_params(format!(
                "the terminals of all sessions may keep {kept} bytes of output, and no more than {} are kept; release some first, or set a lower `outputByteLimit` than {output}",
                self.max_total_output
            )));
        }
        Ok(room)
    }

    /// The session, if it may have another terminal.
    fn session_with_room<'a>(
        &self,
        state: &'a mut State,
        session_id: &SessionId,
    ) -> Result<&'a mut Session, Error> {
        let session = state
            .sessions
            .get_mut(session_id)
            .ok_or_else(|| unknown_session(session_id))?;
        if session.terminals.len() >= self.max_per_session {
            return Err(Error::invalid_params(format!(
                "the session has {} terminals, which is the most it may have; release some first",
                session.terminals.len()
            )));
        }
        Ok(session)
    }

    fn terminal(
        &self,
        session_id: &SessionId,
        terminal_id: &TerminalId,
    ) -> Result<Arc<Terminal>, Error> {
        let state = self.state();
        let session = state
            .sessions
            .get(session_id)
            .ok_or_else(|| unknown_session(session_id))?;
        session
            .terminals
            .get(terminal_id)
            .cloned()
            .ok_or_else(|| unknown_terminal(terminal_id))
    }

    /// Answers `terminal/output`: what is kept of the output so far, and how the command ended if it
    /// has.
    ///
    /// # Errors
    /// `INVALID_PARAMS` for an unknown session, `RESOURCE_NOT_FOUND` for a terminal that it does not
    /// have.
    pub async fn output(
        &self,
        request: &TerminalOutputRequest,
    ) -> Result<TerminalOutputResponse, Error> {
        let terminal = self.terminal(&request.session_id, &request.terminal_id)?;
        // In this order: if it has ended, the output is all there.
        let exit = terminal.running.try_exit();
        let output = lock(&terminal.output);
        let mut response = TerminalOutputResponse::new(output.text(), output.truncated());
        response.exit_status = exit.as_ref().map(TerminalExitStatus::from);
        Ok(response)
    }

    /// Answers `terminal/wait_for_exit`: waits until the command has ended, by itself or by a kill or
    /// release. Processes that it has left running are not waited for.
    ///
    /// # Errors
    /// As for [`output`](Self::output). `INTERNAL_ERROR` if the end cannot be seen any more.
    pub async fn wait_for_exit(
        &self,
        request: &WaitForTerminalExitRequest,
    ) -> Result<WaitForTerminalExitResponse, Error> {
        // Nothing is held while this waits but a view of the exit, so that a release is a release.
        let exited = self
            .terminal(&request.session_id, &request.terminal_id)?
            .running
            .exited();
        let exit = exited
            .await
            .ok_or_else(|| Error::internal("the command's end cannot be seen any more"))?;
        let status = TerminalExitStatus::from(&exit);
        let mut response = WaitForTerminalExitResponse::new();
        response.exit_code = status.exit_code;
        response.signal = status.signal;
        Ok(response)
    }

    /// Answers `terminal/kill`: ends the command with its process group, and returns when they have
    /// ended. The terminal stays.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    pub async fn kill(&self, request: &KillTerminalRequest) -> Result<KillTerminalResponse, Error> {
        let terminal = self.terminal(&request.session_id, &request.terminal_id)?;
        terminal.kill().await;
        Ok(KillTerminalResponse::new())
    }

    /// Answers `terminal/release`: ends the command with its process group if it runs. The terminal's
    /// id is invalid from the beginning of this; when it returns, the processes are gone.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    pub async fn release(
        &self,
        request: &ReleaseTerminalRequest,
    ) -> Result<ReleaseTerminalResponse, Error> {
        let terminal = {
            let mut state = self.state();
            let session = state.sessions.get_mut(&request.session_id);
            let session = session.ok_or_else(|| unknown_session(&request.session_id))?;
            let terminal = session.terminals.remove(&request.terminal_id);
            terminal.ok_or_else(|| unknown_terminal(&request.terminal_id))?
        };
        release([terminal]).await;
        Ok(ReleaseTerminalResponse::new())
    }
}

impl Terminal {
    /// Ends the command with all that it has started.
    async fn kill(&self) {
        self.running.kill();
        // A process that hangs in the kernel keeps nobody waiting.
        let _ = tokio::time::timeout(KILL_PATIENCE, self.running.exited()).await;
        self.running.killed(KILL_PATIENCE).await;
    }
}

/// Ends them all at once, now, and then waits for each.
fn release<T: IntoIterator<Item = Arc<Terminal>>>(
    terminals: T,
) -> impl Future<Output = ()> + Send + use<T> {
    let stopped = |terminal: Arc<Terminal>| {
        terminal.running.stop();
        terminal.running.ended()
    };
    let ends: Vec<_> = terminals.into_iter().map(stopped).collect();
    async move {
        for end in ends {
            end.await;
        }
    }
}

fn unknown_session(session_id: &SessionId) -> Error {
    Error::invalid_params(format!("unknown session: {session_id}"))
}

fn unknown_terminal(terminal_id: &TerminalId) -> Error {
    Error::resource_not_found(format!("terminal {terminal_id}"))
}

fn cannot_start(request: &CreateTerminalRequest, error: &io::Error) -> Error {
    let message = format!("cannot start {}: {error}", request.command);
    match error.kind() {
        io::ErrorKind::InvalidInput
        | io::ErrorKind::NotFound
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::ArgumentListTooLong => Error::invalid_params(message),
        _ => Error::internal(message),
    }
}

/// The request as a command that can be started.
fn command(
    request: &CreateTerminalRequest,
    cwd: &Path,
    environment: &Environment,
) -> Result<Command, Error> {
    let invalid = |message: String| Error::invalid_params(message);
    if !cwd.is_absolute() {
        return Err(invalid(format!(
            "`cwd` must be an absolute path: {}",
            cwd.display()
        )));
    }
    if !cwd.is_dir() {
        let message = format!("the working directory is not there: {}", cwd.display());
        return Err(
            invalid(message).data(json!({ "errno": "ENOENT", "path": cwd.to_string_lossy() }))
        );
    }
    for variable in &request.env {
        if variable.name.is_empty() || variable.name.contains('=') {
            return Err(invalid(format!(
                "not the name of an environment variable: {:?}",
                variable.name
            )));
        }
    }
    let path = request
        .env
        .iter()
        .rev()
        .find(|variable| variable.name == "PATH")
        .map(|variable| variable.value.clone().into())
        .or_else(|| environment.get("PATH"));
    let name = OsStr::new(&request.command);
    let is_line = request.args.is_empty() && program::is_shell_line(&request.command);
    // A line is not a path in the project, whatever files there are: it is judged as a line.
    let is_path = Path::new(name).components().count() > 1 && !Path::new(name).is_absolute();
    let found = match is_line && is_path {
        true => Err(NoProgram::NotFound),
        false => program::find(name, path.as_deref(), cwd),
    };
    let mut command = match found {
        Ok(file) => {
            let mut command = sys::program(&file, name);
            command.args(&request.args);
            command
        }
        Err(NoProgram::NotFound) if is_line => sys::shell(&request.command),
        Err(NoProgram::NotFound) => {
            return Err(invalid(format!("command not found: {}", request.command))
                .data(json!({ "errno": "ENOENT", "path": request.command })));
        }
        Err(NoProgram::NotExecutable(file)) => {
            return Err(
                invalid(format!("not an executable file: {}", file.display()))
                    .data(json!({ "errno": "EACCES", "path": file.to_string_lossy() })),
            );
        }
    };
    environment.give(&mut command);
    // Some programs believe PWD rather than the system.
    command.current_dir(cwd).env("PWD", cwd);
    command.envs(
        request
            .env
            .iter()
            .map(|variable| (&variable.name, &variable.value)),
    );
    Ok(command)
}

/// The command as a person would write it.
pub(crate) fn shown(request: &CreateTerminalRequest) -> String {
    let mut line = request.command.clone();
    for arg in &request.args {
        line.push(' ');
        if arg.is_empty() || program::is_shell_line(arg) {
            line.push('\'');
            line.push_str(&arg.replace('\'', r"'\''"));
            line.push('\'');
        } else {
            line.push_str(arg);
        }
    }
    line
}
