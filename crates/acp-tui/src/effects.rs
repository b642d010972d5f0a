//! Performs effects. Each effect runs in its own task and, when finished, reports with an event.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acp::ThreadHandle;
use acp::client::ClientSession;
use acp::thread::ItemKind;
use acp::v1::{
    AuthMethodTerminal, ContentBlock, EmbeddedResource, EmbeddedResourceResource,
    ListSessionsRequest, SessionId, SteeringOutcome, TextResourceContents,
};
use acp_config::{ConfigError, SessionNames};
use acp_host::AgentProcess;
use acp_rewind::KeptTurn;
use jiff::Timestamp;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::agent::{
    self, AgentFailure, ChatEnvironment, ChatNotes, QuestionQueue, RunningAgent,
    SHUTDOWN_GRACE_PERIOD,
};
use crate::app::{
    AgentKey, AgentStart, App, ChatEffect, ChatEvent, PromptText, TabKey, TurnNumber, find_targets,
};
use crate::clipboard;
use crate::editor::PromptDraft;
use crate::export::TRANSCRIPT_INTRODUCTION;
use crate::file_history::FileHistory;
use crate::images::DecodeTask;
use crate::name_changes::NameChanges;
use crate::setup::{AgentSpec, SessionSource};
use crate::terminal::ChatTerminal;
use crate::user_editor;

/// The minimum time between wake-ups for changes to a thread. Without it, a streamed message would wake the chat for
/// every chunk.
const MIN_WAKE_INTERVAL: Duration = Duration::from_millis(16);

/// A worker that performs the effects requested by the chat's state.
pub(crate) struct EffectWorker {
    events: mpsc::Sender<ChatEvent>,
    environment: Arc<ChatEnvironment>,
    watches: HashMap<TabKey, AbortHandle>,
    name_changes: NameChanges,
    /// The directory for clipboard images, which is deleted when the chat ends.
    paste_dir: Option<Arc<TempDir>>,
}

impl EffectWorker {
    pub(crate) fn new(events: mpsc::Sender<ChatEvent>, environment: Arc<ChatEnvironment>) -> Self {
        Self {
            events,
            environment,
            watches: HashMap::new(),
            name_changes: NameChanges::default(),
            paste_dir: None,
        }
    }

    /// Starts an effect. Waits for it only if it takes over the terminal.
    pub(crate) async fn perform(
        &mut self,
        effect: ChatEffect,
        screen: &mut ChatTerminal,
    ) -> io::Result<()> {
        match effect {
            ChatEffect::Redraw => screen.clear()?,
            ChatEffect::AskBackground => screen.ask_background()?,
            ChatEffect::Bell => screen.ring_bell()?,
            ChatEffect::Notify(notification) => screen.notify(&notification)?,
            ChatEffect::Copy(text) => screen.copy_to_clipboard(&text)?,
            ChatEffect::Suspend => suspend(screen).await?,
            ChatEffect::WatchThread { thread, tab } => self.watch(tab, thread),
            ChatEffect::UnwatchThread { tab } => {
                if let Some(watch) = self.watches.remove(&tab) {
                    watch.abort();
                }
            }
            ChatEffect::LogInInTerminal {
                agent,
                ends,
                spec,
                method,
            } => {
                if let Some(link) = ends {
                    stop_agent(&link.process, Some(&link), SHUTDOWN_GRACE_PERIOD).await;
                }
                screen.suspend().await;
                let result = log_in_in_terminal(&spec, &self.environment.cwd, &method).await;
                screen.resume()?;
                let event = ChatEvent::LoggedIn { agent, result };
                self.spawn_task(async move { Some(event) });
            }
            ChatEffect::EditExternally { tab, text } => {
                screen.suspend().await;
                let written = user_editor::edit_externally(&text).await;
                screen.resume()?;
                let event = match written {
                    Ok(text) => ChatEvent::ExternallyEdited { tab, text },
                    Err(why) => ChatEvent::Note(why),
                };
                self.spawn_task(async move { Some(event) });
            }
            ChatEffect::OpenFile(place) => {
                screen.suspend().await;
                let result = user_editor::open_file(&place).await;
                screen.resume()?;
                if let Err(why) = result {
                    self.spawn_task(async move { Some(ChatEvent::Note(why)) });
                }
            }
            ChatEffect::PasteImage { tab } => self.paste_image(tab),
            other => self.start(other),
        }
        Ok(())
    }

