//! Does what is to be done: each effect in a task of its own, which ends with an event.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use acp::ThreadHandle;
use acp::v1::{AuthMethodTerminal, ListSessionsRequest, SessionId};
use acp_config::SessionNames;
use acp_host::AgentProcess;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::agent::{self, GRACE, Link, Surroundings, Trouble};
use crate::app::{App, Effect, Event, TabKey};
use crate::clipboard;
use crate::images::Task;
use crate::setup::{AgentSpec, Open};
use crate::terminal::Screen;

/// How soon after a change of a thread the next one is told, so that a stream does not wake for each of its pieces.
const PACE: Duration = Duration::from_millis(16);

/// Does what is to be done.
pub(crate) struct Worker {
    events: mpsc::Sender<Event>,
    around: Arc<Surroundings>,
    watches: HashMap<TabKey, AbortHandle>,
    /// Where images of the clipboard are kept as long as the chat runs.
    pasted: Option<Arc<TempDir>>,
}

impl Worker {
    pub(crate) fn new(events: mpsc::Sender<Event>, around: Arc<Surroundings>) -> Self {
        Self {
            events,
            around,
            watches: HashMap::new(),
            pasted: None,
        }
    }

    /// Begins it. Only what needs the terminal for itself is waited for.
    pub(crate) async fn perform(&mut self, effect: Effect, screen: &mut Screen) -> io::Result<()> {
        match effect {
            Effect::Redraw => screen.forget()?,
            Effect::Bell => screen.bell()?,
            Effect::Copy(text) => screen.copy(&text)?,
            Effect::Suspend => suspend(screen).await?,
            Effect::Watch { thread, tab } => self.watch(tab, thread),
            Effect::Unwatch { tab } => {
                if let Some(watch) = self.watches.remove(&tab) {
                    watch.abort();
                }
            }
            Effect::LogInInTerminal {
                agent,
                ends,
                spec,
                method,
            } => {
                if let Some(link) = ends {
                    end(&link.process, Some(&link), GRACE).await;
                }
                screen.leave().await;
                let result = log_in_in_terminal(&spec, &self.around.cwd, &method).await;
                screen.enter()?;
                let event = Event::LoggedIn { agent, result };
                self.tell(async move { Some(event) });
            }
            Effect::Write { tab, text } => {
                screen.leave().await;
                let written = write_in_editor(&text).await;
                screen.enter()?;
                let event = match written {
                    Ok(text) => Event::Written { tab, text },
                    Err(why) => Event::Said(why),
                };
                self.tell(async move { Some(event) });
            }
            Effect::PasteImage { tab } => self.paste_image(tab),
            other => self.begin(other),
        }
        Ok(())
    }

    /// Does something and tells what came of it.
    fn tell(&self, work: impl Future<Output = Option<Event>> + Send + 'static) {
        let events = self.events.clone();
        tokio::spawn(async move {
            if let Some(event) = work.await {
                // Nobody listens any more when the chat is over.
                let _ = events.send(event).await;
            }
        });
    }

