//! Bridges a version 1 agent to a version 2 client.

mod agent;
mod client;
mod content;
pub(super) mod initialize;
mod terminal;
mod update;

use std::collections::VecDeque;

use acp_wire::jsonrpc::{self, CancelRequestNotification, Incoming, RequestId};
use acp_wire::{RawObject, v1};
use serde_json::Value;
use uuid::Uuid;

use super::config::{LegacySetting, V1ConfigOptions};
use super::json::{
    BridgeLine, BridgeOutput, parse_json, to_object, write_error, write_notification, write_result,
    write_update,
};
use super::method;
use super::state::{BridgeSessions, BusySession, PendingRequests};
use crate::capabilities::check_offered;
use crate::connection::Limits;
use crate::lru_map::LruMap;

/// The maximum number of queued prompts per session.
const MAX_QUEUED_PROMPTS: usize = 16;

/// The maximum total size of all queued prompts, in bytes. Prompts over this limit are rejected.
const MAX_QUEUED_BYTES: usize = 64 * 1024 * 1024;

/// The state of a bridge from a version 1 agent to a version 2 client.
pub(super) struct V1ToV2Bridge {
    /// The agent's capabilities as JSON, to check methods against the method table.
    agent_capabilities: Value,
    sessions: BridgeSessions<V1ToV2Session>,
    /// The client's pending requests, each with the information needed to translate the response.
    client_requests: PendingRequests<V1ToV2Request>,
    /// The agent's pending permission requests and elicitations.
    agent_requests: PendingRequests<V1ToV2Question>,
    queued_bytes: usize,
}

/// A pending request from the client.
enum V1ToV2Request {
    /// A request whose response is passed on unchanged.
    PassThrough,
    /// A request that opens a new session. Its response contains the session id.
    OpenSession { roots: RawObject },
    /// A request that opens an existing session, sent to the agent as a resume or a load.
    Resume { session: String, roots: RawObject },
    /// A request that sets a config option.
    SetOption { session: String },
    /// A request that sets a mode or a model, which the client sees as a config option.
    SetLegacyOption {
        session: String,
        switch: LegacySetting,
        value: Box<serde_json::value::RawValue>,
    },
    /// A prompt that the agent is working on. The bridge has already responded to it.
    Prompt { session: String },
    /// A prompt that is waiting for the current turn to end.
    Queued { session: String },
    /// A request that closes a session.
    Close { session: String },
    /// A request that deletes a session.
    Delete { session: String },
}

/// A pending permission request or elicitation from the agent.
enum V1ToV2Question {
    Pending {
        session: String,
    },
    /// A request that the bridge has already answered because the turn was cancelled.
    Answered,
}

#[derive(Default)]
struct V1ToV2Session {
    /// The session's `cwd` and `additionalDirectories`, if it was opened through this bridge.
    roots: Option<RawObject>,
    config: V1ConfigOptions,
    turn: Option<V1ToV2Turn>,
    queued_prompts: VecDeque<QueuedPrompt>,
    /// The pending close requests, which the bridge responds to when the turn ends.
    close_requests: Vec<RequestId>,
    /// The agent's questions that the client has not answered yet.
    pending_questions: Vec<V1ToV2PendingQuestion>,
    /// The type of the last chunk and its message id, if the next chunk can continue the message.
    current_message: Option<(String, String)>,
    /// The titles of the session's tool calls.
    titles: LruMap<String, 512>,
    /// The ids of the terminals known to the client.
    terminals: LruMap<(), 512>,
    /// Whether the agent is sending a replay that the client did not request and that must be dropped.
    hides_replay: bool,
    /// The ids of the session's subagents. Their pending questions are cancelled with the session.
    subagents: LruMap<(), 64>,
}

struct V1ToV2Turn {
    id: RequestId,
    is_cancelled: bool,
}

struct QueuedPrompt {
    id: RequestId,
    line: Box<[u8]>,
}

struct V1ToV2PendingQuestion {
    id: RequestId,
    /// `true` for a permission request, `false` for an elicitation.
    is_permission: bool,
}

impl BusySession for V1ToV2Session {
    fn is_busy(&self) -> bool {
        self.turn.is_some() || self.hides_replay
    }
}