    /// Runs a future in a task and sends the event that it returns.
    fn spawn_task(&self, work: impl Future<Output = Option<ChatEvent>> + Send + 'static) {
        let events = self.events.clone();
        tokio::spawn(async move {
            if let Some(event) = work.await {
                // Nothing receives events once the chat has ended.
                let _ = events.send(event).await;
            }
        });
    }

    /// Starts an effect that does not need the terminal.
    fn start(&self, effect: ChatEffect) {
        match effect {
            ChatEffect::StartAgent {
                agent,
                stamp,
                spec,
                questions,
                notes,
            } => {
                let run = AgentRun {
                    agent,
                    stamp,
                    spec,
                    questions,
                    notes,
                };
                let environment = Arc::clone(&self.environment);
                self.spawn_task(run.run(environment, self.events.clone()));
            }
            ChatEffect::StopAgent {
                process,
                link,
                grace,
            } => self.spawn_task(async move {
                stop_agent(&process, link.as_ref(), grace).await;
                None
            }),
            ChatEffect::ListSessions {
                agent,
                connection,
                names,
                cwd,
                cursor,
            } => self.spawn_task(async move {
                let mut request = ListSessionsRequest::new().cwd(cwd.to_string_lossy());
                if let Some(cursor) = cursor {
                    request = request.cursor(cursor);
                }
                let result = connection.list_sessions(&request).await;
                let result = result.map_err(|e| AgentFailure::from_error(&e));
                let names = read_session_names(names).await;
                Some(ChatEvent::SessionsListed {
                    agent,
                    result,
                    names,
                })
            }),
            ChatEffect::DeleteSession {
                agent,
                connection,
                id,
            } => self.spawn_task(async move {
                let result = connection.delete_session(&id).await;
                let result = result.map_err(|e| AgentFailure::from_error(&e));
                Some(ChatEvent::SessionDeleted { agent, id, result })
            }),
            ChatEffect::LogIn {
                agent,
                connection,
                method,
            } => self.spawn_task(async move {
                let result = connection.authenticate(method).await;
                let result = result.map_err(|e| AgentFailure::from_error(&e));
                Some(ChatEvent::LoggedIn { agent, result })
            }),
            ChatEffect::LogOut { agent, connection } => self.spawn_task(async move {
                let result = connection.logout().await;
                let result = result.map_err(|e| AgentFailure::from_error(&e));
                Some(ChatEvent::LoggedOut { agent, result })
            }),
            other => self.start_in_session(other),
        }
    }

