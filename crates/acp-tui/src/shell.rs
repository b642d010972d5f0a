//! Runs a command that the user has typed after `!`, and shows it in the conversation.

use std::path::Path;

use acp::ThreadHandle;
use acp::v1::{
    CreateTerminalRequest, KillTerminalRequest, SessionUpdate, TerminalExitStatus, TerminalId,
    TerminalOutputRequest, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolKind,
    WaitForTerminalExitRequest,
};
use acp_host::{
    Environment, HostTerminals, SessionTerminals, TerminalEventKind, show_terminal_event,
};
use tokio::sync::oneshot;

use crate::export::fenced_block;

/// The maximum amount of a command's output that goes to the agent, in bytes. The end is the most interesting part.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;

/// A command to run.
pub(crate) struct ShellTask {
    pub(crate) command: String,
    /// The id of the tool call and of the terminal that show the command.
    pub(crate) id: String,
    pub(crate) thread: ThreadHandle,
    /// The command is killed when the sender is dropped.
    pub(crate) stop: oneshot::Receiver<()>,
}

/// The output of a command that has exited.
#[derive(Debug)]
pub(crate) struct ShellOutput {
    pub(crate) command: String,
    pub(crate) output: String,
    /// Whether the start of the output is missing.
    is_truncated: bool,
    status: TerminalExitStatus,
}

impl ShellOutput {
    /// Returns the text for the agent.
    pub(crate) fn to_prompt_text(&self) -> String {
        let exit = match (self.status.exit_code, &self.status.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("terminated by {signal}"),
            (None, None) => "ended".to_owned(),
        };
        let note = match self.is_truncated {
            true => "; only the end of the output",
            false => "",
        };
        let shown = format!("$ {}\n{}", self.command, self.output.trim_end_matches('\n'));
        format!(
            "I ran this command ({exit}{note}):\n\n{}\n",
            fenced_block("", &shown)
        )
    }
}

impl ShellTask {
    /// Runs the command in the user's shell, without input, and waits until it exits or is stopped.
    ///
    /// # Errors
    /// The shell cannot be started.
    pub(crate) async fn run(mut self, cwd: &Path) -> Result<ShellOutput, String> {
        self.show_started();
        let result = self.run_in_terminal(cwd).await;
        let status = match &result {
            Ok(output) if output.status.exit_code == Some(0) => ToolCallStatus::Completed,
            _ => ToolCallStatus::Failed,
        };
        self.show_ended(status);
        result.map_err(|e| e.message)
    }

    async fn run_in_terminal(&mut self, cwd: &Path) -> Result<ShellOutput, acp::jsonrpc::Error> {
        // The user runs the command, so it gets the user's environment, and no sandbox.
        let terminals = HostTerminals::new().environment(Environment::inherit());
        let session = self.open_terminals(&terminals, cwd);
        let (shell, option) = user_shell();
        let mut request = CreateTerminalRequest::new("", shell);
        request.args = vec![option.to_owned(), self.command.clone()];
        request.output_byte_limit = Some(MAX_OUTPUT_BYTES);
        let terminal = session.create(&request).await?.terminal_id;
        let wait = WaitForTerminalExitRequest::new("", &terminal);
        tokio::select! {
            exited = session.wait_for_exit(&wait) => exited?,
            _ = &mut self.stop => {
                session.kill(&KillTerminalRequest::new("", &terminal)).await?;
                session.wait_for_exit(&wait).await?
            }
        };
        let read = session
            .output(&TerminalOutputRequest::new("", &terminal))
            .await?;
        // Ends what the command has left running.
        session.close().await;
        Ok(ShellOutput {
            command: self.command.clone(),
            output: acp_host::terminal_text::clean_text(&read.output),
            is_truncated: read.truncated,
            status: read.exit_status.unwrap_or_default(),
        })
    }

    /// Opens terminals whose events are shown in the thread.
    fn open_terminals(&self, terminals: &HostTerminals, cwd: &Path) -> SessionTerminals {
        let (thread, command) = (self.thread.clone(), self.command.clone());
        let id = TerminalId::from(self.id.as_str());
        terminals.session(cwd, move |mut event| {
            event.terminal_id = id.clone();
            if let TerminalEventKind::Started { command: shown, .. } = &mut event.kind {
                // What the user has typed, and not how it is passed to the shell.
                shown.clone_from(&command);
            }
            show_terminal_event(&thread, &event);
        })
    }

    fn show_started(&self) {
        let mut call = ToolCall::new(self.id.as_str(), format!("!{}", self.command));
        call.kind = ToolKind::Execute;
        call.status = ToolCallStatus::InProgress;
        call.content = vec![ToolCallContent::from(TerminalId::from(self.id.as_str()))];
        let update = SessionUpdate::ToolCall(call.into());
        self.thread.change(|thread| thread.apply(&update.into()));
    }

    fn show_ended(&self, status: ToolCallStatus) {
        let mut update = ToolCallUpdate::new(self.id.as_str());
        update.status = Some(status);
        let update = SessionUpdate::ToolCallUpdate(update.into());
        self.thread.change(|thread| thread.apply(&update.into()));
    }
}

/// Returns the user's shell, and the option that precedes a command.
fn user_shell() -> (String, &'static str) {
    #[cfg(unix)]
    {
        let shell = std::env::var("SHELL")
            .ok()
            .filter(|shell| !shell.is_empty());
        (shell.unwrap_or_else(|| "/bin/sh".to_owned()), "-c")
    }
    #[cfg(not(unix))]
    {
        let shell = std::env::var("COMSPEC")
            .ok()
            .filter(|shell| !shell.is_empty());
        (shell.unwrap_or_else(|| "cmd.exe".to_owned()), "/C")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_cannot_end_its_code_block() {
        let output = ShellOutput {
            command: "cat notes.md".to_owned(),
            output: "one\n````\ntwo\n".to_owned(),
            is_truncated: true,
            status: TerminalExitStatus::new().exit_code(0_u32),
        };
        assert_eq!(
            output.to_prompt_text(),
            "I ran this command (exit code 0; only the end of the output):\n\n`````\n$ cat notes.md\none\n````\ntwo\n`````\n"
        );
    }
}
