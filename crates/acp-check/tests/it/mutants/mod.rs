//! Tests the suite itself. The correct peers pass every check, and each check catches at least one mutant.

pub(crate) mod agent;
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

use layer::{Mutant, with_mutation};

/// How long to wait for correct peers.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How long to wait for a message that a mutant omits. On a busy machine, even a correct message may take longer, so
/// the check is repeated with more time.
const MUTANT_TIMEOUTS: [Duration; 3] =
    [Duration::from_millis(700), Duration::from_secs(4), TIMEOUT];

/// The number of mutants to test at the same time.
const MAX_PARALLEL_MUTANTS: usize = 16;

type CorrectPeer = fn(Transport);

fn options_with_timeout(patience: Duration) -> CheckOptions {
    CheckOptions {
        timeout: patience,
        turn_timeout: patience,
        check_timeout: patience * 5,
        jobs: MAX_PARALLEL_MUTANTS,
        shares_agents: true,
        auth_method: Some(agent::LOGIN_METHOD_ID.to_owned()),
        prompts: agent::task_prompts(),
        ..CheckOptions::default()
    }
}

/// Checks that the correct peer passes all checks, and skips only those in `skipped`.
async fn assert_passes(right: CorrectPeer, checks: Vec<Check>, skipped: &[&str]) {
    let outcomes =
        acp_check::run_checks(Arc::new(right), &checks, options_with_timeout(TIMEOUT)).await;
    let wrong = outcomes.iter().filter(|outcome| match outcome.verdict {
        Verdict::Pass => false,
        Verdict::Skip(_) => !skipped.contains(&outcome.check.id().as_str()),
        _ => true,
    });
    let wrong: Vec<String> = wrong.map(describe_outcome).collect();
    assert!(
        wrong.is_empty(),
        "the correct peer does not pass:\n{}",
        wrong.join("\n")
    );
    for id in skipped {
        let outcome = outcomes.iter().find(|outcome| outcome.check.id() == *id);
        let outcome = outcome.unwrap_or_else(|| panic!("{id} is not a check"));
        assert!(
            matches!(outcome.verdict, Verdict::Skip(_)),
            "{id} is not skipped: {}",
            outcome.verdict
        );
    }
}

