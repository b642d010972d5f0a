//! Playing a client with an agent in version 2: a prompt is only acknowledged, and a turn ends by an update.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::agent_harness::AgentHarness;
use super::check_directory::NOTES;
use super::options::AgentTask;
use super::turns::{CheckTurn, owned};
use super::verdict::{CheckStop, fail, skip};
use super::wire::ReceivedResponse;

/// How long nothing must come for there to be a silence.
const QUIET: Duration = Duration::from_millis(250);

/// How many pages of a list of sessions are asked for.
const PAGES: usize = 64;

/// A prompt that the agent has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedPrompt {
    session: String,
    /// How many messages there had been before.
    messages: usize,
}

/// The kind of an update.
pub(super) fn kind(update: &Value) -> &str {
    update["sessionUpdate"].as_str().unwrap_or_default()
}

/// What an update says of the agent's state, if it says that.
pub(super) fn state(update: &Value) -> Option<&str> {
    (kind(update) == "state_update")
        .then(|| update["state"].as_str())
        .flatten()
}

/// A prompt of one text.
pub(super) fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

impl AgentHarness {
    /// Opens a session and gives its id, after `initialize` if that has not been done.
    ///
    /// # Errors
    /// As [`open_session`](Self::open_session); as a skip, the agent offers no sessions.
    pub async fn session_v2(&mut self) -> Result<String, CheckStop> {
        if self.initialized.is_none() {
            self.initialize().await?;
        }
        self.require_capability("/capabilities/session")?;
        self.session().await
    }

    /// Lets the agent do a task, until it is idle again.
    ///
    /// # Errors
    /// As [`prompt_v2`](Self::prompt_v2).
    pub async fn turn_v2(
        &mut self,
        session: &str,
        task: AgentTask,
    ) -> Result<CheckTurn, CheckStop> {
        let prompt = text(&self.text_for(task));
        self.prompt_v2(session, prompt).await
    }

    /// Sends a prompt, and waits until the agent is idle again.
    ///
    /// # Errors
    /// The prompt is refused, or the work on it does not end in time.
    pub async fn prompt_v2(
        &mut self,
        session: &str,
        prompt: Value,
    ) -> Result<CheckTurn, CheckStop> {
        let begun = self.begin_v2(session, prompt).await?;
        self.finish_v2(&begun).await
    }

    /// Sends the prompt for a task, and waits until it is acknowledged.
    ///
    /// # Errors
    /// As [`begin_v2`](Self::begin_v2).
    pub async fn begin_task_v2(
        &mut self,
        session: &str,
        task: AgentTask,
    ) -> Result<AcceptedPrompt, CheckStop> {
        let prompt = text(&self.text_for(task));
        self.begin_v2(session, prompt).await
    }

    /// Sends a prompt, and waits until it is acknowledged.
    ///
    /// # Errors
    /// It is refused, or there is no answer.
    pub async fn begin_v2(
        &mut self,
        session: &str,
        prompt: Value,
    ) -> Result<AcceptedPrompt, CheckStop> {
        let begun = AcceptedPrompt {
            session: session.to_owned(),
            messages: self.messages.len(),
        };
        let params = json!({"sessionId": session, "prompt": prompt});
        match self.request("session/prompt", params).await? {
            ReceivedResponse::Result(_) => Ok(begun),
            ReceivedResponse::Error { code, message, .. } => fail(format!(
                "`session/prompt` failed with error {code}: {message}"
            )),
        }
    }

    /// Waits until the agent is idle again after a prompt.
    ///
    /// # Errors
    /// It is not in time.
    pub async fn finish_v2(&mut self, begun: &AcceptedPrompt) -> Result<CheckTurn, CheckStop> {
        let patience = self.turn_patience();
        let waiting = async {
            loop {
                if let Some(turn) = self.finished_turn_v2(begun) {
                    return Ok(turn);
                }
                if self.next().await?.is_none() {
                    return fail("it closed its output during a turn");
                }
            }
        };
        match tokio::time::timeout(patience, waiting).await {
            Ok(turn) => turn,
            Err(_) => fail(format!("no `state_update` with `idle` within {patience:?}")),
        }
    }