impl V1ToV2Bridge {
    pub(super) fn new(agent: &v1::AgentCapabilities, limits: &Limits) -> Self {
        Self {
            agent_capabilities: serde_json::to_value(agent).unwrap_or_default(),
            sessions: BridgeSessions::default(),
            client_requests: PendingRequests::new(limits.requests),
            agent_requests: PendingRequests::new(limits.requests),
            queued_bytes: 0,
        }
    }

    /// Returns `true` if the agent supports the given version 1 method.
    fn agent_supports_method(&self, method: &str) -> bool {
        check_offered(&self.agent_capabilities, v1::method(method)).is_ok()
    }

    pub(super) fn handle_client_line(&mut self, line: &BridgeLine<'_>, out: &mut BridgeOutput) {
        match &line.message {
            Incoming::Request { id, method, params } => {
                let params = to_object(*params);
                if let Err(error) = self.handle_client_request(id, method, params, line, out) {
                    write_error(&mut out.client, id, &error);
                }
            }
            Incoming::Notification { method, params } => {
                self.handle_client_notification(method, &to_object(*params), line, out);
            }
            Incoming::Response { id, .. } => self.handle_client_response(id, line, out),
        }
    }

    pub(super) fn handle_agent_line(&mut self, line: &BridgeLine<'_>, out: &mut BridgeOutput) {
        match &line.message {
            Incoming::Request { id, method, params } => {
                let params = to_object(*params);
                if let Err(error) = self.handle_agent_request(id, method, params, line, out) {
                    write_error(&mut out.agent, id, &error);
                }
            }
            Incoming::Notification { method, params } => {
                self.handle_agent_notification(method, &to_object(*params), line, out);
            }
            Incoming::Response { id, result } => {
                self.handle_agent_response(id, result.as_ref(), line, out)
            }
        }
    }

    /// Handles the end of the client's input by dropping all queued prompts.
    pub(super) fn client_closed(&mut self) {
        // Queued prompts can no longer start, because the agent's input is closed.
        self.queued_bytes = 0;
        let sessions: Vec<String> = self.sessions.iter().map(|(id, _)| id.to_owned()).collect();
        for id in sessions {
            if let Some(session) = self.sessions.get(&id) {
                session.queued_prompts.clear();
            }
        }
    }

    /// Handles the end of the agent's output by responding with `error` to all pending requests from the client.
    pub(super) fn agent_closed(&mut self, error: &jsonrpc::Error, out: &mut BridgeOutput) {
        for (id, request) in self.client_requests.drain() {
            match request {
                V1ToV2Request::Prompt { session } => {
                    let idle = object! {
                        "sessionUpdate": "state_update", "state": "idle",
                        "stopReason": "error", "error": error,
                    };
                    write_update(&mut out.client, &session, &idle);
                }
                _ => write_error(&mut out.client, &id, error),
            }
        }
        let sessions: Vec<String> = self.sessions.iter().map(|(id, _)| id.to_owned()).collect();
        for id in sessions {
            for id in self
                .sessions
                .get(&id)
                .map(|session| std::mem::take(&mut session.close_requests))
                .unwrap_or_default()
            {
                write_error(&mut out.client, &id, error);
            }
        }
    }

    /// Starts a turn by acknowledging the prompt to the client and then passing it to the agent.
    fn begin_turn(&mut self, session_id: &str, queued: &QueuedPrompt, out: &mut BridgeOutput) {
        let prompt = parse_json::<RawObject>(&queued.line)
            .map(|line| to_object(line.get("params")))
            .and_then(|params| params.get("prompt").map(ToOwned::to_owned));
        let message = new_message_id();
        write_result(
            &mut out.client,
            &queued.id,
            &object! { "messageId": message },
        );
        let echo = object! {
            "sessionUpdate": "user_message", "messageId": message, "content": prompt,
        };
        write_update(&mut out.client, session_id, &echo);
        write_update(&mut out.client, session_id, &state_update("running"));
        super::json::write_unchanged(&mut out.agent, &queued.line);
        self.client_requests.add(
            &queued.id,
            V1ToV2Request::Prompt {
                session: session_id.to_owned(),
            },
        );
        let session = self.sessions.get_or_insert(session_id);
        session.current_message = None;
        session.turn = Some(V1ToV2Turn {
            id: queued.id.clone(),
            is_cancelled: false,
        });
    }

