//! `acp check`: tests whether an agent or a client conforms to the specification.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_check::SchemaVersion;
use acp_check::relay::ClientProgram;
use acp_check::report::{CheckReport, TextStyle};
use acp_check::{
    self, AgentProgram, AgentTask, Check, CheckOptions, CheckTarget, Side, Verdict, baseline,
};
use acp_host::AgentCommand;
use globset::{Glob, GlobSetBuilder};

use crate::args::check::{
    CheckAgentArgs, CheckArgs, CheckClientArgs, CheckCommonArgs, CheckFormat, CheckedVersions,
};
use crate::exit::CommandExit;
use crate::remote_agent::RelayedAgent;
use crate::signals::Signals;

/// The line width to use if the width of the terminal is unknown.
const DEFAULT_WIDTH: usize = 120;

pub(crate) async fn run_check(args: CheckArgs) -> CommandExit {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(e) => return CommandExit::failed(format!("cannot listen for signals: {e}")),
    };
    let work = async {
        match args {
            CheckArgs::Agent(args) => check_agent(args).await,
            CheckArgs::Client(args) => check_client(args).await,
        }
    };
    tokio::select! {
        checked = work => checked.unwrap_or_else(|exit| exit),
        _ = signals.next() => CommandExit::CANCELLED,
    }
}

async fn check_agent(args: CheckAgentArgs) -> Result<CommandExit, CommandExit> {
    let known = |version| acp_check::agent_checks(version);
    if args.common.list {
        return list_checks(&args.common, known);
    }
    let given = args.common.env.agent_environment()?;
    let agent = RelayedAgent::from_args(&args.agent, &args.url, given.environment())?;
    let target: Arc<dyn CheckTarget> = Arc::new(AgentProgram::new(agent.command));
    let mut texts = HashMap::new();
    for (task, text) in args.prompt_for {
        texts.insert(task, text);
    }
    if let Some(text) = args.prompt {
        texts.entry(AgentTask::Answer).or_insert(text);
    }
    let options = CheckOptions {
        timeout: Duration::from_secs(args.common.timeout),
        turn_timeout: Duration::from_secs(args.turn_timeout),
        check_timeout: Duration::from_secs(args.turn_timeout.max(args.common.timeout) * 4),
        jobs: args.common.jobs,
        auth_method: args.login,
        prompts: texts,
    };
    let spoken = acp_check::detect_agent_versions(&*target, &options)
        .await
        .map_err(CommandExit::agent_failed)?;
    run_checks(
        Side::Agent,
        &agent.words,
        &args.common,
        target,
        options,
        &spoken,
        known,
    )
    .await
}

async fn check_client(args: CheckClientArgs) -> Result<CommandExit, CommandExit> {
    let known = |version| acp_check::client_checks(version);
    if args.common.list {
        return list_checks(&args.common, known);
    }
    let command = client_command(&args.client, &args.common)?;
    let this = std::env::current_exe()
        .map_err(|e| CommandExit::failed(format!("cannot find the path of this program: {e}")))?;
    let patience = Duration::from_secs(args.prompt_timeout);
    let target = ClientProgram::new(command, [this.into_os_string(), "check-relay".into()])
        .map_err(|e| CommandExit::usage(e.to_string()))?
        .start_timeout(patience);
    let options = CheckOptions {
        timeout: Duration::from_secs(args.common.timeout),
        turn_timeout: patience,
        check_timeout: Duration::from_secs(args.prompt_timeout.max(args.common.timeout) * 4),
        jobs: args.common.jobs,
        ..CheckOptions::default()
    };
    let spoken = acp_check::detect_client_versions(&target, &options)
        .await
        .map_err(CommandExit::agent_failed)?;
    let target: Arc<dyn CheckTarget> = Arc::new(target);
    run_checks(
        Side::Client,
        &args.client,
        &args.common,
        target,
        options,
        &spoken,
        known,
    )
    .await
}

/// Returns the command that starts the client, with its environment.
fn client_command(words: &[String], common: &CheckCommonArgs) -> Result<AgentCommand, CommandExit> {
    let Some((program, rest)) = words.split_first() else {
        return Err(CommandExit::usage("no client command given"));
    };
    let given = common.env.agent_environment()?;
    let command = AgentCommand::new(program).args(rest);
    Ok(command.environment(given.environment()))
}

