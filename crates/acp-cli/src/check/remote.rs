//! `acp check server` and `acp check remote-client`: check implementations of the remote transport.

use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_check::report::CheckReport;
use acp_check::{
    Check, CheckEvent, CheckOptions, CheckOutcome, RemoteClientProgram, RemoteServer, Side,
    baseline,
};
use acp_config::{RemoteAgent, TokenHeader, TypedUrl};
use acp_host::AgentCommand;
use acp_remote::Token;
use acp_remote::client::{TokenStyle, Trust};
use tokio_util::sync::CancellationToken;

use super::output::{filter_checks, finish, list_checks, prepare, read_baseline};
use super::progress::CheckProgress;
use crate::args::check::{CheckRemoteClientArgs, CheckRunArgs, CheckServerArgs};
use crate::exit::CommandExit;

pub(super) async fn check_server(
    args: CheckServerArgs,
    stop: &CancellationToken,
) -> Result<CommandExit, CommandExit> {
    if args.run.list {
        return list_checks(&args.run, acp_check::server_checks());
    }
    let Some(url) = &args.url else {
        return Err(CommandExit::usage("no URL given"));
    };
    let server = server(url, &args)?;
    let options = CheckOptions {
        turn_timeout: Duration::from_secs(args.turn_timeout),
        check_timeout: Duration::from_secs(args.turn_timeout.max(args.run.timeout) * 4),
        auth_method: args.login.clone(),
        prompts: args.prompt_for.iter().cloned().collect(),
        ..options(&args.run, stop)
    };
    let offered = prepare(stop, acp_check::detect_transports(&server, &options)).await?;
    let program = server.to_string();
    let all = acp_check::server_checks();
    report(
        Side::Agent,
        &program,
        &args.run,
        all,
        async |checks: &[Check], progress: &CheckProgress| {
            let tell = |event: CheckEvent<'_>| progress.handle(event, checks.len());
            acp_check::run_server_checks(server, offered, checks, options, tell).await
        },
    )
    .await
}

pub(super) async fn check_client(
    args: CheckRemoteClientArgs,
    stop: &CancellationToken,
) -> Result<CommandExit, CommandExit> {
    if args.run.list {
        return list_checks(&args.run, acp_check::remote_client_checks());
    }
    let Some((program, words)) = args.client.split_first() else {
        return Err(CommandExit::usage("no client command given"));
    };
    let given = args.env.agent_environment()?;
    let command = AgentCommand::new(program).args(words);
    let command = command.environment(given.environment());
    let client =
        RemoteClientProgram::new(command).map_err(|e| CommandExit::usage(e.to_string()))?;
    let client = Arc::new(client);
    let options = CheckOptions {
        turn_timeout: Duration::from_secs(args.prompt_timeout),
        check_timeout: Duration::from_secs(args.prompt_timeout.max(args.run.timeout) * 4),
        ..options(&args.run, stop)
    };
    let program = args.client.join(" ");
    let all = acp_check::remote_client_checks();
    report(
        Side::Client,
        &program,
        &args.run,
        all,
        async |checks: &[Check], progress: &CheckProgress| {
            let tell = |event: CheckEvent<'_>| progress.handle(event, checks.len());
            acp_check::run_remote_client_checks(client, checks, options, tell).await
        },
    )
    .await
}

/// Returns the server at a URL, with its token and certificate. Prints any warnings.
fn server(url: &TypedUrl, args: &CheckServerArgs) -> Result<RemoteServer, CommandExit> {
    let agent = RemoteAgent::from_url(url, &args.remote.options())?;
    for note in &agent.notes {
        eprintln!("acp: {note}");
    }
    let mut server =
        RemoteServer::new(agent.url.as_str()).map_err(|e| CommandExit::usage(e.to_string()))?;
    if let Some(token) = &agent.token {
        let token = Token::new(token.expose()).map_err(|e| CommandExit::usage(e.to_string()))?;
        let style = match agent.token_header {
            TokenHeader::XSecretKey => TokenStyle::SecretKey,
            _ => TokenStyle::Bearer,
        };
        server = server.token(token, style);
    }
    if let Some(trust) = agent.pin.as_deref().and_then(Trust::from_pin) {
        server = server.trust(trust);
    }
    if let Some(cwd) = &args.cwd {
        server = server.cwd(cwd);
    }
    Ok(server)
}

fn options(args: &CheckRunArgs, stop: &CancellationToken) -> CheckOptions {
    CheckOptions {
        timeout: Duration::from_secs(args.timeout),
        jobs: args.jobs(),
        stop: stop.clone(),
        ..CheckOptions::default()
    }
}

/// Runs the checks in `all` that were selected, and writes the report.
async fn report(
    side: Side,
    program: &str,
    args: &CheckRunArgs,
    all: Vec<Check>,
    run: impl AsyncFnOnce(&[Check], &CheckProgress) -> Vec<CheckOutcome>,
) -> Result<CommandExit, CommandExit> {
    let expected = read_baseline(args)?;
    let checks = filter_checks(args, all.clone())?;
    let began = Instant::now();
    let progress = CheckProgress::new(args);
    let outcomes = run(&checks, &progress).await;
    progress.clear();
    let report = CheckReport {
        side,
        program: program.to_owned(),
        duration: began.elapsed(),
        unsupported_versions: Vec::new(),
        mismatches: baseline::find_mismatches(&expected, &all, &outcomes),
        expected_failures: expected,
        unfinished_count: checks.len().saturating_sub(outcomes.len()),
        outcomes,
    };
    finish(args, &report)
}
