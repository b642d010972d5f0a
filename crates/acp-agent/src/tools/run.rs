//! The `run` tool, which runs a command.

use std::sync::Arc;
use std::time::Duration;

use acp::agent::DisplayTerminal;
use acp::v1::{TerminalExitStatus, ToolKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::tool::{
    CallDescription, DraftSpec, Tool, ToolExecution, ToolFuture, ToolInvocation, ToolOutput,
};
use crate::model::message::ToolStatus;
use crate::permission::action::ToolAction;
use crate::permission::permit::Permit;
use crate::permission::subject::AlwaysSubject;
use crate::reported_call::text_content;
use crate::text::{first_line, to_code_block, truncate_to_head, truncate_to_tail};
use crate::workspace::Workspace;
use crate::workspace::process::{CommandOutput, CommandProcess, ProcessEvents};
use crate::workspace::tool_failure::ToolFailure;

/// The number of bytes to return from the start of the output.
const MAX_HEAD_BYTES: usize = 8 * 1024;

/// The number of bytes to return from the end of the output, which is usually where the result is.
const MAX_TAIL_BYTES: usize = 24 * 1024;

/// The default timeout for a command, in seconds.
const DEFAULT_TIMEOUT_SECS: u32 = 120;

/// The maximum timeout that a call can set, in seconds.
const MAX_TIMEOUT_SECS: u32 = 600;

/// The minimum time between two updates that show the output as text. Each update contains all of the output.
const TEXT_UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// The minimum time between two updates of a display terminal. Without it, a command that prints single characters
/// would cause an update for each of them.
const TERMINAL_UPDATE_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunTool {
    /// Command line for the system shell.
    command: String,
    /// Timeout in seconds, after which the command and all processes it started are killed. Default: 120, maximum: 600.
    timeout: Option<u32>,
}

/// How a command ended.
enum CommandTermination {
    Exited(TerminalExitStatus),
    /// The command was killed after this time.
    TimedOut(Duration),
}

impl Tool for RunTool {
    const NAME: &'static str = "run";

    const DESCRIPTION: &'static str = "\
        Run a command line in the shell, in the working directory, and wait for it to exit. The command receives no input, so use non-interactive options. The timeout is 120 s unless you set `timeout`, up to 600 s. Processes that the command leaves running are killed when it exits. Output over 32 KiB is truncated in the middle. To read, find and change files, use the other tools.";

    const DRAFT: Option<DraftSpec> = Some(DraftSpec {
        kind: ToolKind::Execute,
        title: "Run a command",
        subject_field: "command",
        required_fields: &[],
    });
}

impl ToolInvocation for RunTool {
    fn tool(&self) -> &str {
        Self::NAME
    }

    fn describe(&self, _: &Workspace) -> CallDescription {
        let line = first_line(&self.command);
        let mut about =
            CallDescription::new(format!("Run `{line}`"), ToolKind::Execute, Vec::new());
        if line != self.command {
            // The user must see the whole command before allowing it.
            about
                .content
                .push(text_content(to_code_block(&self.command)));
        }
        about
    }

    fn action(&self, _: &Workspace) -> Option<ToolAction> {
        Some(ToolAction::Run(self.command.clone()))
    }

    fn subject(&self) -> Option<AlwaysSubject> {
        Some(AlwaysSubject::Command(self.command.clone()))
    }

    fn run<'a>(&'a self, execution: &'a mut ToolExecution<'_>, permit: Permit) -> ToolFuture<'a> {
        Box::pin(self.run_command_line(execution, permit))
    }
}

