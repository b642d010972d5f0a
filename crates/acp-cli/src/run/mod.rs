//! `acp run`: one turn, headless.

mod ask;
mod client;
mod mcp;
mod prompt;
mod render;
pub(crate) mod signals;
mod start;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use acp::client::{AgentConnection, Prompt, Session, SessionSetup};
use acp::v1::{ContentBlock, StopReason};
use acp_host::{AgentProcess, Policy};
use tokio::time::Instant;

use self::client::{Notes, RunClient};
use self::render::Renderer;
use self::signals::{Signal, Signals};
use crate::args::{Format, RunArgs};
use crate::exit::Exit;

/// How long an agent may take to end by itself once its stdin is closed, and again once it is asked
/// to end.
const GRACE: Duration = Duration::from_secs(2);

/// How long an agent may take to end a turn that `--timeout` has cancelled.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How long an agent must have been silent after the end of its turn.
const AFTERTHOUGHTS: Duration = Duration::from_millis(50);

/// How long to wait before saying that an agent has not answered yet.
const SLOW_START: Duration = Duration::from_secs(5);

pub(crate) async fn run(args: RunArgs) -> Exit {
    match Run::prepare(args) {
        Ok(run) => run.run().await,
        Err(exit) => exit,
    }
}

/// What is known before the agent is started.
struct Run {
    args: RunArgs,
    text: String,
    attachments: Vec<prompt::Attachment>,
    mcp_servers: Vec<acp::v1::McpServer>,
    cwd: std::path::PathBuf,
    policy: Policy,
}

impl Run {
    /// All that can be wrong about the command line is said before anything is started.
    fn prepare(args: RunArgs) -> Result<Self, Exit> {
        let text = prompt::read(&args)?;
        let attachments = prompt::attachments(&args.attach)?;
        let mcp_servers = match &args.mcp {
            Some(file) => mcp::read(file)?,
            None => Vec::new(),
        };
        let cwd = std::fs::canonicalize(&args.cwd)
            .map_err(|e| Exit::usage(format!("--cwd {}: {e}", args.cwd.display())))?;
        if !cwd.is_dir() {
            return Err(Exit::usage(format!(
                "--cwd {}: not a directory",
                args.cwd.display()
            )));
        }
        let policy = match args.allow {
            Some(Policy::Ask) if !ask::possible() => {
                return Err(Exit::usage("--allow ask needs a terminal to ask on"));
            }
            Some(policy) => policy,
            None if ask::possible() => Policy::Ask,
            None => Policy::Reads,
        };
        Ok(Self {
            args,
            text,
            attachments,
            mcp_servers,
            cwd,
            policy,
        })
    }

    async fn run(self) -> Exit {
        let mut signals = match Signals::listen() {
            Ok(signals) => signals,
            Err(e) => return Exit::failed(format!("cannot listen for signals: {e}")),
        };
        let renderer = Renderer::new(self.args.format);
        let notes = Notes::default();
        let client = match RunClient::new(self.policy, &self.cwd, renderer.screen(), notes.clone())
        {
            Ok(client) => client,
            Err(e) => return Exit::usage(format!("--cwd {}: {e}", self.cwd.display())),
        };
        let terminals = client.host();
        let process = match start::spawn(&self.args.agent, &self.cwd, self.args.protocol) {
            Ok(process) => Arc::new(process),
            Err(exit) => return exit,
        };
        let mut turn = TurnOfAgent {
            run: &self,
            renderer,
            notes,
            process: Arc::clone(&process),
        };
        let exit = turn.drive(client, &mut signals).await;
        turn.renderer.finish();
        terminals.close().await;
        // Told twice: nothing is waited for but that no process is left.
        let grace = if exit == Exit::CANCELLED {
            Duration::ZERO
        } else {
            GRACE
        };
        tokio::select! {
            _ = process.shutdown(grace) => {}
            _ = signals.next() => {
                process.shutdown(Duration::ZERO).await;
            }
        }
        exit
    }
}

struct TurnOfAgent<'a> {
    run: &'a Run,
    renderer: Renderer,
    notes: Notes,
    process: Arc<AgentProcess>,
}

