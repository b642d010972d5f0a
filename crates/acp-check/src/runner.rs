//! Runs checks against a program.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use acp_rules::RequirementLevel;
use acp_rules::schema::SchemaVersion;

use super::check::{Check, CheckProcedure};
use super::options::CheckOptions;
use super::outcome::CheckOutcome;
use super::target::{CheckTarget, TargetProcess};
use super::transcript::Transcript;
use super::verdict::{CheckStop, Verdict, truncate};
use super::wire::SchemaResults;
use crate::agent_harness::AgentHarness;
use crate::check_directory::CheckDirectory;
use crate::client_harness::ClientHarness;

/// The maximum length of a failure's reason, in characters. A reason may quote messages of any length. The evidence
/// contains them in full.
const MAX_REASON_LEN: usize = 4_000;

/// Runs checks against a program, several at a time, and returns their outcomes in the order of `checks`.
///
/// Schema checks come last, because they judge the messages of all other checks.
pub async fn run_checks(
    target: Arc<dyn CheckTarget>,
    checks: &[Check],
    options: CheckOptions,
) -> Vec<CheckOutcome> {
    run_checks_with_progress(target, checks, options, |_| {}).await
}

/// Like [`run_checks`], but also calls `tell` with each outcome as soon as it is available.
pub async fn run_checks_with_progress(
    target: Arc<dyn CheckTarget>,
    checks: &[Check],
    options: CheckOptions,
    tell: impl Fn(&CheckOutcome),
) -> Vec<CheckOutcome> {
    let options = Arc::new(options);
    let jobs = options.jobs;
    let run = move |check: Check| run_procedure(check, Arc::clone(&target), Arc::clone(&options));
    run_each(checks, jobs, run, tell).await
}

/// Uses `run` to run each check that has its own code, `jobs` at a time. The other checks then judge the messages from
/// these runs.
pub(super) async fn run_each<F, Fut>(
    checks: &[Check],
    jobs: usize,
    run: F,
    tell: impl Fn(&CheckOutcome),
) -> Vec<CheckOutcome>
where
    F: Fn(Check) -> Fut,
    Fut: Future<Output = (Result<(), CheckStop>, Transcript, SchemaResults)> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(jobs.max(1)));
    let mut running = JoinSet::new();
    let mut of_task = HashMap::new();
    for (index, check) in checks.iter().enumerate() {
        if matches!(
            check.procedure,
            CheckProcedure::Shape(_) | CheckProcedure::Rules
        ) {
            continue;
        }
        let check = *check;
        let (running_check, room) = (run(check), Arc::clone(&room));
        let handle = running.spawn(async move {
            // The semaphore is never closed.
            let _turn = room.acquire_owned().await;
            judge_check(check, running_check).await
        });
        of_task.insert(handle.id(), index);
    }
    let mut outcomes: Vec<Option<CheckOutcome>> = checks.iter().map(|_| None).collect();
    let mut judged: HashMap<SchemaVersion, SchemaResults> = HashMap::new();
    while let Some(done) = running.join_next_with_id().await {
        let (id, outcome) = match done {
            Ok((id, (outcome, seen))) => {
                tell(&outcome);
                let id_of_check = outcome.check.id();
                judged
                    .entry(outcome.check.version)
                    .or_default()
                    .merge(&id_of_check, seen);
                (id, Some(outcome))
            }
            Err(e) => (e.id(), None),
        };
        let Some(&index) = of_task.get(&id) else {
            continue;
        };
        if let (Some(slot), Some(check)) = (outcomes.get_mut(index), checks.get(index)) {
            *slot = Some(outcome.unwrap_or_else(|| CheckOutcome {
                check: *check,
                verdict: Verdict::Harness(
                    "internal error in the check; please report it".to_owned(),
                ),
                transcript: Transcript::default(),
                duration: Duration::ZERO,
            }));
        }
    }
    let nothing = SchemaResults::default();
    let all = checks.iter().zip(outcomes);
    all.map(|(check, outcome)| match (outcome, check.procedure) {
        (Some(outcome), _) => outcome,
        (None, CheckProcedure::Shape(shaped)) => {
            let seen = judged.get(&check.version).unwrap_or(&nothing);
            super::schema_checks::judge_shape(*check, shaped, seen)
        }
        (None, CheckProcedure::Rules) => {
            let seen = judged.get(&check.version).unwrap_or(&nothing);
            super::rules_checks::judge_rules(*check, seen)
        }
        (None, _) => CheckOutcome {
            check: *check,
            verdict: Verdict::Harness("the check was not run".to_owned()),
            transcript: Transcript::default(),
            duration: Duration::ZERO,
        },
    })
    .collect()
}

