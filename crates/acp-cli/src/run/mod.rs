//! `acp run`: one turn, headless.

mod client;
mod open;
mod permission;
mod prompt;
mod render;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acp::client::{AgentConnection, Prompt, Session};
use acp::v1::{ContentBlock, StopReason};
use acp_config::AgentChoice;
use acp_host::{AgentProcess, Attachment, Permissions, Policy};
use tokio::time::Instant;

use self::client::{Notes, RunClient};
use self::render::Renderer;
use crate::args::run::{Format, RunArgs};
use crate::ask::{self, Person};
use crate::confinement::Confinement;
use crate::exit::Exit;
use crate::login;
use crate::permissions;
use crate::signals::{Signal, Signals};
use crate::start::{self, Failure, GRACE, SLOW, SLOW_START, Target};

/// How long an agent may take to end a turn that `--timeout` has cancelled.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How long an agent must have been silent after the end of its turn.
const AFTERTHOUGHTS: Duration = Duration::from_millis(50);

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
    attachments: Vec<Attachment>,
    mcp_servers: Vec<acp::v1::McpServer>,
    cwd: PathBuf,
    permissions: Permissions,
    agent: AgentChoice,
    /// The session to go on with.
    resume: Option<String>,
    named: Option<open::Naming>,
    sandbox: Option<Confinement>,
}

impl Run {
    /// All that can be wrong about the command line is said before anything is started.
    fn prepare(args: RunArgs) -> Result<Self, Exit> {
        let text = prompt::read(&args)?;
        let attachments = prompt::attachments(&args.attach)?;
        let cwd = args.work.directory()?;
        if args.allow == Some(Policy::Ask) && !ask::possible() {
            return Err(Exit::usage("--allow ask needs a terminal to ask on"));
        }
        let permissions = permissions::of(args.allow, &cwd)?;
        let mut agent = args.which.choose(&cwd)?;
        let configured = std::mem::take(&mut agent.mcp_servers);
        let mcp_servers = args.work.servers(configured)?;
        let named = open::Naming::of(&args, &agent, &cwd)?;
        let resume = match &named {
            Some(named) => named.goes_on_with(),
            None => args.resume.clone(),
        };
        let sandbox = Confinement::of(&args.work.sandbox, args.allow, &cwd)?;
        Ok(Self {
            args,
            text,
            attachments,
            mcp_servers,
            cwd,
            permissions,
            agent,
            resume,
            named,
            sandbox,
        })
    }

    /// Starts the agent.
    fn start(&self, notes: &Notes) -> Result<AgentProcess, Exit> {
        let mut command = self.target().command_for(&self.permissions)?;
        if let Some(confinement) = &self.sandbox {
            let confined = confinement.confine(&self.agent, command)?;
            command = confined.command;
            for note in confined.notes {
                notes.add(note);
            }
        }
        self.target().spawn_as(&command)
    }

    /// Adds to what is said of an agent that broke what may help against that.
    fn with_hint(&self, mut exit: Exit) -> Exit {
        /// What an agent says that may not write.
        const REFUSED: [&str; 6] = [
            "permission denied",
            "eacces",
            "eperm",
            "erofs",
            "readonly",
            "read-only",
        ];
        let hint = self.sandbox.as_ref().and_then(Confinement::hint);
        if let (Some(message), Some(hint)) = (&mut exit.message, hint) {
            let said = message.to_ascii_lowercase();
            if exit.code == Exit::BROKEN || REFUSED.iter().any(|words| said.contains(words)) {
                message.push('\n');
                message.push_str(&hint);
            }
        }
        exit
    }

    async fn run(self) -> Exit {
        let mut signals = match Signals::listen() {
            Ok(signals) => signals,
            Err(e) => return Exit::failed(format!("cannot listen for signals: {e}")),
        };
        let renderer = Renderer::new(self.args.format);
        let notes = Notes::default();
        let person = Person::new(renderer.screen());
        let client = match RunClient::new(&self, &person, notes.clone()) {
            Ok(client) => client,
            Err(e) => return Exit::usage(format!("--cwd {}: {e}", self.cwd.display())),
        };
        let terminals = client.host();
        let process = match self.start(&notes) {
            Ok(process) => Arc::new(process),
            Err(exit) => return exit,
        };
        let mut turn = TurnOfAgent {
            run: &self,
            renderer,
            notes,
            person,
            process: Arc::clone(&process),
        };
        let exit = self.with_hint(turn.drive(client, &mut signals).await);
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
        for note in process.undone() {
            turn.renderer.note(&note);
        }
        exit
    }
}

