//! Terminals: their life.

use std::path::Path;

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::{ClientHarness, ReceivedPrompt};
use crate::verdict::{CheckStop, fail, require, skip};

use super::steps::{
    ScratchDirectory, WATCHED, after, answer, offers, prompted_with, refused, result,
};

checks! { V1 Client "terminals";
    101 Must "`terminal/create` is answered at once, while the command runs." => responds_at_once;
    102 Must "`terminal/output` is answered while the command runs." => output_meanwhile;
    103 Must "As long as the command runs, `terminal/output` has no exit status." => no_status;
    104 Must "When the command has ended, `terminal/output` has its exit status." => status;
    105 Must "`terminal/wait_for_exit` is answered with the exit code." => exit_code;
    106 Must "`terminal/wait_for_exit` is not answered before the command has ended." => waits;
    107 Must "Several may wait for the end of one command." => two_wait;
    108 Must "`terminal/kill` ends the command." => kill_ends;
    109 Must "After `terminal/kill` what the command printed can still be had." => killed_output;
    110 Must "`terminal/release` ends a command that runs." => release_ends;
    111 Must "After `terminal/release` the terminal's id is not valid any more." => rejects_released_terminal;
    112 Must "An id that no terminal has is an error." => unknown_id;
    113 Should "Terminals that the client does not offer are an error." => not_offered;
    114 Must "A command that a signal has ended has no exit code of success." => reports_no_success_after_signal;
}

pub(super) const TERMINALS: &str = "/clientCapabilities/terminal";

/// A command of the shell that runs until it is ended, after it has printed a word.
const LONG: &str = "echo begun; exec sleep 60";

/// A terminal of a check.
pub(super) struct CheckTerminal {
    pub(super) prompted: ReceivedPrompt,
    pub(super) id: Value,
}

impl CheckTerminal {
    /// Runs a line of the shell.
    pub(super) async fn run(
        play: &mut ClientHarness,
        line: &str,
        more: Value,
    ) -> Result<Self, CheckStop> {
        if cfg!(windows) {
            return skip("the commands of these checks are of Unix");
        }
        let prompted = prompted_with(play, TERMINALS).await?;
        Self::run_in(play, prompted, line, more).await
    }

    /// The same, in a turn that is open.
    pub(super) async fn run_in(
        play: &mut ClientHarness,
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
        let answer = result(play, "terminal/create", params).await?;
        let id = answer["terminalId"].clone();
        require(id.is_string(), || {
            format!("the answer has no `terminalId`: {answer}")
        })?;
        Ok(Self { prompted, id })
    }

    /// What is said of it in every request.
    pub(super) fn params(&self) -> Value {
        json!({"sessionId": self.prompted.session, "terminalId": self.id})
    }

    pub(super) async fn ask(
        &self,
        play: &mut ClientHarness,
        method: &str,
    ) -> Result<Value, CheckStop> {
        result(play, method, self.params()).await
    }

    /// What it has printed when it has printed something.
    async fn output(&self, play: &mut ClientHarness) -> Result<String, CheckStop> {
        let patience = play.wire.patience();
        let waiting = async {
            loop {
                let answer = self.ask(play, "terminal/output").await?;
                match answer["output"].as_str() {
                    Some("") => tokio::task::yield_now().await,
                    Some(output) => return Ok(output.to_owned()),
                    None => return fail(format!("the answer has no `output`: {answer}")),
                }
            }
        };
        match tokio::time::timeout(patience, waiting).await {
            Ok(output) => output,
            Err(_) => fail(format!(
                "in {patience:?} the command's output was not there"
            )),
        }
    }

    /// Releases it and ends the turn.
    pub(super) async fn done(self, play: &mut ClientHarness) -> Result<(), CheckStop> {
        self.ask(play, "terminal/release").await?;
        play.end_turn(&self.prompted, "end_turn").await
    }
}

async fn responds_at_once(play: &mut ClientHarness) -> Result<(), CheckStop> {
    CheckTerminal::run(play, LONG, json!({}))
        .await?
        .done(play)
        .await
}

async fn output_meanwhile(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(play, LONG, json!({})).await?;
    let output = terminal.output(play).await?;
    require(output.trim_end() == "begun", || {
        format!("the command printed \"begun\", and `terminal/output` gave {output:?}")
    })?;
    terminal.done(play).await
}

async fn no_status(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(play, LONG, json!({})).await?;
    terminal.output(play).await?;
    let answer = terminal.ask(play, "terminal/output").await?;
    require(answer["exitStatus"].is_null(), || {
        format!(
            "the command runs, and has the exit status {}",
            answer["exitStatus"]
        )
    })?;
    terminal.done(play).await
}

async fn status(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(play, "exit 3", json!({})).await?;
    terminal.ask(play, "terminal/wait_for_exit").await?;
    let answer = terminal.ask(play, "terminal/output").await?;
    require(answer["exitStatus"]["exitCode"] == 3, || {
        format!(
            "the command ended with 3, and has the exit status {}",
            answer["exitStatus"]
        )
    })?;
    terminal.done(play).await
}

