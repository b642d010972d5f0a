//! A host, which provides files, terminals and permissions for a client built on the `acp` crate.

use std::io;
use std::path::{Path, PathBuf};

use acp::client::PermissionRequest;
use acp::{Result, ThreadHandle};
use acp_wire::Request;
use acp_wire::v1::{
    ContentBlock, CreateTerminalRequest, CreateTerminalResponse, Diff, KillTerminalRequest,
    KillTerminalResponse, ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest,
    ReleaseTerminalResponse, RequestPermissionOutcome, SessionId, StopReason,
    TerminalOutputRequest, TerminalOutputResponse, ToolCallContent, ToolCallUpdate, ToolKind,
    WaitForTerminalExitRequest, WaitForTerminalExitResponse, WriteTextFileRequest,
    WriteTextFileResponse,
};
use serde_json::{Value, json};

use crate::permissions::{Action, ActionDecision, FileEdit, Grants, PermissionGate};
use crate::{
    Buffers, Environment, Files, HostTerminals, PermissionNote, Permissions, Prompter, Sandbox,
    SessionTerminals, TerminalEvent, TerminalEventKind, TextForm, terminals,
};

/// Files, terminals and permissions for all sessions of a connection. The sessions share the roots. Each also has a
/// [`HostSession`] for its own state.
///
/// Methods that would always be rejected are not offered. For example, if nothing may be changed, the agent is offered
/// no method that changes anything. Each use of an offered method still needs a decision, for which the user may be
/// asked.
pub struct Host<P> {
    gate: PermissionGate<P>,
    files: Files,
    cwd: PathBuf,
    terminals: HostTerminals,
}

/// The state of one session in a [`Host`]: its terminals and the user's grants. Created by [`Host::session`]. Clients
/// use it as their [`Client::State`](acp::Client::State) or as part of it. Dropping it ends the session's commands.
#[derive(Debug)]
pub struct HostSession {
    pub(crate) id: SessionId,
    pub(crate) thread: ThreadHandle,
    pub(crate) grants: Grants,
    terminals: SessionTerminals,
}

impl HostSession {
    /// Handles the end of a turn: ends the turn's grants and, if the turn was cancelled, any commands that it started.
    ///
    /// Call this from [`ClientState::turn_ended`](acp::client::ClientState::turn_ended), within a tokio runtime.
    pub fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        self.grants.end_turn();
        let cancelled = stop_reason == Some(&StopReason::Cancelled);
        self.terminals.end_turn(cancelled);
    }
}

impl HostSession {
    /// Handles the end of the session: ends its commands and prevents it from starting new ones. Call this from
    /// [`ClientState::closed`](acp::client::ClientState::closed). Dropping the session is not enough, because a call
    /// that is waiting for a command to exit keeps the session alive until then.
    pub fn closed(&self) {
        drop(self.terminals.close());
    }
}

impl AsRef<Self> for HostSession {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<P: Prompter + Send + Sync> std::fmt::Debug for Host<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("policy", &self.gate.permissions().policy())
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

impl<P: Prompter + Send + Sync> Host<P> {
    /// Creates a host for the files under `roots`, the first of which is the working directory. The host keeps using
    /// the same directories even if they are renamed or replaced later.
    ///
    /// # Errors
    /// A root does not exist or is not a directory.
    pub fn new(
        permissions: impl Into<Permissions>,
        prompter: P,
        roots: impl IntoIterator<Item = PathBuf>,
    ) -> io::Result<Self> {
        let roots: Vec<PathBuf> = roots.into_iter().collect();
        let cwd = roots.first().cloned().unwrap_or_default();
        Ok(Self {
            gate: PermissionGate::new(permissions.into(), prompter),
            files: Files::new(roots)?,
            cwd,
            terminals: HostTerminals::new(),
        })
    }

    /// Runs terminal commands in a sandbox.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.terminals = self.terminals.sandbox(sandbox);
        self
    }

    /// Accesses files through an editor's buffers. See [`Files::with_buffers`].
    #[must_use]
    pub fn with_buffers(mut self, buffers: impl Buffers) -> Self {
        self.files = self.files.with_buffers(buffers);
        self
    }

