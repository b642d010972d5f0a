//! `acp check`: whether an agent or a client keeps to the specification.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_check::Version;
use acp_check::relay::ClientProgram;
use acp_check::report::{Report, TextStyle};
use acp_check::{self, Check, Options, Program, Side, Target, Task, Verdict, baseline};
use acp_host::AgentCommand;
use globset::{Glob, GlobSetBuilder};

use crate::args::check::{CheckArgs, CheckedAgent, CheckedClient, Common, Format, Spoken};
use crate::exit::Exit;
use crate::signals::Signals;

/// How wide text is where the width of the terminal is not known.
const WIDTH: usize = 120;

pub(crate) async fn check(args: CheckArgs) -> Exit {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(e) => return Exit::failed(format!("cannot listen for signals: {e}")),
    };
    let work = async {
        match args {
            CheckArgs::Agent(args) => agent(args).await,
            CheckArgs::Client(args) => client(args).await,
        }
    };
    tokio::select! {
        checked = work => checked.unwrap_or_else(|exit| exit),
        _ = signals.next() => Exit::CANCELLED,
    }
}

async fn agent(args: CheckedAgent) -> Result<Exit, Exit> {
    let known = |version| acp_check::agents(version);
    if args.common.list {
        return list(&args.common, known);
    }
    let command = command(Side::Agent, &args.agent, &args.common)?;
    let target: Arc<dyn Target> = Arc::new(Program::new(command));
    let mut texts = HashMap::new();
    for (task, text) in args.prompt_for {
        texts.insert(task, text);
    }
    if let Some(text) = args.prompt {
        texts.entry(Task::Answer).or_insert(text);
    }
    let options = Options {
        patience: Duration::from_secs(args.common.timeout),
        turn_patience: Duration::from_secs(args.turn_timeout),
        limit: Duration::from_secs(args.turn_timeout.max(args.common.timeout) * 4),
        jobs: args.common.jobs,
        login: args.login,
        texts,
    };
    let spoken = acp_check::spoken(&*target, &options)
        .await
        .map_err(Exit::broken)?;
    carry_out(
        Side::Agent,
        &args.agent,
        &args.common,
        target,
        options,
        &spoken,
        known,
    )
    .await
}