    /// Starts an effect that concerns one session or its conversation.
    fn start_in_session(&self, effect: ChatEffect) {
        match effect {
            ChatEffect::OpenSession {
                tab,
                since,
                link,
                spec,
                how,
                initial_options,
            } => {
                let environment = Arc::clone(&self.environment);
                self.spawn_task(async move {
                    let result = link.open(&spec, &environment, &how, &initial_options).await;
                    let name = find_session_name(spec.names.clone(), &how).await;
                    Some(ChatEvent::SessionOpened {
                        tab,
                        since,
                        result,
                        name,
                    })
                });
            }
            ChatEffect::SendPrompt {
                tab,
                session,
                turn,
                agent,
                started_at,
                draft,
                transcript,
                cancelled,
            } => {
                let prompt = OutgoingPrompt {
                    tab,
                    session,
                    turn,
                    agent,
                    started_at,
                    draft,
                    transcript,
                    cancelled,
                };
                let files = self.environment.files.clone();
                self.spawn_task(prompt.send(files, self.events.clone()));
            }
            ChatEffect::FindKeptTurns {
                tab,
                agent,
                session,
            } => {
                let files = self.environment.files.clone();
                self.spawn_task(async move {
                    let turns = files.find_turns(agent, session.clone()).await;
                    Some(ChatEvent::KeptTurnsFound {
                        tab,
                        session,
                        turns,
                    })
                });
            }
            ChatEffect::KeepTurns { turns } => {
                let files = self.environment.files.clone();
                self.spawn_task(async move {
                    files.keep_turns(turns).await;
                    None
                });
            }
            ChatEffect::PlanRestore { tab, target, to } => {
                let files = self.environment.files.clone();
                self.spawn_task(async move {
                    let result = files.plan_restore(to).await.map(Box::new);
                    Some(ChatEvent::RestorePlanned {
                        tab,
                        target,
                        result,
                    })
                });
            }
            ChatEffect::RestoreFiles {
                tab,
                target,
                scope,
                plan,
            } => {
                let files = self.environment.files.clone();
                self.spawn_task(async move {
                    let before = plan.before.clone();
                    let result = files.restore(plan).await;
                    Some(ChatEvent::FilesRestored {
                        tab,
                        target,
                        scope,
                        before,
                        result,
                    })
                });
            }
            ChatEffect::CancelTurn { session } => self.spawn_task(async move {
                // If it fails, the connection is closed, which is reported elsewhere.
                let _ = session.cancel().await;
                None
            }),
            ChatEffect::SetOption {
                tab,
                session,
                id,
                value,
            } => self.spawn_task(async move {
                let result = session.set_config_option(id, value).await;
                let result = result.map_err(|e| AgentFailure::from_error(&e));
                Some(ChatEvent::OptionSet { tab, result })
            }),
            ChatEffect::CloseSession { session } => self.spawn_task(async move {
                // An agent that does not support closing keeps its session open.
                let _ = session.close().await;
                None
            }),
            ChatEffect::DiscardSession { session } => self.spawn_task(async move {
                agent::discard_session(&session).await;
                None
            }),
            ChatEffect::MoveSessionNames { names, from, to } => {
                self.name_changes.start(move_session_names(names, from, to));
            }
            ChatEffect::NameSession {
                tab,
                names,
                id,
                name,
            } => {
                let events = self.events.clone();
                self.name_changes.start(async move {
                    let result = assign_name(names, id, name.clone()).await;
                    let named = ChatEvent::SessionNamed { tab, name, result };
                    // Nothing receives events once the chat has ended, and quitting must not wait for that.
                    tokio::spawn(async move { events.send(named).await });
                });
            }
            ChatEffect::Export { thread, file } => self.spawn_task(export(thread, file)),
            ChatEffect::OpenAddress {
                tab,
                question,
                address,
            } => self.spawn_task(async move {
                let result = address.open().await;
                Some(ChatEvent::AddressOpened {
                    tab,
                    question,
                    result,
                })
            }),
            ChatEffect::OpenLink(address) => self.spawn_task(async move {
                Some(ChatEvent::Note(match address.open().await {
                    Ok(()) => "opened in your browser".to_owned(),
                    Err(why) => format!("cannot open the link: {why}"),
                }))
            }),
            ChatEffect::FindTargets {
                tab,
                thread,
                selected,
            } => {
                let environment = Arc::clone(&self.environment);
                self.spawn_task(async move {
                    let find = move || find_targets(&thread, selected, &environment.cwd);
                    let targets = tokio::task::spawn_blocking(find).await.ok()?;
                    Some(ChatEvent::TargetsFound { tab, targets })
                });
            }
            ChatEffect::DecodeImage(task) => self.spawn_task(decode_image(task)),
            ChatEffect::Steer {
                tab,
                session,
                draft,
            } => self.spawn_task(async move {
                let outcome = steer(&session, draft.clone()).await;
                Some(ChatEvent::Steered {
                    tab,
                    draft,
                    outcome,
                })
            }),
            ChatEffect::RunShell { tab, task } => {
                let environment = Arc::clone(&self.environment);
                self.spawn_task(async move {
                    let result = task.run(&environment.cwd).await;
                    Some(ChatEvent::ShellEnded { tab, result })
                });
            }
            ChatEffect::KeepFiles => {
                let files = self.environment.files.clone();
                self.spawn_task(async move {
                    files.prepare().await;
                    None
                });
            }
            // Performed above, or where the terminal is accessible.
            ChatEffect::StartAgent { .. }
            | ChatEffect::StopAgent { .. }
            | ChatEffect::ListSessions { .. }
            | ChatEffect::DeleteSession { .. }
            | ChatEffect::LogIn { .. }
            | ChatEffect::LogOut { .. }
            | ChatEffect::Redraw
            | ChatEffect::AskBackground
            | ChatEffect::Bell
            | ChatEffect::Notify(_)
            | ChatEffect::Copy(_)
            | ChatEffect::Suspend
            | ChatEffect::WatchThread { .. }
            | ChatEffect::UnwatchThread { .. }
            | ChatEffect::LogInInTerminal { .. }
            | ChatEffect::PasteImage { .. }
            | ChatEffect::OpenFile(_)
            | ChatEffect::EditExternally { .. } => {}
        }
    }