    /// Calls `tell` with notes for the user about permission decisions. `tell` is called from tasks and must not block.
    #[must_use]
    pub fn on_note(mut self, tell: impl Fn(PermissionNote) + Send + Sync + 'static) -> Self {
        self.gate.on_note(tell);
        self
    }

    /// Calls `tell` with each decision on an action of the agent. `tell` is called from tasks and must not block.
    #[must_use]
    pub fn on_decision(mut self, tell: impl Fn(ActionDecision) + Send + Sync + 'static) -> Self {
        self.gate.on_decision(tell);
        self
    }

    /// Trusts the agent to follow the policy and to request permission for everything that its mode and the rules do
    /// not allow. When it then acts through the client, the user is not asked again. Denied actions are still denied,
    /// and rules that require asking each time still apply.
    #[must_use]
    pub fn trust_agent_to_ask(mut self) -> Self {
        self.gate.trust_agent_to_ask();
        self
    }

    /// Sets the environment of commands. See [`HostTerminals::environment`].
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.terminals = self.terminals.environment(environment);
        self
    }

    /// Returns `true` if the agent is allowed to read files.
    #[must_use]
    pub fn can_read_files(&self) -> bool {
        self.gate.permissions().can_read()
    }

    /// Returns `true` if the agent is allowed to write files and run commands, even if only after asking the user.
    #[must_use]
    pub fn can_change_files(&self) -> bool {
        self.gate.permissions().can_change()
    }

    /// Creates the state for a session of this connection. Call this from
    /// [`ClientState::new`](acp::client::ClientState::new).
    ///
    /// The client need not have opened the session: agents may send messages before the response that contains the
    /// session's id, and updates of other sessions are shown too. But the `acp` crate passes on requests only for
    /// sessions that the client has opened or is opening.
    pub fn session(&self, id: &SessionId, thread: &ThreadHandle) -> HostSession {
        let shown = thread.clone();
        HostSession {
            id: id.clone(),
            thread: thread.clone(),
            grants: Grants::default(),
            terminals: self
                .terminals
                .session(&self.cwd, move |event| show_terminal_event(&shown, &event)),
        }
    }

    /// Ends all running commands in all sessions.
    pub async fn close(&self) {
        self.terminals.close_all().await;
    }

    /// Handles a permission request, based on the rules, an earlier answer, or by asking the user.
    ///
    /// If the user allows the tool call, its commands and files are covered until the tool call or its turn ends. The
    /// agent may then use them through this host, exactly as they were shown to the user, without asking again.
    ///
    /// # Errors
    /// The request is malformed: two of its options have the same id, or it could not be shown in full.
    pub async fn request_permission(
        &self,
        session: &HostSession,
        request: &PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        let roots = self.files.roots_handle();
        self.gate.request(&session.grants, request, roots).await
    }

    /// Converts a terminal request to a tool call's input: the command, its environment variables, and its working
    /// directory if different from the session's.
    fn tool_input(&self, request: &CreateTerminalRequest, line: &str) -> Value {
        let mut input = json!({ "command": line });
        if let Some(cwd) = request
            .cwd
            .as_deref()
            .filter(|cwd| Path::new(cwd) != self.cwd)
        {
            input["cwd"] = json!(cwd);
        }
        if !request.env.is_empty() {
            // If several variables have the same name, the last one takes effect.
            let variables = request.env.iter();
            let variables =
                variables.map(|variable| (variable.name.clone(), json!(variable.value)));
            input["env"] = variables.collect::<serde_json::Map<_, _>>().into();
        }
        input
    }
}

/// Shows a client terminal's event in a thread.
pub fn show_terminal_event(thread: &ThreadHandle, event: &TerminalEvent) {
    let id = &event.terminal_id;
    thread.change(|thread| match &event.kind {
        TerminalEventKind::Started { command, cwd } => {
            thread.start_terminal(id, command, Some(&cwd.to_string_lossy()));
        }
        TerminalEventKind::Output(text) => thread.append_terminal_output(id, text),
        TerminalEventKind::Exited(status) => thread.set_terminal_exit_status(id, status),
        TerminalEventKind::Released => thread.release_terminal(id),
    });
}

