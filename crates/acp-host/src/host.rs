//! All of it together, as a client of the `acp` crate lends it.

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

use crate::permissions::{Action, FileEdit, Grants, PermissionGate};
use crate::{
    Buffers, Environment, Files, HostTerminals, PermissionNote, Permissions, Prompter, Sandbox,
    SessionTerminals, TerminalEvent, TerminalEventKind, TextForm, terminals,
};

/// Files, terminals and permissions for the sessions of one connection, which share their roots. What a session has of its
/// own is a [`HostSession`].
///
/// What is rejected in any case is not offered either: where nothing may be changed, the agent is told of
/// no way to change anything. What is offered is still decided on, and maybe asked for, when the agent has
/// not asked for it itself.
pub struct Host<P> {
    gate: PermissionGate<P>,
    files: Files,
    cwd: PathBuf,
    terminals: HostTerminals,
}

/// What a [`Host`] keeps of one session: its terminals and what the person has allowed in it. Made by [`Host::session`]; a
/// client has it as its [`Client::State`](acp::Client::State), or as a part of that. Dropping it ends the session's
/// commands.
#[derive(Debug)]
pub struct HostSession {
    pub(crate) id: SessionId,
    pub(crate) thread: ThreadHandle,
    pub(crate) grants: Grants,
    terminals: SessionTerminals,
}

impl HostSession {
    /// A turn has ended: what the person allowed in it is to be asked for again, and if it was cancelled, the
    /// commands that were begun in it end. For [`ClientState::turn_ended`](acp::client::ClientState::turn_ended); must
    /// be called in a tokio runtime.
    pub fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        self.grants.turn_ended();
        let cancelled = stop_reason == Some(&StopReason::Cancelled);
        self.terminals.turn_ended(cancelled);
    }
}

impl HostSession {
    /// The session is closed: its commands end, and no more are begun. For
    /// [`ClientState::closed`](acp::client::ClientState::closed). A call that waits for a command's end holds the session
    /// until then, so that dropping it is not enough.
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
    /// Lends what is under `roots`, the first of which is the working directory. The roots are pinned
    /// here: what is renamed or replaced later does not move them.
    ///
    /// # Errors
    /// A root is not there, or is no directory.
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

    /// Runs the commands of terminals in a sandbox.
    #[must_use]
    pub fn sandboxed(mut self, sandbox: Sandbox) -> Self {
        self.terminals = self.terminals.sandboxed(sandbox);
        self
    }

    /// Lays an editor's buffers over the files, as [`Files::with_buffers`] has it.
    #[must_use]
    pub fn with_buffers(mut self, buffers: impl Buffers) -> Self {
        self.files = self.files.with_buffers(buffers);
        self
    }

    /// Has `send_note` told what a person should know beside what they are asked. It is called from tasks and
    /// must not block.
    #[must_use]
    pub fn on_note(mut self, tell: impl Fn(PermissionNote) + Send + Sync + 'static) -> Self {
        self.gate.send_note(tell);
        self
    }

    /// The agent is one that can be trusted to ask for all that its mode and the rules do not allow, and is bound by
    /// the policy. What it then does through the client is not asked about a second time; what is forbidden stays so, and
    /// what a rule has asked each time is asked.
    #[must_use]
    pub fn trust_agent_to_ask(mut self) -> Self {
        self.gate.agent_asks();
        self
    }

    /// The environment of commands; see [`HostTerminals::environment`].
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.terminals = self.terminals.environment(environment);
        self
    }

    /// Whether files may be read.
    #[must_use]
    pub fn can_read_files(&self) -> bool {
        self.gate.permissions().may_read()
    }

    /// Whether files may be written and commands run, maybe after a question.
    #[must_use]
    pub fn can_change_files(&self) -> bool {
        self.gate.permissions().may_change()
    }

    /// A session of the connection; for [`ClientState::new`](acp::client::ClientState::new).
    ///
    /// It need not be one that the client has opened: agents may speak ahead of the answer that names their session,
    /// and what arrives for others is shown, too. But the `acp` crate passes on no request in a session that the client
    /// has neither opened nor is opening.
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

    /// Ends every command that runs.
    pub async fn close(&self) {
        self.terminals.close_all().await;
    }

    /// Answers a permission request: by what is said already, or by asking.
    ///
    /// A yes covers the commands and files of its tool call, until that or its turn ends: what the agent then does
    /// with them through this host is not asked again, if it is what the person was shown.
    ///
    /// # Errors
    /// The request is malformed: two of its options have one id, or it could not be shown whole.
    pub async fn request_permission(
        &self,
        session: &HostSession,
        request: &PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        let roots = self.files.roots_handle();
        self.gate.request(&session.grants, request, roots).await
    }

    /// What a terminal is asked for, as the input of a tool: the command, and how it differs from one that is typed
    /// where the session works.
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
            // Of those with one name the last one counts.
            let variables = request.env.iter();
            let variables =
                variables.map(|variable| (variable.name.clone(), json!(variable.value)));
            input["env"] = variables.collect::<serde_json::Map<_, _>>().into();
        }
        input
    }
}

/// Shows in the thread what happens in a terminal.
fn show_terminal_event(thread: &ThreadHandle, event: &TerminalEvent) {
    let id = &event.terminal_id;
    thread.change(|thread| match &event.kind {
        TerminalEventKind::Started { command, cwd } => {
            thread.start_terminal(id, command, Some(&cwd.to_string_lossy()));
        }
        TerminalEventKind::Output(text) => thread.append_terminal_output(id, text),
        TerminalEventKind::Exited(status) => thread.exit_terminal(id, status),
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
        // Where nothing is said of it, reading is lent freely.
        if let Some(question) = self.gate.decide(action, what)?
            && question.asked_by_rule()
            && !question.take_grant(session, None)
        {
            let call = ToolCallUpdate::new(ReadTextFileRequest::METHOD)
                .title(format!("Read {} (the agent did not ask)", request.path))
                .kind(ToolKind::Read);
            let asking = self.gate.ask_person(session, &question, &call);
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
            // What is there now is part of the question; that it cannot be read is for the write to say.
            let old = self.files.read_text(Path::new(&request.path), None, None);
            let old = old.await.ok();
            let form = old.as_deref().map(TextForm::of).unwrap_or_default();
            let new = form.apply(&request.content);
            let change = FileEdit {
                old: old.as_deref(),
                new: &new,
            };
            if !question.take_grant(session, Some(change)) {
                let mut diff = Diff::new(&request.path, new);
                diff.old_text = old;
                let call = ToolCallUpdate::new(WriteTextFileRequest::METHOD)
                    .title(format!("Write {} (the agent did not ask)", request.path))
                    .kind(ToolKind::Edit)
                    .content(vec![ToolCallContent::Diff(diff)]);
                let asking = self.gate.ask_person(session, &question, &call);
                asking.await?;
            }
        }
        let written = self.files.write(&request).await?;
        self.terminals.accept(request.path.into()).await;
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
                .title("Run a command (the agent did not ask)")
                .kind(ToolKind::Execute)
                .raw_input(self.tool_input(&request, &line))
                .content(vec![ContentBlock::text(line).into()]);
            let asking = self.gate.ask_person(session, &question, &call);
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
