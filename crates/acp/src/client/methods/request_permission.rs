//! `session/request_permission`: Tool calls, "Requesting Permission".

use std::sync::Arc;

use acp_wire::MessageHandler;
use acp_wire::v1::{
    self, PermissionOption, RequestPermissionOutcome, RequestPermissionResponse, SessionId,
    ToolCallUpdate, ToolKind,
};
use acp_wire::v2::{self, CommandPermissionSubject, RequestPermissionSubject};
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::client::side::ClientSide;
use crate::error::Error;
use crate::pending_request::PendingRequest;
use crate::thread::{ThreadHandle, ThreadToolCall};

/// A permission request from an agent: Tool calls, "Requesting Permission".
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The id of the session.
    pub session_id: SessionId,
    /// The id of the session that the user has opened: this session, or the root session of the requesting subagent.
    pub root_session_id: SessionId,
    /// The name of the subagent that sends the request, if any.
    pub subagent: Option<String>,
    /// The question for the user; empty if the agent sends none.
    pub title: String,
    /// The reason, if the agent gives one.
    pub description: Option<String>,
    /// The tool call, with everything reported about it so far. If a version 2 agent requests permission for something
    /// else, this is created from its request.
    pub tool_call: ThreadToolCall,
    /// The command, if a version 2 agent requests permission for one.
    pub command: Option<CommandPermissionSubject>,
    /// The options that the user can choose from.
    pub options: Vec<PermissionOption>,
    /// The session's thread.
    pub thread: ThreadHandle,
}

impl PermissionRequest {
    /// Creates a request that does not come from the agent. The root session and the subagent are read from the
    /// thread: the caller must not hold its lock ([`ThreadHandle::read`]) or the lock of any thread above it.
    pub fn new(
        session_id: impl Into<SessionId>,
        tool_call: &ToolCallUpdate,
        options: Vec<PermissionOption>,
        thread: ThreadHandle,
    ) -> Self {
        let known = thread.read(|thread| thread.tool_call(&tool_call.tool_call_id).cloned());
        let mut call = known.unwrap_or_else(|| ThreadToolCall::new(&tool_call.tool_call_id));
        call.apply(&tool_call.clone().into());
        let session_id = session_id.into();
        let (root_session_id, subagent) = match thread.subagent_origin() {
            Some(origin) => (origin.root_session_id, Some(origin.name)),
            None => (session_id.clone(), None),
        };
        Self {
            root_session_id,
            subagent,
            session_id,
            title: call.title.clone(),
            description: None,
            tool_call: call,
            command: None,
            options,
            thread,
        }
    }

    /// Converts a version 1 agent's request. The thread already shows it.
    pub(crate) fn from_v1(
        request: v1::RequestPermissionRequest,
        tool_call: ThreadToolCall,
        thread: ThreadHandle,
    ) -> Self {
        Self {
            root_session_id: request.session_id.clone(),
            subagent: None,
            session_id: request.session_id,
            title: tool_call.title.clone(),
            description: None,
            tool_call,
            command: None,
            options: request.options,
            thread,
        }
    }

    /// Converts a version 2 agent's request. `tool_call` is the thread's call that the request is about, if any.
    pub(crate) fn from_v2(
        request: v2::RequestPermissionRequest,
        tool_call: Option<ThreadToolCall>,
        thread: ThreadHandle,
    ) -> Self {
        let command = match request.subject {
            Some(RequestPermissionSubject::Command(command)) => Some(command),
            _ => None,
        };
        let tool_call = tool_call.unwrap_or_else(|| {
            // The call is not in the thread, so it may have an empty id.
            let id = command.as_ref().and_then(|c| c.tool_call_id.clone());
            let mut call = ThreadToolCall::new(id.unwrap_or_else(|| "".into()));
            call.title.clone_from(&request.title);
            if command.is_some() {
                call.kind = ToolKind::Execute;
            }
            call
        });
        Self {
            root_session_id: request.session_id.clone(),
            subagent: None,
            session_id: request.session_id,
            title: request.title,
            description: request.description,
            tool_call,
            command,
            options: request.options,
            thread,
        }
    }

    /// Returns the kind of tool. The kind is a hint from the agent, not a guarantee.
    #[must_use]
    pub fn kind(&self) -> &ToolKind {
        &self.tool_call.kind
    }