impl<P, S> acp::client::ReadTextFile<S> for Host<P>
where
    P: Prompter + Send + Sync,
    S: AsRef<HostSession> + Sync,
{
    async fn read(
        &self,
        session: &S,
        request: ReadTextFileRequest,
    ) -> Result<ReadTextFileResponse> {
        let session = session.as_ref();
        let action = Action::for_file(ToolKind::Read, &request.path, self.files.roots_handle());
        let what = format!("Read {}", request.path);
        // Reading needs no permission unless a rule says so.
        if let Some(question) = self.gate.decide(action, what)?
            && question.is_required_by_rule()
            && !question.take_grant(session, None)
        {
            let call = ToolCallUpdate::new(ReadTextFileRequest::METHOD)
                .title(format!(
                    "Read {} (the agent did not ask first)",
                    request.path
                ))
                .kind(ToolKind::Read);
            let asking = self.gate.ask_user(session, &question, &call);
            asking.await?;
        }
        Ok(self.files.read(&request).await?)
    }
}

impl<P, S> acp::client::WriteTextFile<S> for Host<P>
where
    P: Prompter + Send + Sync,
    S: AsRef<HostSession> + Sync,
{
    async fn write(
        &self,
        session: &S,
        request: WriteTextFileRequest,
    ) -> Result<WriteTextFileResponse> {
        let session = session.as_ref();
        let action = Action::for_file(ToolKind::Edit, &request.path, self.files.roots_handle());
        let what = format!("Write {}", request.path);
        if let Some(question) = self.gate.decide(action, what)? {
            // The question shows the current text. If it cannot be read, the write reports that.
            let old = self.files.read_text(Path::new(&request.path), None, None);
            let old = old.await.ok();
            let form = old.as_deref().map(TextForm::detect).unwrap_or_default();
            let new = form.apply(&request.content);
            let change = FileEdit {
                old: old.as_deref(),
                new: &new,
            };
            if !question.take_grant(session, Some(change)) {
                let mut diff = Diff::new(&request.path, new);
                diff.old_text = old;
                let call = ToolCallUpdate::new(WriteTextFileRequest::METHOD)
                    .title(format!(
                        "Write {} (the agent did not ask first)",
                        request.path
                    ))
                    .kind(ToolKind::Edit)
                    .content(vec![ToolCallContent::Diff(diff)]);
                let asking = self.gate.ask_user(session, &question, &call);
                asking.await?;
            }
        }
        let written = self.files.write(&request).await?;
        self.terminals.accept_change(request.path.into()).await;
        Ok(written)
    }
}

impl<P, S> acp::client::Terminals<S> for Host<P>
where
    P: Prompter + Send + Sync,
    S: AsRef<HostSession> + Sync,
{
    async fn create(
        &self,
        session: &S,
        request: CreateTerminalRequest,
    ) -> Result<CreateTerminalResponse> {
        let session = session.as_ref();
        let action = Action::for_terminal(&request, self.files.roots_handle());
        let line = terminals::display_command(&request);
        if let Some(question) = self.gate.decide(action, format!("Run {line}"))?
            && !question.take_grant(session, None)
        {
            let call = ToolCallUpdate::new(CreateTerminalRequest::METHOD)
                .title("Run a command (the agent did not ask first)")
                .kind(ToolKind::Execute)
                .raw_input(self.tool_input(&request, &line))
                .content(vec![ContentBlock::text(line).into()]);
            let asking = self.gate.ask_user(session, &question, &call);
            asking.await?;
        }
        Ok(session.terminals.create(&request).await?)
    }

    async fn output(
        &self,
        session: &S,
        request: TerminalOutputRequest,
    ) -> Result<TerminalOutputResponse> {
        Ok(session.as_ref().terminals.output(&request).await?)
    }

    async fn wait_for_exit(
        &self,
        session: &S,
        request: WaitForTerminalExitRequest,
    ) -> Result<WaitForTerminalExitResponse> {
        Ok(session.as_ref().terminals.wait_for_exit(&request).await?)
    }

    async fn kill(
        &self,
        session: &S,
        request: KillTerminalRequest,
    ) -> Result<KillTerminalResponse> {
        Ok(session.as_ref().terminals.kill(&request).await?)
    }

    async fn release(
        &self,
        session: &S,
        request: ReleaseTerminalRequest,
    ) -> Result<ReleaseTerminalResponse> {
        Ok(session.as_ref().terminals.release(&request).await?)
    }
}