    /// Ends the session's turn, and starts the next one if a prompt is queued.
    fn end_turn(&mut self, session_id: &str, idle: &RawObject, out: &mut BridgeOutput) {
        write_update(&mut out.client, session_id, idle);
        let Some(session) = self.sessions.get(session_id) else {
            return;
        };
        session.turn = None;
        session.current_message = None;
        session.pending_questions.clear();
        let closing = std::mem::take(&mut session.close_requests);
        if !closing.is_empty() {
            for id in closing {
                write_result(&mut out.client, &id, &RawObject::default());
            }
            self.sessions.remove(session_id);
        } else if let Some(next) = session.queued_prompts.pop_front() {
            self.queued_bytes -= next.line.len();
            self.client_requests.take(&next.id);
            self.begin_turn(session_id, &next, out);
        }
    }

    /// Cancels a session's turn, queued prompts, pending questions and subagents. Call this after passing the cancel to
    /// the agent.
    ///
    /// A version 2 client does not have to answer the questions of a cancelled turn, but a version 1 agent waits for
    /// the answers before it ends the turn. The bridge therefore answers in place of the client.
    fn cancel(&mut self, session_id: &str, out: &mut BridgeOutput) {
        let Some(session) = self.sessions.get(session_id) else {
            return;
        };
        if let Some(turn) = &mut session.turn {
            turn.is_cancelled = true;
        }
        for queued in std::mem::take(&mut session.queued_prompts) {
            self.queued_bytes -= queued.line.len();
            self.client_requests.take(&queued.id);
            write_error(
                &mut out.client,
                &queued.id,
                &jsonrpc::Error::request_cancelled(),
            );
        }
        for question in std::mem::take(&mut session.pending_questions) {
            write_result(
                &mut out.agent,
                &question.id,
                &cancelled_response(question.is_permission),
            );
            let params = object! { "requestId": question.id };
            write_notification(&mut out.client, method::CANCEL_REQUEST, &params);
            self.agent_requests.take(&question.id);
            self.agent_requests
                .add(&question.id, V1ToV2Question::Answered);
        }
        // The subagents are moved out during the recursion, so that a session that is its own ancestor does not recurse
        // forever.
        let Some(session) = self.sessions.get(session_id) else {
            return;
        };
        let subagents = std::mem::take(&mut session.subagents);
        for subagent in subagents.ids() {
            self.cancel(subagent, out);
        }
        self.sessions.get_or_insert(session_id).subagents = subagents;
    }

    /// Cancels the queued prompt with this request id, if any.
    fn cancel_queued_prompt(&mut self, id: &RequestId, out: &mut BridgeOutput) {
        let Some(V1ToV2Request::Queued { session }) = self.client_requests.take(id) else {
            return;
        };
        if let Some(session) = self.sessions.get(&session)
            && let Some(at) = session
                .queued_prompts
                .iter()
                .position(|queued| queued.id == *id)
            && let Some(queued) = session.queued_prompts.remove(at)
        {
            self.queued_bytes -= queued.line.len();
        }
        write_error(&mut out.client, id, &jsonrpc::Error::request_cancelled());
    }
}

/// Returns the result of a cancelled permission request, or of a cancelled elicitation if `permission` is `false`.
fn cancelled_response(permission: bool) -> RawObject {
    if permission {
        let outcome = object! { "outcome": "cancelled" };
        object! { "outcome": outcome }
    } else {
        object! { "action": "cancel" }
    }
}

/// Returns a `state_update` with only the given state.
fn state_update(state: &str) -> RawObject {
    object! { "sessionUpdate": "state_update", "state": state }
}

/// Returns a new, unique message id.
fn new_message_id() -> String {
    Uuid::new_v4().to_string()
}

/// Returns the id of the request to cancel from the params of a `$/cancel_request`.
fn cancelled_request_id(params: &RawObject) -> Option<RequestId> {
    let cancel: CancelRequestNotification = params.read().ok()?;
    Some(cancel.request_id)
}
