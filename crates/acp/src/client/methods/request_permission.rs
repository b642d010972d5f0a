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

/// A permission request: tool calls, "Requesting Permission".
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The session.
    pub session_id: SessionId,
    /// The session that the person has opened: this one, or the one that a subagent works for which asks.
    pub root_session_id: SessionId,
    /// What that subagent is called.
    pub subagent: Option<String>,
    /// What is asked, for the person; empty if the agent does not say.
    pub title: String,
    /// Why it is needed, if the agent says.
    pub description: Option<String>,
    /// The tool call it is about, with all that has been said of it. Where an agent of version 2 asks for
    /// something else, this is made of what it asks for.
    pub tool_call: ThreadToolCall,
    /// The command it is about, if that is what an agent of version 2 asks for.
    pub command: Option<CommandPermissionSubject>,
    /// What can be answered.
    pub options: Vec<PermissionOption>,
    /// The session's thread.
    pub thread: ThreadHandle,
}

impl PermissionRequest {
    /// A request that a client puts to its person by itself. Of which session and which subagent it is, the thread
    /// knows; it must not be locked meanwhile ([`ThreadHandle::read`]), nor one above it.
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

    /// A request of an agent that speaks version 1; the thread has been told of it.
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

    /// A request of an agent that speaks version 2. `tool_call` is what the thread knows of the call it
    /// names.
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
            // Nobody's id: it is not in the thread.
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

    /// What sort of thing the tool call does: a hint of the agent's, and no promise.
    #[must_use]
    pub fn kind(&self) -> &ToolKind {
        &self.tool_call.kind
    }

    /// Yes, this time if that can be said; cancelled if the agent offers no yes at all.
    #[must_use]
    pub fn allow(&self) -> RequestPermissionOutcome {
        use acp_wire::v1::PermissionOptionKind::{AllowAlways, AllowOnce};
        self.select_first([AllowOnce, AllowAlways])
    }

    /// No, this time if that can be said; cancelled if the agent offers no no at all.
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
    /// Has the client answer, unless the turn is cancelled first. `weight` is what the tool call takes, in bytes.
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
