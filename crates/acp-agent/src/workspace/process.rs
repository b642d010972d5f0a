//! Runs commands, either in a client terminal or as a process of the agent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp::agent::{ClientTerminal, TerminalCommand};
use acp::v1::{
    CreateTerminalRequest, KillTerminalRequest, ReleaseTerminalRequest, SessionId,
    TerminalExitStatus, TerminalId, TerminalOutputRequest, ToolCallContent,
    WaitForTerminalExitRequest,
};
use acp_host::{HostTerminals, SessionTerminals, TerminalEventKind};
use tokio::sync::Notify;

use super::tool_failure::ToolFailure;
use super::{CANCEL_GRACE_PERIOD, Workspace};
use crate::client_quirks;
use crate::permission::permit::Permit;
use crate::text::{truncate_to_head, truncate_to_tail};

/// The output limit of a client terminal, in bytes. It is high because users may want to scroll back further than a
/// model needs to.
const CLIENT_OUTPUT_LIMIT_BYTES: u64 = 256 * 1024;

/// The number of bytes that the agent keeps from the end of a process's output.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;

/// The number of bytes that the agent keeps from the start of a process's output.
const MAX_HEAD_BYTES: usize = 8 * 1024;

/// The maximum amount of output waiting to be shown, in bytes. If a command prints faster than the client reads, the
/// oldest output is dropped so that the command is not slowed down.
const MAX_UNSHOWN_BYTES: usize = 256 * 1024;

/// A command that has been started. Dropping it kills the command.
pub(crate) enum CommandProcess {
    Client(ClientTerminal),
    Local(LocalProcess),
}

/// A command that runs as a process of the agent.
pub(crate) struct LocalProcess {
    /// A set of terminals with only this process in it, so that dropping the set kills no other process.
    terminals: SessionTerminals,
    session: SessionId,
    terminal: TerminalId,
    events: Arc<ProcessEvents>,
}

/// Events of a process run by the agent that have not been shown yet.
#[derive(Default)]
pub(crate) struct ProcessEvents {
    state: Mutex<PrintedOutput>,
    changed: Notify,
}

#[derive(Default)]
struct PrintedOutput {
    command: String,
    /// The output that has not been taken yet. If there is too much, only its end is kept.
    text: String,
    /// The number of bytes that were dropped before `text`.
    lost_bytes: usize,
    exit: Option<TerminalExitStatus>,
    /// The start of the whole output, including output that was already taken.
    head: String,
}

impl ProcessEvents {
    fn lock_state(&self) -> MutexGuard<'_, PrintedOutput> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_event(&self, event: TerminalEventKind) {
        let mut so_far = self.lock_state();
        match event {
            TerminalEventKind::Started { command, .. } => so_far.command = command,
            TerminalEventKind::Output(text) => {
                let room = MAX_HEAD_BYTES.saturating_sub(so_far.head.len());
                so_far.head.push_str(truncate_to_head(&text, room));
                so_far.text.push_str(&text);
                if so_far.text.len() > MAX_UNSHOWN_BYTES {
                    let cut =
                        so_far.text.len() - truncate_to_tail(&so_far.text, MAX_UNSHOWN_BYTES).len();
                    so_far.text.drain(..cut);
                    so_far.lost_bytes += cut;
                }
                drop(so_far);
                self.changed.notify_one();
            }
            TerminalEventKind::Exited(status) => so_far.exit = Some(status),
            _ => {}
        }
    }

    /// Returns the command line as a user would type it.
    pub(crate) fn command(&self) -> String {
        self.lock_state().command.clone()
    }

    /// Takes the output that the command has printed since the last call.
    pub(crate) fn take_unshown(&self) -> String {
        let mut so_far = self.lock_state();
        let text = std::mem::take(&mut so_far.text);
        match std::mem::take(&mut so_far.lost_bytes) {
            0 => text,
            lost => {
                format!("\n[{lost} bytes of output dropped]\n{text}")
            }
        }
    }

    /// Returns the exit status, if the command has exited.
    pub(crate) fn exit_status(&self) -> Option<TerminalExitStatus> {
        self.lock_state().exit.clone()
    }
}

/// The output of a command, or only its start and end if it is too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandOutput {
    pub(crate) text: String,
    /// The start of the output. Empty if nothing was truncated or the start is unknown.
    pub(crate) head: String,
    pub(crate) is_truncated: bool,
}

/// The shell and its option for running a command line.
pub(crate) const SHELL_AND_OPTION: (&str, &str) = if cfg!(windows) {
    ("cmd", "/C")
} else {
    ("sh", "-c")
};

impl CommandProcess {
    /// Starts the command line that the permit was issued for, in the session's working directory.
    pub(crate) async fn start(workspace: &Workspace, permit: &Permit) -> Result<Self, ToolFailure> {
        workspace.check_cancelled()?;
        let Some(line) = permit.command() else {
            return Err(ToolFailure::failed(
                "Permission denied: this call is not allowed to run commands.",
            ));
        };
        // Only the client knows what its terminals can access, so a command that must be sandboxed runs here.
        if client_quirks::runs_commands(workspace.turn.client()) && !workspace.memory.is_sandboxed()
        {
            start_in_client(workspace, line).await.map(Self::Client)
        } else {
            start_local(workspace, line).await.map(Self::Local)
        }
    }

