//! The suite is tested itself: the right peers pass every check, and for each check there is a peer that is wrong on
//! purpose, and that it catches.

mod agent;
mod agent_turns;
mod agent_v2;
mod both_agent;
mod both_client;
mod changes;
mod client;
mod client_v2;
mod layer;
mod mcp;
mod remote;
mod unstable;
mod v1_agent;
mod v1_client;
mod v2_agent;
mod v2_client;

use std::sync::Arc;
use std::time::Duration;

use acp::Transport;
use acp_check::SchemaVersion;
use acp_check::{Check, CheckOptions, CheckOutcome, CheckProcedure, CheckTarget, Verdict};

use layer::{Mutant, mutated};

/// How long the right peers may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a peer that is wrong may leave something out, before that is noticed. A machine that has much else to do may
/// take longer for what is done right: then it is tried again with more patience.
const SHORT: [Duration; 3] = [Duration::from_millis(700), Duration::from_secs(4), PATIENCE];

/// How many mutants are tried at once.
const JOBS: usize = 16;

type CorrectPeer = fn(Transport);

fn options(patience: Duration) -> CheckOptions {
    CheckOptions {
        timeout: patience,
        turn_timeout: patience,
        check_timeout: patience * 5,
        jobs: JOBS,
        auth_method: Some(agent::LOGIN.to_owned()),
        prompts: agent::texts(),
    }
}

/// The right peer passes all, and skips only what is named.
async fn passes(right: CorrectPeer, checks: Vec<Check>, skipped: &[&str]) {
    let outcomes = acp_check::run(Arc::new(right), &checks, options(PATIENCE)).await;
    let wrong = outcomes.iter().filter(|outcome| match outcome.verdict {
        Verdict::Pass => false,
        Verdict::Skip(_) => !skipped.contains(&outcome.check.id().as_str()),
        _ => true,
    });
    let wrong: Vec<String> = wrong.map(told).collect();
    assert!(
        wrong.is_empty(),
        "the right peer does not pass:\n{}",
        wrong.join("\n")
    );
    for id in skipped {
        let outcome = outcomes.iter().find(|outcome| outcome.check.id() == *id);
        let outcome = outcome.unwrap_or_else(|| panic!("{id} is no check"));
        assert!(
            matches!(outcome.verdict, Verdict::Skip(_)),
            "{id} is not skipped: {}",
            outcome.verdict
        );
    }
}

fn told(outcome: &CheckOutcome) -> String {
    let said: Vec<String> = outcome
        .transcript
        .entries()
        .iter()
        .map(|entry| match entry {
            acp_check::TranscriptEntry::Line {
                direction, text, ..
            } => format!("    {direction}: {text}"),
            acp_check::TranscriptEntry::Event {
                description: what, ..
            } => format!("    * {what}"),
            _ => String::new(),
        })
        .collect();
    format!(
        "{}: {}\n{}",
        outcome.check.id(),
        outcome.verdict,
        said.join("\n")
    )
}

/// Every check catches each mutant that is made for it, for the reason that is wrong with it.
async fn kills(right: CorrectPeer, checks: Vec<Check>, mutants: Vec<Mutant>) {
    let mut alive = Vec::new();
    let mut without = Vec::new();
    let played: Vec<Check> = checks
        .iter()
        .filter(|check| {
            !matches!(
                check.procedure,
                CheckProcedure::Shape(_) | CheckProcedure::Rules
            )
        })
        .copied()
        .collect();
    for check in &checks {
        let id = check.id();
        let elsewhere = v1_agent::PROCESSES.contains(&id.as_str());
        if !elsewhere && !mutants.iter().any(|mutant| mutant.kills == id) {
            without.push(id);
        }
    }
    let total = mutants.len();
    let room = Arc::new(tokio::sync::Semaphore::new(JOBS));
    let mut running = tokio::task::JoinSet::new();
    for mutant in mutants {
        let check = checks.iter().find(|check| check.id() == mutant.kills);
        let check = *check.unwrap_or_else(|| panic!("{} is no check", mutant.kills));
        let (room, played) = (Arc::clone(&room), played.clone());
        running.spawn(async move {
            let _turn = room.acquire_owned().await;
            let mut checks = vec![check];
            if matches!(
                check.procedure,
                CheckProcedure::Shape(_) | CheckProcedure::Rules
            ) {
                // The message comes in the check that is named with the mutant.
                let carrier = mutant.seen_in.expect("a mutant of a shape names a check");
                let carrier = played.iter().find(|check| check.id() == carrier);
                checks.push(*carrier.unwrap_or_else(|| panic!("{} names no check", mutant.kills)));
            }
            let (kills, why, what) = (mutant.kills, mutant.why, mutant.what);
            let target: Arc<dyn CheckTarget> = Arc::new(mutated(right, mutant));
            let mut escaped = None;
            for patience in SHORT {
                let target = Arc::clone(&target);
                let mut outcomes = acp_check::run(target, &checks, options(patience)).await;
                let outcome = outcomes.swap_remove(0);
                let caught = match &outcome.verdict {
                    Verdict::Fail(reason) | Verdict::Warn(reason) => reason.contains(why),
                    _ => false,
                };
                if caught {
                    return None;
                }
                escaped = Some(outcome);
            }
            escaped.map(|outcome| {
                let told = told(&outcome);
                format!("{kills}: {what}: not caught for {why:?}\n{told}")
            })
        });
    }
    while let Some(tried) = running.join_next().await {
        alive.extend(tried.unwrap());
    }
    let score = 100 * (total - alive.len()) / total.max(1);
    println!(
        "{} checks, {total} mutants, {} killed: {score} %",
        checks.len(),
        total - alive.len()
    );
    assert!(alive.is_empty(), "alive:\n{}", alive.join("\n"));
    assert!(
        without.is_empty(),
        "checks that no mutant fails: {}",
        without.join(", ")
    );
}

