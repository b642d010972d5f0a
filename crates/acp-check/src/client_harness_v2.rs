//! The harness's agent side in version 2.

use std::time::Duration;

use serde_json::{Value, json};

use super::client_harness::{ClientHarness, ReceivedPrompt};
use super::verdict::{CheckStop, fail, skip};
use super::wire::ReceivedResponse;

/// How long to watch for messages that the client must not send, in version 2.
pub(super) const WATCH_TIME: Duration = Duration::from_millis(400);

/// Returns an update with a chunk of an agent message.
pub(super) fn text_update(text: &str) -> Value {
    let content = json!({"type": "text", "text": text});
    json!({"sessionUpdate": "agent_message_chunk", "messageId": "said", "content": content})
}

impl ClientHarness {
    /// Waits for `initialize`, responds to it, and returns its params.
    ///
    /// # Errors
    /// `initialize` does not arrive in time. If the client does not support version 2, the check is skipped.
    pub async fn initialize_v2(&mut self) -> Result<Value, CheckStop> {
        let (id, params) = self.receive_initialize_v2().await?;
        let introduction = self.initialize_result.clone();
        self.wire.send_result(&id, introduction).await?;
        Ok(params)
    }

    /// Waits for `initialize`, and returns its id and params.
    ///
    /// # Errors
    /// See [`initialize_v2`](Self::initialize_v2).
    pub async fn receive_initialize_v2(&mut self) -> Result<(Value, Value), CheckStop> {
        let (id, params) = self.wait_for_message("initialize").await?;
        self.initialize_params = Some(params.clone());
        match params["protocolVersion"].as_u64() {
            Some(1) => skip("the client requests protocol version 1 instead of 2"),
            _ => Ok((id, params)),
        }
    }

    /// Responds to the client's requests up to its first prompt, and returns that prompt.
    ///
    /// # Errors
    /// See [`initialize_v2`](Self::initialize_v2). In addition, no prompt arrives in time.
    pub async fn wait_for_prompt_v2(&mut self) -> Result<ReceivedPrompt, CheckStop> {
        if self.initialize_params.is_none() {
            self.initialize_v2().await?;
        }
        self.wait_for_prompt().await
    }

    /// Accepts the client's first prompt, and reports that the agent is working on it.
    ///
    /// # Errors
    /// See [`wait_for_prompt_v2`](Self::wait_for_prompt_v2).
    pub async fn begin_turn_v2(&mut self) -> Result<ReceivedPrompt, CheckStop> {
        let prompted = self.wait_for_prompt_v2().await?;
        self.accept_prompt_v2(&prompted).await?;
        self.send_state_v2(&prompted, json!({"state": "running"}))
            .await?;
        Ok(prompted)
    }

    /// Acknowledges a prompt. The response includes a message id, which newer drafts and some clients require. In the
    /// draft that the suite tests against, this is an additional field.
    ///
    /// # Errors
    /// The client stopped reading or closed the connection.
    pub async fn accept_prompt_v2(&mut self, prompted: &ReceivedPrompt) -> Result<(), CheckStop> {
        let accepted = json!({"messageId": "prompted"});
        self.wire.send_result(&prompted.id, accepted).await
    }

    /// Sends an update with the agent's state.
    ///
    /// # Errors
    /// The client stopped reading or closed the connection.
    pub async fn send_state_v2(
        &mut self,
        prompted: &ReceivedPrompt,
        mut state: Value,
    ) -> Result<(), CheckStop> {
        state["sessionUpdate"] = json!("state_update");
        self.send_update(&prompted.session, state).await
    }

    /// Ends the turn of a prompt.
    ///
    /// # Errors
    /// The client stopped reading or closed the connection.
    pub async fn end_turn_v2(
        &mut self,
        prompted: &ReceivedPrompt,
        reason: &str,
    ) -> Result<(), CheckStop> {
        let state = json!({"state": "idle", "stopReason": reason});
        self.send_state_v2(prompted, state).await
    }

    /// Requires that the client still responds to requests. If the check fails, the reason mentions `after`, the
    /// preceding event.
    ///
    /// # Errors
    /// The client does not respond.
    pub async fn require_responsive_v2(&mut self, after: &str) -> Result<(), CheckStop> {
        match self.request("_acp-check/alive", json!({})).await {
            Ok(_) => Ok(()),
            Err(CheckStop::Fail(why)) => fail(format!("after {after}: {why}")),
            Err(stop) => Err(stop),
        }
    }

    /// Sends updates during a turn, and requires that the client still responds. If the check fails, the reason
    /// mentions `what`, a description of the updates.
    ///
    /// # Errors
    /// The client does not respond.
    pub async fn require_tolerance_v2(
        &mut self,
        what: &str,
        updates: &[Value],
    ) -> Result<(), CheckStop> {
        let prompted = self.begin_turn_v2().await?;
        for update in updates {
            self.send_update(&prompted.session, update.clone()).await?;
        }
        self.require_responsive_v2(what).await?;
        self.end_turn_v2(&prompted, "end_turn").await
    }

    /// Requests permission, and returns the outcome from the client's response.
    ///
    /// # Errors
    /// The request is rejected. If there is no response, the check is skipped, because a user may have to answer.
    pub async fn request_permission_v2(&mut self, params: Value) -> Result<Value, CheckStop> {
        let id = self
            .wire
            .send_request("session/request_permission", params)
            .await?;
        let response = match self.wait_for_response(&id).await {
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
