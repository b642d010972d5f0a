//! Runs an agent's turns, both complete ones and those that are cancelled, delayed, or rejected by the client.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use acp_rules::schema::Envelope;

use super::agent_harness::AgentHarness;
use super::options::AgentTask;
use super::verdict::{CheckStop, fail, require, skip};
use super::wire::ReceivedResponse;

/// How long to watch for messages that must not arrive. This is long enough for any that are already on their way.
pub(super) const QUIET_TIME: Duration = Duration::from_millis(300);

/// A finished turn, with everything that the agent sent during it.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckTurn {
    /// The stop reason, such as `end_turn`.
    pub stop_reason: String,
    /// The `update` field of each session update between the prompt and its response.
    pub updates: Vec<Value>,
    /// The method and `params` of each request from the agent during the turn.
    pub requests: Vec<(String, Value)>,
}

impl CheckTurn {
    /// Returns the updates of this type.
    pub fn updates_of_type<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.updates
            .iter()
            .filter(move |update| update.get("sessionUpdate").and_then(Value::as_str) == Some(kind))
    }

    /// Returns the text of the agent's messages.
    #[must_use]
    pub fn text(&self) -> String {
        self.updates_of_type("agent_message_chunk")
            .filter_map(|update| update.pointer("/content/text").and_then(Value::as_str))
            .collect()
    }
}

/// Clones the method and params of a request.
pub(super) fn clone_request((method, params): (&str, &Value)) -> (String, Value) {
    (method.to_owned(), params.clone())
}

impl AgentHarness {
    /// Sends a prompt without waiting for its response, and returns the id of the request.
    ///
    /// # Errors
    /// The agent stopped reading or closed the connection.
    pub async fn begin_prompt(&mut self, session: &str, text: &str) -> Result<Value, CheckStop> {
        let prompt = json!([{"type": "text", "text": text}]);
        self.wire
            .send_request(
                "session/prompt",
                json!({"sessionId": session, "prompt": prompt}),
            )
            .await
    }

    /// Makes the agent do a task, and waits for the end of the turn.
    ///
    /// # Errors
    /// The turn fails, or does not end in time.
    pub async fn run_task(
        &mut self,
        session: &str,
        task: AgentTask,
    ) -> Result<CheckTurn, CheckStop> {
        let text = self.prompt_text(task);
        self.run_prompt(session, json!([{"type": "text", "text": text}]))
            .await
    }

    /// Sends a prompt and waits for the end of the turn.
    ///
    /// # Errors
    /// The turn fails, or does not end in time.
    pub async fn run_prompt(
        &mut self,
        session: &str,
        prompt: Value,
    ) -> Result<CheckTurn, CheckStop> {
        let before = self.messages.len();
        let params = json!({"sessionId": session, "prompt": prompt});
        let id = self.wire.send_request("session/prompt", params).await?;
        let response = self.wait_for_turn_response(&id).await?;
        self.read_turn(session, response, before)
    }

    /// Waits for the response to a prompt, within the time limit for a turn.
    ///
    /// # Errors
    /// The response does not arrive in time, or the agent closes the connection.
    pub async fn wait_for_turn_response(
        &mut self,
        id: &Value,
    ) -> Result<ReceivedResponse, CheckStop> {
        let patience = self.turn_timeout();
        let waiting = async {
            loop {
                let Some(message) = self.next().await? else {
                    return fail("the agent closed its output during a turn");
                };
                if let Some(Envelope::Response {
                    id: answered,
                    result,
                }) = message.envelope()
                    && answered == id
                {
                    return Ok(ReceivedResponse::from_result(result));
                }
            }
        };
        match tokio::time::timeout(patience, waiting).await {
            Ok(response) => response,
            Err(_) => fail(format!("the turn did not end within {patience:?}")),
        }
    }

    /// Builds a turn from the response that ended it and all messages after the first `messages` entries.
    ///
    /// # Errors
    /// The response is an error, or has no stop reason.
    pub fn read_turn(
        &self,
        session: &str,
        response: ReceivedResponse,
        messages: usize,
    ) -> Result<CheckTurn, CheckStop> {
        let result = match response {
            ReceivedResponse::Result(result) => result,
            ReceivedResponse::Error { code, message, .. } => {
                return fail(format!(
                    "`session/prompt` failed with error {code}: {message}"
                ));
            }
        };
        let Some(stop) = result.get("stopReason").and_then(Value::as_str) else {
            return fail("the response to `session/prompt` has no `stopReason`");
        };
        let of_session =
            |params: &&Value| params.get("sessionId").and_then(Value::as_str) == Some(session);
        let updates = self.updates_since(messages).filter(of_session);
        let requests = self.requests_since(messages);
        Ok(CheckTurn {
            stop_reason: stop.to_owned(),
            updates: updates
                .filter_map(|params| params.get("update").cloned())
                .collect(),
            requests: requests.map(clone_request).collect(),
        })
    }