/// Runs a check, and returns its outcome.
async fn judge_check(
    check: Check,
    running: impl Future<Output = (Result<(), CheckStop>, Transcript, SchemaResults)>,
) -> (CheckOutcome, SchemaResults) {
    let began = Instant::now();
    let (stopped, transcript, judged) = running.await;
    let verdict = match stopped {
        Ok(()) => Verdict::Pass,
        Err(CheckStop::Fail(why)) if check.level == RequirementLevel::Must => {
            Verdict::Fail(truncate(&why, MAX_REASON_LEN))
        }
        Err(CheckStop::Fail(why)) => Verdict::Warn(truncate(&why, MAX_REASON_LEN)),
        Err(CheckStop::Skip(why)) => Verdict::Skip(why),
        Err(CheckStop::Harness(why)) => Verdict::Harness(why),
    };
    let outcome = CheckOutcome {
        check,
        verdict,
        transcript,
        duration: began.elapsed(),
    };
    (outcome, judged)
}

/// Waits for the result of a check, and fails the check if it takes longer than `limit`.
pub(super) async fn limit_time(
    limit: Duration,
    running: impl Future<Output = Result<(), CheckStop>>,
) -> Result<(), CheckStop> {
    match tokio::time::timeout(limit, running).await {
        Ok(stopped) => stopped,
        Err(_) => Err(CheckStop::Fail(format!(
            "the check timed out after {limit:?}"
        ))),
    }
}

async fn run_procedure(
    check: Check,
    target: Arc<dyn CheckTarget>,
    options: Arc<CheckOptions>,
) -> (Result<(), CheckStop>, Transcript, SchemaResults) {
    let broken = |why: String| {
        (
            Err(CheckStop::Harness(why)),
            Transcript::default(),
            SchemaResults::default(),
        )
    };
    let place = match CheckDirectory::new() {
        Ok(place) => place,
        Err(e) => return broken(format!("cannot create a directory for the check: {e}")),
    };
    let started = match target.start(&place).await {
        Ok(started) => started,
        Err(why) => return broken(why),
    };
    let limit = options.check_timeout;
    match check.procedure {
        CheckProcedure::Agent(play) => {
            let mut agent = AgentHarness::new(started, place, options, check.version);
            let stopped = limit_time(limit, play(&mut agent)).await;
            let (mut wire, host, process, _place) = agent.into_wire();
            wire.close();
            TargetProcess::end_process(process).await;
            host.end().await;
            let (transcript, judged) = wire.into_parts();
            (stopped, transcript, judged)
        }
        CheckProcedure::Client(play) => {
            let mut client = ClientHarness::new(started, place, options, check.version);
            let stopped = limit_time(limit, play(&mut client)).await;
            let (mut wire, process, _place) = client.into_wire();
            wire.close();
            TargetProcess::end_process(process).await;
            let (transcript, judged) = wire.into_parts();
            (stopped, transcript, judged)
        }
        CheckProcedure::Shape(_) | CheckProcedure::Rules => broken(
            "this check cannot run by itself, because it inspects the messages from other checks"
                .to_owned(),
        ),
        CheckProcedure::Server(_) | CheckProcedure::RemoteClient(_) => {
            broken("this check applies only to the remote transport".to_owned())
        }
    }
}