    fn begin(&self, effect: Effect) {
        let around = Arc::clone(&self.around);
        match effect {
            Effect::Start {
                agent,
                stamp,
                spec,
                desk,
                notes,
            } => {
                let events = self.events.clone();
                self.tell(async move {
                    let ended = |trouble| {
                        Some(Event::Ended {
                            agent,
                            stamp,
                            trouble,
                        })
                    };
                    let process = match agent::spawn(&spec, &around.cwd, &notes) {
                        Ok(process) => process,
                        Err(trouble) => return ended(trouble),
                    };
                    around.wake.notify_one();
                    let spawned = Event::Spawned {
                        agent,
                        stamp,
                        process: Arc::clone(&process),
                    };
                    events.send(spawned).await.ok()?;
                    let link = match agent::connect(&spec, &around, process, &desk, &notes).await {
                        Ok(link) => link,
                        Err(trouble) => return ended(trouble),
                    };
                    let connected = Event::Connected {
                        agent,
                        stamp,
                        link: link.clone(),
                    };
                    events.send(connected).await.ok()?;
                    ended(link.ended().await?)
                });
            }
            Effect::End {
                process,
                link,
                grace,
            } => self.tell(async move {
                end(&process, link.as_ref(), grace).await;
                None
            }),
            Effect::Open {
                tab,
                link,
                spec,
                how,
                wishes,
            } => self.tell(async move {
                let result = link.open(&spec, &around.cwd, &how, &wishes).await;
                let name = match &how {
                    Open::Old(id) => {
                        let named = all_names(spec.names.clone()).await.into_iter();
                        named
                            .rev()
                            .find(|(_, session)| session == id)
                            .map(|(name, _)| name)
                    }
                    _ => None,
                };
                Some(Event::Opened { tab, result, name })
            }),
            Effect::Prompt {
                tab,
                session,
                draft,
            } => self.tell(async move {
                let takes = session.agent().capabilities().prompt_capabilities.clone();
                // It reads files.
                let content = tokio::task::spawn_blocking(move || draft.content(&takes));
                let why = match content.await {
                    Ok(Ok(content)) => Ok(content),
                    Ok(Err(why)) => Err(why.to_string()),
                    Err(e) => Err(e.to_string()),
                };
                let content = match why {
                    Ok(content) => content,
                    Err(why) => return Some(Event::NotSent { tab, why }),
                };
                let result = session.prompt(content).await;
                let result = result.map_err(|e| Trouble::of(&e));
                Some(Event::TurnEnded { tab, result })
            }),
            Effect::Cancel { session } => self.tell(async move {
                // Where it fails, the connection has ended, which is told elsewhere.
                let _ = session.cancel().await;
                None
            }),
            Effect::SetOption {
                tab,
                session,
                id,
                value,
            } => self.tell(async move {
                let result = session.set_config_option(id, value).await;
                let result = result.map_err(|e| Trouble::of(&e));
                Some(Event::OptionSet { tab, result })
            }),
            Effect::Close { session } => self.tell(async move {
                // An agent that does not offer it keeps the session.
                let _ = session.close().await;
                None
            }),
            Effect::Name {
                tab,
                names,
                id,
                name,
            } => self.tell(async move {
                let given = name.clone();
                let give =
                    tokio::task::spawn_blocking(move || names.give_free(&given, id.as_str()));
                let result = match give.await {
                    Ok(given) => given.map_err(|e| e.to_string()),
                    Err(e) => Err(e.to_string()),
                };
                Some(Event::Named { tab, name, result })
            }),
            Effect::List {
                agent,
                connection,
                names,
                cwd,
                cursor,
            } => self.tell(async move {
                let mut request = ListSessionsRequest::new().cwd(cwd.to_string_lossy());
                if let Some(cursor) = cursor {
                    request = request.cursor(cursor);
                }
                let result = connection.list_sessions(&request).await;
                let result = result.map_err(|e| Trouble::of(&e));
                let names = all_names(names).await;
                Some(Event::Sessions {
                    agent,
                    result,
                    names,
                })
            }),
            Effect::Delete {
                agent,
                connection,
                id,
            } => self.tell(async move {
                let result = connection.delete_session(&id).await;
                let result = result.map_err(|e| Trouble::of(&e));
                Some(Event::Deleted { agent, id, result })
            }),
            Effect::LogIn {
                agent,
                connection,
                method,
            } => self.tell(async move {
                let result = connection.authenticate(method).await;
                let result = result.map_err(|e| Trouble::of(&e));
                Some(Event::LoggedIn { agent, result })
            }),
            Effect::LogOut { agent, connection } => self.tell(async move {
                let result = connection.logout().await;
                let result = result.map_err(|e| Trouble::of(&e));
                Some(Event::LoggedOut { agent, result })
            }),
            Effect::Export { thread, file } => self.tell(async move {
                let text = thread.read(crate::export::markdown);
                let written = tokio::task::spawn_blocking({
                    let file = file.clone();
                    move || write_new(&file, &text)
                });
                let file = file.display();
                Some(Event::Said(match written.await {
                    Ok(Ok(())) => format!("saved as {file}"),
                    Ok(Err(e)) => format!("not saved as {file}: {e}"),
                    Err(e) => format!("not saved as {file}: {e}"),
                }))
            }),
            Effect::OpenAddress {
                tab,
                question,
                address,
            } => self.tell(async move {
                let result = address.open().await;
                Some(Event::AddressOpened {
                    tab,
                    question,
                    result,
                })
            }),
            Effect::Decode(task) => {
                let key = task.key();
                self.tell(async move {
                    let decoded = tokio::task::spawn_blocking(move || task.carry_out());
                    Some(Event::Decoded(match decoded.await {
                        Ok(done) => done,
                        Err(_) => Task::failed(key),
                    }))
                });
            }
            // Done where the terminal is at hand.
            Effect::Redraw
            | Effect::Bell
            | Effect::Copy(_)
            | Effect::Suspend
            | Effect::Watch { .. }
            | Effect::Unwatch { .. }
            | Effect::LogInInTerminal { .. }
            | Effect::PasteImage { .. }
            | Effect::Write { .. } => {}
        }
    }

    fn paste_image(&mut self, tab: TabKey) {
        let directory = match self.pasted.take() {
            Some(directory) => Ok(directory),
            None => tempfile::Builder::new()
                .prefix("acp-chat-")
                .tempdir()
                .map(Arc::new),
        };
        self.pasted = directory.as_ref().ok().cloned();
        self.tell(async move {
            let result = match directory {
                Ok(directory) => clipboard::take_image(directory.path()).await,
                Err(e) => Err(format!("there is no place for the clipboard's image: {e}")),
            };
            Some(Event::ImagePasted { tab, result })
        });
    }

