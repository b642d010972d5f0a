//! Runs commands for an agent (specification: Terminals).

mod command;
mod session;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use acp_wire::jsonrpc::Error;
use acp_wire::v1::{TerminalExitStatus, TerminalId};

use tokio::sync::watch;

use crate::environment::Environment;
use crate::sandbox::Sandbox;

pub(crate) use command::display_command;
use session::OpenTerminals;
pub use session::SessionTerminals;

/// The default limit on a terminal's stored output, in bytes.
const DEFAULT_OUTPUT_LIMIT_BYTES: usize = 1024 * 1024;

/// The highest limit on a terminal's stored output that a request can set, in bytes.
const MAX_OUTPUT_LIMIT_BYTES: usize = 8 * 1024 * 1024;

/// The maximum number of terminals in a session.
const MAX_TERMINALS_PER_SESSION: usize = 64;

/// The maximum number of terminals in all sessions of a connection.
const MAX_TERMINALS: usize = 256;

/// The maximum sum of the output limits of a connection's terminals, in bytes.
const MAX_TOTAL_OUTPUT_BYTES: usize = 64 * 1024 * 1024;

/// An event in a client terminal to be shown to the user.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TerminalEvent {
    /// The id of the terminal.
    pub terminal_id: TerminalId,
    /// The kind of event, along with its data.
    pub kind: TerminalEventKind,
}

/// The kind of a terminal event. `Started` comes first and `Released` last. If the command leaves processes running,
/// their output may come after `Exited`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TerminalEventKind {
    /// The command has started.
    Started {
        /// The command and its arguments, as the user would type them.
        command: String,
        /// The working directory of the command.
        cwd: PathBuf,
    },
    /// The command's output. Never ends in the middle of a character, and has U+FFFD in place of invalid UTF-8. All
    /// output is reported, even if [`SessionTerminals::output`] stores only part of it.
    Output(String),
    /// The command has exited, and all of its own output has been reported.
    Exited(TerminalExitStatus),
    /// The terminal has been released, and all of its processes have ended. Its output should remain visible.
    Released,
}

/// The terminals of a connection, with a [`SessionTerminals`] for each session.
///
/// Each command leads its own process group and has no controlling terminal. Its standard input is empty. Its standard
/// output and error are one pipe, so that both arrive in the order in which they were printed. Killing a command kills
/// everything it started, including processes that left its group (on Linux, where they can be found).
#[derive(Default)]
pub struct HostTerminals {
    setup: TerminalOptions,
    shared: Arc<TerminalCounters>,
    /// The terminals of open sessions, and of closed sessions that have not been removed from this list yet.
    sessions: Mutex<Vec<Weak<OpenTerminals>>>,
}

/// Options and limits for running commands.
#[derive(Clone)]
struct TerminalOptions {
    default_output: usize,
    max_output: usize,
    max_per_session: usize,
    max_terminals: usize,
    max_total_output: usize,
    environment: Environment,
    sandbox: Option<Sandbox>,
}

impl Default for TerminalOptions {
    fn default() -> Self {
        Self {
            default_output: DEFAULT_OUTPUT_LIMIT_BYTES,
            max_output: MAX_OUTPUT_LIMIT_BYTES,
            max_per_session: MAX_TERMINALS_PER_SESSION,
            max_terminals: MAX_TERMINALS,
            max_total_output: MAX_TOTAL_OUTPUT_BYTES,
            environment: Environment::new(),
            sandbox: None,
        }
    }
}

/// Counters shared by all terminals of a connection.
#[derive(Debug, Default)]
struct TerminalCounters {
    usage: Arc<TerminalUsage>,
    /// The number of terminals created so far. Terminal ids are never reused.
    created_count: AtomicU64,
}

/// The total resources used by a connection's terminals.
#[derive(Debug, Default)]
struct TerminalUsage {
    terminal_count: watch::Sender<usize>,
    /// The number of bytes of output that all terminals may store.
    output_bytes: AtomicUsize,
}

/// A reservation for a terminal. Lasts from before the command starts until all of its processes have ended.
#[derive(Debug)]
struct TerminalReservation {
    usage: Arc<TerminalUsage>,
    output_bytes: usize,
}

impl Drop for TerminalReservation {
    fn drop(&mut self) {
        self.usage
            .terminal_count
            .send_modify(|terminals| *terminals -= 1);
        self.usage
            .output_bytes
            .fetch_sub(self.output_bytes, Ordering::Relaxed);
    }
}

