//! Commands that an agent runs: the specification's page "Terminals".

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

/// How much output is kept where the request does not say, in bytes.
const DEFAULT_OUTPUT: usize = 1024 * 1024;

/// The most output that is kept, whatever the request says, in bytes.
const MAX_OUTPUT: usize = 8 * 1024 * 1024;

/// How many terminals a session may have at the same time.
const MAX_PER_SESSION: usize = 64;

/// How many terminals there may be at the same time, and how much output of theirs is kept, in bytes.
const MAX_TERMINALS: usize = 256;
const MAX_TOTAL_OUTPUT: usize = 64 * 1024 * 1024;

/// What happens in a terminal, for those who show it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TerminalEvent {
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
    /// whatever is kept for [`SessionTerminals::output`].
    Output(String),
    /// It ended, and all that it printed itself has been reported.
    Exited(TerminalExitStatus),
    /// The terminal is gone, with all of its processes. What was shown of it should stay.
    Released,
}

/// The terminals of a connection: a [`SessionTerminals`] for each of its sessions.
///
/// Each command leads its own process group and has no controlling terminal; its standard input is
/// empty, and its standard output and error are one pipe, so that both arrive in the order they were
/// printed in. Ending a command ends all that it has started, also what has left its group (on Linux, and
/// where it can be seen).
#[derive(Default)]
pub struct HostTerminals {
    setup: TerminalOptions,
    shared: Arc<TerminalCounters>,
    /// Those of sessions that are open, and some that are not any more.
    sessions: Mutex<Vec<Weak<OpenTerminals>>>,
}

/// How commands run, and how much they may take.
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
            default_output: DEFAULT_OUTPUT,
            max_output: MAX_OUTPUT,
            max_per_session: MAX_PER_SESSION,
            max_terminals: MAX_TERMINALS,
            max_total_output: MAX_TOTAL_OUTPUT,
            environment: Environment::new(),
            sandbox: None,
        }
    }
}

/// What all terminals of a connection have in common.
#[derive(Debug, Default)]
struct TerminalCounters {
    usage: Arc<TerminalUsage>,
    /// How many terminals there have been; their ids are never used again.
    created_count: AtomicU64,
}

/// What all terminals take together.
#[derive(Debug, Default)]
struct TerminalUsage {
    terminal_count: watch::Sender<usize>,
    /// How much output they may keep, in bytes.
    output_bytes: AtomicUsize,
}

/// Room for a terminal, from before its command starts until its processes are gone.
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
    /// No terminals yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How much output is kept where a request does not say, in bytes; 1 MiB if it is not set.
    #[must_use]
    pub fn default_output_limit(mut self, bytes: usize) -> Self {
        self.setup.default_output = bytes;
        self
    }

    /// The most output that is kept, whatever a request says, in bytes; 8 MiB if it is not set.
    #[must_use]
    pub fn max_output_limit(mut self, bytes: usize) -> Self {
        self.setup.max_output = bytes;
        self
    }

    /// How many terminals a session may have before it must release some; 64 if it is not set.
    #[must_use]
    pub fn max_per_session(mut self, terminals: usize) -> Self {
        self.setup.max_per_session = terminals;
        self
    }

    /// How many terminals all sessions may have together; 256 if it is not set. One that was released counts until its
    /// processes are gone.
    #[must_use]
    pub fn max_terminals(mut self, terminals: usize) -> Self {
        self.setup.max_terminals = terminals;
        self
    }

    /// How much output all terminals may keep together, in bytes; 64 MiB if it is not set. Each counts with all that it
    /// may keep.
    #[must_use]
    pub fn max_total_output(mut self, bytes: usize) -> Self {
        self.setup.max_total_output = bytes;
        self
    }

    /// Runs all commands in a sandbox.
    #[must_use]
    pub fn sandboxed(mut self, sandbox: Sandbox) -> Self {
        self.setup.sandbox = Some(sandbox);
        self
    }

    /// The environment of commands, to which a request adds; what the platform needs if it is not set.
    /// What commands print, the agent reads.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.setup.environment = environment;
        self
    }

    /// Says that a change to this file was allowed, so that no command's end undoes it; see [`Sandbox::accept`].
    pub async fn accept(&self, file: PathBuf) {
        if let Some(sandbox) = self.setup.sandbox.clone() {
            let accepted = tokio::task::spawn_blocking(move || sandbox.accept(&file));
            let _ = accepted.await;
        }
    }

    /// The terminals of a session. `cwd`, an absolute path, is where commands run that do not say where. `events` is told
    /// what happens in them; it is called from tasks and must not block.
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

    /// Ends the terminals of all sessions, as [`SessionTerminals::close`] does those of one. When it returns, the processes
    /// of all terminals that there were are gone.
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
        // Also of sessions that were closed before.
        let mut terminals = self.shared.usage.terminal_count.subscribe();
        let _ = terminals.wait_for(|count| *count == 0).await;
    }
}

impl TerminalCounters {
    /// Room for a terminal that keeps so much output.
    fn reserve(
        &self,
        setup: &TerminalOptions,
        output: usize,
    ) -> Result<TerminalReservation, Error> {
        // Counted first, so that two at once do not both find the last place.
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
                "too many terminals: {terminals} in all sessions; release some first"
            )));
        }
        if kept.saturating_add(output) > setup.max_total_output {
            return Err(Error::invalid_params(format!(
                "terminal output limit reached: {kept} of {} bytes reserved in all sessions; release some terminals, or set an `outputByteLimit` lower than {output}",
                setup.max_total_output
            )));
        }
        Ok(room)
    }
}
