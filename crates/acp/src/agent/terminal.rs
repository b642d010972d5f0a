//! Client terminals: commands that the client runs for the agent.

use acp_wire::v1::{
    CreateTerminalRequest, EnvVariable, KillTerminalRequest, ReleaseTerminalRequest, SessionId,
    TerminalExitStatus, TerminalId, TerminalOutputRequest, TerminalOutputResponse, ToolCallContent,
    WaitForTerminalExitRequest,
};

use super::session::Session;
use crate::error::Result;

/// A command to run in a client terminal. See "Executing Commands" on the specification's page "Terminals".
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TerminalCommand {
    /// The program to run.
    pub command: String,
    /// The arguments to pass to the program.
    pub args: Vec<String>,
    /// Environment variables to set in addition to the client's own.
    pub env: Vec<EnvVariable>,
    /// The working directory, as an absolute path. Defaults to the session's working directory.
    pub cwd: Option<String>,
    /// The maximum number of bytes of output to store. The oldest output is dropped first.
    pub output_byte_limit: Option<u64>,
}

impl TerminalCommand {
    /// Creates a command from a program and its arguments.
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

    /// Sets environment variables, in addition to the client's own.
    #[must_use]
    pub fn env(mut self, env: Vec<EnvVariable>) -> Self {
        self.env = env;
        self
    }

    /// Sets the working directory, as an absolute path.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets the maximum number of bytes of output to store. The oldest output is dropped first.
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

/// A client terminal. Dropping it releases the terminal, which kills its command. See the specification's page
/// "Terminals".
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

    /// Returns the terminal's id, chosen by the client.
    #[must_use]
    pub fn id(&self) -> &TerminalId {
        &self.id
    }

    /// Returns content that shows the terminal's output live in a tool call. See "Embedding in Tool Calls" on the
    /// specification's page "Terminals".
    #[must_use]
    pub fn as_content(&self) -> ToolCallContent {
        self.id.clone().into()
    }

    /// Returns the stored output, limited by the command's [`output_byte_limit`](TerminalCommand::output_byte_limit).
    /// See "Getting Output" on the specification's page "Terminals".
    ///
    /// # Errors
    /// The client returned an error, or the connection has ended.
    pub async fn output(&self) -> Result<TerminalOutputResponse> {
        let request = TerminalOutputRequest::new(self.session.id(), &self.id);
        self.session.connection().request(&request).await
    }

    /// Waits until the command has exited. To stop waiting when the turn is cancelled, use
    /// [`Turn::or_cancelled`](super::Turn::or_cancelled). See "Waiting for Exit" on the specification's page
    /// "Terminals".
    ///
    /// # Errors
    /// The client returned an error, or the connection has ended.
    pub async fn wait_for_exit(&self) -> Result<TerminalExitStatus> {
        let request = WaitForTerminalExitRequest::new(self.session.id(), &self.id);
        let exit = self.session.connection().request(&request).await?;
        let mut status = TerminalExitStatus::new();
        (status.exit_code, status.signal) = (exit.exit_code, exit.signal);
        Ok(status)
    }

    /// Kills the command, but keeps the terminal, so that its output can still be read. See "Killing Commands" on the
    /// specification's page "Terminals".
    ///
    /// # Errors
    /// The client returned an error, or the connection has ended.
    pub async fn kill(&self) -> Result<()> {
        let request = KillTerminalRequest::new(self.session.id(), &self.id);
        self.session.connection().request(&request).await.map(drop)
    }

    /// Releases the terminal and waits until the client confirms it. See "Releasing Terminals" on the specification's
    /// page "Terminals".
    ///
    /// # Errors
    /// The client returned an error, or the connection has ended.
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
