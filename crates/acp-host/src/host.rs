//! All of it together, as a client of the `acp` crate lends it.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp::client::PermissionRequest;
use acp::{Error, Result, ThreadHandle};
use acp_wire::Request;
use acp_wire::v1::{
    ContentBlock, CreateTerminalRequest, CreateTerminalResponse, Diff, KillTerminalRequest,
    KillTerminalResponse, PermissionOption, PermissionOptionKind, ReadTextFileRequest,
    ReadTextFileResponse, ReleaseTerminalRequest, ReleaseTerminalResponse,
    RequestPermissionOutcome, SessionId, TerminalOutputRequest, TerminalOutputResponse,
    ToolCallContent, ToolCallUpdate, ToolKind, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse, WriteTextFileRequest, WriteTextFileResponse,
};

use crate::{
    Buffers, Decision, Files, Policy, Prompter, Sandbox, TerminalEvent, TerminalEventKind,
    Terminals, TextForm,
};

/// Files, terminals and permissions for the sessions of one connection, which share their roots.
///
/// What a policy rejects is not offered either: where nothing may be changed, the agent is told of no
/// way to change anything. What is offered under [`Policy::Ask`] is still asked for when the agent has
/// not asked for anything in the turn itself.
pub struct Host<P> {
    policy: Policy,
    prompter: P,
    files: Files,
    cwd: PathBuf,
    terminals: Terminals,
    threads: Arc<Threads>,
    /// Sessions in whose turn the person has allowed something, and those in which everything is.
    allowed: Mutex<HashMap<SessionId, Allowed>>,
}

type Threads = Mutex<HashMap<SessionId, ThreadHandle>>;

#[derive(Default)]
struct Allowed {
    /// In this turn.
    turn: bool,
    /// Which methods, from now on.
    always: HashSet<&'static str>,
}

