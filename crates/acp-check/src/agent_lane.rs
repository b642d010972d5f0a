//! Runs checks of an agent one after another, and shares the agent among those that allow it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use acp_rules::schema::SchemaVersion;

use super::capability::capability_pointer;
use super::check::{Check, CheckFuture, CheckProcedure};
use super::confirmed::ConfirmedResults;
use super::earlier_run::EarlierRun;
use super::lanes::{CheckLane, INTERNAL_ERROR, LaneRun, catch_panic, limit_time};
use super::options::CheckOptions;
use super::outcome::CheckRun;
use super::reusable_agent::ReusableAgent;
use super::target::CheckTarget;
use super::transcript::Transcript;
use super::verdict::CheckStop;
use crate::agent_harness::AgentHarness;

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
    /// again with a new agent, whose result counts. A check that was skipped is repeated later: `earlier` is then its
    /// first run.
    async fn run_agent_check(
        &mut self,
        check: Check,
        earlier: Option<EarlierRun>,
        play: AgentCheck,
    ) -> LaneRun {
        let shares_agents = self.options.shares_agents;
        if shares_agents && let Err(stop) = lock(&self.confirmed).require_capability(&check) {
            return LaneRun::finished(CheckRun::new(Err(stop), Transcript::default()));
        }
        let may_share = shares_agents && check.process_use.may_share();
        let mut earlier = earlier;
        loop {
            let repeats = earlier.is_some();
            let taken = self.take_agent(check.version, may_share, repeats).await;
            let mut agent = match taken {
                Ok(agent) => agent,
                Err(why) => return LaneRun::finished(CheckRun::broken(why)),
            };
            if let Some(earlier) = &earlier {
                agent.harness.wire.add_note(earlier.note());
            }
            let count = agent.check_count;
            let Some((stopped, agent)) =
                run_procedure(check, play, agent, self.options.check_timeout).await
            else {
                return LaneRun::finished(CheckRun::broken(INTERNAL_ERROR));
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
                let refuted = earlier.filter(|earlier| earlier.is_refuted_by(&run));
                run.shared_result = refuted.map(|earlier| earlier.result);
                return LaneRun::finished(run);
            }
            if earlier.as_ref().is_some_and(|e| e.is_same_skip(&run)) {
                lock(&self.confirmed).add_skip(check.version, &run);
            }
            if lock(&self.confirmed).covers(check.version, &run, has_sent) {
                return LaneRun::finished(run);
            }
            let is_skipped = matches!(run.stopped, Err(CheckStop::Skip(_)));
            let this_run = EarlierRun::new(count, &run);
            if is_skipped && !repeats {
                return LaneRun::RepeatLater(this_run);
            }
            earlier = Some(this_run);
            self.end_idle_agent().await;
        }
    }

    /// Returns the idle agent, prepared for the next check, or a new one. The agent for a repetition has at most run
    /// checks that were skipped.
    async fn take_agent(
        &mut self,
        version: SchemaVersion,
        may_share: bool,
        repeats: bool,
    ) -> Result<ReusableAgent, String> {
        if may_share && let Some(mut agent) = self.idle.take() {
            let is_suitable =
                agent.harness.version() == version && (!repeats || agent.only_skipped);
            if is_suitable && agent.begin_check() {
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
        let is_skipped = matches!(stopped, Err(CheckStop::Skip(_)));
        let is_in_order = stopped.is_ok() || is_skipped;
        agent.only_skipped &= is_skipped;
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
    async fn run(&mut self, check: Check, earlier: Option<EarlierRun>) -> LaneRun {
        match check.procedure {
            CheckProcedure::Agent(play) => self.run_agent_check(check, earlier, play).await,
            _ => LaneRun::finished(CheckRun::broken("this check does not apply to agents")),
        }
    }

    async fn finish(mut self) {
        self.end_idle_agent().await;
    }
}

/// Runs the code of a check. Returns `None` if it panics.
async fn run_procedure(
    check: Check,
    play: AgentCheck,
    mut agent: ReusableAgent,
    limit: Duration,
) -> Option<(Result<(), CheckStop>, ReusableAgent)> {
    let played = catch_panic(async move {
        let harness = &mut agent.harness;
        let running = async {
            if let Some(capability) = check.required_capability {
                harness.initialize().await?;
                harness.require_capability(&capability_pointer(check.version, capability))?;
            }
            play(harness).await
        };
        let stopped = limit_time(limit, running).await;
        (stopped, agent)
    });
    played.await
}

fn lock(confirmed: &Mutex<ConfirmedResults>) -> std::sync::MutexGuard<'_, ConfirmedResults> {
    confirmed.lock().unwrap_or_else(PoisonError::into_inner)
}
