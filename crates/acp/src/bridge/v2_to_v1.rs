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

use self::initialize::V1ClientFeatures;
use self::message::DownMessages;
use self::plan::DownPlans;
use self::terminal::DownTerminals;
use self::tool_call::DownToolCalls;
use super::config::V2ConfigOptions;
use super::json::{BridgeLine, BridgeOutput, object, refuse, update};
use super::state::{Activeness, BridgeSessions, PendingRequests};
use crate::connection::Limits;
use crate::lru_map::LruMap;

/// How many messages of the client's own are remembered once their turns have ended.
const ECHOES: usize = 16;

/// How deep subagents may have subagents to be asked about.
const DEPTH: usize = 16;

/// The state of the bridge.
pub(super) struct V2ToV1Bridge {
    client_features: V1ClientFeatures,
    sessions: BridgeSessions<DownSession>,
    /// What the client has asked of the agent, prompts of turns that run included.
    client_requests: PendingRequests<DownPendingRequest>,
    /// What the agent has asked of the client, as far as something is to be done about its answer.
    pending_permissions: PendingRequests<PendingPermission>,
    /// Whose subagents the sessions are that are some.
    parents: LruMap<String, 512>,
}

/// A permission that is asked in the place of a call's content.
struct PendingPermission {
    session: String,
    call: String,
}

/// A request of the client's.
enum DownPendingRequest {
    /// Its answer needs no change.
    PassThrough,
    /// Opens a session that the answer names.
    OpenSession,
    /// Opens this session, replayed or not.
    Resume { session: String, replayed: bool },
    /// Sets a config option.
    SetOption { session: String },
    /// Sets a mode or model, which the agent knows as a config option.
    SetLegacyOption { session: String },
    /// A prompt, which is answered when its turn ends.
    Prompt { session: String },
    /// Closes or deletes a session.
    Close { session: String },
}

#[derive(Default)]
struct DownSession {
    config: V2ConfigOptions,
    /// The prompts that are not answered yet, in their order.
    turns: VecDeque<DownTurn>,
    /// Whether the agent has said that it works, since it last said that it does not.
    active: bool,
    /// The ids of the client's own messages, which it need not be told of.
    echoes: VecDeque<String>,
    /// How many replays are under way.
    replays: usize,
    messages: DownMessages,
    calls: DownToolCalls,
    terminals: DownTerminals,
    plans: DownPlans,
}

/// A prompt on its way.
struct DownTurn {
    id: RequestId,
    /// The agent has taken it.
    accepted: bool,
    /// The client has cancelled the request, which the agent may have answered meanwhile.
    cancelled: bool,
    /// The id of its message, once that is known.
    message_id: Option<String>,
}

impl Activeness for DownSession {
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
                let params = object(*params);
                if let Err(error) = self.handle_client_request(id, method, params, line, out) {
                    refuse(&mut out.client, id, &error);
                }
            }
            Incoming::Notification { method, params } => {
                self.handle_client_notification(method, &object(*params), line, out);
            }
            Incoming::Response { id, .. } => {
                line.pass(&mut out.agent);
                if let Some(PendingPermission { session: id, call }) =
                    self.pending_permissions.take(id)
                    && let Some(session) = self.sessions.get(&id)
                {
                    update(&mut out.client, &id, &session.restored_content(&call));
                }
            }
        }
    }

    pub(super) fn handle_agent_line(&mut self, line: &BridgeLine<'_>, out: &mut BridgeOutput) {
        match &line.message {
            Incoming::Request { id, method, params } => {
                self.handle_agent_request(id, method, object(*params), line, out);
            }
            Incoming::Notification { method, params } => {
                self.handle_agent_notification(method, &object(*params), line, out);
            }
            Incoming::Response { id, result } => {
                self.handle_agent_response(id, result.as_ref(), line, out)
            }
        }
    }

    /// The agent is gone: what it has left open ends with this error.
    pub(super) fn agent_closed(&mut self, error: &jsonrpc::Error, out: &mut BridgeOutput) {
        for (id, _) in self.client_requests.drain() {
            refuse(&mut out.client, &id, error);
        }
    }
}

/// Whether a value is there and not `null`.
fn non_null<'a>(object: &'a RawObject, key: &str) -> Option<&'a serde_json::value::RawValue> {
    object.get(key).filter(|value| value.get() != "null")
}