async fn exit_code(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(play, "exit 7", json!({})).await?;
    let answer = terminal.ask(play, "terminal/wait_for_exit").await?;
    require(answer["exitCode"] == 7, || {
        format!("the command ended with 7, and the answer was {answer}")
    })?;
    terminal.done(play).await
}

async fn waits(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(play, LONG, json!({})).await?;
    let id = play
        .wire
        .ask("terminal/wait_for_exit", terminal.params())
        .await?;
    let early = tokio::time::timeout(WATCHED, play.answer(&id)).await;
    if let Ok(answer) = early {
        return fail(format!("the command runs, and it answered {:?}", answer?));
    }
    terminal.ask(play, "terminal/kill").await?;
    answer(play, &id).await?;
    terminal.done(play).await
}

async fn two_wait(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(play, LONG, json!({})).await?;
    let mut open = Vec::new();
    for _ in 0..2 {
        open.push(
            play.wire
                .ask("terminal/wait_for_exit", terminal.params())
                .await?,
        );
    }
    terminal.ask(play, "terminal/kill").await?;
    for id in open {
        let answer = answer(play, &id).await;
        after("two had asked for the end of one command", answer)?;
    }
    terminal.done(play).await
}

async fn kill_ends(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(play, LONG, json!({})).await?;
    terminal.ask(play, "terminal/kill").await?;
    let ended = terminal.ask(play, "terminal/wait_for_exit").await;
    after("`terminal/kill`", ended)?;
    terminal.done(play).await
}

async fn killed_output(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(play, LONG, json!({})).await?;
    terminal.output(play).await?;
    terminal.ask(play, "terminal/kill").await?;
    let answer = after(
        "`terminal/kill`",
        terminal.ask(play, "terminal/output").await,
    )?;
    let output = answer["output"].as_str().unwrap_or_default();
    require(output.trim_end() == "begun", || {
        format!("the command had printed \"begun\", and after `terminal/kill` there was {output:?}")
    })?;
    terminal.done(play).await
}

async fn release_ends(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = prompted_with(play, TERMINALS).await?;
    let scratch = ScratchDirectory::new(play)?;
    let line = "while :; do echo x > alive; sleep 0.02; done";
    let here = json!({"cwd": scratch.path()});
    let terminal = CheckTerminal::run_in(play, prompted, line, here).await?;
    let alive = scratch.file("alive");
    if !appears(&alive, play.wire.patience()).await {
        return fail("the command did not begin");
    }
    terminal.ask(play, "terminal/release").await?;
    // What it had begun to write may still come; what comes after that does not.
    let _ = std::fs::remove_file(&alive);
    tokio::time::sleep(WATCHED).await;
    let _ = std::fs::remove_file(&alive);
    let still = appears(&alive, WATCHED).await;
    require(!still, || {
        "the command still runs after `terminal/release`".to_owned()
    })?;
    play.end_turn(&terminal.prompted, "end_turn").await
}

/// Whether a file comes to be there in time. What a command does elsewhere is told by nobody.
async fn appears(path: &Path, time: std::time::Duration) -> bool {
    let looking = async {
        while !path.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(time, looking).await.is_ok()
}

async fn rejects_released_terminal(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(play, "echo checked", json!({})).await?;
    terminal.ask(play, "terminal/release").await?;
    for method in ["terminal/output", "terminal/wait_for_exit", "terminal/kill"] {
        let what = format!("`{method}` of a released terminal");
        refused(play, method, terminal.params(), &what).await?;
    }
    play.end_turn(&terminal.prompted, "end_turn").await
}

async fn unknown_id(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = prompted_with(play, TERMINALS).await?;
    for method in ["terminal/output", "terminal/wait_for_exit", "terminal/kill"] {
        let params = json!({"sessionId": prompted.session, "terminalId": "term_nobodys"});
        let what = format!("`{method}` of a terminal that there is not");
        refused(play, method, params, &what).await?;
    }
    play.end_turn(&prompted, "end_turn").await
}

async fn not_offered(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = play.wait_for_prompt().await?;
    if offers(play, TERMINALS) {
        return skip("the client offers them");
    }
    let params = json!({"sessionId": prompted.session, "command": "true"});
    refused(
        play,
        "terminal/create",
        params,
        "a terminal, which it does not offer,",
    )
    .await?;
    play.end_turn(&prompted, "end_turn").await
}

async fn reports_no_success_after_signal(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let terminal = CheckTerminal::run(play, "kill -KILL $$", json!({})).await?;
    let answer = terminal.ask(play, "terminal/wait_for_exit").await?;
    require(answer["exitCode"] != 0, || {
        format!("a signal ended the command, and the answer was {answer}")
    })?;
    terminal.done(play).await
}
