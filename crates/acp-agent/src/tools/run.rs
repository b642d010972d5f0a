//! Running a command.

use acp::v1::{TerminalExitStatus, ToolKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{About, Doing, Output, fenced, tail, text};
use crate::model::ToolStatus;
use crate::permission::one_line;
use crate::workspace::{Fault, Printed, Process, REPORT_EVERY};

/// How much of what was printed is given back, in bytes: the end of it.
const MOST: usize = 64 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    /// The command line, for the system's shell.
    pub(crate) command: String,
}

impl Run {
    pub(super) fn about(&self) -> About {
        About::new(
            format!("Run `{}`", one_line(&self.command)),
            ToolKind::Execute,
            Vec::new(),
        )
    }

    pub(super) async fn run(&self, doing: &mut Doing<'_>) -> Result<Output, Fault> {
        let process = Process::start(doing.workspace, &self.command).await?;
        if let Some(terminal) = process.content() {
            doing.terminals.push(terminal.clone());
            doing.handle.content(vec![terminal]).await?;
        }
        let ended = follow(doing, &process).await;
        let result = match ended {
            Ok(status) => {
                let printed = doing.workspace.unless_cancelled(process.printed()).await;
                printed.and_then(|printed| Ok((status, printed?)))
            }
            Err(fault) => Err(fault),
        };
        // Also when the turn is cancelled: what the command started must be gone when the turn is.
        process.release().await;
        let (status, printed) = result?;
        Ok(output(doing, &status, printed))
    }
}

/// Waits for the end, and shows what is printed until then where the client does not.
async fn follow(doing: &Doing<'_>, process: &Process) -> Result<TerminalExitStatus, Fault> {
    let mut exited = std::pin::pin!(process.exited());
    loop {
        tokio::select! {
            biased;
            () = doing.workspace.turn.cancelled() => return Err(Fault::Stop(acp::Error::Cancelled)),
            status = &mut exited => return Ok(status?),
            () = process.prints() => {
                let printed = process.printed().await?;
                doing.handle.content(vec![text(fenced(tail(&printed.text, MOST)))]).await?;
            }
        }
        // What is printed meanwhile is shown at once afterwards.
        tokio::select! {
            biased;
            () = doing.workspace.turn.cancelled() => return Err(Fault::Stop(acp::Error::Cancelled)),
            status = &mut exited => return Ok(status?),
            () = tokio::time::sleep(REPORT_EVERY) => {}
        }
    }
}

fn output(doing: &Doing<'_>, status: &TerminalExitStatus, printed: Printed) -> Output {
    let kept = tail(&printed.text, MOST);
    let truncated = printed.truncated || kept.len() < printed.text.len();
    let ended = match (status.exit_code, &status.signal) {
        (Some(code), _) => format!("It ended with exit code {code}."),
        (None, Some(signal)) => format!("It was ended by the signal {signal}."),
        (None, None) => "It ended, and how is not known.".to_owned(),
    };
    let success = status.exit_code == Some(0);
    let mut content = doing.terminals.clone();
    if content.is_empty() && !kept.is_empty() {
        content.push(text(fenced(kept)));
    }
    if !success || content.is_empty() {
        content.push(text(ended.as_str()));
    }
    let data = json!({
        "exitCode": status.exit_code,
        "signal": status.signal,
        "output": kept,
        "truncated": truncated,
    });
    Output {
        status: if success {
            ToolStatus::Done
        } else {
            ToolStatus::Failed
        },
        text: format!("{ended}\n{kept}"),
        content: Some(content),
        locations: None,
        data,
    }
}
