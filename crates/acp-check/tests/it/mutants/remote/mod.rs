//! Tests the checks of the remote transport with correct peers and mutants.

mod client;
mod client_mutants;
mod frames;
mod server;
mod server_mutants;
mod server_websocket;

use std::sync::Arc;
use std::time::Duration;

use acp_check::{
    Check, CheckOptions, CheckOutcome, RemoteServer, Verdict, detect_transports,
    remote_client_checks, run_remote_client_checks, run_server_checks, server_checks,
};

use super::{
    MAX_PARALLEL_MUTANTS, MUTANT_TIMEOUTS, TIMEOUT, describe_outcome, options_with_timeout,
};
use server::{ServerMutant, TestServer};

/// The options for the remote transport. Here, the prompt for running a command makes the agent edit a file instead,
/// because the agent requests permission only for edits.
fn remote_options(patience: Duration) -> CheckOptions {
    let mut options = options_with_timeout(patience);
    let prompts = &mut options.prompts;
    prompts.insert(acp_check::AgentTask::Run, "edit".to_owned());
    options
}

async fn run(server: &TestServer, checks: &[Check], patience: Duration) -> Vec<CheckOutcome> {
    let target = RemoteServer::new(&server.url).unwrap();
    let options = remote_options(patience);
    let offered = detect_transports(&target, &options).await.unwrap();
    run_server_checks(target, offered, checks, options, |_| {}).await
}

#[tokio::test]
async fn acp_server_passes_all_checks() {
    let server = TestServer::start(None).await;
    let outcomes = run(&server, &server_checks(), TIMEOUT).await;
    require_passed(&outcomes);
}

fn require_passed(outcomes: &[CheckOutcome]) {
    let wrong = outcomes
        .iter()
        .filter(|outcome| outcome.verdict != Verdict::Pass);
    let wrong: Vec<String> = wrong.map(describe_outcome).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn server_checks_kill_their_mutants() {
    let checks = server_checks();
    let mutants: Vec<ServerMutant> = server_mutants::mutants()
        .into_iter()
        .chain(server_websocket::mutants())
        .collect();
    kill(
        &checks,
        mutants,
        |mutant| (mutant.kills, mutant.why, mutant.what),
        |check, mutant, patience| async move {
            let server = TestServer::start(Some(mutant)).await;
            run(&server, &[check], patience).await.swap_remove(0)
        },
    )
    .await;
}

/// Checks that each check catches its mutants for the right reason, and that each check has a mutant.
async fn kill<M, Fut>(
    checks: &[Check],
    mutants: Vec<M>,
    describe: fn(&M) -> (&'static str, &'static str, &'static str),
    try_once: fn(Check, Arc<M>, Duration) -> Fut,
) where
    M: Send + Sync + 'static,
    Fut: Future<Output = CheckOutcome> + Send + 'static,
{
    let ids: Vec<String> = checks.iter().map(Check::id).collect();
    let is_killer = |id: &String| mutants.iter().any(|mutant| describe(mutant).0 == *id);
    let without: Vec<&String> = ids.iter().filter(|id| !is_killer(id)).collect();
    let total = mutants.len();
    let room = Arc::new(tokio::sync::Semaphore::new(MAX_PARALLEL_MUTANTS));
    let mut running = tokio::task::JoinSet::new();
    for mutant in mutants {
        let (kills, why, what) = describe(&mutant);
        let check = checks.iter().find(|check| check.id() == kills);
        let check = *check.unwrap_or_else(|| panic!("{kills} is no check"));
        let room = Arc::clone(&room);
        running.spawn(async move {
            let _turn = room.acquire_owned().await;
            let mutant = Arc::new(mutant);
            let mut escaped = None;
            for patience in MUTANT_TIMEOUTS {
                let outcome = try_once(check, Arc::clone(&mutant), patience).await;
                if let Verdict::Fail(reason) | Verdict::Warn(reason) = &outcome.verdict
                    && reason.contains(why)
                {
                    return None;
                }
                escaped = Some(outcome);
            }
            escaped.map(|outcome| {
                format!(
                    "{kills}: {what}: not caught for {why:?}\n{}",
                    describe_outcome(&outcome)
                )
            })
        });
    }
    let mut alive = Vec::new();
    while let Some(tried) = running.join_next().await {
        alive.extend(tried.unwrap());
    }
    println!(
        "{} checks, {total} mutants, {} killed",
        checks.len(),
        total - alive.len()
    );
    assert!(alive.is_empty(), "alive:\n{}", alive.join("\n"));
    assert!(
        without.is_empty(),
        "checks that no mutant fails: {without:?}"
    );
}

#[tokio::test]
async fn acp_client_passes_all_remote_checks() {
    let checks = remote_client_checks();
    let client = client::target(client::start);
    let options = remote_options(TIMEOUT);
    let outcomes = run_remote_client_checks(client, &checks, options, |_| {}).await;
    require_passed(&outcomes);
}

#[tokio::test]
async fn remote_client_checks_kill_their_mutants() {
    let checks = remote_client_checks();
    let mutants = client_mutants::mutants();
    kill(
        &checks,
        mutants,
        |mutant| (mutant.kills, mutant.why, mutant.what),
        |check, mutant, patience| async move {
            let client = client::target(client::mutated(mutant.change));
            let options = remote_options(patience);
            let mut outcomes = run_remote_client_checks(client, &[check], options, |_| {}).await;
            outcomes.swap_remove(0)
        },
    )
    .await;
}

/// Checks that a server without WebSocket gets a single warning, from the check for WebSocket support.
#[tokio::test]
async fn server_without_websocket_gets_one_warning() {
    let mutant = server_mutants::mutants()
        .into_iter()
        .find(|mutant| mutant.kills == "remote/requests/23");
    let server = TestServer::start(mutant.map(Arc::new)).await;
    let outcomes = run(&server, &server_checks(), TIMEOUT).await;
    for outcome in outcomes {
        match outcome.verdict {
            Verdict::Pass => {}
            Verdict::Skip(_) if outcome.check.page == "websocket" => {}
            Verdict::Warn(_) if outcome.check.id() == "remote/requests/23" => {}
            _ => panic!("{}", describe_outcome(&outcome)),
        }
    }
}

#[tokio::test]
async fn unreachable_server_is_reported_once() {
    let target = RemoteServer::new("http://127.0.0.1:1/acp").unwrap();
    let found = detect_transports(&target, &remote_options(TIMEOUT)).await;
    let why = found.unwrap_err();
    assert!(why.starts_with("cannot connect to 127.0.0.1:1"), "{why}");
}
