//! `acp run`: runs one turn without a user interface.

mod answer_schema;
mod answer_tool;
mod client;
mod decisions;
mod naming;
mod notes;
mod open;
mod own_turn;
mod permission;
mod prompt;
mod render;
mod result;
mod setup;
mod trace_output;
mod turn;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::client::RunClient;
use self::decisions::RunDecisions;
use self::notes::RunNotes;
use self::own_turn::OwnTurn;
pub(crate) use self::prompt::read_prompt;
pub(crate) use self::render::Renderer;
use self::result::TurnOutcome;
use self::setup::RunSetup;
use self::turn::AgentTurn;
use crate::args::run::{RunArgs, RunFormat};
use crate::exit::CommandExit;
use crate::live::RunLauncher;
use crate::screen::TerminalScreen;
use crate::signals::Signals;
use crate::start::EXIT_GRACE_PERIOD;
use crate::terminal_user::TerminalUser;

pub(crate) async fn run_prompt(args: RunArgs) -> CommandExit {
    if args.no_wait && !args.detached {
        return RunLauncher::run_in_background();
    }
    let run = match RunSetup::prepare(args).await {
        Ok(run) => run,
        Err(exit) => return exit,
    };
    let begun = Instant::now();
    let mut retries = 0;
    loop {
        let decisions = RunDecisions::default();
        let ended = run_agent(&run, &decisions).await;
        if ended.can_be_repeated && retries < run.args.retries {
            retries += 1;
            let reason = ended.exit.message.unwrap_or_default();
            let reason = acp_host::terminal_text::clean_text(&reason);
            eprintln!(
                "acp: {reason}\nacp: starting again ({retries} of {})",
                run.args.retries
            );
            continue;
        }
        if let Some(trace) = &run.trace {
            trace.end();
        }
        let Some(file) = &run.output else {
            return ended.exit;
        };
        let written = ended
            .result
            .write(file, &ended.exit, &decisions.counts(), begun.elapsed());
        return match written {
            Ok(()) => ended.exit,
            Err(error) => {
                CommandExit::failed(format!("cannot write {}: {error}", file.path().display()))
            }
        };
    }
}

/// How an attempt to run the turn has ended.
struct EndedRun {
    exit: CommandExit,
    result: TurnOutcome,
    /// Whether the agent failed before it has said or done anything.
    can_be_repeated: bool,
}

impl From<CommandExit> for EndedRun {
    fn from(exit: CommandExit) -> Self {
        Self {
            exit,
            result: TurnOutcome::default(),
            can_be_repeated: false,
        }
    }
}

/// Starts the agent, runs the turn, and shuts the agent down.
async fn run_agent(run: &RunSetup, decisions: &RunDecisions) -> EndedRun {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(e) => return CommandExit::failed(format!("cannot listen for signals: {e}")).into(),
    };
    let launcher = match run.args.detached.then(RunLauncher::take_stdout).transpose() {
        Ok(launcher) => launcher,
        Err(e) => return CommandExit::failed(format!("cannot redirect stdout: {e}")).into(),
    };
    let screen = TerminalScreen::new(run.args.format == RunFormat::Text);
    let renderer = Renderer::new(run.args.format, screen);
    let notes = RunNotes::default();
    let person = TerminalUser::new(renderer.screen());
    let start = OwnTurn::default();
    let client = RunClient::new(
        run,
        &person,
        notes.clone(),
        start.clone(),
        decisions.clone(),
    );
    let client = match client {
        Ok(client) => client,
        Err(e) => return CommandExit::usage(format!("--cwd {}: {e}", run.cwd.display())).into(),
    };
    let terminals = client.host();
    let process = match run.start(&notes, person.screen()) {
        Ok(process) => Arc::new(process),
        Err(exit) => return exit.into(),
    };
    let mut turn = AgentTurn {
        run,
        renderer,
        notes,
        user: person,
        process: Arc::clone(&process),
        launcher,
        start,
        waits_for_start: false,
        result: TurnOutcome::default(),
        decisions: decisions.clone(),
        cost_before: None,
        can_be_repeated: false,
    };
    let exit = run.with_hint(turn.run(client, &mut signals).await);
    turn.renderer.finish();
    terminals.close().await;
    // After a cancellation, do not wait for the agent to exit by itself.
    let grace = if exit == CommandExit::CANCELLED {
        Duration::ZERO
    } else {
        EXIT_GRACE_PERIOD
    };
    tokio::select! {
        _ = process.shutdown(grace) => {}
        _ = signals.next() => {
            process.shutdown(Duration::ZERO).await;
        }
    }
    for note in process.undo_report() {
        turn.renderer.note(&note);
    }
    EndedRun {
        exit,
        result: turn.result,
        can_be_repeated: turn.can_be_repeated,
    }
}