    /// Reads messages for `QUIET_TIME` without sending anything.
    ///
    /// # Errors
    /// See [`Wire::next`](super::Wire::next).
    pub async fn drain_messages(&mut self) -> Result<(), CheckStop> {
        let end = Instant::now() + QUIET_TIME;
        while let Ok(next) = timeout_at(end, self.next()).await {
            if next?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Returns all responses to a request that have arrived so far.
    #[must_use]
    pub fn responses_to(&self, id: &Value) -> Vec<ReceivedResponse> {
        let answers = self.messages.iter().filter_map(|message| {
            let Some(Envelope::Response { id: of, result }) = message.envelope() else {
                return None;
            };
            (of == id).then(|| ReceivedResponse::from_result(result))
        });
        answers.collect()
    }

    /// Waits for the response to a prompt, unless it has already arrived.
    ///
    /// # Errors
    /// See [`wait_for_turn_response`](Self::wait_for_turn_response).
    pub async fn prompt_response(&mut self, prompt: &Value) -> Result<ReceivedResponse, CheckStop> {
        match self.responses_to(prompt).into_iter().next() {
            Some(response) => Ok(response),
            None => self.wait_for_turn_response(prompt).await,
        }
    }

    /// Makes the agent do a task, and returns the response to the prompt. The response may be an error, because an
    /// agent is allowed to fail.
    ///
    /// # Errors
    /// There is no response in time.
    pub async fn try_task(
        &mut self,
        session: &str,
        task: AgentTask,
    ) -> Result<ReceivedResponse, CheckStop> {
        let text = self.prompt_text(task);
        let prompt = self.begin_prompt(session, &text).await?;
        self.wait_for_turn_response(&prompt).await
    }

    /// Like [`run_task`](Self::run_task), but skips the check if the turn fails. Use this for checks that are not about
    /// the response to a prompt.
    ///
    /// # Errors
    /// The turn does not end. If it fails, the check is skipped.
    pub async fn run_task_or_skip(
        &mut self,
        session: &str,
        task: AgentTask,
    ) -> Result<CheckTurn, CheckStop> {
        let before = self.messages.len();
        let response = self.try_task(session, task).await?;
        match self.read_turn(session, response, before) {
            Err(CheckStop::Fail(why)) => skip(format!("the agent did not do the task: {why}")),
            turn => turn,
        }
    }

    /// Starts a long turn, waits until the agent is working, and returns the prompt's id.
    ///
    /// # Errors
    /// The agent closes the connection. If the turn ends at once, the check is skipped.
    pub async fn begin_long_turn(&mut self, session: &str) -> Result<Value, CheckStop> {
        let text = self.prompt_text(AgentTask::Long);
        let before = self.messages.len();
        let patience = self.wire.timeout();
        let prompt = self.begin_prompt(session, &text).await?;
        let at_work = async {
            loop {
                if self
                    .updates_since(before)
                    .any(|params| params["sessionId"] == session)
                    || !self.responses_to(&prompt).is_empty()
                    || self.next().await?.is_none()
                {
                    return Ok(());
                }
            }
        };
        // An agent that thinks for a long time without sending an update is working too.
        timeout(patience, at_work).await.unwrap_or(Ok(()))?;
        self.drain_messages().await?;
        require(!self.wire.has_ended(), || {
            "the agent closed its output during a turn".to_owned()
        })?;
        if self.responses_to(&prompt).is_empty() {
            Ok(prompt)
        } else {
            skip(
                "the turn ended before it could be cancelled; use a longer task (--prompt-for long=TEXT)",
            )
        }
    }

    /// Runs an action while the agent is working, then cancels the turn and waits for it to end.
    ///
    /// # Errors
    /// See [`begin_long_turn`](Self::begin_long_turn). In addition, the action fails or the turn does not end.
    pub async fn run_during_turn<T>(
        &mut self,
        session: &str,
        doing: impl AsyncFnOnce(&mut Self) -> Result<T, CheckStop>,
    ) -> Result<T, CheckStop> {
        let prompt = self.begin_long_turn(session).await?;
        let done = doing(self).await;
        self.cancel(session).await?;
        let done = match done {
            Err(CheckStop::Fail(why)) => {
                return fail(format!("while the agent was working: {why}"));
            }
            done => done?,
        };
        self.prompt_response(&prompt).await?;
        Ok(done)
    }

    /// Sends `session/cancel` for a session.
    ///
    /// # Errors
    /// The agent stopped reading or closed the connection.
    pub async fn cancel(&mut self, session: &str) -> Result<(), CheckStop> {
        let params = json!({"sessionId": session});
        self.wire.send_notification("session/cancel", params).await
    }

    /// Waits for the response to a cancelled prompt, and requires that its stop reason is `cancelled`.
    ///
    /// # Errors
    /// The response has another stop reason, or there is no response.
    pub async fn require_cancelled(&mut self, prompt: &Value) -> Result<(), CheckStop> {
        match self.prompt_response(prompt).await? {
            ReceivedResponse::Result(result) => {
                let stop = &result["stopReason"];
                require(stop == "cancelled", || {
                    format!(
                        "the cancelled prompt ended with stop reason {stop}; expected \"cancelled\""
                    )
                })
            }
            ReceivedResponse::Error { code, message, .. } => fail(format!(
                "the cancelled prompt failed with error {code}: {message}; expected stop reason \"cancelled\""
            )),
        }
    }

    /// Requires that the next prompt succeeds. If the check fails, the reason mentions `after`, the preceding event.
    ///
    /// # Errors
    /// The next prompt fails.
    pub async fn require_next_prompt(
        &mut self,
        session: &str,
        after: &str,
    ) -> Result<CheckTurn, CheckStop> {
        let turn = match self.run_task(session, AgentTask::Answer).await {
            Err(CheckStop::Fail(why)) => return fail(format!("after {after}: {why}")),
            turn => turn?,
        };
        require(turn.stop_reason != "cancelled", || {
            format!("after {after}, the next prompt ended with stop reason \"cancelled\"")
        })?;
        Ok(turn)
    }

    /// Starts a task, waits for a request with this method, and leaves the request pending. Returns the id of the
    /// prompt, the id of the request, and its params.
    ///
    /// # Errors
    /// The agent closes the connection. If it sends no such request, the check is skipped.
    pub async fn wait_for_held_request(
        &mut self,
        session: &str,
        task: AgentTask,
        method: &'static str,
    ) -> Result<(Value, Value, Value), CheckStop> {
        self.host.held_methods.push(method);
        let text = self.prompt_text(task);
        let prompt = self.begin_prompt(session, &text).await?;
        let patience = self.turn_timeout();
        let waiting = async {
            loop {
                let held = self
                    .held_requests
                    .iter()
                    .position(|(_, held, _)| held == method);
                if let Some(held) = held {
                    let (id, _, params) = self.held_requests.remove(held);
                    return Ok((prompt, id, params));
                }
                if !self.responses_to(&prompt).is_empty() {
                    return skip(format!(
                        "the agent finished the task without calling `{method}`"
                    ));
                }
                if self.next().await?.is_none() {
                    return fail("the agent closed its output during a turn");
                }
            }
        };
        match timeout(patience, waiting).await {
            Ok(asked) => asked,
            Err(_) => fail(format!("the turn did not end within {patience:?}")),
        }
    }

    /// Makes the agent do a task, and responds to each of its requests with this method by sending `answer`, which
    /// contains a `result` or an `error`. Returns the response to the prompt.
    ///
    /// # Errors
    /// See [`wait_for_held_request`](Self::wait_for_held_request). In addition, the turn does not end.
    pub async fn run_task_with_response(
        &mut self,
        session: &str,
        task: AgentTask,
        method: &'static str,
        response: Value,
    ) -> Result<ReceivedResponse, CheckStop> {
        let (prompt, asked, _) = self.wait_for_held_request(session, task, method).await?;
        self.respond_to_held_requests(asked, &response).await?;
        self.prompt_response(&prompt).await
    }

    /// Responds with `response`, which contains a `result` or an `error`, to the pending request and to similar ones
    /// that have arrived since. The host handles later requests again.
    ///
    /// # Errors
    /// The agent stopped reading or closed the connection.
    pub async fn respond_to_held_requests(
        &mut self,
        asked: Value,
        response: &Value,
    ) -> Result<(), CheckStop> {
        self.host.held_methods.clear();
        let others = std::mem::take(&mut self.held_requests);
        for id in std::iter::once(asked).chain(others.into_iter().map(|(id, ..)| id)) {
            let mut message = response.clone();
            (message["jsonrpc"], message["id"]) = (json!("2.0"), id);
            self.wire.send(&message).await?;
        }
        Ok(())
    }
}
