//! The harness's client side in version 2, where the response to a prompt only acknowledges it, and an update ends the
//! turn.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::agent_harness::AgentHarness;
use super::check_directory::NOTES_TEXT;
use super::options::AgentTask;
use super::turns::{CheckTurn, clone_request};
use super::verdict::{CheckStop, fail, skip};
use super::wire::ReceivedResponse;

/// How long the agent must stay silent before it counts as quiet.
const QUIET_TIME: Duration = Duration::from_millis(250);

/// The maximum number of pages to request when listing sessions.
const MAX_PAGES: usize = 64;

/// A prompt that the agent has accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedPrompt {
    session: String,
    /// The number of messages received before the prompt.
    message_count: usize,
}

/// Returns the type of an update, such as `agent_message`.
pub(super) fn update_type(update: &Value) -> &str {
    update["sessionUpdate"].as_str().unwrap_or_default()
}

/// Returns the state that an update reports, if it reports one.
pub(super) fn reported_state(update: &Value) -> Option<&str> {
    (update_type(update) == "state_update")
        .then(|| update["state"].as_str())
        .flatten()
}

/// Returns the content of a prompt with a single text block.
pub(super) fn text_prompt(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

impl AgentHarness {
    /// Opens a session, after `initialize` if necessary, and returns its id.
    ///
    /// # Errors
    /// See [`open_session`](Self::open_session). If the agent does not support sessions, the check is skipped.
    pub async fn new_session_v2(&mut self) -> Result<String, CheckStop> {
        if self.initialize_response.is_none() {
            self.initialize().await?;
        }
        self.require_capability("/capabilities/session")?;
        self.new_session().await
    }

    /// Makes the agent do a task, and waits until it is idle again.
    ///
    /// # Errors
    /// See [`run_prompt_v2`](Self::run_prompt_v2).
    pub async fn run_task_v2(
        &mut self,
        session: &str,
        task: AgentTask,
    ) -> Result<CheckTurn, CheckStop> {
        let prompt = text_prompt(&self.prompt_text(task));
        self.run_prompt_v2(session, prompt).await
    }

    /// Sends a prompt, and waits until the agent is idle again.
    ///
    /// # Errors
    /// The prompt is rejected, or the turn does not end in time.
    pub async fn run_prompt_v2(
        &mut self,
        session: &str,
        prompt: Value,
    ) -> Result<CheckTurn, CheckStop> {
        let accepted = self.begin_prompt_v2(session, prompt).await?;
        self.finish_turn_v2(&accepted).await
    }

    /// Sends the prompt for a task, and waits until it is acknowledged.
    ///
    /// # Errors
    /// See [`begin_prompt_v2`](Self::begin_prompt_v2).
    pub async fn begin_task_v2(
        &mut self,
        session: &str,
        task: AgentTask,
    ) -> Result<AcceptedPrompt, CheckStop> {
        let prompt = text_prompt(&self.prompt_text(task));
        self.begin_prompt_v2(session, prompt).await
    }

    /// Sends a prompt, and waits until it is acknowledged.
    ///
    /// # Errors
    /// The prompt is rejected, or there is no response.
    pub async fn begin_prompt_v2(
        &mut self,
        session: &str,
        prompt: Value,
    ) -> Result<AcceptedPrompt, CheckStop> {
        let accepted = AcceptedPrompt {
            session: session.to_owned(),
            message_count: self.messages.len(),
        };
        let params = json!({"sessionId": session, "prompt": prompt});
        match self.request("session/prompt", params).await? {
            ReceivedResponse::Result(_) => Ok(accepted),
            ReceivedResponse::Error { code, message, .. } => fail(format!(
                "`session/prompt` failed with error {code}: {message}"
            )),
        }
    }

    /// Waits until the agent is idle again after a prompt.
    ///
    /// # Errors
    /// The agent is not idle in time.
    pub async fn finish_turn_v2(
        &mut self,
        accepted: &AcceptedPrompt,
    ) -> Result<CheckTurn, CheckStop> {
        let patience = self.turn_timeout();
        let waiting = async {
            loop {
                if let Some(turn) = self.finished_turn_v2(accepted) {
                    return Ok(turn);
                }
                if self.next().await?.is_none() {
                    return fail("the agent closed its output during a turn");
                }
            }
        };
        match tokio::time::timeout(patience, waiting).await {
            Ok(turn) => turn,
            Err(_) => fail(format!("no `state_update` with `idle` within {patience:?}")),
        }
    }

    /// Returns the session's updates since a prompt.
    pub fn updates_of_prompt_v2<'a>(
        &'a self,
        accepted: &'a AcceptedPrompt,
    ) -> impl Iterator<Item = &'a Value> {
        let since = self.updates_since(accepted.message_count);
        since
            .filter(|params| params["sessionId"].as_str() == Some(&accepted.session))
            .filter_map(|params| params.get("update"))
    }

    /// Returns the turn if it has ended. A turn ends with an `idle` that follows another state or has a stop reason.
    /// The agent sent any other `idle` before it received the prompt.
    pub(super) fn finished_turn_v2(&self, accepted: &AcceptedPrompt) -> Option<CheckTurn> {
        let mut updates = Vec::new();
        let mut at_work = false;
        for update in self.updates_of_prompt_v2(accepted) {
            updates.push(update.clone());
            match reported_state(update) {
                Some("idle") => {
                    let stop = update["stopReason"].as_str();
                    if at_work || stop.is_some() {
                        let requests = self.requests_since(accepted.message_count);
                        return Some(CheckTurn {
                            stop_reason: stop.unwrap_or_default().to_owned(),
                            updates,
                            requests: requests.map(clone_request).collect(),
                        });
                    }
                }
                Some(_) => at_work = true,
                None => {}
            }
        }
        None
    }

    /// Waits until the agent is quiet.
    ///
    /// # Errors
    /// See [`next`](Self::next).
    pub async fn wait_until_quiet(&mut self) -> Result<(), CheckStop> {
        // The check continues after this time even if the agent is never quiet.
        let latest = Instant::now() + self.wire.timeout();
        while Instant::now() < latest {
            match tokio::time::timeout(QUIET_TIME, self.next()).await {
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None)) | Err(_) => break,
                Ok(Err(stop)) => return Err(stop),
            }
        }
        Ok(())
    }

    /// Opens a session, runs one turn, closes the session, and returns its id.
    ///
    /// # Errors
    /// See [`run_task_v2`](Self::run_task_v2). If the agent does not store sessions, the check is skipped.
    pub async fn new_closed_session_v2(&mut self) -> Result<String, CheckStop> {
        let session = self.new_session_v2().await?;
        self.run_task_v2(&session, AgentTask::Answer).await?;
        self.request_result("session/close", json!({"sessionId": session}))
            .await?;
        let cwd = self.directory().project().to_owned();
        let listed = self.list_sessions_v2(json!({"cwd": cwd})).await?;
        if listed.iter().any(|info| info["sessionId"] == *session) {
            Ok(session)
        } else {
            skip("the agent does not list closed sessions, so there is no session to resume")
        }
    }

    /// Returns params for resuming a session without a replay.
    #[must_use]
    pub fn resume_params(&self, session: &str) -> Value {
        json!({"sessionId": session, "cwd": self.directory().project(), "mcpServers": []})
    }

    /// Returns all sessions that the agent lists, fetching one page after another.
    ///
    /// # Errors
    /// A page is rejected, or there are too many pages.
    pub async fn list_sessions_v2(&mut self, mut params: Value) -> Result<Vec<Value>, CheckStop> {
        let mut all = Vec::new();
        for _ in 0..MAX_PAGES {
            let page = self.request_result("session/list", params.clone()).await?;
            all.extend(page["sessions"].as_array().cloned().unwrap_or_default());
            match page.get("nextCursor").filter(|cursor| !cursor.is_null()) {
                Some(cursor) => params["cursor"] = cursor.clone(),
                None => return Ok(all),
            }
        }
        skip(format!(
            "the list of sessions has more than {MAX_PAGES} pages"
        ))
    }

    /// Waits until the agent requests permission, and returns the id and the params of the request. Returns `None` if
    /// the turn ends without a request.
    ///
    /// # Errors
    /// The agent neither requests permission nor ends the turn in time.
    pub async fn wait_for_permission_v2(
        &mut self,
        accepted: &AcceptedPrompt,
    ) -> Result<Option<(Value, Value)>, CheckStop> {
        let patience = self.turn_timeout();
        let waiting = async {
            loop {
                let held = self.held_requests.iter();
                let mut asked = held.filter(|held| held.1 == "session/request_permission");
                if let Some((id, _, params)) = asked.next_back() {
                    return Ok(Some((id.clone(), params.clone())));
                }
                if self.finished_turn_v2(accepted).is_some() {
                    return Ok(None);
                }
                if self.next().await?.is_none() {
                    return fail("the agent closed its output during a turn");
                }
            }
        };
        match tokio::time::timeout(patience, waiting).await {
            Ok(asked) => asked,
            Err(_) => fail(format!(
                "the agent neither requested permission nor ended the turn within {patience:?}"
            )),
        }
    }

    /// Requires that `notes.txt` is unchanged.
    ///
    /// # Errors
    /// The file was changed.
    pub fn require_file_unchanged_v2(&self) -> Result<(), CheckStop> {
        match std::fs::read_to_string(self.directory().file("notes.txt")) {
            Ok(text) if text == NOTES_TEXT => Ok(()),
            Ok(_) => fail("`notes.txt` was changed anyway"),
            Err(e) => fail(format!("`notes.txt` no longer exists: {e}")),
        }
    }
}
