//! `acp check`: tests whether an agent or a client conforms to the specification.

mod output;
mod progress;
mod remote;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_check::SchemaVersion;
use acp_check::relay::ClientProgram;
use acp_check::report::CheckReport;
use acp_check::{
    self, AgentProgram, AgentTask, Check, CheckEvent, CheckOptions, CheckTarget, Side, baseline,
};
use acp_host::AgentCommand;
use tokio_util::sync::CancellationToken;

use self::output::{filter_checks, finish, list_checks, prepare, read_baseline};
use self::progress::CheckProgress;
use crate::args::check::{
    CheckAgentArgs, CheckArgs, CheckClientArgs, CheckCommonArgs, CheckedVersions,
};
use crate::exit::CommandExit;
use crate::remote_agent::RelayedAgent;
use crate::signals::Signals;

/// How long the report of an interrupted run may take.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs the checks. At the first signal, it stops and reports the checks that have ended.
pub(crate) async fn run_check(args: CheckArgs) -> CommandExit {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(e) => return CommandExit::failed(format!("cannot listen for signals: {e}")),
    };
    let stop = CancellationToken::new();
    let work = async {
        match args {
            CheckArgs::Agent(args) => check_agent(args, &stop).await,
            CheckArgs::Client(args) => check_client(args, &stop).await,
            CheckArgs::Server(args) => remote::check_server(args, &stop).await,
            CheckArgs::RemoteClient(args) => remote::check_client(args, &stop).await,
        }
    };
    tokio::pin!(work);
    tokio::select! {
        checked = &mut work => return checked.unwrap_or_else(|exit| exit),
        _ = signals.next() => stop.cancel(),
    }
    tokio::select! {
        _ = tokio::time::timeout(REPORT_TIMEOUT, work) => {}
        _ = signals.next() => {}
    }
    CommandExit::CANCELLED
}

async fn check_agent(
    args: CheckAgentArgs,
    stop: &CancellationToken,
) -> Result<CommandExit, CommandExit> {
    let known = |version| acp_check::agent_checks(version);
    if args.common.run.list {
        let checks = args.common.versions().into_iter().flat_map(known);
        return list_checks(&args.common.run, checks.collect());
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
        timeout: Duration::from_secs(args.common.run.timeout),
        turn_timeout: Duration::from_secs(args.turn_timeout),
        check_timeout: Duration::from_secs(args.turn_timeout.max(args.common.run.timeout) * 4),
        jobs: args.common.run.jobs(),
        shares_agents: !args.no_sharing,
        auth_method: args.login,
        prompts: texts,
        stop: stop.clone(),
    };
    let progress = CheckProgress::new(&args.common.run);
    progress.show("starting the agent");
    let spoken = prepare(stop, acp_check::detect_agent_versions(&*target, &options)).await;
    progress.clear();
    let spoken = spoken?;
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

async fn check_client(
    args: CheckClientArgs,
    stop: &CancellationToken,
) -> Result<CommandExit, CommandExit> {
    let known = |version| acp_check::client_checks(version);
    if args.common.run.list {
        let checks = args.common.versions().into_iter().flat_map(known);
        return list_checks(&args.common.run, checks.collect());
    }
    let command = client_command(&args.client, &args.common)?;
    let this = std::env::current_exe()
        .map_err(|e| CommandExit::failed(format!("cannot find the path of this program: {e}")))?;
    let patience = Duration::from_secs(args.prompt_timeout);
    let target = ClientProgram::new(command, [this.into_os_string(), "check-relay".into()])
        .map_err(|e| CommandExit::usage(e.to_string()))?
        .start_timeout(patience);
    let options = CheckOptions {
        timeout: Duration::from_secs(args.common.run.timeout),
        turn_timeout: patience,
        check_timeout: Duration::from_secs(args.prompt_timeout.max(args.common.run.timeout) * 4),
        jobs: args.common.run.jobs(),
        stop: stop.clone(),
        ..CheckOptions::default()
    };
    let spoken = prepare(stop, acp_check::detect_client_versions(&target, &options)).await?;
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
    let expected = read_baseline(&common.run)?;
    let wanted = common.versions();
    let (spoken, not_spoken): (Vec<SchemaVersion>, Vec<SchemaVersion>) =
        wanted.iter().partition(|version| spoken.contains(version));
    let all: Vec<Check> = [SchemaVersion::V1, SchemaVersion::V2]
        .into_iter()
        .flat_map(&known)
        .collect();
    let checks: Vec<Check> = spoken.iter().copied().flat_map(&known).collect();
    let checks = filter_checks(&common.run, checks)?;
    let began = Instant::now();
    let progress = CheckProgress::new(&common.run);
    let total = checks.iter().filter(|check| !check.judges_others()).count();
    let tell = |event: CheckEvent<'_>| progress.handle(event, total);
    let outcomes = acp_check::run_checks_with_progress(target, &checks, options, tell).await;
    progress.clear();
    let report = CheckReport {
        side,
        program: command.join(" "),
        duration: began.elapsed(),
        unsupported_versions: not_spoken,
        mismatches: baseline::find_mismatches(&expected, &all, &outcomes),
        expected_failures: expected,
        unfinished_count: checks.len().saturating_sub(outcomes.len()),
        outcomes,
    };
    finish(&common.run, &report)
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