    /// Returns the content to show in the tool call, if this is a client terminal.
    pub(crate) fn content(&self) -> Option<ToolCallContent> {
        match self {
            Self::Client(terminal) => Some(terminal.as_content()),
            Self::Local(_) => None,
        }
    }

    /// Returns the events of the process, if the agent runs it. The client shows the output of its own terminals.
    pub(crate) fn events(&self) -> Option<&Arc<ProcessEvents>> {
        match self {
            Self::Client(_) => None,
            Self::Local(own) => Some(&own.events),
        }
    }

    /// Waits until the command exits, and returns its exit status.
    pub(crate) async fn wait(&self) -> acp::Result<TerminalExitStatus> {
        match self {
            Self::Client(terminal) => terminal.wait_for_exit().await,
            Self::Local(own) => {
                let request = WaitForTerminalExitRequest::new(&own.session, &own.terminal);
                let exit = own.terminals.wait_for_exit(&request).await?;
                let mut status = TerminalExitStatus::new();
                (status.exit_code, status.signal) = (exit.exit_code, exit.signal);
                Ok(status)
            }
        }
    }

    /// Waits until the command has printed something new.
    pub(crate) async fn wait_for_output(&self) {
        match self {
            Self::Client(_) => std::future::pending().await,
            Self::Local(own) => own.events.changed.notified().await,
        }
    }

    /// Returns the output of the command so far.
    pub(crate) async fn output(&self) -> acp::Result<CommandOutput> {
        let output = match self {
            Self::Client(terminal) => terminal.output().await?,
            Self::Local(own) => {
                let request = TerminalOutputRequest::new(&own.session, &own.terminal);
                own.terminals.output(&request).await?
            }
        };
        let beginning = match self {
            Self::Local(own) if output.truncated => own.events.lock_state().head.clone(),
            _ => String::new(),
        };
        Ok(CommandOutput {
            text: output.output,
            head: beginning,
            is_truncated: output.truncated,
        })
    }

    /// Kills the command and everything it started, and waits until they have exited. The output remains available.
    pub(crate) async fn kill(&self) {
        let killed = async {
            match self {
                Self::Client(terminal) => terminal.kill().await,
                Self::Local(own) => {
                    let request = KillTerminalRequest::new(&own.session, &own.terminal);
                    let killed = own.terminals.kill(&request).await;
                    killed.map(drop).map_err(acp::Error::Rpc)
                }
            }
        };
        // Release the terminal in any case.
        match tokio::time::timeout(CANCEL_GRACE_PERIOD, killed).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot kill a command"),
            Err(_) => tracing::warn!("a command is still being killed"),
        }
    }

    /// Kills the command and everything it started, waits until they have exited, and releases the terminal.
    pub(crate) async fn release(self) {
        let released = async {
            match self {
                Self::Client(terminal) => terminal.release().await,
                Self::Local(own) => {
                    let request = ReleaseTerminalRequest::new(&own.session, &own.terminal);
                    own.terminals
                        .release(&request)
                        .await
                        .map(drop)
                        .map_err(acp::Error::Rpc)
                }
            }
        };
        // A client that does not respond must not block the turn forever.
        match tokio::time::timeout(CANCEL_GRACE_PERIOD, released).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot release a terminal"),
            Err(_) => tracing::warn!("a terminal is still being released"),
        }
    }
}

async fn start_in_client(workspace: &Workspace, line: &str) -> Result<ClientTerminal, ToolFailure> {
    let (shell, option) = SHELL_AND_OPTION;
    let command = TerminalCommand::new(shell, [option, line])
        .cwd(workspace.turn.cwd())
        .output_byte_limit(CLIENT_OUTPUT_LIMIT_BYTES);
    let turn = workspace.turn.clone();
    // Runs in a task, because a terminal whose id arrives after a cancel must still be released.
    let mut creating = tokio::spawn(async move { turn.create_terminal(command).await });
    let created = tokio::select! {
        biased;
        () = workspace.turn.cancelled() => {
            if let Ok(Ok(Ok(terminal))) = tokio::time::timeout(CANCEL_GRACE_PERIOD, &mut creating).await {
                CommandProcess::Client(terminal).release().await;
            }
            return Err(ToolFailure::Stop(acp::Error::Cancelled));
        }
        created = &mut creating => created,
    };
    Ok(created.map_err(|e| ToolFailure::failed(format!("cannot create the terminal: {e}")))??)
}

async fn start_local(workspace: &Workspace, line: &str) -> Result<LocalProcess, ToolFailure> {
    // Fails with the reason if this process cannot access the session's directory.
    let own = workspace.access()?;
    let news = Arc::<ProcessEvents>::default();
    let recorder = Arc::clone(&news);
    let mut terminals = HostTerminals::new().environment(own.environment.clone());
    if let Some(sandbox) = &own.sandbox {
        terminals = terminals.sandbox(sandbox.clone());
    }
    let session = workspace.turn.id().clone();
    let terminals = terminals.session(workspace.turn.cwd(), move |event| {
        recorder.record_event(event.kind)
    });
    let (shell, option) = SHELL_AND_OPTION;
    let request = CreateTerminalRequest::new(&session, shell)
        .args(vec![option.to_owned(), line.to_owned()])
        .output_byte_limit(MAX_OUTPUT_BYTES);
    let created = terminals.create(&request).await.map_err(acp::Error::Rpc)?;
    Ok(LocalProcess {
        terminals,
        session,
        terminal: created.terminal_id,
        events: news,
    })
}
