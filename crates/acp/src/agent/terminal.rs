//! A terminal of the client's that this agent runs a command in.

use acp_wire::v1::{
    CreateTerminalRequest, EnvVariable, KillTerminalRequest, ReleaseTerminalRequest, SessionId,
    TerminalExitStatus, TerminalId, TerminalOutputRequest, TerminalOutputResponse, ToolCallContent,
    WaitForTerminalExitRequest,
};

use super::session::Session;
use crate::error::Result;

/// A command to run in a terminal of the client's: Terminals, "Executing Commands".
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TerminalCommand {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment to add to the client's own.
    pub env: Vec<EnvVariable>,
    /// Where to run it, an absolute path; by default the session's working directory.
    pub cwd: Option<String>,
    /// How many bytes of output to keep at most; the beginning goes first.
    pub output_byte_limit: Option<u64>,
}

impl TerminalCommand {
    /// A program with its arguments.
    pub fn new(
        command: impl Into<String>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            cwd: None,
            output_byte_limit: None,
        }
    }

    /// Sets environment to add to the client's own.
    #[must_use]
    pub fn env(mut self, env: Vec<EnvVariable>) -> Self {
        self.env = env;
        self
    }

    /// Sets where to run it, an absolute path.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets how many bytes of output to keep at most; the beginning goes first.
    #[must_use]
    pub fn output_byte_limit(mut self, bytes: u64) -> Self {
        self.output_byte_limit = Some(bytes);
        self
    }

    pub(crate) fn into_request(self, session: &SessionId) -> CreateTerminalRequest {
        let mut request = CreateTerminalRequest::new(session, self.command)
            .args(self.args)
            .env(self.env);
        request.cwd = self.cwd;
        request.output_byte_limit = self.output_byte_limit;
        request
    }
}

/// A terminal of the client's: the specification's page Terminals. Dropping it releases it, which ends its
/// command.
#[derive(Debug)]
pub struct ClientTerminal {
    session: Session,
    id: TerminalId,
    released: bool,
}

impl ClientTerminal {
    pub(crate) fn new(session: Session, id: TerminalId) -> Self {
        Self {
            session,
            id,
            released: false,
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &TerminalId {
        &self.id
    }

    /// It, as content of a tool call, which shows it live: "Embedding in Tool Calls".
    #[must_use]
    pub fn as_content(&self) -> ToolCallContent {
        self.id.clone().into()
    }

    /// What it has printed until now, up to the command's
    /// [`output_byte_limit`](TerminalCommand::output_byte_limit): "Getting Output".
    ///
    /// # Errors
    /// The client's error, or the end of the connection.
    pub async fn output(&self) -> Result<TerminalOutputResponse> {
        let request = TerminalOutputRequest::new(self.session.id(), &self.id);
        self.session.connection().request(&request).await
    }

    /// Waits for the end of its command: "Waiting for Exit". Not for longer than the caller waits; see
    /// [`Turn::or_cancelled`](super::Turn::or_cancelled).
    ///
    /// # Errors
    /// The client's error, or the end of the connection.
    pub async fn wait_for_exit(&self) -> Result<TerminalExitStatus> {
        let request = WaitForTerminalExitRequest::new(self.session.id(), &self.id);
        let exit = self.session.connection().request(&request).await?;
        let mut status = TerminalExitStatus::new();
        (status.exit_code, status.signal) = (exit.exit_code, exit.signal);
        Ok(status)
    }

    /// Ends its command; the terminal stays, and what it has printed can be read. "Killing Commands".
    ///
    /// # Errors
    /// The client's error, or the end of the connection.
    pub async fn kill(&self) -> Result<()> {
        let request = KillTerminalRequest::new(self.session.id(), &self.id);
        self.session.connection().request(&request).await.map(drop)
    }

    /// Releases it and waits until that is done: "Releasing Terminals".
    ///
    /// # Errors
    /// The client's error, or the end of the connection.
    pub async fn release(mut self) -> Result<()> {
        self.released = true;
        let request = ReleaseTerminalRequest::new(self.session.id(), &self.id);
        self.session.connection().request(&request).await.map(drop)
    }
}

impl Drop for ClientTerminal {
    fn drop(&mut self) {
        if !self.released {
            let request = ReleaseTerminalRequest::new(self.session.id(), &self.id);
            self.session.connection().request_now(request);
        }
    }
}