fn describe_outcome(outcome: &CheckOutcome) -> String {
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

/// Checks that each check catches its mutants for the right reason.
async fn assert_mutants_are_killed(right: CorrectPeer, checks: Vec<Check>, mutants: Vec<Mutant>) {
    let mut without = Vec::new();
    for check in &checks {
        let id = check.id();
        let elsewhere = v1_agent::PROCESS_CHECKS.contains(&id.as_str());
        if !elsewhere && !mutants.iter().any(|mutant| mutant.kills == id) {
            without.push(id);
        }
    }
    assert!(
        without.is_empty(),
        "checks that no mutant fails: {}",
        without.join(", ")
    );
    kill_mutants(right, checks, mutants, None).await;
}

/// Checks that each check that may share an agent catches its mutants with an agent that has run the check `before`.
async fn assert_used_mutants_are_killed(
    right: CorrectPeer,
    checks: Vec<Check>,
    mut mutants: Vec<Mutant>,
    before: &str,
) {
    let find = |id: &str| *checks.iter().find(|check| check.id() == id).unwrap();
    mutants.retain(|mutant| find(mutant.kills).process_use.may_share());
    let before = find(before);
    kill_mutants(right, checks, mutants, Some(before)).await;
}

/// Runs each check with its mutants. Runs `before` with each mutant first, if given.
async fn kill_mutants(
    right: CorrectPeer,
    checks: Vec<Check>,
    mutants: Vec<Mutant>,
    before: Option<Check>,
) {
    let mut alive = Vec::new();
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
    let total = mutants.len();
    let room = Arc::new(tokio::sync::Semaphore::new(MAX_PARALLEL_MUTANTS));
    let mut running = tokio::task::JoinSet::new();
    for mutant in mutants {
        let check = checks.iter().find(|check| check.id() == mutant.kills);
        let check = *check.unwrap_or_else(|| panic!("{} is not a check", mutant.kills));
        let (room, played) = (Arc::clone(&room), played.clone());
        running.spawn(async move {
            let _turn = room.acquire_owned().await;
            let mut checks = vec![check];
            if matches!(
                check.procedure,
                CheckProcedure::Shape(_) | CheckProcedure::Rules
            ) {
                // The message is sent in the check that the mutant names.
                let carrier = mutant.seen_in.expect("a mutant of a shape names a check");
                let carrier = played.iter().find(|check| check.id() == carrier);
                checks.push(*carrier.unwrap_or_else(|| panic!("{} names no check", mutant.kills)));
            }
            let (kills, why, what) = (mutant.kills, mutant.why, mutant.what);
            let target: Arc<dyn CheckTarget> = Arc::new(with_mutation(right, mutant));
            let mut escaped = None;
            checks.extend(before);
            for patience in MUTANT_TIMEOUTS {
                let target = Arc::clone(&target);
                let mut options = options_with_timeout(patience);
                if before.is_some() {
                    checks.rotate_right(1);
                    options.jobs = 1;
                }
                let mut outcomes = acp_check::run_checks(target, &checks, options).await;
                if before.is_some() {
                    checks.rotate_left(1);
                    outcomes.remove(0);
                }
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
                let told = describe_outcome(&outcome);
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
}

#[tokio::test]
async fn correct_agent_passes_version_1() {
    assert_passes(
        agent::start,
        acp_check::agent_checks(SchemaVersion::V1),
        v1_agent::SKIPPED_CHECKS,
    )
    .await;
}

#[tokio::test]
async fn agent_checks_of_version_1_kill_their_mutants() {
    let checks = acp_check::agent_checks(SchemaVersion::V1);
    assert_mutants_are_killed(agent::start, checks, v1_agent::mutants()).await;
}

#[tokio::test]
async fn agent_checks_of_version_1_kill_mutants_that_were_used_before() {
    let checks = acp_check::agent_checks(SchemaVersion::V1);
    let before = "v1/session-setup/1";
    assert_used_mutants_are_killed(agent::start, checks, v1_agent::mutants(), before).await;
}

#[tokio::test]
async fn agent_checks_of_version_2_kill_mutants_that_were_used_before() {
    let checks = acp_check::agent_checks(SchemaVersion::V2);
    let before = "v2/session-setup/2";
    assert_used_mutants_are_killed(agent::start_v2, checks, v2_agent::mutants(), before).await;
}

#[tokio::test]
async fn correct_client_passes_version_1() {
    assert_passes(
        client::start_client,
        acp_check::client_checks(SchemaVersion::V1),
        v1_client::SKIPPED_CHECKS,
    )
    .await;
}

/// Checks that the minimal client fails no check, because no check requires an optional feature.
#[tokio::test]
async fn minimal_client_passes_version_1() {
    let checks = acp_check::client_checks(SchemaVersion::V1);
    let target = Arc::new(client::start_minimal_client as CorrectPeer);
    let mut outcomes = Vec::new();
    let mut wrong = None;
    for patience in MUTANT_TIMEOUTS {
        outcomes = acp_check::run_checks(
            Arc::clone(&target) as _,
            &checks,
            options_with_timeout(patience),
        )
        .await;
        let mut of_these = outcomes
            .iter()
            .filter(|outcome| !matches!(outcome.verdict, Verdict::Pass | Verdict::Skip(_)));
        wrong = of_these.next().map(describe_outcome);
        if wrong.is_none() {
            break;
        }
    }
    assert_eq!(wrong, None);
    let passed = |id: &str| {
        let mut outcomes = outcomes.iter();
        outcomes.any(|o| o.check.id() == id && o.verdict == Verdict::Pass)
    };
    for id in v1_client::SKIPPED_CHECKS {
        assert!(passed(id), "no peer passes {id}");
    }
}

#[tokio::test]
async fn client_checks_of_version_1_kill_their_mutants() {
    assert_mutants_are_killed(
        client::start_client,
        acp_check::client_checks(SchemaVersion::V1),
        v1_client::mutants(),
    )
    .await;
}

#[tokio::test]
async fn correct_agent_passes_version_2() {
    assert_passes(
        agent::start_v2,
        acp_check::agent_checks(SchemaVersion::V2),
        v2_agent::SKIPPED_CHECKS,
    )
    .await;
}

#[tokio::test]
async fn agent_checks_of_version_2_kill_their_mutants() {
    assert_mutants_are_killed(
        agent::start_v2,
        acp_check::agent_checks(SchemaVersion::V2),
        v2_agent::mutants(),
    )
    .await;
}

#[tokio::test]
async fn correct_client_passes_version_2() {
    assert_passes(
        client_v2::start_client,
        acp_check::client_checks(SchemaVersion::V2),
        v2_client::SKIPPED_CHECKS,
    )
    .await;
}

#[tokio::test]
async fn client_checks_of_version_2_kill_their_mutants() {
    assert_mutants_are_killed(
        client_v2::start_client,
        acp_check::client_checks(SchemaVersion::V2),
        v2_client::mutants(),
    )
    .await;
}

/// Checks that a peer fails no check just because it speaks another version. Checks that cannot run must be skipped.
async fn assert_all_skipped(right: CorrectPeer, checks: Vec<Check>) {
    let outcomes =
        acp_check::run_checks(Arc::new(right), &checks, options_with_timeout(TIMEOUT)).await;
    let blamed = outcomes
        .iter()
        .filter(|outcome| !matches!(outcome.verdict, Verdict::Pass | Verdict::Skip(_)));
    let blamed: Vec<String> = blamed.map(describe_outcome).collect();
    assert!(blamed.is_empty(), "blamed:\n{}", blamed.join("\n"));
}

#[tokio::test]
async fn version_2_checks_skip_a_version_1_agent() {
    assert_all_skipped(agent::start, acp_check::agent_checks(SchemaVersion::V2)).await;
}

#[tokio::test]
async fn version_2_checks_skip_a_version_1_client() {
    assert_all_skipped(
        client::start_client,
        acp_check::client_checks(SchemaVersion::V2),
    )
    .await;
}
