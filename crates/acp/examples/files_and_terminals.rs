//! An agent that reads a file and runs a command through its client, and a minimal client that allows both.
//!
//! ```sh
//! cargo run -p acp-sdk --example files_and_terminals
//! ```
//!
//! This client allows everything. The crate `acp-host` provides what a real client should use: files confined to a
//! directory, commands that end with all of their children, and output as it is printed.

// Clippy warns about printing, which is this program's purpose.
#![allow(clippy::print_stdout)]

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use acp::agent::{Agent, OpenedSession, Prompt, Session, SessionSetup, TerminalCommand, Turn};
use acp::client::{Client, ReadTextFile, Terminals, Update, UpdateContext, connect};
use acp::jsonrpc::Error;
use acp::{Result, transport, v1};
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::watch;

struct FilesAndTerminalsAgent;

impl Agent for FilesAndTerminalsAgent {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<v1::StopReason> {
        let path = format!("{}/Cargo.toml", turn.cwd());
        let first = turn.read_text_file(&path, Some(1), Some(1)).await?;
        turn.send_message(format!("The first line is {first:?}."))
            .await?;
        let version = TerminalCommand::new("cargo", ["--version"]);
        let terminal = turn.create_terminal(version).await?;
        let call =
            v1::ToolCall::new("call_1", "Find the version of cargo").kind(v1::ToolKind::Execute);
        // In the client, the terminal is part of the tool call, which shows its output.
        let call = turn
            .report_tool_call(call.content([terminal.as_content()]))
            .await?;
        let exit = terminal.wait_for_exit().await?;
        let printed = terminal.output().await?.output;
        call.complete().await?;
        let code = exit.exit_code;
        turn.send_message(format!("{printed:?}, exit code {code:?}."))
            .await?;
        Ok(v1::StopReason::EndTurn)
        // The terminal is released here.
    }
}

/// The maximum number of bytes of a command's output to keep.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;

/// A host that serves local files and runs terminal commands itself.
#[derive(Default)]
struct LocalHost {
    commands: Mutex<HashMap<v1::TerminalId, RunningCommand>>,
    next: AtomicU64,
}

/// A running command: the task that waits for it, and its outcome once it has exited.
struct RunningCommand {
    done: watch::Receiver<Option<CommandOutcome>>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Clone)]
struct CommandOutcome {
    printed: String,
    exit_code: Option<u32>,
}

impl LocalHost {
    fn command<T>(
        &self,
        id: &v1::TerminalId,
        look: impl FnOnce(&RunningCommand) -> T,
    ) -> Result<T> {
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        let found = commands.get(id).map(look);
        found.ok_or_else(|| Error::resource_not_found(format!("terminal {id}")).into())
    }
}

impl ReadTextFile<()> for LocalHost {
    async fn read(
        &self,
        (): &(),
        request: v1::ReadTextFileRequest,
    ) -> Result<v1::ReadTextFileResponse> {
        let text = tokio::fs::read_to_string(&request.path).await;
        let text = text.map_err(|_| Error::resource_not_found(&request.path))?;
        // Line numbers start at 1.
        let first = request.line.unwrap_or(1).saturating_sub(1) as usize;
        let lines = request.limit.map_or(usize::MAX, |limit| limit as usize);
        let wanted = text.split_inclusive('\n').skip(first).take(lines);
        Ok(v1::ReadTextFileResponse::new(wanted.collect::<String>()))
    }
}

impl Terminals<()> for LocalHost {
    async fn create(
        &self,
        (): &(),
        r: v1::CreateTerminalRequest,
    ) -> Result<v1::CreateTerminalResponse> {
        let mut command = Command::new(&r.command);
        command
            .args(&r.args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command.envs(r.env.iter().map(|var| (&var.name, &var.value)));
        command.current_dir(r.cwd.as_deref().unwrap_or("."));
        let started = command.kill_on_drop(true).spawn();
        let mut child = started.map_err(|e| Error::internal(e.to_string()))?;
        let (sender, done) = watch::channel(None);
        let task = tokio::spawn(async move {
            let mut printed = Vec::new();
            if let Some(stdout) = child.stdout.take() {
                let _ = stdout
                    .take(MAX_OUTPUT_BYTES)
                    .read_to_end(&mut printed)
                    .await;
            }
            let status = child.wait().await.ok();
            let code = status.and_then(|status| status.code());
            sender.send_replace(Some(CommandOutcome {
                printed: String::from_utf8_lossy(&printed).into_owned(),
                exit_code: code.and_then(|code| code.try_into().ok()),
            }));
        });
        let id = v1::TerminalId::from(format!("term_{}", self.next.fetch_add(1, Relaxed)));
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        commands.insert(id.clone(), RunningCommand { done, task });
        Ok(v1::CreateTerminalResponse::new(id))
    }

    async fn output(
        &self,
        (): &(),
        r: v1::TerminalOutputRequest,
    ) -> Result<v1::TerminalOutputResponse> {
        let done = self.command(&r.terminal_id, |running| running.done.borrow().clone())?;
        let printed = done.map(|done| done.printed).unwrap_or_default();
        Ok(v1::TerminalOutputResponse::new(printed, false))
    }

    async fn wait_for_exit(
        &self,
        (): &(),
        r: v1::WaitForTerminalExitRequest,
    ) -> Result<v1::WaitForTerminalExitResponse> {
        let mut done = self.command(&r.terminal_id, |running| running.done.clone())?;
        let mut exit = v1::WaitForTerminalExitResponse::new();
        // Waiting fails if the command was killed. There is no exit code then.
        if let Ok(done) = done.wait_for(Option::is_some).await {
            exit.exit_code = done.as_ref().and_then(|done| done.exit_code);
        }
        Ok(exit)
    }

    async fn kill(&self, (): &(), r: v1::KillTerminalRequest) -> Result<v1::KillTerminalResponse> {
        self.command(&r.terminal_id, |running| running.task.abort())?;
        Ok(v1::KillTerminalResponse::new())
    }

    async fn release(
        &self,
        (): &(),
        r: v1::ReleaseTerminalRequest,
    ) -> Result<v1::ReleaseTerminalResponse> {
        self.command(&r.terminal_id, |running| running.task.abort())?;
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        commands.remove(&r.terminal_id);
        Ok(v1::ReleaseTerminalResponse::new())
    }
}

#[derive(Default)]
struct FilesAndTerminalsClient {
    lender: LocalHost,
}

impl Client for FilesAndTerminalsClient {
    type State = ();

    fn read_text_file(&self) -> Option<&impl ReadTextFile<()>> {
        Some(&self.lender)
    }

    fn terminals(&self) -> Option<&impl Terminals<()>> {
        Some(&self.lender)
    }

    async fn update(&self, (): &(), _: &UpdateContext, update: &Update) {
        if let Some(text) = update.message_text() {
            println!("{text}");
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (client_transport, agent_transport) = transport::memory();
    let (_, driver) =
        acp::agent::start(agent_transport, FilesAndTerminalsAgent, acp::Options::new());
    tokio::spawn(driver);
    let (handshake, driver) = connect(client_transport, FilesAndTerminalsClient::default());
    tokio::spawn(driver);
    let agent = handshake.await?;
    let session = agent.new_session(env!("CARGO_MANIFEST_DIR")).await?;
    println!("({})", session.prompt("Look at this project.").await?);
    Ok(())
}
