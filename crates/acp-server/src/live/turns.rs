//! The turns of a session, from the prompt to its response.
//!
//! ```text
//!   prompt ──> queue ──> turn: written to the store, if there is one ──> sent to the agent ──> response
//!                └─ taken back, cancelled ──────────┴─ cancelled ────────────────────────────────↑
//! ```

use acp::jsonrpc;
use acp::v1::SessionId;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::agent::{LiveAgent, SentRequest};
use super::client_messages::session_lost_error;
use super::log::{Audience, ClientId};
use super::message::{notification, response, to_raw};
use super::prompt::{
    KnownPrompt, MAX_QUEUED_PROMPTS, PromptNumber, PromptSender, RunningTurn, SessionPrompt,
    TurnResponse, prompt_excerpt, prompt_key,
};
use super::session::{ClientRequestId, OpenState};
use crate::store::PromptState;

impl LiveAgent {
    /// Adds a prompt to the queue of a session. If the client `waits`, the end of the turn is the response to its request.
    pub(super) fn prompt(
        &mut self,
        request: &ClientRequestId,
        waits: bool,
        id: &SessionId,
        params: Option<&RawValue>,
    ) -> Result<PromptNumber, jsonrpc::Error> {
        let name = self.client_name(request.client);
        let session = self.attached_session(request.client, id)?;
        let sender = PromptSender {
            client: request.client,
            name,
            request: waits.then(|| request.id.clone()),
        };
        let key = prompt_key(params);
        let known = key
            .as_ref()
            .and_then(|key| session.prompts.send_again(key, &sender));
        match known {
            Some(KnownPrompt::Open(number)) => return Ok(number),
            Some(KnownPrompt::Ended(number, response)) => {
                if let Some(request) = sender.request() {
                    self.respond_in_order(Some(id), &request, &response);
                }
                return Ok(number);
            }
            None => {}
        }
        if let OpenState::Lost(reason) = &session.agent_state {
            return Err(session_lost_error(id, reason));
        }
        if session.prompts.queue().len() >= MAX_QUEUED_PROMPTS {
            return Err(jsonrpc::Error::internal(format!(
                "too many queued prompts (limit: {MAX_QUEUED_PROMPTS})"
            )));
        }
        let params = params.map_or_else(|| to_raw(&json!({})), ToOwned::to_owned);
        let prompt = session.prompts.push(key, sender, params);
        let (number, record) = (prompt.number, prompt.record(PromptState::Queued));
        session.prompt_changed(record);
        match session.prompts.turn {
            Some(_) => self.announce_queue(id),
            None => self.start_next_turn(id),
        }
        self.wake_clients(id);
        Ok(number)
    }

    /// Starts the next turn of a session, if none is running and a prompt is waiting.
    pub(super) fn start_next_turn(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        if session.prompts.turn.is_some()
            || session.agent_state != OpenState::Open
            || self.starts_no_turns
        {
            return;
        }
        let Some(prompt) = session.prompts.pop() else {
            return;
        };
        let sender = prompt.sender.clone();
        session.push_prompt(&sender, &prompt.key, &prompt.params);
        for (audience, is_own) in [
            (Audience::Only(sender.client), true),
            (Audience::AllExcept(sender.client), false),
        ] {
            let params = json!({ "sessionId": id, "isOwn": is_own, "client": sender.name });
            session.push_event(audience, notification("_live/turn_started", &params));
        }
        session.prompt_changed(prompt.record(PromptState::Running));
        session.prompts.turn = Some(RunningTurn {
            excerpt: prompt_excerpt(&prompt.params),
            prompt,
            // Another server must not run the prompt once the agent may have seen it.
            sent_when_written: Some(session.log.end()),
        });
        self.wake_clients(id);
        self.send_prompt_if_written(id);
    }