    /// Wakes the chat when the thread changes, at most once a frame.
    fn watch(&mut self, tab: TabKey, thread: ThreadHandle) {
        let wake = Arc::clone(&self.around.wake);
        let watch = tokio::spawn(async move {
            let mut seen = 0;
            loop {
                seen = thread.changed(seen).await;
                wake.notify_one();
                tokio::time::sleep(PACE).await;
            }
        });
        if let Some(before) = self.watches.insert(tab, watch.abort_handle()) {
            before.abort();
        }
    }

    /// Ends what runs, and waits for it.
    pub(crate) async fn end(&self, app: &App) {
        for watch in self.watches.values() {
            watch.abort();
        }
        for link in app.links() {
            link.connection.close();
            link.host.close().await;
        }
        for process in app.processes() {
            process.shutdown(GRACE).await;
        }
    }
}

/// The names that sessions have been given; none if they cannot be read, which keeps nobody from a session.
async fn all_names(names: Option<SessionNames>) -> Vec<(String, SessionId)> {
    let Some(names) = names else {
        return Vec::new();
    };
    match tokio::task::spawn_blocking(move || names.here()).await {
        Ok(Ok(named)) => {
            let named = named.into_iter();
            named.map(|named| (named.name, named.id.into())).collect()
        }
        Ok(Err(why)) => {
            tracing::warn!("the names of sessions cannot be read: {why}");
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

/// Writes a file that is not there yet: what is there is never written over.
fn write_new(file: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    let mut file = std::fs::File::create_new(file)?;
    file.write_all(text.as_bytes())
}

/// Ends an agent, with what it has begun.
async fn end(process: &AgentProcess, link: Option<&Link>, grace: Duration) {
    if let Some(link) = link {
        link.connection.close();
        link.host.close().await;
    }
    process.shutdown(grace).await;
}

/// Runs the agent's program for logging in.
async fn log_in_in_terminal(
    spec: &AgentSpec,
    cwd: &Path,
    method: &AuthMethodTerminal,
) -> Result<(), Trouble> {
    let command = spec.command.clone().cwd(cwd);
    let (command, _) = spec.confine.of(command).map_err(Trouble::Refused)?;
    let mut command = command.args(&method.args);
    for (name, value) in &method.env {
        command = command.env(name, value);
    }
    match command.run_in_terminal().await {
        Ok(exit) if exit.success() => Ok(()),
        Ok(exit) => Err(Trouble::Refused(format!(
            "the agent's program ended with {exit}"
        ))),
        Err(e) => Err(Trouble::Refused(format!(
            "the agent's program could not be started: {e}"
        ))),
    }
}

/// The editors that are looked for where none is named, the first that is there.
const EDITORS: &[&str] = if cfg!(windows) {
    &["notepad.exe"]
} else {
    &["vi", "nano"]
};

/// The command line of the person's own editor, or one that is there.
fn editor() -> Option<String> {
    let set = |name| {
        std::env::var(name)
            .ok()
            .filter(|line| !line.trim().is_empty())
    };
    set("VISUAL").or_else(|| set("EDITOR")).or_else(|| {
        let path = std::env::var_os("PATH")?;
        let is_there =
            |name: &&&str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
        EDITORS.iter().find(is_there).map(|name| (*name).to_owned())
    })
}

/// Lets the person write in the editor of their own.
async fn write_in_editor(text: &str) -> Result<String, String> {
    let Some(line) = editor() else {
        return Err(format!(
            "there is no editor: set VISUAL or EDITOR to the one you like ({} was not found either)",
            EDITORS.join(" or ")
        ));
    };
    let failed = |what: &str, e: &dyn std::fmt::Display| format!("{what}: {e}");
    let directory = tempfile::tempdir().map_err(|e| failed("no room for a file", &e))?;
    let file = directory.path().join("prompt.md");
    std::fs::write(&file, text).map_err(|e| failed("no room for a file", &e))?;
    let command = acp_host::AgentCommand::from_line(&line).map_err(|e| failed("EDITOR", &e))?;
    let command = command
        .environment(acp_host::Environment::inherit())
        .args([&file]);
    let exit = command
        .run_in_terminal()
        .await
        .map_err(|e| failed("the editor could not be started", &e))?;
    if !exit.success() {
        return Err(format!("the editor ended with {exit}"));
    }
    let text = std::fs::read_to_string(&file).map_err(|e| failed("what was written", &e))?;
    Ok(text.trim_end().to_owned())
}

/// Stops, as Ctrl-Z does, until the shell has the process go on.
async fn suspend(screen: &mut Screen) -> io::Result<()> {
    #[cfg(unix)]
    {
        screen.leave().await;
        // The whole job: a shell waits for all of it to stop.
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        screen.enter()
    }
    #[cfg(not(unix))]
    {
        let _ = screen;
        Ok(())
    }
}