impl fmt::Debug for HostTerminals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminals")
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

impl HostTerminals {
    /// Creates an empty set of terminals for a connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limit on stored output, in bytes, for requests that set none. The default is 1 MiB.
    #[must_use]
    pub fn default_output_limit(mut self, bytes: usize) -> Self {
        self.setup.default_output = bytes;
        self
    }

    /// Sets the highest limit on stored output, in bytes, that a request can set. The default is 8 MiB.
    #[must_use]
    pub fn max_output_limit(mut self, bytes: usize) -> Self {
        self.setup.max_output = bytes;
        self
    }

    /// Sets the maximum number of terminals that a session may have open. The default is 64.
    #[must_use]
    pub fn max_per_session(mut self, terminals: usize) -> Self {
        self.setup.max_per_session = terminals;
        self
    }

    /// Sets the maximum total number of terminals in all sessions. The default is 256. A released terminal counts until
    /// its processes have ended.
    #[must_use]
    pub fn max_terminals(mut self, terminals: usize) -> Self {
        self.setup.max_terminals = terminals;
        self
    }

    /// Sets the maximum total amount of output that all terminals may store, in bytes. The default is 64 MiB. What
    /// counts is each terminal's limit, not its actual output.
    #[must_use]
    pub fn max_total_output(mut self, bytes: usize) -> Self {
        self.setup.max_total_output = bytes;
        self
    }

    /// Runs all terminals' commands in a sandbox.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.setup.sandbox = Some(sandbox);
        self
    }

    /// Sets the base environment for commands, to which requests can add variables. By default, it contains the
    /// variables that the platform needs.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.setup.environment = environment;
        self
    }

    /// Accepts a change to this file, so that it will not be undone when a command ends. See
    /// [`Sandbox::accept_change`].
    pub async fn accept_change(&self, file: PathBuf) {
        if let Some(sandbox) = self.setup.sandbox.clone() {
            let accepted = tokio::task::spawn_blocking(move || sandbox.accept_change(&file));
            let _ = accepted.await;
        }
    }

    /// Creates a session's terminals. `cwd`, an absolute path, is the default working directory. `events` is called
    /// from a task with each event, and must not block.
    pub fn session(
        &self,
        cwd: impl Into<PathBuf>,
        events: impl Fn(TerminalEvent) + Send + Sync + 'static,
    ) -> SessionTerminals {
        let (session, open) = SessionTerminals::new(
            cwd.into(),
            self.setup.clone(),
            Arc::clone(&self.shared),
            Arc::new(events),
        );
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(open);
        session
    }

    /// Closes the terminals of all sessions, as [`SessionTerminals::close`] does for a single session. When this
    /// returns, all of their processes have ended.
    pub async fn close_all(&self) {
        let sessions = {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *sessions)
        };
        let ends: Vec<_> = sessions
            .iter()
            .filter_map(Weak::upgrade)
            .map(|session| session.close())
            .collect();
        for end in ends {
            end.await;
        }
        // This includes terminals of sessions that were closed before.
        let mut terminals = self.shared.usage.terminal_count.subscribe();
        let _ = terminals.wait_for(|count| *count == 0).await;
    }
}

impl TerminalCounters {
    /// Reserves a terminal that may store this many bytes of output.
    fn reserve(
        &self,
        setup: &TerminalOptions,
        output: usize,
    ) -> Result<TerminalReservation, Error> {
        // Counted first, so that two requests at once do not both get the last slot.
        let room = TerminalReservation {
            usage: Arc::clone(&self.usage),
            output_bytes: output,
        };
        let mut terminals = 0;
        self.usage.terminal_count.send_modify(|count| {
            terminals = *count;
            *count += 1;
        });
        let kept = self.usage.output_bytes.fetch_add(output, Ordering::Relaxed);
        if terminals >= setup.max_terminals {
            return Err(Error::invalid_params(format!(
                "too many terminals: {terminals} open across all sessions; release some first"
            )));
        }
        if kept.saturating_add(output) > setup.max_total_output {
            return Err(Error::invalid_params(format!(
                "terminal output limit reached: {kept} of {} bytes reserved across all sessions; release some terminals, or set an `outputByteLimit` lower than {output}",
                setup.max_total_output
            )));
        }
        Ok(room)
    }
}