    /// Sends the prompt of a session's turn to the agent, if the beginning of the turn has been written.
    pub(super) fn send_prompt_if_written(&mut self, id: &SessionId) {
        let session = self.sessions.get_mut(id);
        let Some(session) = session else {
            return;
        };
        let Some(turn) = &mut session.prompts.turn else {
            return;
        };
        let is_written = |until: &mut u64| session.log.is_written(*until);
        if turn.sent_when_written.take_if(is_written).is_some() {
            let params = turn.prompt.params.clone();
            let purpose = SentRequest::Prompt {
                key: turn.prompt.key.clone(),
                session: id.clone(),
            };
            self.send_request("session/prompt", Some(&params), purpose);
        }
    }

    /// Ends a prompt that is no longer in its session's queue, and sends the response.
    pub(super) fn end_prompt(
        &mut self,
        id: &SessionId,
        prompt: SessionPrompt,
        response: TurnResponse,
    ) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.prompt_changed(prompt.ended_record(&response));
            if session.record.is_some() {
                session
                    .prompts
                    .remember(prompt.number, prompt.key.clone(), response.clone());
            }
        }
        if let Some(request) = prompt.sender.request() {
            self.respond_in_order(Some(id), &request, &response);
        }
        if let Some(session) = self.sessions.get_mut(id)
            && session.record.is_some()
        {
            let end = session.log.end();
            session.prompts.keep_until_written(end, prompt);
        }
    }

    /// Ends the turn of a session, and starts the next one.
    pub(super) fn turn_ended(&mut self, id: &SessionId, key: &str, result: TurnResponse) {
        // If the session was closed meanwhile, the client has its response.
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let turn = &mut session.prompts.turn;
        let Some(turn) = turn.take_if(|turn| turn.prompt.key == key) else {
            return;
        };
        let sender = &turn.prompt.sender;
        let stop_reason = result.as_ref().ok().and_then(|result| {
            let result: Value = serde_json::from_str(result.get()).ok()?;
            Some(result["stopReason"].clone())
        });
        let params = json!({
            "sessionId": id,
            "stopReason": stop_reason,
            "error": result.as_ref().err(),
        });
        let line = notification("_live/turn_ended", &params);
        session.push_event(sender.others(), line);
        self.end_prompt(id, turn.prompt, result);
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        session.compact();
        let has_queue = session.prompts.queue().len() > 0;
        self.wake_clients(id);
        self.start_next_turn(id);
        if has_queue {
            self.announce_queue(id);
        }
    }

    /// Cancels the running turn, and takes back the prompts that this client has queued. If it waits for its turn, the
    /// running turn of another client goes on.
    pub(super) fn cancel_turn(&mut self, client: ClientId, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let mut ended = session
            .prompts
            .take_back(|prompt| prompt.sender.client == client);
        let is_queue_changed = !ended.is_empty();
        // The agent need not know of a prompt that it has not been sent yet.
        let is_cancelled =
            |turn: &RunningTurn| !is_queue_changed || turn.prompt.sender.client == client;
        let is_unsent =
            |turn: &mut RunningTurn| is_cancelled(turn) && turn.sent_when_written.is_some();
        let unsent = session.prompts.turn.take_if(is_unsent);
        ended.extend(unsent.map(|turn| turn.prompt));
        let is_running = session.prompts.turn.as_ref().is_some_and(is_cancelled);
        let cancelled = Ok(to_raw(&json!({ "stopReason": "cancelled" })));
        for prompt in ended {
            self.end_prompt(id, prompt, cancelled.clone());
        }
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        if is_running {
            // A client must answer its permission requests when it cancels a turn.
            let open: Vec<_> = session
                .questions()
                .filter(|(_, question)| question.method == "session/request_permission")
                .map(|(id, _)| id)
                .collect();
            for question in open {
                if let Some(closed) = self.close_question(id, question, None) {
                    let result = Ok(to_raw(&json!({ "outcome": { "outcome": "cancelled" } })));
                    self.send_to_agent(&response(&closed.id, &result));
                }
            }
            let params = json!({ "sessionId": id });
            self.send_to_agent(&notification("session/cancel", &params));
        }
        if is_queue_changed {
            self.announce_queue(id);
        }
        self.wake_clients(id);
        self.start_next_turn(id);
    }
}
