//! The requests with which a client asks for what the protocol has no words for: the state of a live agent, its queues,
//! and its end.
//!
//! | method | params | result |
//! |---|---|---|
//! | `_live/status` | `sessionId`, optional | the agent's settings, its clients and its sessions, with their turns and queues. With a session, those of the server that owns it |
//! | `_live/prompt` | as in `session/prompt` | the prompt's number. The client does not wait for the turn, and gets all that happens as updates and notifications |
//! | `_live/cancel` | `sessionId` | whether a turn was running, which is cancelled |
//! | `_live/queue` | `sessionId` | the prompts that wait, in order |
//! | `_live/take_back` | `sessionId`, `prompt` | the queue, without the prompt with this number |
//! | `_live/move` | `sessionId`, `prompt`, `position` | the queue, with the prompt at this position |
//! | `_live/stop` | `force` | nothing. The agent ends, if it is private. Without `force`, only if no other client uses it |
//!
//! With the notification `_live/answers`, a client chooses the questions that it wants to be asked: `all`, those of its
//! `own` turns, or `none` (`questions`). With `shown`, it is asked none, but is shown them all.

use acp::jsonrpc;
use acp::v1::SessionId;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::agent::LiveAgent;
use super::log::{Audience, ClientId};
use super::message::{notification, to_raw};
use super::prompt::{PromptNumber, prompt_excerpt};
use super::session::{ClientRequestId, SharedSession};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ControlParams {
    #[serde(default)]
    session_id: Option<SessionId>,
    /// The number of a prompt. In `_live/prompt`, its content, which is only passed on.
    #[serde(default)]
    prompt: Option<Value>,
    #[serde(default)]
    position: Option<usize>,
    #[serde(default)]
    force: bool,
}

impl LiveAgent {
    /// Handles a request whose method begins with `_live/`.
    pub(super) fn handle_control_request(
        &mut self,
        request: &ClientRequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), jsonrpc::Error> {
        let raw = params;
        let params: ControlParams = match params {
            Some(params) => serde_json::from_str(params.get())
                .map_err(|e| jsonrpc::Error::invalid_params(e.to_string()))?,
            None => ControlParams::default(),
        };
        self.audit_sent(request.client, &format!("_live/{method}"), raw)?;
        let result = match method {
            "status" => self.status(request.client),
            "prompt" => {
                let id = params.session_id.as_ref();
                let id =
                    id.ok_or_else(|| jsonrpc::Error::invalid_params("sessionId is missing"))?;
                json!({ "prompt": self.prompt(request, false, id, raw)? })
            }
            "cancel" => self.cancel_from_outside(request.client, &params)?,
            "queue" => json!({ "queue": queue_json(self.known_session(&params)?) }),
            "take_back" => self.take_back(&params)?,
            "move" => self.move_prompt(&params)?,
            "stop" if self.is_private => self.stop(request.client, params.force)?,
            _ => return Err(jsonrpc::Error::method_not_found(&format!("_live/{method}"))),
        };
        self.respond(request, &Ok(to_raw(&result)));
        Ok(())
    }

    /// Returns the name that a client has given in `initialize`.
    pub(super) fn client_name(&self, client: ClientId) -> Option<String> {
        self.clients.get(&client)?.name.clone()
    }

    /// Returns the number of clients other than this one.
    fn other_clients(&self, asker: ClientId) -> usize {
        let others = self.clients.iter().filter(|(id, _)| **id != asker);
        others.filter(|(_, client)| client.is_initialized).count()
    }

    fn stop(&mut self, asker: ClientId, force: bool) -> Result<Value, jsonrpc::Error> {
        if !force && (self.other_clients(asker) > 0 || self.has_work()) {
            return Err(jsonrpc::Error::internal("the agent is in use"));
        }
        self.is_stopped = true;
        Ok(json!({}))
    }

    fn status(&self, asker: ClientId) -> Value {
        let client = self.clients.get(&asker);
        let sessions: Vec<Value> = self
            .sessions
            .values()
            .filter(|session| client.is_some_and(|c| c.may_see(session.creator.as_deref())))
            .map(|session| self.session_status(session))
            .collect();
        json!({
            "settings": self.settings,
            "otherClients": self.other_clients(asker),
            "isBusy": self.has_work(),
            "sessions": sessions,
        })
    }