    /// Selects the allow option, once if possible. Returns `Cancelled` if the agent offers no such option.
    #[must_use]
    pub fn allow(&self) -> RequestPermissionOutcome {
        use acp_wire::v1::PermissionOptionKind::{AllowAlways, AllowOnce};
        self.select_first([AllowOnce, AllowAlways])
    }

    /// Selects the reject option, once if possible. Returns `Cancelled` if the agent offers no such option.
    #[must_use]
    pub fn reject(&self) -> RequestPermissionOutcome {
        use acp_wire::v1::PermissionOptionKind::{RejectAlways, RejectOnce};
        self.select_first([RejectOnce, RejectAlways])
    }

    fn select_first(
        &self,
        kinds: [acp_wire::v1::PermissionOptionKind; 2],
    ) -> RequestPermissionOutcome {
        kinds
            .iter()
            .find_map(|kind| self.options.iter().find(|option| option.kind == *kind))
            .map_or_else(RequestPermissionOutcome::cancelled, |option| {
                RequestPermissionOutcome::selected(&option.option_id)
            })
    }
}

impl<C: Client> MessageHandler<v1::RequestPermissionRequest, ()> for PendingRequest<ClientSide<C>> {
    fn handle(self, request: v1::RequestPermissionRequest) {
        let Some((pending, state)) = self.require_session(&request.session_id) else {
            return;
        };
        let found = pending.side.sessions.receive(&request.session_id, |entry| {
            let tool_call = entry.thread.change(|thread| {
                thread.apply_permission_request(&request.tool_call.clone().into())
            });
            (tool_call, entry.thread.clone(), entry.turn.clone())
        });
        let Some((tool_call, thread, turn)) = found else {
            return pending.refuse_session(&request.session_id);
        };
        let turn_above = pending.side.sessions.turn_of(&request.session_id);
        let turn = turn_above.unwrap_or(turn);
        let weight = tool_call.weight();
        let request = PermissionRequest::from_v1(request, tool_call, thread);
        pending.ask(state, request, weight, turn);
    }
}

impl<C: Client> MessageHandler<v2::RequestPermissionRequest, ()> for PendingRequest<ClientSide<C>> {
    fn handle(self, request: v2::RequestPermissionRequest) {
        use v2::RequestPermissionSubject::{Command, ToolCall};
        let Some((pending, state)) = self.require_session(&request.session_id) else {
            return;
        };
        let found = pending.side.sessions.receive(&request.session_id, |entry| {
            let tool_call = match &request.subject {
                Some(ToolCall(subject)) => Some(entry.thread.change(|thread| {
                    thread.apply_permission_request(&subject.tool_call.clone().into())
                })),
                Some(Command(subject)) => subject
                    .tool_call_id
                    .as_ref()
                    .and_then(|id| entry.thread.read(|thread| thread.tool_call(id).cloned())),
                _ => None,
            };
            (tool_call, entry.thread.clone(), entry.turn.clone())
        });
        let Some((tool_call, thread, turn)) = found else {
            return pending.refuse_session(&request.session_id);
        };
        let turn_above = pending.side.sessions.turn_of(&request.session_id);
        let turn = turn_above.unwrap_or(turn);
        let weight = tool_call.as_ref().map_or(0, ThreadToolCall::weight);
        let request = PermissionRequest::from_v2(request, tool_call, thread);
        pending.ask(state, request, weight, turn);
    }
}

impl<C: Client> PendingRequest<ClientSide<C>> {
    /// Runs the client's handler until it responds or the turn is cancelled. `weight` is the tool call's size in bytes.
    fn ask(
        self,
        state: Arc<C::State>,
        mut request: PermissionRequest,
        weight: usize,
        turn: CancellationToken,
    ) {
        if let Err(error) = self.responder.reserve_memory(weight) {
            return self.refuse(error);
        }
        let Self { side, responder } = self;
        request.root_session_id = side.sessions.root_session(&request.session_id);
        request.subagent = side.sessions.subagent_name(&request.session_id);
        responder.spawn(async move {
            let outcome = tokio::select! {
                biased;
                () = turn.cancelled() => RequestPermissionOutcome::cancelled(),
                outcome = side.client.request_permission(&state, request) => match outcome {
                    Err(Error::Cancelled) => RequestPermissionOutcome::cancelled(),
                    other => other?,
                },
            };
            Ok(RequestPermissionResponse::new(outcome))
        });
    }
}
