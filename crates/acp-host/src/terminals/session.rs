//! The terminals of one session.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use acp_wire::jsonrpc::Error;
use acp_wire::v1::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse,
    ReleaseTerminalRequest, ReleaseTerminalResponse, SessionId, TerminalExitStatus, TerminalId,
    TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse,
};

use super::command::{self, build_command, display_command};
use super::{TerminalCounters, TerminalEvent, TerminalEventKind, TerminalOptions};
use crate::output::BoundedText;
use crate::process::{ProcessEvent, RunningProcess};

/// How long to wait for killed processes to exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

type TerminalEventHandler = Arc<dyn Fn(TerminalEvent) + Send + Sync>;

/// The terminals of one session. The session ids of requests are not checked. Dropping this releases the terminals,
/// which kills their commands.
pub struct SessionTerminals {
    cwd: PathBuf,
    setup: TerminalOptions,
    shared: Arc<TerminalCounters>,
    events: TerminalEventHandler,
    open_terminals: Arc<OpenTerminals>,
}

/// The terminals of a session that have not been released.
#[derive(Default)]
pub(super) struct OpenTerminals(Mutex<SessionTerminalsState>);

#[derive(Default)]
struct SessionTerminalsState {
    terminals: HashMap<TerminalId, Arc<HostTerminal>>,
    is_closed: bool,
    /// How many terminals the connection had created by the end of the session's last turn.
    ended_turn_mark: u64,
    /// How many terminals the connection had created by the end of the session's last cancelled turn.
    cancelled_turn_mark: u64,
}

struct HostTerminal {
    /// The terminal's number among all terminals created by the connection.
    number: u64,
    running: RunningProcess,
    output: Arc<Mutex<BoundedText>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenTerminals {
    /// Releases all terminals and prevents new ones from being created.
    pub(super) fn close(&self) -> impl Future<Output = ()> + Send + use<> {
        let terminals = {
            let mut state = lock(&self.0);
            state.is_closed = true;
            std::mem::take(&mut state.terminals)
        };
        release(terminals.into_values())
    }
}

impl fmt::Debug for SessionTerminals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionTerminals")
            .field("cwd", &self.cwd)
            .field("terminals", &self.lock_state().terminals.len())
            .finish_non_exhaustive()
    }
}

impl Drop for SessionTerminals {
    fn drop(&mut self) {
        drop(self.open_terminals.close());
    }
}

impl SessionTerminals {
    pub(super) fn new(
        cwd: PathBuf,
        setup: TerminalOptions,
        shared: Arc<TerminalCounters>,
        events: TerminalEventHandler,
    ) -> (Self, Weak<OpenTerminals>) {
        let open = Arc::<OpenTerminals>::default();
        let weak = Arc::downgrade(&open);
        let session = Self {
            cwd,
            setup,
            shared,
            events,
            open_terminals: open,
        };
        (session, weak)
    }