struct TurnOfAgent<'a> {
    run: &'a Run,
    renderer: Renderer,
    notes: Notes,
    person: Arc<Person>,
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
        if self.run.resume.is_some() {
            // Replayed or not, what there is so far is the past.
            let thread = session.thread();
            thread.read(|thread| self.renderer.skip(thread));
        }
        let exit = self.turn(&session, content, signals, deadline).await;
        if exit.code != Exit::BROKEN {
            self.how_to_go_on(&session);
        }
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
        let args = &self.run.args;
        let transport =
            start::transport_of_turn(&self.process, args.format, self.run.resume.is_some())?;
        for note in self.run.agent.note.iter().chain(&self.notes.take()) {
            self.renderer.note(note);
        }
        let options = start::options(&self.run.agent, &self.process);
        let way = (transport, options);
        let mut opening = std::pin::pin!(self.run.open(way, client, self.notes.clone()));
        let slow = tokio::time::sleep(SLOW_START);
        tokio::pin!(slow);
        let mut ticks = self.renderer.ticks();
        loop {
            tokio::select! {
                biased;
                opened = &mut opening => return match opened {
                    Ok(session) => Ok(session),
                    Err(failure) => Err(failure.exit(&self.run.target(), &self.process).await),
                },
                _ = signals.next() => return Err(Exit::CANCELLED),
                () = until(deadline) => {
                    let seconds = self.run.args.timeout.unwrap_or_default();
                    let mut exit = Exit::timeout(seconds);
                    let message = exit.message.get_or_insert_default();
                    message.push_str(": the agent has not opened a session");
                    message.push_str(&self.process.last_words());
                    return Err(exit);
                }
                () = &mut slow, if !slow.is_elapsed() => {
                    self.renderer.note(&format!("{SLOW}{}", self.process.last_words()));
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
                    self.cancel(session).await;
                }
                () = until(deadline) => {
                    if timed_out {
                        let message = "the agent did not end the cancelled turn";
                        return self.timed_out(Some(message));
                    }
                    timed_out = true;
                    deadline = Some(Instant::now() + LAST_WORDS);
                    self.cancel(session).await;
                }
                revision = thread.changed(seen) => {
                    seen = revision;
                    self.show(&thread);
                    if self.renderer.broken() {
                        // Whoever reads the output has had enough: as `head` does.
                        let _ = session.cancel().await;
                        return Exit::UNREAD;
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
            Err(error) if error.is_auth_required() => {
                login::needed(&self.run.target(), session.agent(), &error)
            }
            Err(error) => {
                Failure::Agent(error)
                    .exit(&self.run.target(), &self.process)
                    .await
            }
        }
    }

    /// Cancels the turn. Whoever waits for an answer of the person's is told that there is none when the
    /// agent has been told why.
    async fn cancel(&self, session: &Session) {
        let _ = session.cancel().await;
        self.person.leave();
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

    /// How to go on with the session, if the agent keeps it.
    fn how_to_go_on(&self, session: &Session) {
        let args = &self.run.args;
        let agent = session.agent().capabilities();
        let keeps = agent.load_session || agent.session_capabilities.resume.is_some();
        // In version 2 every agent resumes, the bundled one also where it keeps nothing.
        let keeps = keeps && (!self.run.agent.is_bundled() || crate::agent::keeps_sessions());
        if args.format != Format::Text {
            return;
        }
        if !keeps {
            if let Some(why) = self.run.why_not_kept() {
                self.renderer
                    .note(&format!("this session is not kept: {why}"));
            }
            return;
        }
        let cwd = args.work.cwd.to_string_lossy();
        let mut words = vec!["run".to_owned()];
        let named = self.run.named.as_ref();
        words.extend(
            match named.filter(|named| named.is_of(session.id().as_str())) {
                Some(named) => start::option("--session", named.name()),
                None => start::option("--resume", session.id().as_str()),
            },
        );
        if args.work.cwd != Path::new(".") {
            words.extend(start::option("--cwd", &cwd));
        }
        let confined = self.run.sandbox.iter().flat_map(Confinement::arguments);
        words.extend(confined.map(|word| word.to_string_lossy().into_owned()));
        words.push("PROMPT".to_owned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let command = self.run.target().to_type(&words);
        self.renderer.hint(&format!("go on with: {command}"));
    }
}

impl Run {
    /// Why the bundled agent keeps no sessions, if it is the one and cannot.
    fn why_not_kept(&self) -> Option<String> {
        match self.agent.is_bundled() {
            true => crate::agent::why_not_kept(),
            false => None,
        }
    }

    fn target(&self) -> Target<'_> {
        Target {
            agent: &self.agent,
            cwd: &self.cwd,
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
