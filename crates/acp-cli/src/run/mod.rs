//! `acp run`: runs one turn without a user interface.

mod client;
mod naming;
mod notes;
mod open;
mod permission;
mod prompt;
mod render;
mod setup;
mod turn;
mod turn_start;

use std::sync::Arc;
use std::time::Duration;

use self::client::RunClient;
use self::notes::RunNotes;
pub(crate) use self::render::Renderer;
use self::setup::RunSetup;
use self::turn::AgentTurn;
use self::turn_start::OwnTurnStart;
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
    match RunSetup::prepare(args).await {
        Ok(run) => run_agent(&run).await,
        Err(exit) => exit,
    }
}

/// Starts the agent, runs the turn, and shuts the agent down.
async fn run_agent(run: &RunSetup) -> CommandExit {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(e) => return CommandExit::failed(format!("cannot listen for signals: {e}")),
    };
    let launcher = match run.args.detached.then(RunLauncher::take_stdout).transpose() {
        Ok(launcher) => launcher,
        Err(e) => return CommandExit::failed(format!("cannot redirect stdout: {e}")),
    };
    let screen = TerminalScreen::new(run.args.format == RunFormat::Text);
    let renderer = Renderer::new(run.args.format, screen);
    let notes = RunNotes::default();
    let person = TerminalUser::new(renderer.screen());
    let start = OwnTurnStart::default();
    let client = match RunClient::new(run, &person, notes.clone(), start.clone()) {
        Ok(client) => client,
        Err(e) => return CommandExit::usage(format!("--cwd {}: {e}", run.cwd.display())),
    };
    let terminals = client.host();
    let process = match run.start(&notes, person.screen()) {
        Ok(process) => Arc::new(process),
        Err(exit) => return exit,
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
    exit
}