async fn client(args: CheckedClient) -> Result<Exit, Exit> {
    let known = |version| acp_check::clients(version);
    if args.common.list {
        return list(&args.common, known);
    }
    let command = command(Side::Client, &args.client, &args.common)?;
    let this = std::env::current_exe()
        .map_err(|e| Exit::failed(format!("this program does not know where it is: {e}")))?;
    let patience = Duration::from_secs(args.prompt_timeout);
    let target = ClientProgram::new(command, [this.into_os_string(), "check-relay".into()])
        .map_err(|e| Exit::usage(e.to_string()))?
        .patience(patience);
    let options = Options {
        patience: Duration::from_secs(args.common.timeout),
        turn_patience: patience,
        limit: Duration::from_secs(args.prompt_timeout.max(args.common.timeout) * 4),
        jobs: args.common.jobs,
        ..Options::default()
    };
    let spoken = acp_check::spoken_by_client(&target, &options)
        .await
        .map_err(Exit::broken)?;
    let target: Arc<dyn Target> = Arc::new(target);
    carry_out(
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

/// The command that is to be checked, with what it is given of the environment.
fn command(side: Side, words: &[String], common: &Common) -> Result<AgentCommand, Exit> {
    let Some((program, rest)) = words.split_first() else {
        return Err(Exit::usage(format!("no {side} to check is given")));
    };
    let given = common.env.given()?;
    let command = AgentCommand::new(program).args(rest);
    Ok(command.environment(given.environment()))
}

async fn carry_out(
    side: Side,
    command: &[String],
    common: &Common,
    target: Arc<dyn Target>,
    options: Options,
    spoken: &[Version],
    known: impl Fn(Version) -> Vec<Check>,
) -> Result<Exit, Exit> {
    let expected = match &common.baseline {
        None => Vec::new(),
        Some(path) => match std::fs::read_to_string(path) {
            Ok(text) => baseline::read(&text),
            Err(e) => {
                let path = path.display();
                return Err(Exit::usage(format!(
                    "--baseline: {path} cannot be read: {e}"
                )));
            }
        },
    };
    let wanted = common.wanted();
    let (spoken, not_spoken): (Vec<Version>, Vec<Version>) =
        wanted.iter().partition(|version| spoken.contains(version));
    let all: Vec<Check> = [Version::V1, Version::V2]
        .into_iter()
        .flat_map(&known)
        .collect();
    let checks: Vec<Check> = spoken.iter().copied().flat_map(&known).collect();
    let checks = chosen(common, checks)?;
    let began = Instant::now();
    let progress = Progress::new(checks.len());
    let outcomes = acp_check::run_telling(target, &checks, options, |_| progress.one()).await;
    progress.end();
    let report = Report {
        side,
        program: command.join(" "),
        took: began.elapsed(),
        not_spoken,
        surprises: baseline::surprises(&expected, &all, &outcomes),
        expected,
        outcomes,
    };
    write(common, &report)?;
    Ok(judged(&report, common.strict))
}

/// How the command ends.
fn judged(report: &Report, strict: bool) -> Exit {
    let broken = report
        .outcomes
        .iter()
        .all(|outcome| matches!(outcome.verdict, Verdict::Harness(_)));
    if broken && !report.outcomes.is_empty() {
        let why = report
            .outcomes
            .first()
            .and_then(|outcome| outcome.verdict.why());
        return Exit::broken(why.unwrap_or("no check could be carried out"));
    }
    if report.passed(strict) {
        Exit::SUCCESS
    } else {
        Exit {
            code: 1,
            message: None,
        }
    }
}

fn write(common: &Common, report: &Report) -> Result<(), Exit> {
    let stdout = std::io::stdout();
    let text = match common.format {
        Format::Text => report.to_text(TextStyle {
            colour: common.out.is_none()
                && stdout.is_terminal()
                && std::env::var_os("NO_COLOR").is_none(),
            verbose: common.verbose,
            width: WIDTH,
        }),
        Format::Json => format!("{:#}\n", report.to_json()),
        Format::Junit => report
            .to_junit()
            .map_err(|e| Exit::failed(format!("the report cannot be written as XML: {e}")))?,
        Format::Html => report.to_html(),
    };
    match &common.out {
        Some(path) => std::fs::write(path, text).map_err(|e| {
            let path = path.display();
            Exit::failed(format!("{path} cannot be written: {e}"))
        }),
        None => match stdout.lock().write_all(text.as_bytes()) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Err(Exit::UNREAD),
            Err(e) => Err(Exit::failed(format!("stdout cannot be written: {e}"))),
        },
    }
}

/// The checks that `--only` names.
fn chosen(common: &Common, checks: Vec<Check>) -> Result<Vec<Check>, Exit> {
    if common.only.is_empty() {
        return Ok(checks);
    }
    let mut globs = GlobSetBuilder::new();
    for glob in &common.only {
        let glob = Glob::new(glob).map_err(|e| Exit::usage(format!("--only: {e}")))?;
        globs.add(glob);
    }
    let globs = globs
        .build()
        .map_err(|e| Exit::usage(format!("--only: {e}")))?;
    let chosen = checks
        .into_iter()
        .filter(|check| globs.is_match(check.id()));
    let chosen: Vec<Check> = chosen.collect();
    if chosen.is_empty() {
        let message = "--only: no check has such an id; --list names them";
        return Err(Exit::usage(message));
    }
    Ok(chosen)
}

fn list(common: &Common, known: impl Fn(Version) -> Vec<Check>) -> Result<Exit, Exit> {
    let checks = common.wanted().into_iter().flat_map(known).collect();
    let mut stdout = std::io::stdout().lock();
    for check in chosen(common, checks)? {
        let (id, level, requirement) = (check.id(), check.level, check.sentence());
        if writeln!(stdout, "{id:<34} {level:<6} {requirement}").is_err() {
            return Err(Exit::UNREAD);
        }
    }
    Ok(Exit::SUCCESS)
}

/// How far it has come, for a person who waits.
struct Progress {
    shown: bool,
    done: std::cell::Cell<usize>,
    all: usize,
}

impl Progress {
    fn new(all: usize) -> Self {
        let shown = std::io::stderr().is_terminal();
        Self {
            shown,
            done: 0.into(),
            all,
        }
    }

    fn one(&self) {
        self.done.set(self.done.get() + 1);
        if self.shown {
            let _ = write!(std::io::stderr(), "\r{} of {}", self.done.get(), self.all);
        }
    }

    fn end(&self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}

impl Common {
    /// The versions whose checks are asked for.
    fn wanted(&self) -> Vec<Version> {
        match self.protocol {
            Spoken::All => vec![Version::V1, Version::V2],
            Spoken::V1 => vec![Version::V1],
            Spoken::V2 => vec![Version::V2],
        }
    }
}
