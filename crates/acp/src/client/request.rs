//! What an agent asks of a client, and tells it.

use acp_wire::v1::{
    self, CreateElicitationRequest, CreateElicitationResponse, CreateTerminalRequest,
    CreateTerminalResponse, ElicitationCapabilities, KillTerminalRequest, KillTerminalResponse,
    PermissionOption, ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest,
    ReleaseTerminalResponse, RequestPermissionOutcome, SessionId, TerminalOutputRequest,
    TerminalOutputResponse, ToolCallUpdate, ToolKind, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse, WriteTextFileRequest, WriteTextFileResponse,
};
use acp_wire::v2::{self, CommandPermissionSubject, RequestPermissionSubject};

use crate::error::{Error, Result};
use crate::thread::{ThreadHandle, ThreadToolCall};

/// Where an update belongs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UpdateContext {
    /// The session.
    pub session_id: SessionId,
    /// The session's thread, which shows the update already.
    pub thread: ThreadHandle,
    /// Whether the session is being loaded, and this is part of its past.
    pub replay: bool,
}

/// A permission request: tool calls, "Requesting Permission".
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The session.
    pub session_id: SessionId,
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
    /// A request that a client puts to its person by itself.
    pub fn new(
        session_id: impl Into<SessionId>,
        tool_call: &ToolCallUpdate,
        options: Vec<PermissionOption>,
        thread: ThreadHandle,
    ) -> Self {
        let known = thread.read(|thread| thread.tool_call(&tool_call.tool_call_id).cloned());
        let mut call = known.unwrap_or_else(|| ThreadToolCall::new(&tool_call.tool_call_id));
        call.apply_v1(tool_call);
        Self {
            session_id: session_id.into(),
            title: call.title.clone(),
            description: None,
            tool_call: call,
            command: None,
            options,
            thread,
        }
    }

    /// A request of an agent that speaks version 1; the thread has been told of it.
    pub(crate) fn received(
        request: v1::RequestPermissionRequest,
        tool_call: ThreadToolCall,
        thread: ThreadHandle,
    ) -> Self {
        Self {
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
    pub(crate) fn received_v2(
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
        self.first_of([AllowOnce, AllowAlways])
    }

    /// No, this time if that can be said; cancelled if the agent offers no no at all.
    #[must_use]
    pub fn reject(&self) -> RequestPermissionOutcome {
        use acp_wire::v1::PermissionOptionKind::{RejectAlways, RejectOnce};
        self.first_of([RejectOnce, RejectAlways])
    }

    fn first_of(&self, kinds: [acp_wire::v1::PermissionOptionKind; 2]) -> RequestPermissionOutcome {
        kinds
            .iter()
            .find_map(|kind| self.options.iter().find(|option| option.kind == *kind))
            .map_or_else(RequestPermissionOutcome::cancelled, |option| {
                RequestPermissionOutcome::selected(&option.option_id)
            })
    }
}

/// `fs/read_text_file`: File system, "Reading Files". Version 1 only.
pub trait ReadTextFile: Send + Sync {
    /// Reads a file as the person sees it, unsaved changes included. `line` counts from 1, `limit` is in
    /// lines.
    ///
    /// # Errors
    /// The file is not there
    /// ([`jsonrpc::Error::RESOURCE_NOT_FOUND`](acp_wire::jsonrpc::Error::RESOURCE_NOT_FOUND)), or it may
    /// not or cannot be read.
    fn read_text_file(
        &self,
        request: ReadTextFileRequest,
    ) -> impl Future<Output = Result<ReadTextFileResponse>> + Send;
}

/// `fs/write_text_file`: File system, "Writing Files". Version 1 only.
pub trait WriteTextFile: Send + Sync {
    /// Writes a file; creates it if it is not there.
    ///
    /// # Errors
    /// It may not or cannot be written.
    fn write_text_file(
        &self,
        request: WriteTextFileRequest,
    ) -> impl Future<Output = Result<WriteTextFileResponse>> + Send;
}

/// All of `terminal/*`: the specification's page Terminals. Version 1 only.
///
/// An error that one of them gives is the answer to the request. Whoever releases a terminal keeps what it
/// has shown: the tool call that it is part of shows it still.
pub trait Terminals: Send + Sync {
    /// Starts a command and answers at once: "Executing Commands".
    fn create(
        &self,
        request: CreateTerminalRequest,
    ) -> impl Future<Output = Result<CreateTerminalResponse>> + Send;

    /// What it has printed, and how it ended if it has: "Getting Output". Of output beyond the limit of
    /// bytes the beginning goes first, at the beginning of a character.
    fn output(
        &self,
        request: TerminalOutputRequest,
    ) -> impl Future<Output = Result<TerminalOutputResponse>> + Send;

    /// Waits for its end: "Waiting for Exit".
    fn wait_for_exit(
        &self,
        request: WaitForTerminalExitRequest,
    ) -> impl Future<Output = Result<WaitForTerminalExitResponse>> + Send;

    /// Ends the command; the terminal stays: "Killing Commands".
    fn kill(
        &self,
        request: KillTerminalRequest,
    ) -> impl Future<Output = Result<KillTerminalResponse>> + Send;

    /// Ends the command if it runs, and frees the terminal: "Releasing Terminals".
    fn release(
        &self,
        request: ReleaseTerminalRequest,
    ) -> impl Future<Output = Result<ReleaseTerminalResponse>> + Send;
}

/// `elicitation/create`: asking the person for input, by a form or on a web page.
pub trait Elicitation: Send + Sync {
    /// Which kinds it can show.
    fn capabilities(&self) -> ElicitationCapabilities;

    /// Asks the person. The future is dropped when the agent cancels the request.
    ///
    /// # Errors
    /// They cannot be asked. That they say no is no error:
    /// [`ElicitationAction::Decline`](acp_wire::v1::ElicitationAction::Decline).
    fn create(
        &self,
        request: CreateElicitationRequest,
    ) -> impl Future<Output = Result<CreateElicitationResponse>> + Send;
}

/// Stands for what a client does not offer. There is no value of it.
pub(crate) enum NotOffered {}

impl ReadTextFile for NotOffered {
    async fn read_text_file(&self, _: ReadTextFileRequest) -> Result<ReadTextFileResponse> {
        match *self {}
    }
}

impl WriteTextFile for NotOffered {
    async fn write_text_file(&self, _: WriteTextFileRequest) -> Result<WriteTextFileResponse> {
        match *self {}
    }
}

impl Terminals for NotOffered {
    async fn create(&self, _: CreateTerminalRequest) -> Result<CreateTerminalResponse> {
        match *self {}
    }
    async fn output(&self, _: TerminalOutputRequest) -> Result<TerminalOutputResponse> {
        match *self {}
    }
    async fn wait_for_exit(
        &self,
        _: WaitForTerminalExitRequest,
    ) -> Result<WaitForTerminalExitResponse> {
        match *self {}
    }
    async fn kill(&self, _: KillTerminalRequest) -> Result<KillTerminalResponse> {
        match *self {}
    }
    async fn release(&self, _: ReleaseTerminalRequest) -> Result<ReleaseTerminalResponse> {
        match *self {}
    }
}

impl Elicitation for NotOffered {
    fn capabilities(&self) -> ElicitationCapabilities {
        match *self {}
    }
    async fn create(&self, _: CreateElicitationRequest) -> Result<CreateElicitationResponse> {
        match *self {}
    }
}

/// The error for what the agent did not say it can do.
pub(crate) fn not_offered(what: impl Into<String>) -> Error {
    Error::NotOffered {
        peer: "agent",
        what: what.into(),
    }
}
