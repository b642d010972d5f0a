//! An agent of version 1 behind a client of version 2.

mod agent;
mod client;
mod content;
pub(super) mod initialize;
mod terminal;
mod update;

use std::collections::VecDeque;

use acp_wire::RawObject;
use acp_wire::jsonrpc::{self, CancelRequestNotification, Incoming, RequestId};
use uuid::Uuid;

use self::initialize::Offers;
use super::config::{ConfigOfV1, Switch};
use super::json::{Line, Out, answer, notify, object, read, refuse, update};
use super::method;
use super::state::{Busy, Requests, Sessions};
use crate::connection::Limits;
use crate::recent::Recent;

/// How many prompts a session holds while a turn runs.
const HELD: usize = 16;

/// How large all held prompts together may be, in bytes, before further ones are refused.
const HELD_BYTES: usize = 64 * 1024 * 1024;

/// The state of the bridge.
pub(super) struct Up {
    offers: Offers,
    sessions: Sessions<Session>,
    /// What the client has asked of the agent.
    asked: Requests<Asked>,
    /// What the agent has asked of the client.
    questions: Requests<Question>,
    held_bytes: usize,
}

/// A request of the client's.
enum Asked {
    /// Its answer needs no change.
    Plain,
    /// Opens a session that the answer names.
    Open { place: RawObject },
    /// Opens this session, told to the agent as a resume or, swallowing the replay, as a load.
    Resume { session: String, place: RawObject },
    /// Sets a config option.
    Set { session: String },
    /// Sets a mode or model, which the client knows as a config option.
    Switch {
        session: String,
        switch: Switch,
        value: Box<serde_json::value::RawValue>,
    },
    /// A prompt that the agent works on. The client has had its answer.
    Prompt { session: String },
    /// A prompt that waits for its turn.
    Held { session: String },
    /// Closes a session.
    Close { session: String },
    /// Deletes a session.
    Delete { session: String },
}

/// A request of the agent's for the person at the client.
enum Question {
    Open {
        session: String,
    },
    /// The bridge has answered it because the turn was cancelled.
    Answered,
}

#[derive(Default)]
struct Session {
    /// `cwd` and `additionalDirectories`, if it was opened through the bridge.
    place: Option<RawObject>,
    config: ConfigOfV1,
    turn: Option<Turn>,
    held: VecDeque<Held>,
    /// Requests to close it, which are answered when its turn has ended.
    closing: Vec<RequestId>,
    /// Questions of the agent's that the client has not answered yet.
    questions: Vec<Asking>,
    /// What the last message chunk was of, and its id, if the next one may continue it.
    speaker: Option<(String, String)>,
    /// The titles of its tool calls.
    titles: Recent<String, 512>,
    /// The terminals the client has been told of.
    terminals: Recent<(), 512>,
    /// Its conversation is being replayed, and the client did not ask for that.
    swallowing: bool,
    /// Its subagents: what they ask is answered, too, when it is cancelled.
    subagents: Recent<(), 64>,
}

struct Turn {
    id: RequestId,
    cancelled: bool,
}

struct Held {
    id: RequestId,
    line: Box<[u8]>,
}

struct Asking {
    id: RequestId,
    /// Whether it is a permission or an elicitation.
    permission: bool,
}

impl Busy for Session {
    fn busy(&self) -> bool {
        self.turn.is_some() || self.swallowing
    }
}

impl Up {
    pub(super) fn new(offers: Offers, limits: &Limits) -> Self {
        Self {
            offers,
            sessions: Sessions::default(),
            asked: Requests::new(limits.requests),
            questions: Requests::new(limits.requests),
            held_bytes: 0,
        }
    }

    pub(super) fn client_line(&mut self, line: &Line<'_>, out: &mut Out) {
        match &line.message {
            Incoming::Request { id, method, params } => {
                let params = object(*params);
                if let Err(error) = self.client_asks(id, method, params, line, out) {
                    refuse(&mut out.client, id, &error);
                }
            }
            Incoming::Notification { method, params } => {
                self.client_says(method, &object(*params), line, out);
            }
            Incoming::Response { id, .. } => self.client_answers(id, line, out),
        }
    }

    pub(super) fn agent_line(&mut self, line: &Line<'_>, out: &mut Out) {
        match &line.message {
            Incoming::Request { id, method, params } => {
                let params = object(*params);
                if let Err(error) = self.agent_asks(id, method, params, line, out) {
                    refuse(&mut out.agent, id, &error);
                }
            }
            Incoming::Notification { method, params } => {
                self.agent_says(method, &object(*params), line, out);
            }
            Incoming::Response { id, result } => self.agent_answers(id, result.as_ref(), line, out),
        }
    }

    /// The client will ask nothing more.
    pub(super) fn client_closed(&mut self) {
        // What is held can no longer begin: the agent has been told that there is nothing more.
        self.held_bytes = 0;
        let sessions: Vec<String> = self.sessions.iter().map(|(id, _)| id.to_owned()).collect();
        for id in sessions {
            if let Some(session) = self.sessions.get(&id) {
                session.held.clear();
            }
        }
    }