    fn session_status(&self, session: &SharedSession) -> Value {
        let turn = session.prompts.turn.as_ref().map(|turn| {
            let prompt = &turn.prompt;
            json!({ "prompt": prompt.number, "client": prompt.sender.name, "text": turn.excerpt })
        });
        let clients = session.clients().map(|client| self.client_name(client));
        json!({
            "sessionId": session.id,
            "cwd": session.cwd,
            "title": session.title,
            "creator": session.creator,
            "clients": clients.collect::<Vec<_>>(),
            "turn": turn,
            "openQuestions": session.questions().count(),
            "queue": queue_json(session),
        })
    }

    fn known_session(
        &mut self,
        params: &ControlParams,
    ) -> Result<&mut SharedSession, jsonrpc::Error> {
        let id = params.session_id.as_ref();
        let id = id.ok_or_else(|| jsonrpc::Error::invalid_params("sessionId is missing"))?;
        let session = self.sessions.get_mut(id);
        session.ok_or_else(|| jsonrpc::Error::resource_not_found(format!("live session {id}")))
    }

    fn cancel_from_outside(
        &mut self,
        client: ClientId,
        params: &ControlParams,
    ) -> Result<Value, jsonrpc::Error> {
        let session = self.known_session(params)?;
        let (id, was_running) = (session.id.clone(), session.prompts.turn.is_some());
        self.cancel_turn(client, &id);
        Ok(json!({ "wasRunning": was_running }))
    }

    /// Removes a prompt from the queue. Its client learns that the prompt was cancelled.
    fn take_back(&mut self, params: &ControlParams) -> Result<Value, jsonrpc::Error> {
        let session = self.known_session(params)?;
        let number = queued_prompt(params)?;
        let taken = session.prompts.take_back(|prompt| prompt.number == number);
        let (id, queue) = (session.id.clone(), queue_json(session));
        if taken.is_empty() {
            return Err(jsonrpc::Error::resource_not_found("queued prompt"));
        }
        for prompt in taken {
            let cancelled = Ok(to_raw(&json!({ "stopReason": "cancelled" })));
            self.end_prompt(&id, prompt, cancelled);
        }
        self.announce_queue(&id);
        Ok(json!({ "queue": queue }))
    }

    /// Moves a prompt within the queue.
    fn move_prompt(&mut self, params: &ControlParams) -> Result<Value, jsonrpc::Error> {
        let position = params.position;
        let position =
            position.ok_or_else(|| jsonrpc::Error::invalid_params("position is missing"))?;
        let session = self.known_session(params)?;
        if !session.prompts.move_to(queued_prompt(params)?, position) {
            return Err(jsonrpc::Error::resource_not_found("queued prompt"));
        }
        session.queue_changed();
        let (id, queue) = (session.id.clone(), queue_json(session));
        self.announce_queue(&id);
        Ok(json!({ "queue": queue }))
    }

    /// Tells the clients of a session which prompts are waiting.
    pub(super) fn announce_queue(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let params = json!({ "sessionId": id, "queue": queue_json(session) });
        let line = notification("_live/queue_changed", &params);
        session.push_event(Audience::All, line);
        self.wake_clients(id);
    }
}

/// Returns the prompt that a request is about.
fn queued_prompt(params: &ControlParams) -> Result<PromptNumber, jsonrpc::Error> {
    let number: Option<PromptNumber> = params
        .prompt
        .as_ref()
        .and_then(|number| PromptNumber::deserialize(number).ok());
    number.ok_or_else(|| jsonrpc::Error::invalid_params("prompt: expected a number"))
}

fn queue_json(session: &SharedSession) -> Value {
    let prompts = session.prompts.queue().map(|prompt| {
        json!({
            "prompt": prompt.number,
            "client": prompt.sender.name,
            "text": prompt_excerpt(&prompt.params),
        })
    });
    prompts.collect()
}
