//! Runs checks against a program.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_rules::RequirementLevel;
use acp_rules::schema::SchemaVersion;
use tokio_util::sync::CancellationToken;

use super::agent_lane::AgentLane;
use super::check::{Check, CheckProcedure};
use super::confirmed::ConfirmedResults;
use super::lanes::{CheckLane, LaneEvent, SeparateChecks, limit_time, run_in_lanes};
use super::options::CheckOptions;
use super::outcome::{CheckEvent, CheckOutcome, CheckRun};
use super::schema_results::SchemaResults;
use super::target::{CheckTarget, TargetProcess};
use super::transcript::Transcript;
use super::verdict::{CheckStop, Verdict, truncate};
use crate::check_directory::CheckDirectory;
use crate::client_harness::ClientHarness;

/// The maximum length of a failure's reason, in characters. A reason may quote messages of any length. The evidence
/// contains them in full.
const MAX_REASON_LEN: usize = 4_000;

/// Runs checks against a program, several at a time, and returns their outcomes in the order of `checks`. If
/// [`CheckOptions::stop`] is cancelled, the checks that have not ended are left out.
///
/// Schema checks come last, because they judge the messages of all other checks.
pub async fn run_checks(
    target: Arc<dyn CheckTarget>,
    checks: &[Check],
    options: CheckOptions,
) -> Vec<CheckOutcome> {
    run_checks_with_progress(target, checks, options, |_| {}).await
}

/// Like [`run_checks`], but also calls `tell` when a check starts, and with its outcome when it has ended.
pub async fn run_checks_with_progress(
    target: Arc<dyn CheckTarget>,
    checks: &[Check],
    options: CheckOptions,
    tell: impl Fn(CheckEvent<'_>),
) -> Vec<CheckOutcome> {
    let options = Arc::new(options);
    let (jobs, stop) = (options.jobs, options.stop.clone());
    let of_agents = |check: &Check| matches!(check.procedure, CheckProcedure::Agent(_));
    if checks.iter().any(of_agents) {
        let confirmed = Arc::new(Mutex::new(ConfirmedResults::default()));
        let new_lane = || {
            AgentLane::new(
                Arc::clone(&target),
                Arc::clone(&options),
                Arc::clone(&confirmed),
            )
        };
        return run_lanes(checks, jobs, &stop, new_lane, tell).await;
    }
    let run =
        move |check: Check| run_client_check(check, Arc::clone(&target), Arc::clone(&options));
    run_each(checks, jobs, &stop, run, tell).await
}

/// Uses `run` to run each check that has its own code, `jobs` at a time. The other checks then judge the messages from
/// these runs.
pub(super) async fn run_each<F, Fut>(
    checks: &[Check],
    jobs: usize,
    stop: &CancellationToken,
    run: F,
    tell: impl Fn(CheckEvent<'_>),
) -> Vec<CheckOutcome>
where
    F: Fn(Check) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = CheckRun> + Send + 'static,
{
    run_lanes(checks, jobs, stop, || SeparateChecks(run.clone()), tell).await
}

/// Runs each check that has its own code, in `jobs` lanes. The other checks then judge the messages from these runs.
async fn run_lanes<L: CheckLane>(
    checks: &[Check],
    jobs: usize,
    stop: &CancellationToken,
    new_lane: impl Fn() -> L,
    tell: impl Fn(CheckEvent<'_>),
) -> Vec<CheckOutcome> {
    let mut outcomes: Vec<Option<CheckOutcome>> = checks.iter().map(|_| None).collect();
    let mut judged: HashMap<SchemaVersion, SchemaResults> = HashMap::new();
    let handle = |event| match event {
        LaneEvent::Started(index) => {
            if let Some(check) = checks.get(index) {
                tell(CheckEvent::Started(check));
            }
        }
        LaneEvent::Finished(index, run, took) => {
            let (Some(check), Some(slot)) = (checks.get(index), outcomes.get_mut(index)) else {
                return;
            };
            let (outcome, seen) = judge_run(*check, *run, took);
            tell(CheckEvent::Finished(&outcome));
            let of_version = judged.entry(check.version).or_default();
            of_version.merge(&check.id(), seen);
            *slot = Some(outcome);
        }
    };
    run_in_lanes(checks, jobs, stop, new_lane, handle).await;
    let nothing = SchemaResults::default();
    let all = checks.iter().zip(outcomes);
    all.filter_map(|(check, outcome)| {
        Some(match (outcome, check.procedure) {
            (Some(outcome), _) => outcome,
            (None, CheckProcedure::Shape(shaped)) => {
                let seen = judged.get(&check.version).unwrap_or(&nothing);
                super::schema_checks::judge_shape(*check, shaped, seen)
            }
            (None, CheckProcedure::Rules) => {
                let seen = judged.get(&check.version).unwrap_or(&nothing);
                super::rules_checks::judge_rules(*check, seen)
            }
            (None, _) if stop.is_cancelled() => return None,
            (None, _) => CheckOutcome {
                check: *check,
                verdict: Verdict::Harness("the check was not run".to_owned()),
                transcript: Transcript::default(),
                duration: Duration::ZERO,
                shared_result: None,
            },
        })
    })
    .collect()
}

/// Converts the result of a check to its outcome. Also returns what its messages say about the schema and the rules.
fn judge_run(check: Check, run: CheckRun, took: Duration) -> (CheckOutcome, SchemaResults) {
    let verdict = match run.stopped {
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
        transcript: run.transcript,
        duration: took,
        shared_result: run.shared_result,
    };
    (outcome, run.schema_results)
}

/// Starts the client for one check, and runs it.
async fn run_client_check(
    check: Check,
    target: Arc<dyn CheckTarget>,
    options: Arc<CheckOptions>,
) -> CheckRun {
    let play = match check.procedure {
        CheckProcedure::Client(play) => play,
        CheckProcedure::Server(_) | CheckProcedure::RemoteClient(_) => {
            return CheckRun::broken("this check applies only to the remote transport");
        }
        _ => return CheckRun::broken("this check does not apply to clients"),
    };
    let place = match CheckDirectory::new() {
        Ok(place) => place,
        Err(e) => {
            return CheckRun::broken(format!("cannot create a directory for the check: {e}"));
        }
    };
    let started = match target.start(&place).await {
        Ok(started) => started,
        Err(why) => return CheckRun::broken(why),
    };
    let limit = options.check_timeout;
    let mut client = ClientHarness::new(started, place, options, check.version);
    let stopped = limit_time(limit, play(&mut client)).await;
    let (mut wire, process, _place) = client.into_wire();
    wire.close();
    TargetProcess::end_process(process).await;
    let (transcript, schema_results) = wire.take_results();
    CheckRun {
        schema_results,
        ..CheckRun::new(stopped, transcript)
    }
}
