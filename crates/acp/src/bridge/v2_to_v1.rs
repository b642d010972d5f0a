//! Bridges a version 2 agent to a version 1 client.

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

use self::initialize::V1ClientFeatures;
use self::message::SentMessages;
use self::plan::SentPlans;
use self::terminal::SentTerminals;
use self::tool_call::SentToolCalls;
use super::config::V2ConfigOptions;
use super::json::{BridgeLine, BridgeOutput, to_object, write_error, write_update};
use super::state::{BridgeSessions, BusySession, PendingRequests};
use crate::connection::Limits;
use crate::lru_map::LruMap;

/// The maximum number of stored message ids of prompts whose turns have ended.
const MAX_ECHOES: usize = 16;

/// The maximum nesting depth of a subagent below the root session.
const MAX_SUBAGENT_DEPTH: usize = 16;

/// The state of a bridge from a version 2 agent to a version 1 client.
pub(super) struct V2ToV1Bridge {
    client_features: V1ClientFeatures,
    sessions: BridgeSessions<V2ToV1Session>,
    /// The client's pending requests, including the prompts of running turns, each with the data needed to translate
    /// its response.
    client_requests: PendingRequests<V2ToV1Request>,
    /// The agent's pending permission requests for which a tool call's content is hidden.
    pending_permissions: PendingRequests<PendingPermission>,
    /// The parent session of each subagent.
    parents: LruMap<String, 512>,
}

/// A pending permission request for which a tool call's content is hidden.
struct PendingPermission {
    session: String,
    call: String,
}

/// A pending request from the client.
enum V2ToV1Request {
    /// A request whose response is passed on unchanged.
    PassThrough,
    /// A request that opens a new session. Its response contains the session id.
    OpenSession,
    /// A request that opens an existing session, with or without a replay.
    Resume { session: String, replayed: bool },
    /// A request that sets one of the session's config options.
    SetOption { session: String },
    /// A request that sets a mode or a model, which the agent sees as a config option.
    SetLegacyOption { session: String },
    /// A prompt. Its response is sent when the turn ends.
    Prompt { session: String },
    /// A request that closes, deletes or archives a session.
    Close { session: String },
}

#[derive(Default)]
struct V2ToV1Session {
    config: V2ConfigOptions,
    /// The prompts without a response, in order.
    turns: VecDeque<V2ToV1Turn>,
    /// Whether the agent is working, according to its last state update.
    is_active: bool,
    /// The message ids of the client's own prompts. The bridge drops the agent's echoes of them.
    echoes: VecDeque<String>,
    /// The number of replays in progress.
    replays: usize,
    messages: SentMessages,
    calls: SentToolCalls,
    terminals: SentTerminals,
    plans: SentPlans,
}

/// A prompt that the bridge has not responded to yet.
struct V2ToV1Turn {
    id: RequestId,
    /// Whether the agent has accepted the prompt.
    is_accepted: bool,
    /// Whether the client has cancelled the prompt. The agent may already have responded to the request.
    is_cancelled: bool,
    /// The message id of the prompt, once it is known.
    message_id: Option<String>,
}

impl BusySession for V2ToV1Session {
    fn is_busy(&self) -> bool {
        !self.turns.is_empty() || self.replays > 0
    }
}

impl V2ToV1Bridge {
    pub(super) fn new(client: V1ClientFeatures, limits: &Limits) -> Self {
        Self {
            client_features: client,
            sessions: BridgeSessions::default(),
            client_requests: PendingRequests::new(limits.requests),
            pending_permissions: PendingRequests::new(limits.requests),
            parents: LruMap::default(),
        }
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
            Incoming::Response { id, .. } => {
                line.write_unchanged(&mut out.agent);
                if let Some(PendingPermission { session: id, call }) =
                    self.pending_permissions.take(id)
                    && let Some(session) = self.sessions.get(&id)
                {
                    write_update(&mut out.client, &id, &session.restore_content_update(&call));
                }
            }
        }
    }

    pub(super) fn handle_agent_line(&mut self, line: &BridgeLine<'_>, out: &mut BridgeOutput) {
        match &line.message {
            Incoming::Request { id, method, params } => {
                self.handle_agent_request(id, method, to_object(*params), line, out);
            }
            Incoming::Notification { method, params } => {
                self.handle_agent_notification(method, &to_object(*params), line, out);
            }
            Incoming::Response { id, result } => {
                self.handle_agent_response(id, result.as_ref(), line, out)
            }
        }
    }

    /// Handles the end of the agent's output by responding with `error` to all pending requests from the client.
    pub(super) fn agent_closed(&mut self, error: &jsonrpc::Error, out: &mut BridgeOutput) {
        for (id, _) in self.client_requests.drain() {
            write_error(&mut out.client, &id, error);
        }
    }
}

/// Returns a member of an object, or `None` if the member is missing or `null`.
fn get_non_null<'a>(object: &'a RawObject, key: &str) -> Option<&'a serde_json::value::RawValue> {
    object.get(key).filter(|value| value.get() != "null")
}
