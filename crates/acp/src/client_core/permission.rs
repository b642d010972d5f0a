//! Completes permission requests with known details of the tool call and the subagent.

use acp_wire::v1::{
    self, PermissionOption, RequestPermissionOutcome, SessionId, ToolCallUpdate, ToolKind,
};
use acp_wire::v2::{self, CommandPermissionSubject, RequestPermissionSubject};

use super::session_table::SessionTable;
use crate::thread::{ThreadHandle, ThreadToolCall};
use crate::update::ToolCallPatch;

/// A permission request from an agent. See "Requesting Permission" on the specification's page "Tool Calls".
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The session that sent the request, possibly a subagent's.
    pub session_id: SessionId,
    /// The session that the user has opened: the requesting session itself, or a subagent's root session.
    pub root_session_id: SessionId,
    /// The name of the subagent that sent the request, or `None` if the sender is not a subagent. If the subagent works
    /// in its parent's session, this is the title of the tool call that has started it.
    pub subagent: Option<String>,
    /// The question to show to the user, or empty if the agent sent none.
    pub title: String,
    /// The agent's reason for the request, if given.
    pub description: Option<String>,
    /// The tool call, with everything that has been reported about it so far. If a version 2 agent requests permission
    /// for something else, this tool call represents it.
    pub tool_call: ThreadToolCall,
    /// The command to run, if a version 2 agent requests permission for a command.
    pub command: Option<CommandPermissionSubject>,
    /// The options that the user can choose from.
    pub options: Vec<PermissionOption>,
    /// The thread of the requesting session.
    pub thread: ThreadHandle,
}

impl PermissionRequest {
    /// Creates a request that does not come from an agent. It reads the root session and the subagent from the thread,
    /// so the caller must not hold the lock on that thread or its parents' threads ([`ThreadHandle::read`]).
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
            None => {
                let name = thread.read(|thread| thread.nested_subagent_name(&call.id));
                (session_id.clone(), name)
            }
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

    /// Returns the kind of tool, such as read or edit. This is a hint from the agent, not a guarantee.
    #[must_use]
    pub fn kind(&self) -> &ToolKind {
        &self.tool_call.kind
    }

    /// Returns the outcome that allows the call, preferably only once. Returns `Cancelled` if no option allows it.
    #[must_use]
    pub fn allow(&self) -> RequestPermissionOutcome {
        use acp_wire::v1::PermissionOptionKind::{AllowAlways, AllowOnce};
        self.select_first([AllowOnce, AllowAlways])
    }

    /// Returns the outcome that rejects the call, preferably only once. Returns `Cancelled` if no option rejects it.
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

/// A permission request as received, independent of the protocol version.
pub(crate) struct ReceivedPermissionRequest {
    pub(crate) session_id: SessionId,
    /// The question to show to the user, or `None` to use the title of the tool call.
    title: Option<String>,
    description: Option<String>,
    tool_call: Option<ToolCallPatch>,
    command: Option<CommandPermissionSubject>,
    pub(super) options: Vec<PermissionOption>,
}

impl From<v1::RequestPermissionRequest> for ReceivedPermissionRequest {
    fn from(request: v1::RequestPermissionRequest) -> Self {
        Self {
            session_id: request.session_id,
            title: None,
            description: None,
            tool_call: Some(request.tool_call.into()),
            command: None,
            options: request.options,
        }
    }
}

impl From<v2::RequestPermissionRequest> for ReceivedPermissionRequest {
    fn from(request: v2::RequestPermissionRequest) -> Self {
        let (tool_call, command) = match request.subject {
            Some(RequestPermissionSubject::ToolCall(subject)) => {
                (Some(subject.tool_call.into()), None)
            }
            Some(RequestPermissionSubject::Command(command)) => (None, Some(command)),
            _ => (None, None),
        };
        Self {
            session_id: request.session_id,
            title: Some(request.title),
            description: request.description,
            tool_call,
            command,
            options: request.options,
        }
    }
}

impl<S> SessionTable<S> {
    /// Applies a permission request to its session's thread, and fills in known details of the tool call and the
    /// subagent. Returns `None` if the session is not in the table.
    pub(crate) fn request_permission(
        &self,
        request: ReceivedPermissionRequest,
    ) -> Option<PermissionRequest> {
        let session_id = request.session_id;
        let thread = self.get(&session_id)?.thread.clone();
        let command = request.command;
        let command_call = command.as_ref().and_then(|c| c.tool_call_id.as_ref());
        let tool_call = match &request.tool_call {
            Some(patch) => Some(thread.change(|thread| thread.apply_permission_request(patch))),
            None => command_call.and_then(|id| thread.read(|thread| thread.tool_call(id).cloned())),
        };
        let nested_subagent = tool_call
            .as_ref()
            .and_then(|call| thread.read(|thread| thread.nested_subagent_name(&call.id)));
        let tool_call = tool_call.unwrap_or_else(|| {
            // The call is not in the thread, so its id can be empty.
            let id = command_call.cloned();
            let mut call = ThreadToolCall::new(id.unwrap_or_else(|| "".into()));
            call.title = request.title.clone().unwrap_or_default();
            if command.is_some() {
                call.kind = ToolKind::Execute;
            }
            call
        });
        Some(PermissionRequest {
            root_session_id: self.root_session(&session_id),
            subagent: self.subagent_name(&session_id).or(nested_subagent),
            title: request.title.unwrap_or_else(|| tool_call.title.clone()),
            description: request.description,
            session_id,
            tool_call,
            command,
            options: request.options,
            thread,
        })
    }
}
