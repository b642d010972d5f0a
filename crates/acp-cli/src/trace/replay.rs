//! `acp trace replay`: replays one side of a trace to a live peer.

use std::fmt::Write;
use std::time::Duration;

use acp::{Transport, transport};
use acp_host::{AgentProcess, terminal_text};
use acp_trace::{Difference, ReplayReport, ReplaySettings, Side, TraceReader, TraceReplay};
use serde_json::Value;

use crate::args::trace::{ReplayArgs, SideArg};
use crate::exit::CommandExit;
use crate::remote_agent::RelayedAgent;
use crate::screen;
use crate::signals::Signals;
use crate::trace::lint::format_count;

/// How long an agent may take to exit after its stdin is closed, and again after it is asked to exit.
const EXIT_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// The maximum number of characters to show of a value.
const MAX_VALUE_LEN: usize = 100;

pub(super) async fn replay_trace(args: &ReplayArgs) -> CommandExit {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(e) => return CommandExit::failed(format!("cannot listen for signals: {e}")),
    };
    let file = args.file.display();
    let replay = match TraceReader::open(&args.file)
        .map_err(Into::into)
        .and_then(TraceReplay::load)
    {
        Ok(replay) => replay,
        Err(e) => return CommandExit::usage(format!("{file}: {e}")),
    };
    let mut settings = ReplaySettings::new(args.side.into());
    settings.pace = args.pace;
    settings.timeout = Duration::from_secs(args.timeout);
    settings.ignore.clone_from(&args.ignore);
    let (process, transport) = match open_live_side(args) {
        Ok(live) => live,
        Err(exit) => return exit,
    };
    let played = tokio::select! {
        played = replay.run(transport, &settings) => Some(played),
        _ = signals.next() => None,
    };
    if let Some(process) = process {
        process.shutdown(EXIT_GRACE_PERIOD).await;
    }
    let report = match played {
        None => return CommandExit::CANCELLED,
        Some(Err(e)) => return CommandExit::agent_failed(format!("connection failed: {e}")),
        Some(Ok(report)) => report,
    };
    let text = render_report(&report);
    match settings.side {
        // Stdout carries the protocol.
        Side::Agent => eprint!("{text}"),
        Side::Client => {
            if !screen::print(text.as_bytes()) {
                return CommandExit::STDOUT_CLOSED;
            }
        }
    }
    match report.differences.is_empty() {
        true => CommandExit::SUCCESS,
        false => CommandExit::FINDINGS,
    }
}

/// Connects to the live side: the client that started this process, or an agent that this process starts.
fn open_live_side(args: &ReplayArgs) -> Result<(Option<AgentProcess>, Transport), CommandExit> {
    if args.agent.is_empty() && args.url.url.is_none() {
        if args.side == SideArg::Client {
            return Err(CommandExit::usage(
                "--as client: no agent command given; add `-- AGENT COMMAND...` or --url",
            ));
        }
        let stdio = transport::stdio()
            .map_err(|e| CommandExit::agent_failed(format!("cannot use stdin and stdout: {e}")))?;
        return Ok((None, stdio));
    }
    if args.side == SideArg::Agent {
        return Err(CommandExit::usage(
            "--as agent does not accept an agent command: the client starts `acp trace replay` in place of the agent",
        ));
    }
    let given = args.env.process_environment()?;
    let agent = RelayedAgent::from_args(&args.agent, &args.url, given.environment())?;
    let process = AgentProcess::spawn_with(&agent.command, |line| eprintln!("{line}"))
        .map_err(|e| CommandExit::agent_failed(format!("cannot start the agent: {e}")))?;
    match process.take_stdio() {
        Some((stdin, stdout)) => Ok((Some(process), Transport::pipes(stdout, stdin))),
        None => Err(CommandExit::agent_failed(
            "cannot open the agent's stdin and stdout",
        )),
    }
}

/// Renders the report as text.
fn render_report(report: &ReplayReport) -> String {
    let mut text = String::new();
    for difference in &report.differences {
        let line = match difference {
            Difference::Missing { line, what } => format!("line {line}: missing {what}"),
            Difference::Extra { what, message } => {
                format!("unexpected {what}: {}", shorten(Some(message)))
            }
            Difference::Changed { line, what, change } => format!(
                "line {line}: {what}: {} changed from {} to {}",
                change.path,
                shorten(change.recorded.as_ref()),
                shorten(change.live.as_ref())
            ),
            _ => continue,
        };
        let _ = writeln!(text, "{}", terminal_text::clean_line(&line));
    }
    let count = report.differences.len() as u64 + report.omitted;
    let _ = writeln!(
        text,
        "{} matched, {}",
        format_count(report.match_count, "message"),
        format_count(count, "difference")
    );
    text
}

fn shorten(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "missing".to_owned();
    };
    let text = value.to_string();
    match text.char_indices().nth(MAX_VALUE_LEN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
