//! Terminals: from creation to release.

use std::path::Path;

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::{ClientHarness, ReceivedPrompt};
use crate::verdict::{CheckStop, fail, require, skip};

use super::steps::{
    ScratchDirectory, WATCHED, after, answer, offers, prompted_with, refused, result,
};

checks! { V1 Client "terminals";
    101 Must "`terminal/create` returns immediately, while the command runs." => responds_at_once;
    102 Must "`terminal/output` works while the command runs." => returns_output_while_running;
    103 Must "While the command runs, `terminal/output` has no exit status." => has_no_status_while_running;
    104 Must "After the command exits, `terminal/output` has its exit status." => has_status_after_exit;
    105 Must "`terminal/wait_for_exit` returns the exit code." => returns_exit_code;
    106 Must "`terminal/wait_for_exit` does not return before the command exits." => waits_for_exit;
    107 Must "Concurrent `terminal/wait_for_exit` requests are supported." => supports_concurrent_waits;
    108 Must "`terminal/kill` kills the command." => kills_command;
    109 Must "After `terminal/kill`, the output is still available." => keeps_output_after_kill;
    110 Must "`terminal/release` kills a running command." => kills_on_release;
    111 Must "After `terminal/release`, the terminal id is invalid." => rejects_released_terminal;
    112 Must "An unknown terminal id fails." => rejects_unknown_id;
    113 Should "`terminal/*` fails if the client does not support it." => rejects_unsupported_terminal;
    114 Must "A command terminated by a signal does not report exit code 0." => reports_no_success_after_signal;
}

pub(super) const TERMINALS: &str = "/clientCapabilities/terminal";

/// A shell command that prints a word and then runs for a minute.
const LONG_COMMAND: &str = "echo begun; exec sleep 60";

/// A client terminal that a check has created.
pub(super) struct CheckTerminal {
    pub(super) prompted: ReceivedPrompt,
    pub(super) id: Value,
}

impl CheckTerminal {
    /// Waits for the first prompt and runs a shell command. Skips if the client does not support terminals. `more` has
    /// further params.
    pub(super) async fn run(
        harness: &mut ClientHarness,
        line: &str,
        more: Value,
    ) -> Result<Self, CheckStop> {
        if cfg!(windows) {
            return skip("this check uses Unix commands");
        }
        let prompted = prompted_with(harness, TERMINALS).await?;
        Self::run_in(harness, prompted, line, more).await
    }

    /// Like `run`, in a turn that is already running.
    pub(super) async fn run_in(
        harness: &mut ClientHarness,
        prompted: ReceivedPrompt,
        line: &str,
        more: Value,
    ) -> Result<Self, CheckStop> {
        let mut params = json!({
            "sessionId": prompted.session, "command": "/bin/sh", "args": ["-c", line],
        });
        if let (Some(params), Value::Object(more)) = (params.as_object_mut(), more) {
            params.extend(more);
        }
        let response = result(harness, "terminal/create", params).await?;
        let id = response["terminalId"].clone();
        require(id.is_string(), || {
            format!("the response has no `terminalId`: {response}")
        })?;
        Ok(Self { prompted, id })
    }

    /// Returns params that identify the terminal.
    pub(super) fn params(&self) -> Value {
        json!({"sessionId": self.prompted.session, "terminalId": self.id})
    }

    pub(super) async fn ask(
        &self,
        harness: &mut ClientHarness,
        method: &str,
    ) -> Result<Value, CheckStop> {
        result(harness, method, self.params()).await
    }

    /// Waits until the command has printed something, and returns the output.
    async fn output(&self, harness: &mut ClientHarness) -> Result<String, CheckStop> {
        let patience = harness.wire.patience();
        let waiting = async {
            loop {
                let response = self.ask(harness, "terminal/output").await?;
                match response["output"].as_str() {
                    Some("") => tokio::task::yield_now().await,
                    Some(output) => return Ok(output.to_owned()),
                    None => return fail(format!("the response has no `output`: {response}")),
                }
            }
        };
        match tokio::time::timeout(patience, waiting).await {
            Ok(output) => output,
            Err(_) => fail(format!("no command output within {patience:?}")),
        }
    }

    /// Releases the terminal and ends the turn.
    pub(super) async fn done(self, harness: &mut ClientHarness) -> Result<(), CheckStop> {
        self.ask(harness, "terminal/release").await?;
        harness.end_turn(&self.prompted, "end_turn").await
    }
}

async fn responds_at_once(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    CheckTerminal::run(harness, LONG_COMMAND, json!({}))
        .await?
        .done(harness)
        .await
}

async fn returns_output_while_running(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, LONG_COMMAND, json!({})).await?;
    let output = terminal.output(harness).await?;
    require(output.trim_end() == "begun", || {
        format!("the command printed \"begun\", but `terminal/output` returned {output:?}")
    })?;
    terminal.done(harness).await
}

async fn has_no_status_while_running(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, LONG_COMMAND, json!({})).await?;
    terminal.output(harness).await?;
    let response = terminal.ask(harness, "terminal/output").await?;
    require(response["exitStatus"].is_null(), || {
        format!(
            "the command is running, but has exit status {}",
            response["exitStatus"]
        )
    })?;
    terminal.done(harness).await
}

