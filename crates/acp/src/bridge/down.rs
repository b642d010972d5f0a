//! An agent of version 2 behind a client of version 1.

mod agent;
mod client;
pub(super) mod initialize;
mod message;
mod permission;
mod plan;
mod terminal;
mod tool_call;
mod update;

use std::collections::VecDeque;

use acp_wire::RawObject;
use acp_wire::jsonrpc::{self, Incoming, RequestId};

use self::initialize::Client;
use self::message::Messages;
use self::plan::Plans;
use self::terminal::Terminals;
use self::tool_call::Calls;
use super::config::ConfigOfV2;
use super::json::{Line, Out, object, refuse, update};
use super::state::{Busy, Requests, Sessions};
use crate::connection::Limits;
use crate::recent::Recent;

/// How many messages of the client's own are remembered once their turns have ended.
const ECHOES: usize = 16;

/// How deep subagents may have subagents to be asked about.
const DEPTH: usize = 16;

/// The state of the bridge.
pub(super) struct Down {
    client: Client,
    sessions: Sessions<Session>,
    /// What the client has asked of the agent, prompts of turns that run included.
    asked: Requests<Asked>,
    /// What the agent has asked of the client, as far as something is to be done about its answer.
    questions: Requests<Question>,
    /// Whose subagents the sessions are that are some.
    parents: Recent<String, 512>,
}

/// A permission that is asked in the place of a call's content.
struct Question {
    session: String,
    call: String,
}

/// A request of the client's.
enum Asked {
    /// Its answer needs no change.
    Plain,
    /// Opens a session that the answer names.
    Open,
    /// Opens this session, replayed or not.
    Resume { session: String, replayed: bool },
    /// Sets a config option.
    Set { session: String },
    /// Sets a mode or model, which the agent knows as a config option.
    Switch { session: String },
    /// A prompt, which is answered when its turn ends.
    Prompt { session: String },
    /// Closes or deletes a session.
    Close { session: String },
}

#[derive(Default)]
struct Session {
    config: ConfigOfV2,
    /// The prompts that are not answered yet, in their order.
    turns: VecDeque<Turn>,
    /// Whether the agent has said that it works, since it last said that it does not.
    active: bool,
    /// The ids of the client's own messages, which it need not be told of.
    echoes: VecDeque<String>,
    /// How many replays are under way.
    replays: usize,
    messages: Messages,
    calls: Calls,
    terminals: Terminals,
    plans: Plans,
}

/// A prompt on its way.
struct Turn {
    id: RequestId,
    /// The agent has taken it.
    taken: bool,
    /// The client has cancelled the request, which the agent may have answered meanwhile.
    cancelled: bool,
    /// The id of its message, once that is known.
    message: Option<String>,
}

impl Busy for Session {
    fn busy(&self) -> bool {
        !self.turns.is_empty() || self.replays > 0
    }
}

impl Down {
    pub(super) fn new(client: Client, limits: &Limits) -> Self {
        Self {
            client,
            sessions: Sessions::default(),
            asked: Requests::new(limits.requests),
            questions: Requests::new(limits.requests),
            parents: Recent::default(),
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
            Incoming::Response { id, .. } => {
                line.pass(&mut out.agent);
                if let Some(Question { session: id, call }) = self.questions.take(id)
                    && let Some(session) = self.sessions.get(&id)
                {
                    update(&mut out.client, &id, &session.shown_again(&call));
                }
            }
        }
    }

    pub(super) fn agent_line(&mut self, line: &Line<'_>, out: &mut Out) {
        match &line.message {
            Incoming::Request { id, method, params } => {
                self.agent_asks(id, method, object(*params), line, out);
            }
            Incoming::Notification { method, params } => {
                self.agent_says(method, &object(*params), line, out);
            }
            Incoming::Response { id, result } => self.agent_answers(id, result.as_ref(), line, out),
        }
    }

    /// The agent is gone: what it has left open ends with this error.
    pub(super) fn agent_closed(&mut self, error: &jsonrpc::Error, out: &mut Out) {
        for (id, _) in self.asked.drain() {
            refuse(&mut out.client, &id, error);
        }
    }
}

/// Whether a value is there and not `null`.
fn set<'a>(object: &'a RawObject, key: &str) -> Option<&'a serde_json::value::RawValue> {
    object.get(key).filter(|value| value.get() != "null")
}