    /// What has come of a prompt so far.
    pub fn updates_of_prompt_v2<'a>(
        &'a self,
        begun: &'a AcceptedPrompt,
    ) -> impl Iterator<Item = &'a Value> {
        let since = self.updates_since(begun.messages);
        since
            .filter(|params| params["sessionId"].as_str() == Some(&begun.session))
            .filter_map(|params| params.get("update"))
    }

    /// The turn, if it is over: by an `idle` that follows some work, or that says why it came. One that was on its
    /// way when the prompt was sent is neither.
    pub(super) fn finished_turn_v2(&self, begun: &AcceptedPrompt) -> Option<CheckTurn> {
        let mut updates = Vec::new();
        let mut at_work = false;
        for update in self.updates_of_prompt_v2(begun) {
            updates.push(update.clone());
            match state(update) {
                Some("idle") => {
                    let stop = update["stopReason"].as_str();
                    if at_work || stop.is_some() {
                        let requests = self.requests_since(begun.messages);
                        return Some(CheckTurn {
                            stop: stop.unwrap_or_default().to_owned(),
                            updates,
                            requests: requests.map(owned).collect(),
                        });
                    }
                }
                Some(_) => at_work = true,
                None => {}
            }
        }
        None
    }

    /// Waits until nothing has come for a moment.
    ///
    /// # Errors
    /// See [`next`](Self::next).
    pub async fn wait_until_quiet(&mut self) -> Result<(), CheckStop> {
        // However much there is to say, the check goes on.
        let latest = Instant::now() + self.wire.patience();
        while Instant::now() < latest {
            match tokio::time::timeout(QUIET, self.next()).await {
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None)) | Err(_) => break,
                Ok(Err(stop)) => return Err(stop),
            }
        }
        Ok(())
    }

    /// Makes a session with a past that is closed, and gives its id.
    ///
    /// # Errors
    /// As [`turn_v2`](Self::turn_v2); as a skip, the agent does not keep it.
    pub async fn closed_session_v2(&mut self) -> Result<String, CheckStop> {
        let session = self.session_v2().await?;
        self.turn_v2(&session, AgentTask::Answer).await?;
        self.result("session/close", json!({"sessionId": session}))
            .await?;
        let cwd = self.place().project().to_owned();
        let listed = self.list_sessions_v2(json!({"cwd": cwd})).await?;
        if listed.iter().any(|info| info["sessionId"] == *session) {
            Ok(session)
        } else {
            skip("the agent does not list closed sessions, so there is none to resume")
        }
    }

    /// Params with which a session is resumed, without its past.
    #[must_use]
    pub fn resume_params(&self, session: &str) -> Value {
        json!({"sessionId": session, "cwd": self.place().project(), "mcpServers": []})
    }

    /// All sessions that the agent lists, page by page.
    ///
    /// # Errors
    /// A page is refused; or there are more than can be looked at.
    pub async fn list_sessions_v2(&mut self, mut params: Value) -> Result<Vec<Value>, CheckStop> {
        let mut all = Vec::new();
        for _ in 0..PAGES {
            let page = self.result("session/list", params.clone()).await?;
            all.extend(page["sessions"].as_array().cloned().unwrap_or_default());
            match page.get("nextCursor").filter(|cursor| !cursor.is_null()) {
                Some(cursor) => params["cursor"] = cursor.clone(),
                None => return Ok(all),
            }
        }
        skip(format!("the list of sessions has more than {PAGES} pages"))
    }

    /// Waits until the agent asks for permission, and gives the id and the params of the request; or `None` if its
    /// work ends without that.
    ///
    /// # Errors
    /// Neither comes in time.
    pub async fn wait_for_permission_v2(
        &mut self,
        begun: &AcceptedPrompt,
    ) -> Result<Option<(Value, Value)>, CheckStop> {
        let patience = self.turn_patience();
        let waiting = async {
            loop {
                let held = self.held.iter();
                let mut asked = held.filter(|held| held.1 == "session/request_permission");
                if let Some((id, _, params)) = asked.next_back() {
                    return Ok(Some((id.clone(), params.clone())));
                }
                if self.finished_turn_v2(begun).is_some() {
                    return Ok(None);
                }
                if self.next().await?.is_none() {
                    return fail("it closed its output during a turn");
                }
            }
        };
        match tokio::time::timeout(patience, waiting).await {
            Ok(asked) => asked,
            Err(_) => fail(format!(
                "it neither requested permission nor ended the turn within {patience:?}"
            )),
        }
    }

    /// That `notes.txt` is as it was.
    ///
    /// # Errors
    /// It was changed.
    pub fn require_file_unchanged_v2(&self) -> Result<(), CheckStop> {
        match std::fs::read_to_string(self.place().file("notes.txt")) {
            Ok(text) if text == NOTES => Ok(()),
            Ok(_) => fail("`notes.txt` was changed anyway"),
            Err(e) => fail(format!("`notes.txt` no longer exists: {e}")),
        }
    }
}