impl RunTool {
    async fn run_command_line(
        &self,
        execution: &mut ToolExecution<'_>,
        permit: Permit,
    ) -> Result<ToolOutput, ToolFailure> {
        let timeout = self.timeout.unwrap_or(DEFAULT_TIMEOUT_SECS);
        if !(1..=MAX_TIMEOUT_SECS).contains(&timeout) {
            let why =
                format!("Invalid `timeout` {timeout}: must be 1 to {MAX_TIMEOUT_SECS} seconds.");
            return Err(ToolFailure::failed(why));
        }
        let timeout = Duration::from_secs(timeout.into());
        let process = CommandProcess::start(execution.workspace, &permit).await?;
        let mut view = OutputView::start(execution, &process).await?;
        let ended =
            match tokio::time::timeout(timeout, follow_process(execution, &process, &mut view))
                .await
            {
                Ok(ended) => ended.map(CommandTermination::Exited),
                Err(_) => {
                    process.kill().await;
                    Ok(CommandTermination::TimedOut(timeout))
                }
            };
        let result = match ended {
            Ok(status) => {
                let printed = execution
                    .workspace
                    .run_unless_cancelled(process.output())
                    .await;
                printed.and_then(|printed| Ok((status, printed?)))
            }
            Err(fault) => Err(fault),
        };
        if let Err(ToolFailure::Stop(acp::Error::Cancelled)) = &result {
            // Show the last output, which then stays visible.
            view.update(execution, &process).await?;
        }
        // Release the terminal even if the turn is cancelled, because everything that the command started must exit
        // before the turn ends.
        process.release().await;
        view.finish().await?;
        let (status, printed) = result?;
        Ok(command_output(execution, &status, &printed))
    }
}

/// How the output of a command is shown to the user.
enum OutputView {
    /// The output is shown in a client terminal.
    Client,
    /// The output is shown in a display terminal.
    Terminal(DisplayTerminal, Arc<ProcessEvents>),
    /// The output is shown as text in the tool call. Each update contains all of the output.
    Text,
}

impl OutputView {
    /// Chooses the best view that the client supports, and makes it the content of the tool call.
    async fn start(
        execution: &mut ToolExecution<'_>,
        process: &CommandProcess,
    ) -> acp::Result<Self> {
        let turn = &execution.workspace.turn;
        let (view, content) = match process.events() {
            None => (Self::Client, process.content()),
            Some(news) if turn.client().supports_display_terminals() => {
                let (call, command) = (execution.handle.id().clone(), news.command());
                let terminal = turn
                    .show_display_terminal(call, &command, Some(turn.cwd()))
                    .await?;
                let content = terminal.as_content();
                (Self::Terminal(terminal, Arc::clone(news)), Some(content))
            }
            Some(_) => (Self::Text, None),
        };
        if let Some(content) = content {
            execution.terminals.push(content.clone());
            execution.handle.set_content(vec![content]).await?;
        }
        Ok(view)
    }

    /// Shows the output that has arrived since the last update.
    async fn update(
        &mut self,
        execution: &ToolExecution<'_>,
        process: &CommandProcess,
    ) -> acp::Result<()> {
        match self {
            Self::Client => Ok(()),
            Self::Terminal(terminal, news) => {
                terminal.append_output(news.take_unshown().as_bytes()).await
            }
            Self::Text => {
                let printed = process.output().await?;
                let content = text_content(to_code_block(truncate_to_tail(
                    &printed.text,
                    MAX_TAIL_BYTES,
                )));
                execution.handle.set_content(vec![content]).await
            }
        }
    }

    /// Returns the minimum time between two updates.
    fn update_interval(&self) -> Duration {
        match self {
            Self::Text => TEXT_UPDATE_INTERVAL,
            _ => TERMINAL_UPDATE_INTERVAL,
        }
    }

    /// Shows the remaining output and the exit status.
    async fn finish(self) -> acp::Result<()> {
        let Self::Terminal(mut terminal, news) = self else {
            return Ok(());
        };
        let rest = news.take_unshown();
        if !rest.is_empty() {
            terminal.append_output(rest.as_bytes()).await?;
        }
        terminal
            .set_exited(news.exit_status().unwrap_or_default())
            .await
    }
}

/// Waits for the command to exit. Meanwhile, shows its output unless the client does so itself.
async fn follow_process(
    execution: &ToolExecution<'_>,
    process: &CommandProcess,
    view: &mut OutputView,
) -> Result<TerminalExitStatus, ToolFailure> {
    let mut exited = std::pin::pin!(process.wait());
    loop {
        tokio::select! {
            biased;
            () = execution.workspace.turn.cancelled() => return Err(ToolFailure::Stop(acp::Error::Cancelled)),
            status = &mut exited => return Ok(status?),
            () = process.wait_for_output() => view.update(execution, process).await?,
        }
        // Output that arrives during this wait is shown immediately after it.
        tokio::select! {
            biased;
            () = execution.workspace.turn.cancelled() => return Err(ToolFailure::Stop(acp::Error::Cancelled)),
            status = &mut exited => return Ok(status?),
            () = tokio::time::sleep(view.update_interval()) => {}
        }
    }
}

