//! `acp trace replay`: being one side of a trace, for a live other side.

use std::fmt::Write;
use std::time::Duration;

use acp::{Transport, transport};
use acp_host::{AgentCommand, AgentProcess, clean};
use acp_trace::{Difference, Reader, Replay, ReplaySettings, Report, Side};
use serde_json::Value;

use crate::args::trace::{From, ReplayArgs};
use crate::exit::Exit;
use crate::screen;
use crate::signals::Signals;

/// How long an agent may take to end once its stdin is closed, and again once it is asked to.
const GRACE: Duration = Duration::from_secs(1);

/// How much of a value is shown, in characters.
const SHOWN: usize = 100;

pub(super) async fn replay(args: &ReplayArgs) -> Exit {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(e) => return Exit::failed(format!("cannot listen for signals: {e}")),
    };
    let file = args.file.display();
    let replay = match Reader::open(&args.file)
        .map_err(Into::into)
        .and_then(Replay::load)
    {
        Ok(replay) => replay,
        Err(e) => return Exit::usage(format!("{file} {e}")),
    };
    let mut settings = ReplaySettings::new(args.side.into());
    settings.pace = args.pace;
    settings.patience = Duration::from_secs(args.timeout);
    settings.ignore.clone_from(&args.ignore);
    let (process, transport) = match live(args) {
        Ok(live) => live,
        Err(exit) => return exit,
    };
    let played = tokio::select! {
        played = replay.run(transport, &settings) => Some(played),
        _ = signals.next() => None,
    };
    if let Some(process) = process {
        process.shutdown(GRACE).await;
    }
    let report = match played {
        None => return Exit::CANCELLED,
        Some(Err(e)) => return Exit::broken(format!("the connection failed: {e}")),
        Some(Ok(report)) => report,
    };
    let text = told(&report);
    match settings.side {
        // Its stdout is the protocol's.
        Side::Agent => eprint!("{text}"),
        Side::Client => {
            if !screen::print(text.as_bytes()) {
                return Exit::UNREAD;
            }
        }
    }
    match report.differences.is_empty() {
        true => Exit::SUCCESS,
        false => Exit::DIFFERENT,
    }
}

/// The live side: the client that has started this, or an agent that is started.
fn live(args: &ReplayArgs) -> Result<(Option<AgentProcess>, Transport), Exit> {
    let Some((program, rest)) = args.agent.split_first() else {
        if args.side == From::Client {
            return Err(Exit::usage(
                "--as client: no agent to run is given; add `-- COMMAND...`",
            ));
        }
        let stdio = transport::stdio()
            .map_err(|e| Exit::broken(format!("stdin and stdout cannot be used: {e}")))?;
        return Ok((None, stdio));
    };
    if args.side == From::Agent {
        return Err(Exit::usage(
            "--as agent: a client starts this; it takes no command",
        ));
    }
    let given = args.env.all()?;
    let command = AgentCommand::new(program).args(rest);
    let command = command.environment(given.environment());
    let process = AgentProcess::spawn_with(&command, |line| eprintln!("{line}"))
        .map_err(|e| Exit::broken(format!("the agent could not be started: {e}")))?;
    match process.take_stdio() {
        Some((stdin, stdout)) => Ok((Some(process), Transport::pipes(stdout, stdin))),
        None => Err(Exit::broken("the agent has no stdin and stdout")),
    }
}

/// What is said about the differences.
fn told(report: &Report) -> String {
    let mut text = String::new();
    for difference in &report.differences {
        let line = match difference {
            Difference::Missing { line, what } => format!("line {line}: {what} is missing"),
            Difference::Extra { what, message } => {
                format!("{what} is not in the trace: {}", brief(Some(message)))
            }
            Difference::Changed { line, what, change } => format!(
                "line {line}: {what}: {} was {} and is {}",
                change.path,
                brief(change.recorded.as_ref()),
                brief(change.now.as_ref())
            ),
            _ => continue,
        };
        let _ = writeln!(text, "{}", clean::line(&line));
    }
    let count = report.differences.len() as u64 + report.more;
    let _ = writeln!(
        text,
        "{} messages as recorded, {count} differences",
        report.matched
    );
    text
}

fn brief(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "not there".to_owned();
    };
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