    fn lock_state(&self) -> MutexGuard<'_, SessionTerminalsState> {
        lock(&self.open_terminals.0)
    }

    /// Releases all terminals of the session and prevents new ones from being created. When the returned future
    /// completes, their processes have ended. They end even if the future is dropped.
    pub fn close(&self) -> impl Future<Output = ()> + Send + use<> {
        self.open_terminals.close()
    }

    /// Handles the end of a turn of the session. If the turn was cancelled, kills the commands that were started in it,
    /// since the agent may forget to. Their terminals remain until they are released. Commands from earlier turns, such
    /// as servers, keep running. Must be called from within a tokio runtime.
    pub fn end_turn(&self, cancelled: bool) {
        let mut state = self.lock_state();
        let created = self.shared.created_count.load(Ordering::Relaxed);
        let before = std::mem::replace(&mut state.ended_turn_mark, created);
        if !cancelled {
            return;
        }
        state.cancelled_turn_mark = created;
        let of_this_turn = state.terminals.values();
        for terminal in of_this_turn.filter(|terminal| terminal.number > before) {
            terminal.running.kill();
            let terminal = Arc::clone(terminal);
            tokio::spawn(async move { terminal.kill().await });
        }
    }

    /// Handles `terminal/create`: starts the command and returns immediately.
    ///
    /// Some agents send a whole shell line as `command`, without `args`. It is run in the system's shell if it looks
    /// like a shell line and is neither a program in `PATH` nor the absolute path of a program.
    ///
    /// # Errors
    /// `INVALID_PARAMS` if the session is closed, if the limits for terminals or their output are reached (in the
    /// session or in all sessions together), or if the command or its directory does not exist or cannot be used.
    /// `INTERNAL_ERROR` if the system cannot start another process.
    pub async fn create(
        &self,
        request: &CreateTerminalRequest,
    ) -> Result<CreateTerminalResponse, Error> {
        // The terminal is counted under the lock, so that the end of a turn knows which commands started in the turn.
        let number = {
            let state = self.lock_for_new_terminal(&request.session_id)?;
            let before = self.shared.created_count.fetch_add(1, Ordering::Relaxed);
            drop(state);
            before + 1
        };
        let terminal_id = TerminalId::from(format!("term_{number}"));
        let limit = request
            .output_byte_limit
            .map_or(self.setup.default_output, |limit| {
                usize::try_from(limit).unwrap_or(usize::MAX)
            })
            .min(self.setup.max_output);
        let room = self.shared.reserve(&self.setup, limit)?;
        let cwd = request
            .cwd
            .as_ref()
            .map_or_else(|| self.cwd.clone(), PathBuf::from);
        let mut command = build_command(request, &cwd, &self.setup.environment)?;
        let cannot_start = |e: io::Error| command::start_error(request, &e);
        let (reader, writer) = io::pipe().map_err(cannot_start)?;
        command
            .stdin(Stdio::null())
            .stdout(writer.try_clone().map_err(cannot_start)?)
            .stderr(writer);

        let output = Arc::new(Mutex::new(BoundedText::new(limit)));
        let tell = {
            let events = self.events.clone();
            let terminal_id = terminal_id.clone();
            move |kind| {
                let terminal_id = terminal_id.clone();
                events(TerminalEvent { terminal_id, kind });
            }
        };
        let started = TerminalEventKind::Started {
            command: display_command(request),
            cwd,
        };
        let kept = output.clone();
        let report = move |event: ProcessEvent<'_>| {
            // The reservation is held until the processes have ended and no output is stored any more.
            let _ = &room;
            tell(match event {
                ProcessEvent::Started => started.clone(),
                ProcessEvent::Text(text) | ProcessEvent::UndoReport(text) => {
                    lock(&kept).push(text);
                    TerminalEventKind::Output(text.to_owned())
                }
                ProcessEvent::Exited(exit) => TerminalEventKind::Exited(exit.into()),
                ProcessEvent::GroupEnded => TerminalEventKind::Released,
            });
        };
        // Files that other programs run are recorded first, which reads many files.
        let sandbox = self.setup.sandbox.clone();
        let watch = tokio::task::spawn_blocking(move || sandbox.as_ref()?.watch());
        let watch = watch.await.ok().flatten();
        let (running, _) =
            RunningProcess::start(command, self.setup.sandbox.as_ref(), watch, reader, report)
                .map_err(cannot_start)?;
        let terminal = Arc::new(HostTerminal {
            number,
            running,
            output,
        });

        // The session or its turn may have ended since, or other terminals may have been created. The new terminal is
        // then dropped, which kills its command.
        let mut state = self.lock_for_new_terminal(&request.session_id)?;
        if number <= state.cancelled_turn_mark {
            return Err(Error::request_cancelled());
        }
        state.terminals.insert(terminal_id.clone(), terminal);
        Ok(CreateTerminalResponse::new(terminal_id))
    }

    /// Returns the locked state, if the session may create another terminal.
    fn lock_for_new_terminal(
        &self,
        session_id: &SessionId,
    ) -> Result<MutexGuard<'_, SessionTerminalsState>, Error> {
        let state = self.lock_state();
        if state.is_closed {
            return Err(Error::invalid_params(format!(
                "session closed: {session_id}"
            )));
        }
        if state.terminals.len() >= self.setup.max_per_session {
            return Err(Error::invalid_params(format!(
                "too many terminals in this session (limit: {}); release some first",
                state.terminals.len()
            )));
        }
        Ok(state)
    }

    fn terminal(&self, terminal_id: &TerminalId) -> Result<Arc<HostTerminal>, Error> {
        let terminal = self.lock_state().terminals.get(terminal_id).cloned();
        terminal.ok_or_else(|| unknown_terminal_error(terminal_id))
    }

    /// Handles `terminal/output`: returns the stored output so far, and the exit status if the command has exited.
    ///
    /// # Errors
    /// `RESOURCE_NOT_FOUND` for a terminal that the session does not have.
    pub async fn output(
        &self,
        request: &TerminalOutputRequest,
    ) -> Result<TerminalOutputResponse, Error> {
        let terminal = self.terminal(&request.terminal_id)?;
        // In this order, so that the output is complete if the command has exited.
        let exit = terminal.running.try_wait();
        let output = lock(&terminal.output);
        let mut response = TerminalOutputResponse::new(output.text(), output.is_truncated());
        response.exit_status = exit.as_ref().map(TerminalExitStatus::from);
        Ok(response)
    }

    /// Handles `terminal/wait_for_exit`: waits until the command has exited, whether on its own or because it was
    /// killed or released. Does not wait for processes that the command left running.
    ///
    /// # Errors
    /// Same as for [`output`](Self::output). `INTERNAL_ERROR` if the exit status is no longer available.
    pub async fn wait_for_exit(
        &self,
        request: &WaitForTerminalExitRequest,
    ) -> Result<WaitForTerminalExitResponse, Error> {
        // While waiting, this holds only the exit status and not the terminal, so that a release takes effect. The
        // caller holds the session, which is closed by `close` and not by being dropped.
        let exited = self.terminal(&request.terminal_id)?.running.wait();
        let exit = exited
            .await
            .ok_or_else(|| Error::internal("the command's exit status is no longer available"))?;
        let status = TerminalExitStatus::from(&exit);
        let mut response = WaitForTerminalExitResponse::new();
        response.exit_code = status.exit_code;
        response.signal = status.signal;
        Ok(response)
    }

    /// Handles `terminal/kill`: kills the command and its process group, and waits until they have ended. The terminal
    /// remains.
    ///
    /// # Errors
    /// Same as for [`output`](Self::output).
    pub async fn kill(&self, request: &KillTerminalRequest) -> Result<KillTerminalResponse, Error> {
        let terminal = self.terminal(&request.terminal_id)?;
        terminal.kill().await;
        Ok(KillTerminalResponse::new())
    }

    /// Handles `terminal/release`: kills the command and its process group if they are running, and waits until they
    /// have ended. The terminal's id becomes invalid immediately.
    ///
    /// # Errors
    /// Same as for [`output`](Self::output).
    pub async fn release(
        &self,
        request: &ReleaseTerminalRequest,
    ) -> Result<ReleaseTerminalResponse, Error> {
        let terminal = self.lock_state().terminals.remove(&request.terminal_id);
        let terminal = terminal.ok_or_else(|| unknown_terminal_error(&request.terminal_id))?;
        release([terminal]).await;
        Ok(ReleaseTerminalResponse::new())
    }
}

impl HostTerminal {
    /// Kills the command and everything it started.
    async fn kill(&self) {
        self.running.kill();
        // This does not wait forever for a process that hangs in the kernel.
        let _ = tokio::time::timeout(KILL_TIMEOUT, self.running.wait()).await;
        self.running.kill_and_wait(KILL_TIMEOUT).await;
    }
}

/// Kills the commands of all these terminals at once, then waits for each of them.
fn release<T: IntoIterator<Item = Arc<HostTerminal>>>(
    terminals: T,
) -> impl Future<Output = ()> + Send + use<T> {
    let stopped = |terminal: Arc<HostTerminal>| {
        terminal.running.stop();
        terminal.running.wait_until_finished()
    };
    let ends: Vec<_> = terminals.into_iter().map(stopped).collect();
    async move {
        for end in ends {
            end.await;
        }
    }
}

fn unknown_terminal_error(terminal_id: &TerminalId) -> Error {
    Error::resource_not_found(format!("terminal {terminal_id}"))
}