impl<P> std::fmt::Debug for Host<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("policy", &self.policy)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P: Prompter + Send + Sync> Host<P> {
    /// Lends what is under `roots`, the first of which is the working directory. The roots are pinned
    /// here: what is renamed or replaced later does not move them.
    ///
    /// # Errors
    /// A root is not there, or is no directory.
    pub fn new(
        policy: Policy,
        prompter: P,
        roots: impl IntoIterator<Item = PathBuf>,
    ) -> io::Result<Self> {
        let roots: Vec<PathBuf> = roots.into_iter().collect();
        let cwd = roots.first().cloned().unwrap_or_default();
        let threads = Arc::<Threads>::default();
        let shown = Arc::clone(&threads);
        Ok(Self {
            policy,
            prompter,
            files: Files::new(roots)?,
            cwd,
            terminals: Terminals::new(move |event| show(&shown, event)),
            threads,
            allowed: Mutex::default(),
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

    /// Whether files may be read.
    #[must_use]
    pub fn offers_reading(&self) -> bool {
        self.policy != Policy::None
    }

    /// Whether files may be written and commands run, maybe after a question.
    #[must_use]
    pub fn offers_changing(&self) -> bool {
        matches!(self.policy, Policy::All | Policy::Ask)
    }

    /// A session of the connection has been seen; for
    /// [`Client::session_seen`](acp::Client::session_seen).
    pub fn session_seen(&self, session: &SessionId, thread: &ThreadHandle) {
        lock(&self.threads).insert(session.clone(), thread.clone());
        self.terminals.open_session(session, &self.cwd);
    }

    /// A turn begins: what the person allowed in the one before is to be asked for again.
    pub fn turn_begins(&self, session: &SessionId) {
        if let Some(allowed) = lock(&self.allowed).get_mut(session) {
            allowed.turn = false;
        }
    }

    /// Ends every command that runs.
    pub async fn close(&self) {
        self.terminals.close_all().await;
    }

    /// Answers a permission request: by the policy, or by asking.
    pub async fn request_permission(
        &self,
        request: &PermissionRequest,
    ) -> RequestPermissionOutcome {
        let outcome = match self.policy.decide(Some(request.kind()), &request.options) {
            Decision::Answer(outcome) => outcome,
            Decision::AskPerson if self.policy == Policy::Ask => self.ask(request).await,
            // A policy that speaks for the person, and an agent that offers no yes.
            Decision::AskPerson => RequestPermissionOutcome::cancelled(),
        };
        if chosen_kind(request, &outcome).is_some_and(PermissionOptionKind::allows) {
            lock(&self.allowed)
                .entry(request.session_id.clone())
                .or_default()
                .turn = true;
        }
        outcome
    }

    async fn ask(&self, request: &PermissionRequest) -> RequestPermissionOutcome {
        match self.prompter.ask(request).await {
            Some(id) if request.options.iter().any(|option| option.option_id == id) => {
                RequestPermissionOutcome::selected(id)
            }
            _ => RequestPermissionOutcome::cancelled(),
        }
    }

    /// Asks the person for what the agent does without having asked for anything in this turn.
    async fn ask_unasked(
        &self,
        session: &SessionId,
        method: &'static str,
        call: impl FnOnce() -> ToolCallUpdate,
    ) -> Result<()> {
        if self.policy != Policy::Ask {
            return Ok(());
        }
        let known = lock(&self.allowed)
            .get(session)
            .is_some_and(|allowed| allowed.turn || allowed.always.contains(method));
        if known {
            return Ok(());
        }
        let thread = lock(&self.threads)
            .get(session)
            .cloned()
            .unwrap_or_default();
        let options = vec![
            PermissionOption::new("once", "Allow once", PermissionOptionKind::AllowOnce),
            PermissionOption::new(
                "always",
                "Allow in this session",
                PermissionOptionKind::AllowAlways,
            ),
            PermissionOption::new("no", "Reject", PermissionOptionKind::RejectOnce),
        ];
        let request = PermissionRequest::new(session, &call(), options, thread);
        let outcome = self.ask(&request).await;
        match chosen_kind(&request, &outcome) {
            Some(PermissionOptionKind::AllowOnce) => Ok(()),
            Some(PermissionOptionKind::AllowAlways) => {
                lock(&self.allowed)
                    .entry(session.clone())
                    .or_default()
                    .always
                    .insert(method);
                Ok(())
            }
            _ => Err(Error::Rpc(acp::jsonrpc::Error::internal(
                "the user rejected this",
            ))),
        }
    }
}

/// What the chosen option means.
fn chosen_kind<'a>(
    request: &'a PermissionRequest,
    outcome: &RequestPermissionOutcome,
) -> Option<&'a PermissionOptionKind> {
    let RequestPermissionOutcome::Selected(selected) = outcome else {
        return None;
    };
    let option = request
        .options
        .iter()
        .find(|option| option.option_id == selected.option_id)?;
    Some(&option.kind)
}

/// Shows in the thread what happens in a terminal.
fn show(threads: &Threads, event: TerminalEvent) {
    let Some(thread) = lock(threads).get(&event.session_id).cloned() else {
        return;
    };
    let id = &event.terminal_id;
    thread.change(|thread| match &event.kind {
        TerminalEventKind::Started { command, cwd } => {
            thread.terminal_started(id, command, Some(&cwd.to_string_lossy()));
        }
        TerminalEventKind::Output(text) => thread.terminal_output(id, text),
        TerminalEventKind::Exited(status) => thread.terminal_exited(id, status),
        TerminalEventKind::Released => thread.terminal_released(id),
    });
}

impl<P: Prompter + Send + Sync> acp::client::ReadTextFile for Host<P> {
    async fn read_text_file(&self, request: ReadTextFileRequest) -> Result<ReadTextFileResponse> {
        Ok(self.files.read(&request).await?)
    }
}

impl<P: Prompter + Send + Sync> acp::client::WriteTextFile for Host<P> {
    async fn write_text_file(
        &self,
        request: WriteTextFileRequest,
    ) -> Result<WriteTextFileResponse> {
        // What is there now is part of the question; that it cannot be read is for the write to say.
        let asking = self.policy == Policy::Ask;
        let old = match asking {
            true => self
                .files
                .read_text(Path::new(&request.path), None, None)
                .await
                .ok(),
            false => None,
        };
        self.ask_unasked(&request.session_id, WriteTextFileRequest::METHOD, || {
            let form = old.as_deref().map(TextForm::of).unwrap_or_default();
            let mut diff = Diff::new(&request.path, form.apply(&request.content));
            diff.old_text = old;
            ToolCallUpdate::new(WriteTextFileRequest::METHOD)
                .title(format!("Write {} (the agent did not ask)", request.path))
                .kind(ToolKind::Edit)
                .content(vec![ToolCallContent::Diff(diff)])
        })
        .await?;
        Ok(self.files.write(&request).await?)
    }
}

impl<P: Prompter + Send + Sync> acp::client::Terminals for Host<P> {
    async fn create(&self, request: CreateTerminalRequest) -> Result<CreateTerminalResponse> {
        self.ask_unasked(&request.session_id, CreateTerminalRequest::METHOD, || {
            let line = std::iter::once(&request.command).chain(&request.args);
            let line: Vec<&str> = line.map(String::as_str).collect();
            ToolCallUpdate::new(CreateTerminalRequest::METHOD)
                .title("Run a command (the agent did not ask)")
                .kind(ToolKind::Execute)
                .content(vec![ContentBlock::text(line.join(" ")).into()])
        })
        .await?;
        Ok(self.terminals.create(&request).await?)
    }

    async fn output(&self, request: TerminalOutputRequest) -> Result<TerminalOutputResponse> {
        Ok(self.terminals.output(&request).await?)
    }

    async fn wait_for_exit(
        &self,
        request: WaitForTerminalExitRequest,
    ) -> Result<WaitForTerminalExitResponse> {
        Ok(self.terminals.wait_for_exit(&request).await?)
    }

    async fn kill(&self, request: KillTerminalRequest) -> Result<KillTerminalResponse> {
        Ok(self.terminals.kill(&request).await?)
    }

    async fn release(&self, request: ReleaseTerminalRequest) -> Result<ReleaseTerminalResponse> {
        Ok(self.terminals.release(&request).await?)
    }
}