    /// The agent is gone: what it has left open ends with this error.
    pub(super) fn agent_closed(&mut self, error: &jsonrpc::Error, out: &mut Out) {
        for (id, asked) in self.asked.drain() {
            match asked {
                Asked::Prompt { session } => {
                    let idle = object! {
                        "sessionUpdate": "state_update", "state": "idle",
                        "stopReason": "error", "error": error,
                    };
                    update(&mut out.client, &session, &idle);
                }
                _ => refuse(&mut out.client, &id, error),
            }
        }
        let sessions: Vec<String> = self.sessions.iter().map(|(id, _)| id.to_owned()).collect();
        for id in sessions {
            for id in self
                .sessions
                .get(&id)
                .map(|session| std::mem::take(&mut session.closing))
                .unwrap_or_default()
            {
                refuse(&mut out.client, &id, error);
            }
        }
    }

    /// Begins a turn: the client is told that its message has been taken, then the agent gets it.
    fn begin(&mut self, session_id: &str, held: &Held, out: &mut Out) {
        let prompt = read::<RawObject>(&held.line)
            .map(|line| object(line.get("params")))
            .and_then(|params| params.get("prompt").map(ToOwned::to_owned));
        let message = message_id();
        answer(&mut out.client, &held.id, &object! { "messageId": message });
        let echo = object! {
            "sessionUpdate": "user_message", "messageId": message, "content": prompt,
        };
        update(&mut out.client, session_id, &echo);
        update(&mut out.client, session_id, &state("running"));
        super::json::pass(&mut out.agent, &held.line);
        self.asked.add(
            &held.id,
            Asked::Prompt {
                session: session_id.to_owned(),
            },
        );
        let session = self.sessions.touch(session_id);
        session.speaker = None;
        session.turn = Some(Turn {
            id: held.id.clone(),
            cancelled: false,
        });
    }

    /// The turn has ended; the next one begins, if one is held.
    fn end_turn(&mut self, session_id: &str, idle: &RawObject, out: &mut Out) {
        update(&mut out.client, session_id, idle);
        let Some(session) = self.sessions.get(session_id) else {
            return;
        };
        session.turn = None;
        session.speaker = None;
        session.questions.clear();
        let closing = std::mem::take(&mut session.closing);
        if !closing.is_empty() {
            for id in closing {
                answer(&mut out.client, &id, &RawObject::default());
            }
            self.sessions.forget(session_id);
        } else if let Some(next) = session.held.pop_front() {
            self.held_bytes -= next.line.len();
            self.asked.take(&next.id);
            self.begin(session_id, &next, out);
        }
    }

    /// Everything under way in a session is cancelled. The agent has been told already.
    ///
    /// A version 2 client need not answer what a cancelled turn has asked; a version 1 agent waits for
    /// that answer before it ends the turn. So the bridge answers in the client's stead.
    fn cancel(&mut self, session_id: &str, out: &mut Out) {
        let Some(session) = self.sessions.get(session_id) else {
            return;
        };
        if let Some(turn) = &mut session.turn {
            turn.cancelled = true;
        }
        for held in std::mem::take(&mut session.held) {
            self.held_bytes -= held.line.len();
            self.asked.take(&held.id);
            refuse(
                &mut out.client,
                &held.id,
                &jsonrpc::Error::request_cancelled(),
            );
        }
        for asking in std::mem::take(&mut session.questions) {
            answer(&mut out.agent, &asking.id, &cancelled(asking.permission));
            let params = object! { "requestId": asking.id };
            notify(&mut out.client, method::CANCEL_REQUEST, &params);
            self.questions.take(&asking.id);
            self.questions.add(&asking.id, Question::Answered);
        }
        // Taken out meanwhile: one that is above itself is not gone round for ever.
        let Some(session) = self.sessions.get(session_id) else {
            return;
        };
        let subagents = std::mem::take(&mut session.subagents);
        for subagent in subagents.ids() {
            self.cancel(subagent, out);
        }
        self.sessions.touch(session_id).subagents = subagents;
    }

    /// Cancels one prompt that is held, if this is one.
    fn cancel_held(&mut self, id: &RequestId, out: &mut Out) {
        let Some(Asked::Held { session }) = self.asked.take(id) else {
            return;
        };
        if let Some(session) = self.sessions.get(&session)
            && let Some(at) = session.held.iter().position(|held| held.id == *id)
            && let Some(held) = session.held.remove(at)
        {
            self.held_bytes -= held.line.len();
        }
        refuse(&mut out.client, id, &jsonrpc::Error::request_cancelled());
    }
}

/// The answer of a person who has cancelled.
fn cancelled(permission: bool) -> RawObject {
    if permission {
        let outcome = object! { "outcome": "cancelled" };
        object! { "outcome": outcome }
    } else {
        object! { "action": "cancel" }
    }
}

/// A `state_update` without more to it.
fn state(state: &str) -> RawObject {
    object! { "sessionUpdate": "state_update", "state": state }
}

/// An id that no other message has.
fn message_id() -> String {
    Uuid::new_v4().to_string()
}

/// What a `$/cancel_request` is about.
fn cancelled_request(params: &RawObject) -> Option<RequestId> {
    let cancel: CancelRequestNotification = params.read().ok()?;
    Some(cancel.request_id)
}