    fn paste_image(&mut self, tab: TabKey) {
        let directory = match self.paste_dir.take() {
            Some(directory) => Ok(directory),
            None => tempfile::Builder::new()
                .prefix("acp-chat-")
                .tempdir()
                .map(Arc::new),
        };
        self.paste_dir = directory.as_ref().ok().cloned();
        self.spawn_task(async move {
            let result = match directory {
                Ok(directory) => clipboard::save_image(directory.path()).await,
                Err(e) => Err(format!("cannot save the clipboard image: {e}")),
            };
            Some(ChatEvent::ImagePasted { tab, result })
        });
    }

    /// Wakes the chat when a thread changes, at most once per frame.
    fn watch(&mut self, tab: TabKey, thread: ThreadHandle) {
        let wake = Arc::clone(&self.environment.wake);
        let watch = tokio::spawn(async move {
            let mut seen = 0;
            loop {
                seen = thread.changed(seen).await;
                wake.notify_one();
                tokio::time::sleep(MIN_WAKE_INTERVAL).await;
            }
        });
        if let Some(before) = self.watches.insert(tab, watch.abort_handle()) {
            before.abort();
        }
    }

    /// Stops watching threads, closes all connections, and waits until the agents' processes have ended.
    pub(crate) async fn end(&self, app: &App) {
        for watch in self.watches.values() {
            watch.abort();
        }
        self.name_changes.finish().await;
        for link in app.running_agents() {
            link.connection.close();
            link.host.close().await;
        }
        for process in app.processes() {
            process.shutdown(SHUTDOWN_GRACE_PERIOD).await;
        }
    }
}

/// An agent to start and then watch until it ends.
struct AgentRun {
    agent: AgentKey,
    stamp: AgentStart,
    spec: Arc<AgentSpec>,
    questions: Arc<QuestionQueue>,
    notes: Arc<ChatNotes>,
}

impl AgentRun {
    /// Starts the agent, connects to it, and waits until it ends. Returns the event that says why it ended.
    async fn run(
        self,
        environment: Arc<ChatEnvironment>,
        events: mpsc::Sender<ChatEvent>,
    ) -> Option<ChatEvent> {
        let Self {
            agent,
            stamp,
            spec,
            questions,
            notes,
        } = self;
        let ended = |failure| {
            Some(ChatEvent::AgentEnded {
                agent,
                stamp,
                failure,
            })
        };
        let process = match agent::spawn(&spec, &environment.cwd, &notes) {
            Ok(process) => process,
            Err(failure) => return ended(failure),
        };
        environment.wake.notify_one();
        let spawned = ChatEvent::AgentSpawned {
            agent,
            stamp,
            process: Arc::clone(&process),
        };
        events.send(spawned).await.ok()?;
        let link = match agent::connect(&spec, &environment, process, &questions, &notes).await {
            Ok(link) => link,
            Err(failure) => return ended(failure),
        };
        let connected = ChatEvent::AgentConnected {
            agent,
            stamp,
            link: link.clone(),
        };
        events.send(connected).await.ok()?;
        ended(link.wait_until_agent_ended().await?)
    }
}

/// A prompt to send.
struct OutgoingPrompt {
    tab: TabKey,
    session: ClientSession,
    turn: TurnNumber,
    agent: String,
    started_at: Timestamp,
    draft: PromptDraft,
    transcript: Option<Arc<str>>,
    cancelled: Arc<AtomicBool>,
}

