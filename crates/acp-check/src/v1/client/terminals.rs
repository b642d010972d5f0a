//! Checks for a client's terminals, from creation to release.

use std::path::Path;

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::{ClientHarness, ReceivedPrompt};
use crate::verdict::{CheckStop, fail, require, skip};

use super::steps::{
    ScratchDirectory, WATCH_TIME, add_context, has_capability, request_error, request_result,
    wait_for_prompt_with_capability, wait_for_response,
};

checks! { V1 Client "terminals";
    101 Must "`terminal/create` returns immediately, while the command is still running." => responds_at_once;
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
    112 Must "A request with an unknown terminal id fails." => rejects_unknown_id;
    113 Should "`terminal/*` fails if the client does not support terminals." => rejects_unsupported_terminal;
    114 Must "A command terminated by a signal does not report exit code 0." => reports_no_success_after_signal;
}

pub(super) const TERMINAL_CAPABILITY: &str = "/clientCapabilities/terminal";

/// A shell command that prints a word and then runs for a minute.
const LONG_COMMAND: &str = "echo begun; exec sleep 60";

/// A client terminal created by a check.
pub(super) struct CheckTerminal {
    pub(super) prompt: ReceivedPrompt,
    pub(super) id: Value,
}

impl CheckTerminal {
    /// Waits for the first prompt and runs a shell command. Skips the check if the client does not support terminals.
    /// `more` contains additional params for `terminal/create`.
    pub(super) async fn run(
        harness: &mut ClientHarness,
        line: &str,
        more: Value,
    ) -> Result<Self, CheckStop> {
        if cfg!(windows) {
            return skip("this check uses Unix commands");
        }
        let prompted = wait_for_prompt_with_capability(harness, TERMINAL_CAPABILITY).await?;
        Self::run_in_turn(harness, prompted, line, more).await
    }

    /// Like `run`, but runs the shell command in a turn that is already running.
    pub(super) async fn run_in_turn(
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
        let response = request_result(harness, "terminal/create", params).await?;
        let id = response["terminalId"].clone();
        require(id.is_string(), || {
            format!("the response has no `terminalId`: {response}")
        })?;
        Ok(Self {
            prompt: prompted,
            id,
        })
    }

    /// Returns params that identify the terminal.
    pub(super) fn params(&self) -> Value {
        json!({"sessionId": self.prompt.session, "terminalId": self.id})
    }

    pub(super) async fn request(
        &self,
        harness: &mut ClientHarness,
        method: &str,
    ) -> Result<Value, CheckStop> {
        request_result(harness, method, self.params()).await
    }

    /// Waits until the command has printed something, and returns its output.
    async fn output(&self, harness: &mut ClientHarness) -> Result<String, CheckStop> {
        let patience = harness.wire.timeout();
        let waiting = async {
            loop {
                let response = self.request(harness, "terminal/output").await?;
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
    pub(super) async fn finish(self, harness: &mut ClientHarness) -> Result<(), CheckStop> {
        self.request(harness, "terminal/release").await?;
        harness.end_turn(&self.prompt, "end_turn").await
    }
}

async fn responds_at_once(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    CheckTerminal::run(harness, LONG_COMMAND, json!({}))
        .await?
        .finish(harness)
        .await
}

async fn returns_output_while_running(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, LONG_COMMAND, json!({})).await?;
    let output = terminal.output(harness).await?;
    require(output.trim_end() == "begun", || {
        format!("the command printed \"begun\", but `terminal/output` returned {output:?}")
    })?;
    terminal.finish(harness).await
}

async fn has_no_status_while_running(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, LONG_COMMAND, json!({})).await?;
    terminal.output(harness).await?;
    let response = terminal.request(harness, "terminal/output").await?;
    require(response["exitStatus"].is_null(), || {
        format!(
            "the command is running, but its exit status is {}",
            response["exitStatus"]
        )
    })?;
    terminal.finish(harness).await
}

async fn has_status_after_exit(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, "exit 3", json!({})).await?;
    terminal.request(harness, "terminal/wait_for_exit").await?;
    let response = terminal.request(harness, "terminal/output").await?;
    require(response["exitStatus"]["exitCode"] == 3, || {
        format!(
            "the command exited with code 3, but its exit status is {}",
            response["exitStatus"]
        )
    })?;
    terminal.finish(harness).await
}

