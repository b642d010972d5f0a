//! What an agent asks of a client, and tells it.

use acp_wire::v1::{
    ContentBlock, CreateElicitationRequest, CreateElicitationResponse, CreateTerminalRequest,
    CreateTerminalResponse, ElicitationCapabilities, KillTerminalRequest, KillTerminalResponse,
    PermissionOption, ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest,
    ReleaseTerminalResponse, RequestPermissionOutcome, RequestPermissionRequest, SessionId,
    SessionUpdate, TerminalOutputRequest, TerminalOutputResponse, ToolCallUpdate, ToolKind,
    WaitForTerminalExitRequest, WaitForTerminalExitResponse, WriteTextFileRequest,
    WriteTextFileResponse,
};

use crate::error::{Error, Result};
use crate::thread::ThreadHandle;

/// Something that happened in a session, in the words of the version the agent speaks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Update {
    /// Of an agent that speaks version 1.
    V1(SessionUpdate),
}

impl Update {
    /// The text of a piece of the agent's message.
    #[must_use]
    pub fn message_text(&self) -> Option<&str> {
        match self {
            Self::V1(SessionUpdate::AgentMessageChunk(chunk)) => chunk.content.as_text(),
            Self::V1(_) => None,
        }
    }

    /// The text of a piece of the agent's thoughts.
    #[must_use]
    pub fn thought_text(&self) -> Option<&str> {
        match self {
            Self::V1(SessionUpdate::AgentThoughtChunk(chunk)) => chunk.content.as_text(),
            Self::V1(_) => None,
        }
    }

    /// The content of a piece of the agent's message.
    #[must_use]
    pub fn message_content(&self) -> Option<&ContentBlock> {
        match self {
            Self::V1(SessionUpdate::AgentMessageChunk(chunk)) => Some(&chunk.content),
            Self::V1(_) => None,
        }
    }
}

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

/// A permission request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The session.
    pub session_id: SessionId,
    /// The tool call it is about, as the request describes it. What was said of it before is in the
    /// session's thread.
    pub tool_call: ToolCallUpdate,
    /// What can be answered.
    pub options: Vec<PermissionOption>,
    /// The session's thread.
    pub thread: ThreadHandle,
}

impl PermissionRequest {
    /// A request that a client puts to its person by itself.
    pub fn new(
        session_id: impl Into<SessionId>,
        tool_call: ToolCallUpdate,
        options: Vec<PermissionOption>,
        thread: ThreadHandle,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            tool_call,
            options,
            thread,
        }
    }

    pub(crate) fn received(request: RequestPermissionRequest, thread: ThreadHandle) -> Self {
        Self::new(
            request.session_id,
            request.tool_call,
            request.options,
            thread,
        )
    }

    /// What sort of thing the tool call does: as the request says, or as was said of it before.
    #[must_use]
    pub fn kind(&self) -> Option<ToolKind> {
        self.tool_call.kind.clone().or_else(|| {
            self.thread
                .read(|thread| Some(thread.tool_call(&self.tool_call.tool_call_id)?.kind.clone()))
        })
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

/// `fs/read_text_file`.
pub trait ReadTextFile: Send + Sync {
    /// Reads a file as the person sees it, unsaved changes included.
    fn read_text_file(
        &self,
        request: ReadTextFileRequest,
    ) -> impl Future<Output = Result<ReadTextFileResponse>> + Send;
}

/// `fs/write_text_file`.
pub trait WriteTextFile: Send + Sync {
    /// Writes a file; creates it if it is not there.
    fn write_text_file(
        &self,
        request: WriteTextFileRequest,
    ) -> impl Future<Output = Result<WriteTextFileResponse>> + Send;
}

/// All of `terminal/*`.
pub trait Terminals: Send + Sync {
    /// Starts a command.
    fn create(
        &self,
        request: CreateTerminalRequest,
    ) -> impl Future<Output = Result<CreateTerminalResponse>> + Send;

    /// What it has printed.
    fn output(
        &self,
        request: TerminalOutputRequest,
    ) -> impl Future<Output = Result<TerminalOutputResponse>> + Send;

    /// Waits for its end.
    fn wait_for_exit(
        &self,
        request: WaitForTerminalExitRequest,
    ) -> impl Future<Output = Result<WaitForTerminalExitResponse>> + Send;

    /// Ends the command; the terminal stays.
    fn kill(
        &self,
        request: KillTerminalRequest,
    ) -> impl Future<Output = Result<KillTerminalResponse>> + Send;

    /// Ends the command if it runs, and frees the terminal.
    fn release(
        &self,
        request: ReleaseTerminalRequest,
    ) -> impl Future<Output = Result<ReleaseTerminalResponse>> + Send;
}

/// `elicitation/create`.
pub trait Elicitation: Send + Sync {
    /// Which kinds it can show.
    fn capabilities(&self) -> ElicitationCapabilities;

    /// Asks the person.
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