impl OutgoingPrompt {
    /// Keeps the project's files, sends the prompt, and waits until its turn ends.
    async fn send(self, files: FileHistory, events: mpsc::Sender<ChatEvent>) -> Option<ChatEvent> {
        let Self {
            tab,
            session,
            turn,
            agent,
            started_at,
            draft,
            transcript,
            cancelled,
        } = self;
        let result = files.take_snapshot().await;
        let snapshot = result.as_ref().ok().cloned();
        let taken = ChatEvent::SnapshotTaken { tab, turn, result };
        events.send(taken).await.ok()?;
        let takes = &session.agent().capabilities().prompt_capabilities;
        let takes_resources = takes.embedded_context;
        let mut content = match build_content(&session, draft).await {
            Ok(content) => content,
            Err(why) => return Some(ChatEvent::PromptNotSent { tab, why }),
        };
        // A cancellation that was sent before the prompt would not cancel it.
        if cancelled.load(Ordering::Relaxed) {
            let why = "cancelled".to_owned();
            return Some(ChatEvent::PromptNotSent { tab, why });
        }
        let text: String = content.iter().filter_map(ContentBlock::as_text).collect();
        let text = PromptText::new(&text);
        if let Some(snapshot) = snapshot {
            let kept = KeptTurn {
                agent,
                session: session.id().to_string(),
                started_at: started_at.to_string(),
                prompt: text.clone().into(),
                snapshot,
            };
            files.keep_turns(vec![kept]).await;
        }
        if let Some(transcript) = transcript {
            content.insert(0, transcript_block(&transcript, takes_resources));
        }
        let sent = ChatEvent::PromptSent { tab, turn, text };
        events.send(sent).await.ok()?;
        let result = session.prompt(content).await;
        let result = result.map_err(|e| AgentFailure::from_error(&e));
        Some(ChatEvent::TurnEnded { tab, result })
    }
}

/// Builds the content blocks of a prompt, which reads files.
async fn build_content(
    session: &ClientSession,
    draft: PromptDraft,
) -> Result<Vec<ContentBlock>, String> {
    let takes = session.agent().capabilities().prompt_capabilities.clone();
    let content = tokio::task::spawn_blocking(move || draft.build_content(&takes));
    match content.await {
        Ok(content) => content.map_err(|why| why.to_string()),
        Err(e) => Err(e.to_string()),
    }
}

/// Sends a message to the running turn, and shows it in the conversation if the agent takes it.
async fn steer(session: &ClientSession, draft: PromptDraft) -> Result<SteeringOutcome, String> {
    let content = build_content(session, draft).await?;
    let item_count = |thread: &acp::Thread| thread.truncation().items + thread.items().len();
    let known = session.thread().read(item_count);
    let response = session.steer(content.clone()).await;
    let response = response.map_err(|e| AgentFailure::from_error(&e).to_text())?;
    if matches!(
        response.outcome,
        SteeringOutcome::Injected | SteeringOutcome::StartedNewTurn
    ) {
        session.thread().change(|thread| {
            if !is_shown(thread, known, &content) {
                thread.add_user_message(&content);
            }
        });
    }
    Ok(response.outcome)
}

/// Returns whether a conversation shows a message of the user after its first `known` items, because the agent has sent
/// it back.
fn is_shown(thread: &acp::Thread, known: usize, content: &[ContentBlock]) -> bool {
    let text: String = content.iter().filter_map(ContentBlock::as_text).collect();
    let new = known.saturating_sub(thread.truncation().items);
    let mut items = thread.items().iter().skip(new);
    items.any(|item| match &item.kind {
        ItemKind::User(message) => message.text().trim() == text.trim(),
        _ => false,
    })
}

/// Returns the content block with the earlier conversation: an embedded resource if the agent accepts those.
fn transcript_block(transcript: &str, takes_resources: bool) -> ContentBlock {
    if takes_resources {
        let resource = TextResourceContents::new(transcript, "acp-chat:conversation.md")
            .mime_type("text/markdown");
        let resource = EmbeddedResourceResource::Text(resource);
        return ContentBlock::Resource(Box::new(EmbeddedResource::new(resource)));
    }
    ContentBlock::text(format!(
        "{TRANSCRIPT_INTRODUCTION}\n\n<conversation>\n{transcript}</conversation>\n\n"
    ))
}

/// Decodes an image on a thread where blocking is allowed.
async fn decode_image(task: DecodeTask) -> Option<ChatEvent> {
    let key = task.key();
    let decoded = tokio::task::spawn_blocking(move || task.decode());
    Some(ChatEvent::ImageDecoded(match decoded.await {
        Ok(done) => done,
        Err(_) => DecodeTask::failed_result(key),
    }))
}