async fn has_status_after_exit(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, "exit 3", json!({})).await?;
    terminal.ask(harness, "terminal/wait_for_exit").await?;
    let response = terminal.ask(harness, "terminal/output").await?;
    require(response["exitStatus"]["exitCode"] == 3, || {
        format!(
            "the command exited with 3, but has exit status {}",
            response["exitStatus"]
        )
    })?;
    terminal.done(harness).await
}

async fn returns_exit_code(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, "exit 7", json!({})).await?;
    let response = terminal.ask(harness, "terminal/wait_for_exit").await?;
    require(response["exitCode"] == 7, || {
        format!("the command exited with 7, but the response was {response}")
    })?;
    terminal.done(harness).await
}

async fn waits_for_exit(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, LONG_COMMAND, json!({})).await?;
    let id = harness
        .wire
        .ask("terminal/wait_for_exit", terminal.params())
        .await?;
    let early = tokio::time::timeout(WATCHED, harness.answer(&id)).await;
    if let Ok(response) = early {
        return fail(format!(
            "the command is running, but `terminal/wait_for_exit` returned {:?}",
            response?
        ));
    }
    terminal.ask(harness, "terminal/kill").await?;
    answer(harness, &id).await?;
    terminal.done(harness).await
}

async fn supports_concurrent_waits(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, LONG_COMMAND, json!({})).await?;
    let mut open = Vec::new();
    for _ in 0..2 {
        open.push(
            harness
                .wire
                .ask("terminal/wait_for_exit", terminal.params())
                .await?,
        );
    }
    terminal.ask(harness, "terminal/kill").await?;
    for id in open {
        let response = answer(harness, &id).await;
        after("two concurrent `terminal/wait_for_exit` requests", response)?;
    }
    terminal.done(harness).await
}

async fn kills_command(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, LONG_COMMAND, json!({})).await?;
    terminal.ask(harness, "terminal/kill").await?;
    let ended = terminal.ask(harness, "terminal/wait_for_exit").await;
    after("`terminal/kill`", ended)?;
    terminal.done(harness).await
}

async fn keeps_output_after_kill(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, LONG_COMMAND, json!({})).await?;
    terminal.output(harness).await?;
    terminal.ask(harness, "terminal/kill").await?;
    let response = after(
        "`terminal/kill`",
        terminal.ask(harness, "terminal/output").await,
    )?;
    let output = response["output"].as_str().unwrap_or_default();
    require(output.trim_end() == "begun", || {
        format!("the command printed \"begun\", but after `terminal/kill` the output is {output:?}")
    })?;
    terminal.done(harness).await
}

async fn kills_on_release(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = prompted_with(harness, TERMINALS).await?;
    let scratch = ScratchDirectory::new(harness)?;
    let line = "while :; do echo x > alive; sleep 0.02; done";
    let here = json!({"cwd": scratch.path()});
    let terminal = CheckTerminal::run_in(harness, prompted, line, here).await?;
    let alive = scratch.file("alive");
    if !wait_for_file(&alive, harness.wire.patience()).await {
        return fail("the command did not start");
    }
    terminal.ask(harness, "terminal/release").await?;
    // A write that had started may still arrive; nothing after it does.
    let _ = std::fs::remove_file(&alive);
    tokio::time::sleep(WATCHED).await;
    let _ = std::fs::remove_file(&alive);
    let still = wait_for_file(&alive, WATCHED).await;
    require(!still, || {
        "the command is still running after `terminal/release`".to_owned()
    })?;
    harness.end_turn(&terminal.prompted, "end_turn").await
}

/// Waits for a file to appear, and returns `true` if it does in time. Polls, since a terminal does not report what its
/// command does.
async fn wait_for_file(path: &Path, time: std::time::Duration) -> bool {
    let looking = async {
        while !path.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(time, looking).await.is_ok()
}

async fn rejects_released_terminal(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, "echo checked", json!({})).await?;
    terminal.ask(harness, "terminal/release").await?;
    for method in ["terminal/output", "terminal/wait_for_exit", "terminal/kill"] {
        let what = format!("`{method}` of a released terminal");
        refused(harness, method, terminal.params(), &what).await?;
    }
    harness.end_turn(&terminal.prompted, "end_turn").await
}

async fn rejects_unknown_id(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = prompted_with(harness, TERMINALS).await?;
    for method in ["terminal/output", "terminal/wait_for_exit", "terminal/kill"] {
        let params = json!({"sessionId": prompted.session, "terminalId": "term_nobodys"});
        let what = format!("`{method}` of an unknown terminal");
        refused(harness, method, params, &what).await?;
    }
    harness.end_turn(&prompted, "end_turn").await
}

async fn rejects_unsupported_terminal(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    if offers(harness, TERMINALS) {
        return skip("the client supports terminals");
    }
    let params = json!({"sessionId": prompted.session, "command": "true"});
    refused(
        harness,
        "terminal/create",
        params,
        "`terminal/create`, which the client does not support,",
    )
    .await?;
    harness.end_turn(&prompted, "end_turn").await
}

async fn reports_no_success_after_signal(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, "kill -KILL $$", json!({})).await?;
    let response = terminal.ask(harness, "terminal/wait_for_exit").await?;
    require(response["exitCode"] != 0, || {
        format!("the command was terminated by a signal, but the response was {response}")
    })?;
    terminal.done(harness).await
}