async fn run_checks(
    side: Side,
    command: &[String],
    common: &CheckCommonArgs,
    target: Arc<dyn CheckTarget>,
    options: CheckOptions,
    spoken: &[SchemaVersion],
    known: impl Fn(SchemaVersion) -> Vec<Check>,
) -> Result<CommandExit, CommandExit> {
    let expected = match &common.baseline {
        None => Vec::new(),
        Some(path) => match std::fs::read_to_string(path) {
            Ok(text) => baseline::parse_baseline(&text),
            Err(e) => {
                let path = path.display();
                return Err(CommandExit::usage(format!(
                    "--baseline: cannot read {path}: {e}"
                )));
            }
        },
    };
    let wanted = common.versions();
    let (spoken, not_spoken): (Vec<SchemaVersion>, Vec<SchemaVersion>) =
        wanted.iter().partition(|version| spoken.contains(version));
    let all: Vec<Check> = [SchemaVersion::V1, SchemaVersion::V2]
        .into_iter()
        .flat_map(&known)
        .collect();
    let checks: Vec<Check> = spoken.iter().copied().flat_map(&known).collect();
    let checks = filter_checks(common, checks)?;
    let began = Instant::now();
    let progress = CheckProgress::new(checks.len());
    let outcomes =
        acp_check::run_checks_with_progress(target, &checks, options, |_| progress.increment())
            .await;
    progress.clear();
    let report = CheckReport {
        side,
        program: command.join(" "),
        duration: began.elapsed(),
        unsupported_versions: not_spoken,
        mismatches: baseline::find_mismatches(&expected, &all, &outcomes),
        expected_failures: expected,
        outcomes,
    };
    write_report(common, &report)?;
    Ok(report_exit(&report, common.strict))
}

/// Returns the exit that corresponds to a report.
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

fn write_report(common: &CheckCommonArgs, report: &CheckReport) -> Result<(), CommandExit> {
    let stdout = std::io::stdout();
    let text = match common.format {
        CheckFormat::Text => report.to_text(TextStyle {
            color: common.out.is_none()
                && stdout.is_terminal()
                && std::env::var_os("NO_COLOR").is_none(),
            verbose: common.verbose,
            width: DEFAULT_WIDTH,
        }),
        CheckFormat::Json => format!("{:#}\n", report.to_json()),
        CheckFormat::Junit => report
            .to_junit()
            .map_err(|e| CommandExit::failed(format!("cannot write the XML report: {e}")))?,
        CheckFormat::Html => report.to_html(),
    };
    match &common.out {
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
fn filter_checks(common: &CheckCommonArgs, checks: Vec<Check>) -> Result<Vec<Check>, CommandExit> {
    if common.only.is_empty() {
        return Ok(checks);
    }
    let mut globs = GlobSetBuilder::new();
    for glob in &common.only {
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

fn list_checks(
    common: &CheckCommonArgs,
    known: impl Fn(SchemaVersion) -> Vec<Check>,
) -> Result<CommandExit, CommandExit> {
    let checks = common.versions().into_iter().flat_map(known).collect();
    let mut stdout = std::io::stdout().lock();
    for check in filter_checks(common, checks)? {
        let (id, level, requirement) = (check.id(), check.level, check.sentence());
        if writeln!(stdout, "{id:<34} {level:<6} {requirement}").is_err() {
            return Err(CommandExit::STDOUT_CLOSED);
        }
    }
    Ok(CommandExit::SUCCESS)
}

/// The progress of the checks, shown on the terminal.
struct CheckProgress {
    shown: bool,
    done_count: std::cell::Cell<usize>,
    total: usize,
}

impl CheckProgress {
    fn new(all: usize) -> Self {
        let shown = std::io::stderr().is_terminal();
        Self {
            shown,
            done_count: 0.into(),
            total: all,
        }
    }

    fn increment(&self) {
        self.done_count.set(self.done_count.get() + 1);
        if self.shown {
            let _ = write!(
                std::io::stderr(),
                "\r{} of {}",
                self.done_count.get(),
                self.total
            );
        }
    }

    fn clear(&self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}

impl CheckCommonArgs {
    /// Returns the versions to check.
    fn versions(&self) -> Vec<SchemaVersion> {
        match self.protocol {
            CheckedVersions::All => vec![SchemaVersion::V1, SchemaVersion::V2],
            CheckedVersions::V1 => vec![SchemaVersion::V1],
            CheckedVersions::V2 => vec![SchemaVersion::V2],
        }
    }
}
