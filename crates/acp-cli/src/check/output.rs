//! Code shared by all kinds of checks: preparation, selection, baseline and report.

use std::io::{IsTerminal, Write};

use acp_check::report::{CheckReport, TextStyle};
use acp_check::{Check, CheckOutcome, Verdict, baseline};
use globset::{Glob, GlobSetBuilder};
use tokio_util::sync::CancellationToken;

use crate::args::check::{CheckFormat, CheckRunArgs};
use crate::exit::CommandExit;

/// The line width to use if the terminal's width is unknown.
const DEFAULT_WIDTH: usize = 120;

/// Waits for what precedes the checks.
///
/// # Errors
/// It failed, or the run was interrupted.
pub(super) async fn prepare<T>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, CommandExit> {
    match stop.run_until_cancelled(work).await {
        Some(done) => done.map_err(CommandExit::agent_failed),
        None => Err(CommandExit::CANCELLED),
    }
}

/// Returns the ids of the checks that are expected to fail.
pub(super) fn read_baseline(args: &CheckRunArgs) -> Result<Vec<String>, CommandExit> {
    let Some(path) = &args.baseline else {
        return Ok(Vec::new());
    };
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(baseline::parse_baseline(&text)),
        Err(e) => {
            let path = path.display();
            Err(CommandExit::usage(format!(
                "--baseline: cannot read {path}: {e}"
            )))
        }
    }
}

/// Writes a report, and returns the corresponding `CommandExit`. Writes nothing if no check has ended.
pub(super) fn finish(
    args: &CheckRunArgs,
    report: &CheckReport,
) -> Result<CommandExit, CommandExit> {
    if report.unfinished_count > 0 {
        if !report.outcomes.iter().all(is_judgement_of_others) {
            write_report(args, report)?;
        }
        return Ok(CommandExit::CANCELLED);
    }
    write_report(args, report)?;
    Ok(report_exit(report, args.strict))
}

/// Returns `true` if a check judges the messages of other checks.
fn is_judgement_of_others(outcome: &CheckOutcome) -> bool {
    outcome.check.judges_others()
}

/// Returns the `CommandExit` for a report.
fn report_exit(report: &CheckReport, strict: bool) -> CommandExit {
    let broken = report
        .outcomes
        .iter()
        .all(|outcome| matches!(outcome.verdict, Verdict::Harness(_)));
    if broken && !report.outcomes.is_empty() {
        let why = report
            .outcomes
            .first()
            .and_then(|outcome| outcome.verdict.reason());
        return CommandExit::agent_failed(why.unwrap_or("no checks could be run"));
    }
    if report.has_passed(strict) {
        CommandExit::SUCCESS
    } else {
        CommandExit {
            code: 1,
            message: None,
        }
    }
}

fn write_report(args: &CheckRunArgs, report: &CheckReport) -> Result<(), CommandExit> {
    let stdout = std::io::stdout();
    let text = match args.format {
        CheckFormat::Text => report.to_text(TextStyle {
            color: args.out.is_none()
                && stdout.is_terminal()
                && std::env::var_os("NO_COLOR").is_none(),
            verbose: args.verbose,
            quiet: args.quiet,
            width: DEFAULT_WIDTH,
        }),
        CheckFormat::Json => format!("{:#}\n", report.to_json()),
        CheckFormat::Junit => report
            .to_junit()
            .map_err(|e| CommandExit::failed(format!("cannot write the XML report: {e}")))?,
        CheckFormat::Html => report.to_html(),
    };
    match &args.out {
        Some(path) => std::fs::write(path, text).map_err(|e| {
            let path = path.display();
            CommandExit::failed(format!("cannot write {path}: {e}"))
        }),
        None => match stdout.lock().write_all(text.as_bytes()) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Err(CommandExit::STDOUT_CLOSED),
            Err(e) => Err(CommandExit::failed(format!("cannot write to stdout: {e}"))),
        },
    }
}

/// Returns the checks that `--only` selects.
pub(super) fn filter_checks(
    args: &CheckRunArgs,
    checks: Vec<Check>,
) -> Result<Vec<Check>, CommandExit> {
    if args.only.is_empty() {
        return Ok(checks);
    }
    let mut globs = GlobSetBuilder::new();
    for glob in &args.only {
        let glob = Glob::new(glob).map_err(|e| CommandExit::usage(format!("--only: {e}")))?;
        globs.add(glob);
    }
    let globs = globs
        .build()
        .map_err(|e| CommandExit::usage(format!("--only: {e}")))?;
    let chosen = checks
        .into_iter()
        .filter(|check| globs.is_match(check.id()));
    let chosen: Vec<Check> = chosen.collect();
    if chosen.is_empty() {
        let message = "--only: no matching checks; list all checks with --list";
        return Err(CommandExit::usage(message));
    }
    Ok(chosen)
}

/// Lists the checks that `--only` selects.
pub(super) fn list_checks(
    args: &CheckRunArgs,
    checks: Vec<Check>,
) -> Result<CommandExit, CommandExit> {
    let mut stdout = std::io::stdout().lock();
    for check in filter_checks(args, checks)? {
        let (id, level, requirement) = (check.id(), check.level, check.sentence());
        if writeln!(stdout, "{id:<34} {level:<6} {requirement}").is_err() {
            return Err(CommandExit::STDOUT_CLOSED);
        }
    }
    Ok(CommandExit::SUCCESS)
}
