//! A command that runs: in a terminal of the client's, or as a process of the agent's own.

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
use super::{GRACE, Workspace};
use crate::client_quirks;
use crate::permission::permit::Permit;
use crate::text::{head, tail};

/// How much output a client is asked to keep, in bytes. It shows the output to a person, who wants to
/// scroll back further than a model does.
const CLIENT_KEEPS: u64 = 256 * 1024;

/// How much output the agent keeps of a process of its own, in bytes: of its end, and of its beginning.
const OWN_KEEPS: u64 = 64 * 1024;
const BEGINNING: usize = 8 * 1024;

/// How much output waits to be shown at most, in bytes. A command that prints faster than the client reads
/// is not slowed down: what it printed first is not shown.
const NEWS_KEPT: usize = 256 * 1024;

/// A command that was started. Dropping it ends the command.
pub(crate) enum CommandProcess {
    Client(ClientTerminal),
    Local(LocalProcess),
}

/// A process of the agent's.
pub(crate) struct LocalProcess {
    /// For this process alone, so that dropping it ends the process and nothing else.
    terminals: SessionTerminals,
    session: SessionId,
    terminal: TerminalId,
    events: Arc<ProcessNews>,
}

/// What happens in a process of the agent's, for whoever shows it.
#[derive(Default)]
pub(crate) struct ProcessNews {
    state: Mutex<PrintedOutput>,
    changed: Notify,
}

#[derive(Default)]
struct PrintedOutput {
    command: String,
    /// What was printed and has not been taken: the end of it, if it was much.
    text: String,
    /// How many bytes in front of that are lost.
    lost_bytes: usize,
    exit: Option<TerminalExitStatus>,
    /// What was printed first, taken or not.
    head: String,
}

impl ProcessNews {
    fn lock_state(&self) -> MutexGuard<'_, PrintedOutput> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_event(&self, event: TerminalEventKind) {
        let mut so_far = self.lock_state();
        match event {
            TerminalEventKind::Started { command, .. } => so_far.command = command,
            TerminalEventKind::Output(text) => {
                let room = BEGINNING.saturating_sub(so_far.head.len());
                so_far.head.push_str(head(&text, room));
                so_far.text.push_str(&text);
                if so_far.text.len() > NEWS_KEPT {
                    let cut = so_far.text.len() - tail(&so_far.text, NEWS_KEPT).len();
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

    /// The command, as a person would write it.
    pub(crate) fn command(&self) -> String {
        self.lock_state().command.clone()
    }

    /// Takes what was printed since this was last called.
    pub(crate) fn take(&self) -> String {
        let mut so_far = self.lock_state();
        let text = std::mem::take(&mut so_far.text);
        match std::mem::take(&mut so_far.lost_bytes) {
            0 => text,
            lost => {
                format!("\n[{lost} bytes were printed faster than they could be shown]\n{text}")
            }
        }
    }

    /// How the command ended, if it has.
    pub(crate) fn exit(&self) -> Option<TerminalExitStatus> {
        self.lock_state().exit.clone()
    }
}

/// What a command has printed: the end of it, if it was much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandOutput {
    pub(crate) text: String,
    /// What was printed first, where more was printed than is kept and the beginning is known.
    pub(crate) head: String,
    pub(crate) is_truncated: bool,
}

/// The shell, and what makes it run a line.
const SHELL: (&str, &str) = if cfg!(windows) {
    ("cmd", "/C")
} else {
    ("sh", "-c")
};

impl CommandProcess {
    /// Starts the command line that may be run, in the session's working directory.
    pub(crate) async fn start(workspace: &Workspace, permit: &Permit) -> Result<Self, ToolFailure> {
        workspace.check_cancelled()?;
        let Some(line) = permit.command() else {
            return Err(ToolFailure::failed(
                "There is no permission to run a command.",
            ));
        };
        // What the client's terminals may do, it alone knows.
        if client_quirks::runs_commands(workspace.turn.client()) && !workspace.memory.is_sandboxed()
        {
            start_at_client(workspace, line).await.map(Self::Client)
        } else {
            start_local(workspace, line).await.map(Self::Local)
        }
    }

    /// It as content of a tool call, if it is a terminal of the client's.
    pub(crate) fn content(&self) -> Option<ToolCallContent> {
        match self {
            Self::Client(terminal) => Some(terminal.as_content()),
            Self::Local(_) => None,
        }
    }

    /// What happens in it, if it is the agent's own. A client shows by itself what happens in its
    /// terminals.
    pub(crate) fn news(&self) -> Option<&Arc<ProcessNews>> {
        match self {
            Self::Client(_) => None,
            Self::Local(own) => Some(&own.events),
        }
    }

    /// Waits for its end.
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

    /// Waits until it has printed more.
    pub(crate) async fn wait_for_output(&self) {
        match self {
            Self::Client(_) => std::future::pending().await,
            Self::Local(own) => own.events.changed.notified().await,
        }
    }

    /// What it has printed.
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

    /// Ends it, with all that it started, and waits until that is done. What it has printed stays.
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
        // It is released in any case.
        match tokio::time::timeout(GRACE, killed).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "a command was not killed"),
            Err(_) => tracing::warn!("a command is still being killed"),
        }
    }

    /// Ends it, with all that it started, and waits until that is done.
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
        // A client that does not answer keeps nobody waiting for ever.
        match tokio::time::timeout(GRACE, released).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "a terminal was not released"),
            Err(_) => tracing::warn!("a terminal is still being released"),
        }
    }
}

async fn start_at_client(workspace: &Workspace, line: &str) -> Result<ClientTerminal, ToolFailure> {
    let (shell, option) = SHELL;
    let command = TerminalCommand::new(shell, [option, line])
        .cwd(workspace.turn.cwd())
        .output_byte_limit(CLIENT_KEEPS);
    let turn = workspace.turn.clone();
    // On its own, since a terminal whose id comes too late must be released all the same.
    let mut creating = tokio::spawn(async move { turn.create_terminal(command).await });
    let created = tokio::select! {
        biased;
        () = workspace.turn.cancelled() => {
            if let Ok(Ok(Ok(terminal))) = tokio::time::timeout(GRACE, &mut creating).await {
                CommandProcess::Client(terminal).release().await;
            }
            return Err(ToolFailure::Stop(acp::Error::Cancelled));
        }
        created = &mut creating => created,
    };
    Ok(
        created
            .map_err(|e| ToolFailure::failed(format!("the terminal was not created: {e}")))??,
    )
}

async fn start_local(workspace: &Workspace, line: &str) -> Result<LocalProcess, ToolFailure> {
    // Says why if the session's directory is not here.
    let own = workspace.access()?;
    let news = Arc::<ProcessNews>::default();
    let told = Arc::clone(&news);
    let mut terminals = HostTerminals::new();
    if let Some(sandbox) = &own.sandbox {
        terminals = terminals.sandboxed(sandbox.clone());
    }
    let session = workspace.turn.id().clone();
    let terminals = terminals.session(workspace.turn.cwd(), move |event| {
        told.record_event(event.kind)
    });
    let (shell, option) = SHELL;
    let request = CreateTerminalRequest::new(&session, shell)
        .args(vec![option.to_owned(), line.to_owned()])
        .output_byte_limit(OWN_KEEPS);
    let created = terminals.create(&request).await.map_err(acp::Error::Rpc)?;
    Ok(LocalProcess {
        terminals,
        session,
        terminal: created.terminal_id,
        events: news,
    })
}