#[tokio::test]
async fn the_right_agent_passes_version_1() {
    passes(
        agent::start,
        acp_check::agent_checks(SchemaVersion::V1),
        v1_agent::SKIPPED,
    )
    .await;
}

#[tokio::test]
async fn every_check_of_version_1_agents_kills_its_mutants() {
    let checks = acp_check::agent_checks(SchemaVersion::V1);
    kills(agent::start, checks, v1_agent::mutants()).await;
}

#[tokio::test]
async fn the_right_client_passes_version_1() {
    passes(
        client::start,
        acp_check::client_checks(SchemaVersion::V1),
        v1_client::SKIPPED,
    )
    .await;
}

/// What a client need not do, no check wants of it.
#[tokio::test]
async fn the_least_client_fails_nothing_of_version_1() {
    let checks = acp_check::client_checks(SchemaVersion::V1);
    let target = Arc::new(client::start_least as CorrectPeer);
    let mut outcomes = Vec::new();
    let mut wrong = None;
    for patience in SHORT {
        outcomes = acp_check::run(Arc::clone(&target) as _, &checks, options(patience)).await;
        let mut of_these = outcomes
            .iter()
            .filter(|outcome| !matches!(outcome.verdict, Verdict::Pass | Verdict::Skip(_)));
        wrong = of_these.next().map(told);
        if wrong.is_none() {
            break;
        }
    }
    assert_eq!(wrong, None);
    let passed = |id: &str| {
        let mut outcomes = outcomes.iter();
        outcomes.any(|o| o.check.id() == id && o.verdict == Verdict::Pass)
    };
    for id in v1_client::SKIPPED {
        assert!(passed(id), "{id} is passed by nobody");
    }
}

#[tokio::test]
async fn every_check_of_version_1_clients_kills_its_mutants() {
    kills(
        client::start,
        acp_check::client_checks(SchemaVersion::V1),
        v1_client::mutants(),
    )
    .await;
}

#[tokio::test]
async fn the_right_agent_passes_version_2() {
    passes(
        agent::start_v2,
        acp_check::agent_checks(SchemaVersion::V2),
        v2_agent::SKIPPED,
    )
    .await;
}

#[tokio::test]
async fn every_check_of_version_2_agents_kills_its_mutants() {
    kills(
        agent::start_v2,
        acp_check::agent_checks(SchemaVersion::V2),
        v2_agent::mutants(),
    )
    .await;
}

#[tokio::test]
async fn the_right_client_passes_version_2() {
    passes(
        client_v2::start,
        acp_check::client_checks(SchemaVersion::V2),
        v2_client::SKIPPED,
    )
    .await;
}

#[tokio::test]
async fn every_check_of_version_2_clients_kills_its_mutants() {
    kills(
        client_v2::start,
        acp_check::client_checks(SchemaVersion::V2),
        v2_client::mutants(),
    )
    .await;
}

/// Whoever speaks another version is not blamed for that: what cannot be seen is skipped.
async fn is_not_blamed(right: CorrectPeer, checks: Vec<Check>) {
    let outcomes = acp_check::run(Arc::new(right), &checks, options(PATIENCE)).await;
    let blamed = outcomes
        .iter()
        .filter(|outcome| !matches!(outcome.verdict, Verdict::Pass | Verdict::Skip(_)));
    let blamed: Vec<String> = blamed.map(told).collect();
    assert!(blamed.is_empty(), "blamed:\n{}", blamed.join("\n"));
}

#[tokio::test]
async fn an_agent_of_version_1_is_not_blamed_by_the_checks_of_version_2() {
    is_not_blamed(agent::start, acp_check::agent_checks(SchemaVersion::V2)).await;
}

#[tokio::test]
async fn a_client_of_version_1_is_not_blamed_by_the_checks_of_version_2() {
    is_not_blamed(client::start, acp_check::client_checks(SchemaVersion::V2)).await;
}