async fn returns_exit_code(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, "exit 7", json!({})).await?;
    let response = terminal.request(harness, "terminal/wait_for_exit").await?;
    require(response["exitCode"] == 7, || {
        format!("the command exited with code 7, but the response was {response}")
    })?;
    terminal.finish(harness).await
}

async fn waits_for_exit(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, LONG_COMMAND, json!({})).await?;
    let id = harness
        .wire
        .send_request("terminal/wait_for_exit", terminal.params())
        .await?;
    let early = tokio::time::timeout(WATCH_TIME, harness.wait_for_response(&id)).await;
    if let Ok(response) = early {
        return fail(format!(
            "the command is running, but `terminal/wait_for_exit` returned {:?}",
            response?
        ));
    }
    terminal.request(harness, "terminal/kill").await?;
    wait_for_response(harness, &id).await?;
    terminal.finish(harness).await
}

async fn supports_concurrent_waits(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, LONG_COMMAND, json!({})).await?;
    let mut open = Vec::new();
    for _ in 0..2 {
        open.push(
            harness
                .wire
                .send_request("terminal/wait_for_exit", terminal.params())
                .await?,
        );
    }
    terminal.request(harness, "terminal/kill").await?;
    for id in open {
        let response = wait_for_response(harness, &id).await;
        add_context("two concurrent `terminal/wait_for_exit` requests", response)?;
    }
    terminal.finish(harness).await
}

async fn kills_command(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, LONG_COMMAND, json!({})).await?;
    terminal.request(harness, "terminal/kill").await?;
    let ended = terminal.request(harness, "terminal/wait_for_exit").await;
    add_context("`terminal/kill`", ended)?;
    terminal.finish(harness).await
}

async fn keeps_output_after_kill(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(harness, LONG_COMMAND, json!({})).await?;
    terminal.output(harness).await?;
    terminal.request(harness, "terminal/kill").await?;
    let response = add_context(
        "`terminal/kill`",
        terminal.request(harness, "terminal/output").await,
    )?;
    let output = response["output"].as_str().unwrap_or_default();
    require(output.trim_end() == "begun", || {
        format!("the command printed \"begun\", but after `terminal/kill` the output is {output:?}")
    })?;
    terminal.finish(harness).await
}

async fn kills_on_release(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, TERMINAL_CAPABILITY).await?;
    let scratch = ScratchDirectory::new(harness)?;
    let line = "while :; do echo x > alive; sleep 0.02; done";
    let here = json!({"cwd": scratch.path()});
    let terminal = CheckTerminal::run_in_turn(harness, prompted, line, here).await?;
    let alive = scratch.file("alive");
    if !wait_for_file(&alive, harness.wire.timeout()).await {
        return fail("the command did not start");
    }
    terminal.request(harness, "terminal/release").await?;
    // A write that had already started may still arrive, but no later write may.
    let _ = std::fs::remove_file(&alive);
    tokio::time::sleep(WATCH_TIME).await;
    let _ = std::fs::remove_file(&alive);
    let still = wait_for_file(&alive, WATCH_TIME).await;
    require(!still, || {
        "the command is still running after `terminal/release`".to_owned()
    })?;
    harness.end_turn(&terminal.prompt, "end_turn").await
}

/// Waits for a file to appear. Returns `true` if it appears in time. Polls, because a terminal does not report what its
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
    terminal.request(harness, "terminal/release").await?;
    for method in ["terminal/output", "terminal/wait_for_exit", "terminal/kill"] {
        let what = format!("`{method}` for a released terminal");
        request_error(harness, method, terminal.params(), &what).await?;
    }
    harness.end_turn(&terminal.prompt, "end_turn").await
}

async fn rejects_unknown_id(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, TERMINAL_CAPABILITY).await?;
    for method in ["terminal/output", "terminal/wait_for_exit", "terminal/kill"] {
        let params = json!({"sessionId": prompted.session, "terminalId": "term_nobodys"});
        let what = format!("`{method}` for an unknown terminal");
        request_error(harness, method, params, &what).await?;
    }
    harness.end_turn(&prompted, "end_turn").await
}

async fn rejects_unsupported_terminal(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = harness.wait_for_prompt().await?;
    if has_capability(harness, TERMINAL_CAPABILITY) {
        return skip("the client supports terminals");
    }
    let params = json!({"sessionId": prompted.session, "command": "true"});
    request_error(
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
    let response = terminal.request(harness, "terminal/wait_for_exit").await?;
    require(response["exitCode"] != 0, || {
        format!("the command was terminated by a signal, but the response was {response}")
    })?;
    terminal.finish(harness).await
}
