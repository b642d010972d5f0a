//! Carrying out checks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use acp_rules::Level;
use acp_rules::schema::Version;

use super::check::{Check, Play};
use super::options::Options;
use super::outcome::Outcome;
use super::target::{Started, Target};
use super::transcript::Transcript;
use super::verdict::{Stop, Verdict, cut};
use super::wire::Judged;
use crate::place::Place;
use crate::with_agent::AgentPlay;
use crate::with_client::ClientPlay;

/// How long the reason of a failure is at most, in characters. Some of it is the program's own words, of which there may
/// be any number; all that was said is with the evidence.
const LONGEST: usize = 4_000;

/// Carries out checks against a program, several at once, and gives what came of them in the order of `checks`.
///
/// Checks of shapes are judged last, by all that was said in the others.
pub async fn run(target: Arc<dyn Target>, checks: &[Check], options: Options) -> Vec<Outcome> {
    run_telling(target, checks, options, |_| {}).await
}

/// As [`run`]; tells each outcome as soon as it is there.
pub async fn run_telling(
    target: Arc<dyn Target>,
    checks: &[Check],
    options: Options,
    tell: impl Fn(&Outcome),
) -> Vec<Outcome> {
    let options = Arc::new(options);
    let room = Arc::new(Semaphore::new(options.jobs.max(1)));
    let mut running = JoinSet::new();
    let mut of_task = HashMap::new();
    for (index, check) in checks.iter().enumerate() {
        if matches!(check.play, Play::Shape(_) | Play::Rules) {
            continue;
        }
        let (check, target) = (*check, Arc::clone(&target));
        let (options, room) = (Arc::clone(&options), Arc::clone(&room));
        let handle = running.spawn(async move {
            // It is never closed.
            let _turn = room.acquire_owned().await;
            carry_out(check, target, options).await
        });
        of_task.insert(handle.id(), index);
    }
    let mut outcomes: Vec<Option<Outcome>> = checks.iter().map(|_| None).collect();
    let mut judged: HashMap<Version, Judged> = HashMap::new();
    while let Some(done) = running.join_next_with_id().await {
        let (id, outcome) = match done {
            Ok((id, (outcome, seen))) => {
                tell(&outcome);
                let id_of_check = outcome.check.id();
                judged
                    .entry(outcome.check.version)
                    .or_default()
                    .add(&id_of_check, seen);
                (id, Some(outcome))
            }
            Err(e) => (e.id(), None),
        };
        let Some(&index) = of_task.get(&id) else {
            continue;
        };
        if let (Some(slot), Some(check)) = (outcomes.get_mut(index), checks.get(index)) {
            *slot = Some(outcome.unwrap_or_else(|| Outcome {
                check: *check,
                verdict: Verdict::Harness(
                    "the check itself broke off; please report it".to_owned(),
                ),
                transcript: Transcript::default(),
                took: Duration::ZERO,
            }));
        }
    }
    let nothing = Judged::default();
    let all = checks.iter().zip(outcomes);
    all.map(|(check, outcome)| match (outcome, check.play) {
        (Some(outcome), _) => outcome,
        (None, Play::Shape(shaped)) => {
            let seen = judged.get(&check.version).unwrap_or(&nothing);
            super::schema_checks::judge(*check, shaped, seen)
        }
        (None, Play::Rules) => {
            let seen = judged.get(&check.version).unwrap_or(&nothing);
            super::rules_checks::judge(*check, seen)
        }
        (None, _) => Outcome {
            check: *check,
            verdict: Verdict::Harness("the check was not carried out".to_owned()),
            transcript: Transcript::default(),
            took: Duration::ZERO,
        },
    })
    .collect()
}

async fn carry_out(
    check: Check,
    target: Arc<dyn Target>,
    options: Arc<Options>,
) -> (Outcome, Judged) {
    let began = Instant::now();
    let (stopped, transcript, judged) = play(check, target, options).await;
    let verdict = match stopped {
        Ok(()) => Verdict::Pass,
        Err(Stop::Fail(why)) if check.level == Level::Must => Verdict::Fail(cut(&why, LONGEST)),
        Err(Stop::Fail(why)) => Verdict::Warn(cut(&why, LONGEST)),
        Err(Stop::Skip(why)) => Verdict::Skip(why),
        Err(Stop::Harness(why)) => Verdict::Harness(why),
    };
    let outcome = Outcome {
        check,
        verdict,
        transcript,
        took: began.elapsed(),
    };
    (outcome, judged)
}

async fn play(
    check: Check,
    target: Arc<dyn Target>,
    options: Arc<Options>,
) -> (Result<(), Stop>, Transcript, Judged) {
    let broken = |why: String| {
        (
            Err(Stop::Harness(why)),
            Transcript::default(),
            Judged::default(),
        )
    };
    let place = match Place::new() {
        Ok(place) => place,
        Err(e) => return broken(format!("no directory for the check can be made: {e}")),
    };
    let started = match target.start(&place).await {
        Ok(started) => started,
        Err(why) => return broken(why),
    };
    let limit = options.limit;
    let too_long = || {
        let why = format!("the check has not come to its end in {limit:?}");
        Err(Stop::Fail(why))
    };
    match check.play {
        Play::Agent(play) => {
            let mut agent = AgentPlay::new(started, place, options, check.version);
            let stopped = tokio::time::timeout(limit, play(&mut agent)).await;
            let (mut wire, host, process, _place) = agent.into_wire();
            wire.close();
            Started::end(process).await;
            host.end().await;
            let (transcript, judged) = wire.into_parts();
            (stopped.unwrap_or_else(|_| too_long()), transcript, judged)
        }
        Play::Client(play) => {
            let mut client = ClientPlay::new(started, place, options, check.version);
            let stopped = tokio::time::timeout(limit, play(&mut client)).await;
            let (mut wire, process, _place) = client.into_wire();
            wire.close();
            Started::end(process).await;
            let (transcript, judged) = wire.into_parts();
            (stopped.unwrap_or_else(|_| too_long()), transcript, judged)
        }
        Play::Shape(_) | Play::Rules => {
            broken("these are judged by what other checks have seen".to_owned())
        }
    }
}
