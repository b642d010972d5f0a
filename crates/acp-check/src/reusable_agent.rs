//! An agent under test that can run several checks, one after another.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use acp_rules::schema::SchemaVersion;

use super::agent_harness::AgentHarness;
use super::check_directory::CheckDirectory;
use super::options::CheckOptions;
use super::schema_results::SchemaResults;
use super::target::{CheckTarget, TargetProcess};
use super::transcript::Transcript;

/// How many checks an agent runs before the next one gets a new agent.
const MAX_CHECKS: usize = 24;

/// How many sessions an agent may keep open. Some agents start a process for each.
const MAX_OPEN_SESSIONS: usize = 4;

/// How long an agent may take until the answers to its own requests have been sent.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// A running agent.
pub(super) struct ReusableAgent {
    pub(super) harness: AgentHarness,
    /// The number of checks that it has finished.
    pub(super) check_count: usize,
    /// Whether all of these checks were skipped.
    pub(super) only_skipped: bool,
    /// The number of sessions of these checks that are still open.
    open_session_count: usize,
    /// The directories of these checks. The agent may still use them.
    earlier_directories: Vec<CheckDirectory>,
}

impl ReusableAgent {
    /// Starts the agent.
    ///
    /// # Errors
    /// The agent cannot be started. The error is the reason.
    pub(super) async fn start(
        target: &dyn CheckTarget,
        options: Arc<CheckOptions>,
        version: SchemaVersion,
    ) -> Result<Self, String> {
        let directory = CheckDirectory::new()
            .map_err(|e| format!("cannot create a directory for the check: {e}"))?;
        let started = target.start(&directory).await?;
        Ok(Self {
            harness: AgentHarness::new(started, directory, options, version),
            check_count: 0,
            only_skipped: true,
            open_session_count: 0,
            earlier_directories: Vec::new(),
        })
    }

    /// Prepares the agent for another check. Returns `false` if it can run no other one.
    pub(super) fn begin_check(&mut self) -> bool {
        if !self.harness.wire.discard_input() {
            return false;
        }
        let Ok(directory) = CheckDirectory::new() else {
            return false;
        };
        let before = self.harness.begin_check(directory);
        self.earlier_directories.push(before);
        true
    }

    /// Cleans up after a check whose results have been taken. Returns `false` if the agent can run no other check,
    /// because something of this one may go on.
    pub(super) async fn settle(&mut self) -> bool {
        self.check_count += 1;
        self.harness.host.end().await;
        let is_settled = self.harness.initialize_response.is_some()
            && self.harness.held_requests.is_empty()
            && !self.harness.wire.open_items().has_unanswered_own_requests()
            && self.finish_answers().await
            && self.close_sessions().await;
        is_settled && self.check_count < MAX_CHECKS && self.open_session_count <= MAX_OPEN_SESSIONS
    }

    /// Sends the host's remaining answers. Returns `false` if a request of the agent remains without one.
    async fn finish_answers(&mut self) -> bool {
        let harness = &mut self.harness;
        let answering = async {
            while harness.wire.open_items().has_unanswered_requests() {
                if !matches!(harness.next().await, Ok(Some(_))) {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(ANSWER_TIMEOUT, answering)
            .await
            .unwrap_or(false)
    }

    /// Closes the sessions of the check, if the agent can close sessions. Returns `false` if it did not answer.
    async fn close_sessions(&mut self) -> bool {
        let capability = match self.harness.version() {
            SchemaVersion::V1 => "/agentCapabilities/sessionCapabilities/close",
            SchemaVersion::V2 => "/capabilities/session",
        };
        let can_close = self.harness.require_capability(capability).is_ok();
        let sessions = self.harness.wire.open_items().open_sessions();
        let sessions: Vec<String> = sessions.map(str::to_owned).collect();
        for session in sessions {
            let closed = if can_close {
                let params = json!({"sessionId": session});
                let Ok(response) = self.harness.request("session/close", params).await else {
                    return false;
                };
                response.code().is_none()
            } else {
                false
            };
            self.open_session_count += usize::from(!closed);
        }
        self.harness.held_requests.is_empty() && !self.harness.wire.has_ended()
    }

    /// Ends the agent, and returns the results of the check that it ran last, unless they were taken before.
    pub(super) async fn end(self) -> (Transcript, SchemaResults) {
        let (mut wire, host, process, _directory) = self.harness.into_wire();
        wire.close();
        TargetProcess::end_process(process).await;
        host.end().await;
        wire.take_results()
    }
}
