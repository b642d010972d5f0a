//! The agent's side in version 2.

use std::time::Duration;

use serde_json::{Value, json};

use super::client_harness::{ClientHarness, ReceivedPrompt};
use super::verdict::{CheckStop, fail, skip};
use super::wire::ReceivedResponse;

/// How long to watch for messages that the client must not send.
pub(super) const WATCHED: Duration = Duration::from_millis(400);

/// Returns an update with a chunk of an agent message.
pub(super) fn said(text: &str) -> Value {
    let content = json!({"type": "text", "text": text});
    json!({"sessionUpdate": "agent_message_chunk", "messageId": "said", "content": content})
}

impl ClientHarness {
    /// Waits for `initialize`, responds to it, and returns its params.
    ///
    /// # Errors
    /// `initialize` does not arrive in time; or, as a skip, the client does not support version 2.
    pub async fn initialize_v2(&mut self) -> Result<Value, CheckStop> {
        let (id, params) = self.asked_to_begin_v2().await?;
        let introduction = self.introduction.clone();
        self.wire.answer(&id, introduction).await?;
        Ok(params)
    }

    /// Waits for `initialize`, and returns its id and its params.
    ///
    /// # Errors
    /// See [`initialize_v2`](Self::initialize_v2).
    pub async fn asked_to_begin_v2(&mut self) -> Result<(Value, Value), CheckStop> {
        let (id, params) = self.expect("initialize").await?;
        self.initialized = Some(params.clone());
        match params["protocolVersion"].as_u64() {
            Some(1) => skip("the client requests protocol version 1 instead of 2"),
            _ => Ok((id, params)),
        }
    }

    /// Responds to the client's requests up to its first prompt, and returns that prompt.
    ///
    /// # Errors
    /// See [`initialize_v2`](Self::initialize_v2); or no prompt arrives in time.
    pub async fn prompted_v2(&mut self) -> Result<ReceivedPrompt, CheckStop> {
        if self.initialized.is_none() {
            self.initialize_v2().await?;
        }
        self.wait_for_prompt().await
    }

    /// Accepts the client's first prompt, and reports that the agent is working on it.
    ///
    /// # Errors
    /// See [`prompted_v2`](Self::prompted_v2).
    pub async fn working_v2(&mut self) -> Result<ReceivedPrompt, CheckStop> {
        let prompted = self.prompted_v2().await?;
        self.accept_v2(&prompted).await?;
        self.state_v2(&prompted, json!({"state": "running"}))
            .await?;
        Ok(prompted)
    }

    /// Acknowledges a prompt. Newer drafts, and clients in use, require a message id in the response. In the draft that
    /// is checked, that is an additional field.
    ///
    /// # Errors
    /// The client stopped reading or closed the connection.
    pub async fn accept_v2(&mut self, prompted: &ReceivedPrompt) -> Result<(), CheckStop> {
        let accepted = json!({"messageId": "prompted"});
        self.wire.answer(&prompted.id, accepted).await
    }

    /// Sends a state update.
    ///
    /// # Errors
    /// The client stopped reading or closed the connection.
    pub async fn state_v2(
        &mut self,
        prompted: &ReceivedPrompt,
        mut state: Value,
    ) -> Result<(), CheckStop> {
        state["sessionUpdate"] = json!("state_update");
        self.update(&prompted.session, state).await
    }

    /// Ends the turn of a prompt.
    ///
    /// # Errors
    /// The client stopped reading or closed the connection.
    pub async fn idle_v2(
        &mut self,
        prompted: &ReceivedPrompt,
        reason: &str,
    ) -> Result<(), CheckStop> {
        let state = json!({"state": "idle", "stopReason": reason});
        self.state_v2(prompted, state).await
    }

    /// Requires that the client still responds to requests. In the reason for a failure, `after` says what happened
    /// before.
    ///
    /// # Errors
    /// The client does not respond.
    pub async fn alive_v2(&mut self, after: &str) -> Result<(), CheckStop> {
        match self.request("_acp-check/alive", json!({})).await {
            Ok(_) => Ok(()),
            Err(CheckStop::Fail(why)) => fail(format!("after {after}: {why}")),
            Err(stop) => Err(stop),
        }
    }

    /// Sends updates during a turn, and requires that the client still responds. `what` describes the updates.
    ///
    /// # Errors
    /// The client does not respond.
    pub async fn tolerates_v2(&mut self, what: &str, updates: &[Value]) -> Result<(), CheckStop> {
        let prompted = self.working_v2().await?;
        for update in updates {
            self.update(&prompted.session, update.clone()).await?;
        }
        self.alive_v2(what).await?;
        self.idle_v2(&prompted, "end_turn").await
    }

    /// Requests permission, and returns the outcome that the client responds with.
    ///
    /// # Errors
    /// The request is rejected; or, as a skip, there is no response: a user may have to answer.
    pub async fn permission_v2(&mut self, params: Value) -> Result<Value, CheckStop> {
        let id = self.wire.ask("session/request_permission", params).await?;
        let response = match self.answer(&id).await {
            Ok(response) => response,
            Err(CheckStop::Fail(why)) if !self.wire.has_ended() => {
                return skip(format!("no response to the permission request: {why}"));
            }
            Err(stop) => return Err(stop),
        };
        match response {
            ReceivedResponse::Result(response) => Ok(response["outcome"].clone()),
            ReceivedResponse::Error { code, message, .. } => fail(format!(
                "the permission request failed with error {code}: {message}"
            )),
        }
    }
}