fn command_output(
    execution: &ToolExecution<'_>,
    how: &CommandTermination,
    printed: &CommandOutput,
) -> ToolOutput {
    let (kept, truncated) = shorten_output(printed);
    let (ended, status) = match how {
        CommandTermination::Exited(status) => {
            let ended = match (status.exit_code, &status.signal) {
                (Some(code), _) => format!("Exit code {code}."),
                (None, Some(signal)) => format!("Terminated by signal {signal}."),
                (None, None) => "Exited with unknown status.".to_owned(),
            };
            (ended, status.clone())
        }
        CommandTermination::TimedOut(timeout) => {
            let seconds = timeout.as_secs();
            let mut ended = format!(
                "Timed out after {seconds} s. The command and all processes it started were killed."
            );
            if seconds < MAX_TIMEOUT_SECS.into() {
                ended.push_str(&format!(" The maximum `timeout` is {MAX_TIMEOUT_SECS}."));
            }
            (ended, TerminalExitStatus::new())
        }
    };
    let timed_out = matches!(how, CommandTermination::TimedOut(_));
    let success = status.exit_code == Some(0);
    let mut content = execution.terminals.clone();
    if content.is_empty() && !kept.is_empty() {
        content.push(text_content(to_code_block(&kept)));
    }
    if !success || content.is_empty() {
        content.push(text_content(ended.as_str()));
    }
    let data = json!({
        "exitCode": status.exit_code,
        "signal": status.signal,
        "output": kept,
        "truncated": truncated,
        "timedOut": timed_out,
    });
    ToolOutput {
        status: if success {
            ToolStatus::Done
        } else {
            ToolStatus::Failed
        },
        text: format!("{ended}\n{kept}"),
        content: Some(content),
        locations: None,
        images: Vec::new(),
        data,
    }
}

/// Returns the start and the end of the output, and whether anything was omitted between them.
fn shorten_output(printed: &CommandOutput) -> (String, bool) {
    let text = &printed.text;
    if !printed.is_truncated && text.len() <= MAX_HEAD_BYTES + MAX_TAIL_BYTES {
        return (text.clone(), false);
    }
    let end = truncate_to_tail(text, MAX_TAIL_BYTES);
    if !printed.is_truncated {
        let begin = truncate_to_head(text, MAX_HEAD_BYTES);
        let left = text.len() - begin.len() - end.len();
        return (format!("{begin}\n[… {left} bytes omitted …]\n{end}"), true);
    }
    let begin = truncate_to_head(&printed.head, MAX_HEAD_BYTES);
    (format!("{begin}\n[… output omitted …]\n{end}"), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_keeps_its_head_and_tail() {
        let printed = |text: &str, beginning: &str, truncated| CommandOutput {
            text: text.to_owned(),
            head: beginning.to_owned(),
            is_truncated: truncated,
        };
        let short = "a".repeat(MAX_HEAD_BYTES + MAX_TAIL_BYTES);
        assert_eq!(shorten_output(&printed(&short, "", false)), (short, false));
        let long = "a".repeat(MAX_HEAD_BYTES) + &"b".repeat(100) + &"c".repeat(MAX_TAIL_BYTES);
        let (kept, truncated) = shorten_output(&printed(&long, "", false));
        assert!(truncated && kept.starts_with('a') && kept.ends_with('c'));
        assert!(
            kept.contains("a\n[… 100 bytes omitted …]\nc"),
            "{}",
            kept.len()
        );
        let (kept, truncated) = shorten_output(&printed("the end", "the beginning", true));
        assert!(truncated);
        assert_eq!(kept, "the beginning\n[… output omitted …]\nthe end");
    }
}
