//! Runs checks of an agent one after another, and shares the agent among those that allow it.

use std::sync::{Arc, Mutex, PoisonError};

use acp_rules::schema::SchemaVersion;

use super::capability::capability_pointer;
use super::check::{Check, CheckFuture, CheckProcedure};
use super::confirmed::ConfirmedResults;
use super::lanes::{CheckLane, INTERNAL_ERROR, catch_panic, limit_time};
use super::options::CheckOptions;
use super::outcome::CheckRun;
use super::reusable_agent::ReusableAgent;
use super::target::CheckTarget;
use super::transcript::Transcript;
use super::verdict::{CheckStop, truncate};
use crate::agent_harness::AgentHarness;

/// The maximum length of a result in the note about a repetition, in characters.
const MAX_NOTE_LEN: usize = 300;

/// The code of a check of an agent.
type AgentCheck = for<'a> fn(&'a mut AgentHarness) -> CheckFuture<'a>;

/// Runs checks of an agent one after another. At most one agent runs at any time.
pub(super) struct AgentLane {
    target: Arc<dyn CheckTarget>,
    options: Arc<CheckOptions>,
    /// What has been seen with new agents, in all lanes.
    confirmed: Arc<Mutex<ConfirmedResults>>,
    /// The agent that the next check may use.
    idle: Option<ReusableAgent>,
}

impl AgentLane {
    pub(super) fn new(
        target: Arc<dyn CheckTarget>,
        options: Arc<CheckOptions>,
        confirmed: Arc<Mutex<ConfirmedResults>>,
    ) -> Self {
        Self {
            target,
            options,
            confirmed,
            idle: None,
        }
    }

    /// Runs a check with the shared agent if possible. If its result could be the work of an earlier check, runs it
    /// again with a new agent, whose result counts.
    async fn run_agent_check(&mut self, check: Check, play: AgentCheck) -> CheckRun {
        if self.options.shares_agents
            && let Err(stop) = lock(&self.confirmed).require_capability(&check)
        {
            return CheckRun::new(Err(stop), Transcript::default());
        }
        let may_share = self.options.shares_agents && check.process_use.may_share();
        let mut before: Option<EarlierRun> = None;
        loop {
            let taken = self.take_agent(check.version, may_share).await;
            let mut agent = match taken {
                Ok(agent) => agent,
                Err(why) => return CheckRun::broken(why),
            };
            if let Some(before) = &before {
                agent.harness.wire.add_note(before.note());
            }
            let count = agent.check_count;
            let limit = self.options.check_timeout;
            let played = catch_panic(async move {
                let harness = &mut agent.harness;
                let running = async {
                    if let Some(capability) = check.required_capability {
                        harness.initialize().await?;
                        harness
                            .require_capability(&capability_pointer(check.version, capability))?;
                    }
                    play(harness).await
                };
                let stopped = limit_time(limit, running).await;
                (stopped, agent)
            });
            let Some((stopped, agent)) = played.await else {
                return CheckRun::broken(INTERNAL_ERROR);
            };
            if count == 0
                && may_share
                && let Some(response) = &agent.harness.initialize_response
            {
                lock(&self.confirmed).add_initialize_response(check.version, response);
            }
            let (mut run, has_sent) = self.end_check(stopped, agent, may_share).await;
            if count == 0 {
                lock(&self.confirmed).add(check.version, &run);
                let differs = |before: &EarlierRun| before.has_failed && !has_failed(&run);
                run.shared_result = before.filter(differs).map(|before| before.result);
                return run;
            }
            if lock(&self.confirmed).covers(check.version, &run, has_sent) {
                return run;
            }
            before = Some(EarlierRun {
                check_count: count,
                result: describe(&run),
                has_failed: has_failed(&run),
            });
            self.end_idle_agent().await;
        }
    }

    /// Returns the idle agent, prepared for the next check, or a new one.
    async fn take_agent(
        &mut self,
        version: SchemaVersion,
        may_share: bool,
    ) -> Result<ReusableAgent, String> {
        if may_share && let Some(mut agent) = self.idle.take() {
            if agent.harness.version() == version && agent.begin_check() {
                return Ok(agent);
            }
            agent.end().await;
        }
        self.end_idle_agent().await;
        ReusableAgent::start(&*self.target, Arc::clone(&self.options), version).await
    }

    /// Takes the results of a check. Keeps the agent for the next one if it may be shared and is still in order.
    /// Otherwise, ends it. Also returns whether the check has sent anything.
    async fn end_check(
        &mut self,
        stopped: Result<(), CheckStop>,
        mut agent: ReusableAgent,
        may_share: bool,
    ) -> (CheckRun, bool) {
        let has_sent = agent.harness.wire.has_sent();
        let is_in_order = matches!(stopped, Ok(()) | Err(CheckStop::Skip(_)));
        let keeps = may_share && is_in_order && !agent.harness.wire.has_ended();
        let (transcript, schema_results) = if keeps {
            let results = agent.harness.wire.take_results();
            if agent.settle().await {
                self.idle = Some(agent);
            } else {
                agent.end().await;
            }
            results
        } else {
            agent.end().await
        };
        let mut run = CheckRun::new(stopped, transcript);
        run.schema_results = schema_results;
        (run, has_sent)
    }

    async fn end_idle_agent(&mut self) {
        if let Some(agent) = self.idle.take() {
            agent.end().await;
        }
    }
}

impl CheckLane for AgentLane {
    async fn run(&mut self, check: Check) -> CheckRun {
        match check.procedure {
            CheckProcedure::Agent(play) => self.run_agent_check(check, play).await,
            _ => CheckRun::broken("this check does not apply to agents"),
        }
    }

    async fn finish(mut self) {
        self.end_idle_agent().await;
    }
}

/// The run of a check whose result does not count.
struct EarlierRun {
    /// The number of checks that the agent had run before.
    check_count: usize,
    result: String,
    has_failed: bool,
}

impl EarlierRun {
    /// Returns the note at the beginning of the repetition's transcript.
    fn note(&self) -> String {
        let Self {
            check_count: count,
            result,
            ..
        } = self;
        let s = if *count == 1 { "" } else { "s" };
        format!(
            "the check is repeated with a new agent; with one that had run {count} other check{s}, the result was: {result}"
        )
    }
}

fn has_failed(run: &CheckRun) -> bool {
    matches!(run.stopped, Err(CheckStop::Fail(_) | CheckStop::Harness(_)))
}

/// Describes a result that may have to be repeated.
fn describe(run: &CheckRun) -> String {
    let faults = run.schema_results.faults.values().flatten();
    let mut faults = faults.map(|(fault, _)| fault.to_string());
    let mut violations = run.schema_results.violations.rules.iter();
    let what = match &run.stopped {
        Err(CheckStop::Fail(why)) => format!("fail: {why}"),
        Err(CheckStop::Harness(why)) => format!("error: {why}"),
        Err(CheckStop::Skip(why)) => format!("skip: {why}"),
        Ok(()) => match (faults.next(), violations.next()) {
            (Some(fault), _) => format!("fault in a message: {fault}"),
            (None, Some((finding, _))) => finding.to_string(),
            (None, None) => "pass".to_owned(),
        },
    };
    truncate(&what, MAX_NOTE_LEN)
}

fn lock(confirmed: &Mutex<ConfirmedResults>) -> std::sync::MutexGuard<'_, ConfirmedResults> {
    confirmed.lock().unwrap_or_else(PoisonError::into_inner)
}
