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

/// The default limit on the stored output of a terminal, in bytes.
const DEFAULT_OUTPUT_LIMIT_BYTES: usize = 1024 * 1024;

/// The maximum limit that a request can set on the stored output of a terminal, in bytes.
const MAX_OUTPUT_LIMIT_BYTES: usize = 8 * 1024 * 1024;

/// The maximum number of terminals in a session.
const MAX_TERMINALS_PER_SESSION: usize = 64;

/// The maximum number of terminals in all sessions of a connection.
const MAX_TERMINALS: usize = 256;

/// The maximum sum of the output limits of all terminals in a connection, in bytes.
const MAX_TOTAL_OUTPUT_BYTES: usize = 64 * 1024 * 1024;

/// An event in a client terminal, to show to the user.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TerminalEvent {
    /// The id of the terminal.
    pub terminal_id: TerminalId,
    /// The kind of event, with its data.
    pub kind: TerminalEventKind,
}

/// The kind of a terminal event. `Started` comes first and `Released` last. Output from processes that the command left
/// running may come after `Exited`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TerminalEventKind {
    /// The command has started.
    Started {
        /// The command with its arguments, as a user would type it.
        command: String,
        /// The working directory of the command.
        cwd: PathBuf,
    },
    /// The command's output, in whole characters, with U+FFFD in place of invalid UTF-8. All output is reported, even
    /// if [`SessionTerminals::output`] stores only part of it.
    Output(String),
    /// The command has exited, and all of its own output has been reported.
    Exited(TerminalExitStatus),
    /// The terminal has been released, and all of its processes have ended. Its output should remain visible.
    Released,
}

/// The terminals of a connection: a [`SessionTerminals`] for each of its sessions.
///
/// Each command leads its own process group and has no controlling terminal. Its standard input is empty. Its standard
/// output and error are one pipe, so that both arrive in the order in which they were printed. Killing a command kills
/// everything it started, including processes that left its group (on Linux, where they can be found).
#[derive(Default)]
pub struct HostTerminals {
    setup: TerminalOptions,
    shared: Arc<TerminalCounters>,
    /// The terminals of open sessions, and of closed ones that have not been removed from the list yet.
    sessions: Mutex<Vec<Weak<OpenTerminals>>>,
}

/// The options and limits for running commands.
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

/// The resources that all terminals of a connection use in total.
#[derive(Debug, Default)]
struct TerminalUsage {
    terminal_count: watch::Sender<usize>,
    /// The number of bytes of output that all terminals may store.
    output_bytes: AtomicUsize,
}

/// A reservation for a terminal. It exists from before the command starts until all of the command's processes have
/// ended.
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
    /// Creates the set of terminals of a connection, which is initially empty.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limit on stored output for requests that do not set one, in bytes. The default is 1 MiB.
    #[must_use]
    pub fn default_output_limit(mut self, bytes: usize) -> Self {
        self.setup.default_output = bytes;
        self
    }

    /// Sets the maximum limit on stored output that a request can set, in bytes. The default is 8 MiB.
    #[must_use]
    pub fn max_output_limit(mut self, bytes: usize) -> Self {
        self.setup.max_output = bytes;
        self
    }

    /// Sets the number of terminals that a session may have before it must release some. The default is 64.
    #[must_use]
    pub fn max_per_session(mut self, terminals: usize) -> Self {
        self.setup.max_per_session = terminals;
        self
    }

    /// Sets the total number of terminals that all sessions may have. The default is 256. A released terminal counts
    /// until its processes have ended.
    #[must_use]
    pub fn max_terminals(mut self, terminals: usize) -> Self {
        self.setup.max_terminals = terminals;
        self
    }

    /// Sets the total amount of output that all terminals may store, in bytes. The default is 64 MiB. Each terminal
    /// counts with its limit rather than its actual output.
    #[must_use]
    pub fn max_total_output(mut self, bytes: usize) -> Self {
        self.setup.max_total_output = bytes;
        self
    }

    /// Runs the commands of all terminals in a sandbox.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.setup.sandbox = Some(sandbox);
        self
    }

    /// Sets the base environment of commands, to which a request can add variables. By default, it contains the
    /// variables that the platform needs.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.setup.environment = environment;
        self
    }

    /// Accepts a change to this file, so that it is not undone when a command ends. See [`Sandbox::accept_change`].
    pub async fn accept_change(&self, file: PathBuf) {
        if let Some(sandbox) = self.setup.sandbox.clone() {
            let accepted = tokio::task::spawn_blocking(move || sandbox.accept_change(&file));
            let _ = accepted.await;
        }
    }

    /// Creates the terminals of a session. `cwd`, an absolute path, is the default working directory. `events` is
    /// called with each event from a task, and must not block.
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

    /// Closes the terminals of all sessions, in the same way as [`SessionTerminals::close`] closes those of one
    /// session. When this returns, the processes of all terminals have ended.
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
    /// Reserves a terminal that may store `output` bytes of output.
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