impl TurnOfAgent<'_> {
    /// From the first message to the stop reason.
    async fn drive(&mut self, client: RunClient, signals: &mut Signals) -> Exit {
        let timeout = self.run.args.timeout;
        let deadline = timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let session = match self.open(client, signals, deadline).await {
            Ok(session) => session,
            Err(exit) => return exit,
        };
        let content = match self.content(session.agent()) {
            Ok(content) => content,
            Err(exit) => return exit,
        };
        let exit = self.turn(&session, content, signals, deadline).await;
        let noise = session.agent().connection().noise();
        session.agent().close();
        if noise.lines > 0 && self.run.args.format == Format::Text {
            let lines = match noise.lines {
                1 => "a line".to_owned(),
                lines => format!("{lines} lines"),
            };
            self.renderer.note(&format!(
                "warning: the agent printed {lines} to stdout that are no messages; skipped (--log warn shows them)"
            ));
        }
        exit
    }

    /// Starts talking and opens the session.
    async fn open(
        &mut self,
        client: RunClient,
        signals: &mut Signals,
        deadline: Option<Instant>,
    ) -> Result<Session, Exit> {
        let transport = start::transport(&self.process, self.run.args.format)?;
        let mut opening = std::pin::pin!(self.run.open(transport, client));
        let slow = tokio::time::sleep(SLOW_START);
        tokio::pin!(slow);
        let mut ticks = self.renderer.ticks();
        loop {
            tokio::select! {
                biased;
                opened = &mut opening => return match opened {
                    Ok(session) => Ok(session),
                    Err(error) => Err(self.failed(error).await),
                },
                _ = signals.next() => return Err(Exit::CANCELLED),
                () = until(deadline) => {
                    let seconds = self.run.args.timeout.unwrap_or_default();
                    let mut exit = Exit::timeout(seconds);
                    let message = exit.message.get_or_insert_default();
                    message.push_str(": the agent has not opened a session");
                    message.push_str(&start::tail(&self.process));
                    return Err(exit);
                }
                () = &mut slow, if !slow.is_elapsed() => {
                    self.renderer.note("the agent has not answered yet; Ctrl-C ends it");
                }
                () = ticks.next() => self.renderer.tick("starting the agent"),
            }
        }
    }

    /// Runs the turn and shows it.
    async fn turn(
        &mut self,
        session: &Session,
        content: Vec<ContentBlock>,
        signals: &mut Signals,
        deadline: Option<Instant>,
    ) -> Exit {
        let thread = session.thread().clone();
        let mut prompt = std::pin::pin!(session.prompt(Prompt::from(content)));
        let mut ticks = self.renderer.ticks();
        let mut seen = 0;
        let mut deadline = deadline;
        let mut timed_out = false;
        let mut interrupted = false;
        let result = loop {
            tokio::select! {
                biased;
                result = &mut prompt => break result,
                signal = signals.next() => {
                    if interrupted {
                        return Exit::CANCELLED;
                    }
                    interrupted = true;
                    let how = if signal == Signal::Interrupt { "cancelling; Ctrl-C again ends it at once" } else { "cancelling" };
                    self.renderer.note(how);
                    let _ = session.cancel().await;
                }
                () = until(deadline) => {
                    if timed_out {
                        let message = "the agent did not end the cancelled turn";
                        return self.timed_out(Some(message));
                    }
                    timed_out = true;
                    deadline = Some(Instant::now() + LAST_WORDS);
                    let _ = session.cancel().await;
                }
                revision = thread.changed(seen) => {
                    seen = revision;
                    self.show(&thread);
                    if self.renderer.broken() {
                        // Whoever reads the output has had enough: as `head` does.
                        let _ = session.cancel().await;
                        return Exit { code: 141, message: None };
                    }
                }
                () = ticks.next() => self.renderer.tick_of(&thread),
            }
        };
        self.show(&thread);
        if result.is_ok() {
            // Some agents answer first and say the rest afterwards.
            while let Ok(revision) = tokio::time::timeout(AFTERTHOUGHTS, thread.changed(seen)).await
            {
                seen = revision;
                self.show(&thread);
            }
        }
        match result {
            Ok(StopReason::Cancelled) if timed_out => self.timed_out(None),
            Ok(reason) => Exit::of(&reason),
            Err(_) if timed_out => self.timed_out(None),
            Err(_) if interrupted => Exit::of(&StopReason::Cancelled),
            Err(error) => self.failed(error).await,
        }
    }

    fn show(&mut self, thread: &acp::ThreadHandle) {
        for note in self.notes.take() {
            self.renderer.note(&note);
        }
        thread.read(|thread| self.renderer.render(thread));
    }

    fn timed_out(&self, more: Option<&str>) -> Exit {
        let mut exit = Exit::timeout(self.run.args.timeout.unwrap_or_default());
        if let (Some(message), Some(more)) = (&mut exit.message, more) {
            message.push_str("; ");
            message.push_str(more);
        }
        exit
    }

    fn content(&self, agent: &AgentConnection) -> Result<Vec<ContentBlock>, Exit> {
        prompt::content(&self.run.text, &self.run.attachments, agent.capabilities())
    }

    /// Says what went wrong, with what the agent itself said of it.
    async fn failed(&self, error: acp::Error) -> Exit {
        match &error {
            acp::Error::Closed(_) | acp::Error::Version { .. } | acp::Error::Unreadable { .. } => {
                start::broken(&self.process, &error).await
            }
            acp::Error::NotOffered { .. } | acp::Error::Invalid(_) => {
                Exit::usage(error.to_string())
            }
            _ => Exit::failed(format!("the agent answered with an error: {error}")),
        }
    }
}

impl Run {
    async fn open(&self, transport: acp::Transport, client: RunClient) -> acp::Result<Session> {
        let options = self.args.protocol.set(acp::Options::new());
        let agent = acp::client::connect_with(transport, client, options).await?;
        let setup = SessionSetup::new(&self.cwd).mcp_servers(self.mcp_servers.clone());
        let session = match agent.new_session(setup).await {
            Err(error) if error.is_auth_required() => {
                return Err(start::how_to_authenticate(&agent, &error));
            }
            other => other?,
        };
        if let Some(mode) = &self.args.mode {
            session.set_mode(mode).await?;
        }
        for (key, value) in &self.args.options {
            session
                .set_config_option(key.as_str(), value.as_str())
                .await?;
        }
        Ok(session)
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Writes to stdout; `false` when nobody reads it any more.
fn print(bytes: &[u8]) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).is_ok()
}