/// Saves a thread as a new Markdown file.
async fn export(thread: ThreadHandle, file: PathBuf) -> Option<ChatEvent> {
    let text = thread.read(crate::export::render_markdown);
    let written = tokio::task::spawn_blocking({
        let file = file.clone();
        move || write_new_file(&file, &text)
    });
    let file = file.display();
    Some(ChatEvent::Note(match written.await {
        Ok(Ok(())) => format!("saved as {file}"),
        Ok(Err(e)) => format!("cannot save {file}: {e}"),
        Err(e) => format!("cannot save {file}: {e}"),
    }))
}

/// Returns the stored name of an existing session, if it has one. Of several names, returns the last.
async fn find_session_name(names: Option<SessionNames>, source: &SessionSource) -> Option<String> {
    let SessionSource::Existing(id) = source else {
        return None;
    };
    let named = read_session_names(names).await.into_iter();
    let mut named = named.rev().filter(|(_, session)| session == id);
    named.next().map(|(name, _)| name)
}

/// Names a session, unless another session already has the name.
async fn assign_name(names: SessionNames, id: SessionId, name: String) -> Result<(), String> {
    let assigned =
        tokio::task::spawn_blocking(move || names.assign_unless_taken(&name, id.as_str()));
    match assigned.await {
        Ok(assigned) => assigned.map_err(|e| e.to_string()),
        Err(e) => Err(e.to_string()),
    }
}

/// Gives the names of a session to another one.
async fn move_session_names(names: SessionNames, from: SessionId, to: SessionId) {
    let moved = tokio::task::spawn_blocking(move || {
        for named in names
            .list()?
            .into_iter()
            .filter(|named| named.id == from.as_str())
        {
            let name = named.name.parse().map_err(ConfigError::Usage)?;
            names.assign(&name, to.as_str(), Some(from.as_str()))?;
        }
        Ok::<_, ConfigError>(())
    });
    if let Ok(Err(e)) = moved.await {
        tracing::warn!("cannot move the names of a session: {e}");
    }
}

/// Reads the stored names of sessions.
///
/// Returns none if they cannot be read, so that sessions can still be opened.
async fn read_session_names(names: Option<SessionNames>) -> Vec<(String, SessionId)> {
    let Some(names) = names else {
        return Vec::new();
    };
    match tokio::task::spawn_blocking(move || names.list()).await {
        Ok(Ok(named)) => {
            let named = named.into_iter();
            named.map(|named| (named.name, named.id.into())).collect()
        }
        Ok(Err(why)) => {
            tracing::warn!("cannot read session names: {why}");
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

/// Writes a new file. Fails if the file exists.
fn write_new_file(file: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    let mut file = std::fs::File::create_new(file)?;
    file.write_all(text.as_bytes())
}

/// Stops an agent and the processes it started.
async fn stop_agent(process: &AgentProcess, link: Option<&RunningAgent>, grace: Duration) {
    if let Some(link) = link {
        link.connection.close();
        link.host.close().await;
    }
    process.shutdown(grace).await;
}

/// Runs the agent's login program in the terminal.
async fn log_in_in_terminal(
    spec: &AgentSpec,
    cwd: &Path,
    method: &AuthMethodTerminal,
) -> Result<(), AgentFailure> {
    let command = spec.command.clone().cwd(cwd);
    let (command, _) = spec
        .sandbox_hook
        .apply(command)
        .map_err(AgentFailure::Rejected)?;
    let mut command = command.args(&method.args);
    for (name, value) in &method.env {
        command = command.env(name, value);
    }
    match command.run_in_terminal().await {
        Ok(exit) if exit.success() => Ok(()),
        Ok(exit) => Err(AgentFailure::Rejected(format!(
            "the agent's login program failed ({exit})"
        ))),
        Err(e) => Err(AgentFailure::Rejected(format!(
            "cannot start the agent's login program: {e}"
        ))),
    }
}

/// Suspends the process, as Ctrl-Z does, until the shell resumes it.
async fn suspend(screen: &mut ChatTerminal) -> io::Result<()> {
    #[cfg(unix)]
    {
        screen.suspend().await;
        // This stops the whole process group, because a shell waits until all of it has stopped.
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        screen.resume()
    }
    #[cfg(not(unix))]
    {
        let _ = screen;
        Ok(())
    }
}
