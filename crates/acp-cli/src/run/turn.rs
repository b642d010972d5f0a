//! Runs the turn of `acp run`, from the first message to the stop reason.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use acp::client::{AgentConnection, ClientSession, PromptContent};
use acp::thread::ItemKind;
use acp::v1::{ContentBlock, StopReason};
use acp_host::AgentProcess;
use tokio::time::Instant;

use super::answer_schema::AnswerSchema;
use super::answer_tool::AnswerTool;
use super::client::RunClient;
use super::decisions::RunDecisions;
use super::naming::SessionNaming;
use super::notes::RunNotes;
use super::open::is_live;
use super::own_turn::OwnTurn;
use super::prompt;
use super::render::Renderer;
use super::result::TurnOutcome;
use super::setup::RunSetup;
use crate::args::run::RunFormat;
use crate::args::shared::option_arguments;
use crate::confinement::Confinement;
use crate::exit::CommandExit;
use crate::live::RunLauncher;
use crate::login;
use crate::screen::print;
use crate::signals::{ExitSignal, Signals};
use crate::start::{self, SLOW_NOTE, SLOW_START_DELAY, StartFailure};
use crate::terminal_user::TerminalUser;

/// How long an agent may take to end a turn that was cancelled because of `--timeout` or a signal.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// How often an agent is asked for a better answer if the first one does not match the schema.
const MAX_CORRECTIONS: usize = 2;

/// How long the agent must stay silent after its response to the prompt before output ends.
const QUIET_TIME: Duration = Duration::from_millis(50);

/// A single turn in an agent process.
pub(super) struct AgentTurn<'a> {
    pub(super) run: &'a RunSetup,
    pub(super) renderer: Renderer,
    pub(super) notes: RunNotes,
    pub(super) user: Arc<TerminalUser>,
    pub(super) process: Arc<AgentProcess>,
    /// The process that waits until the prompt has been accepted, if this one runs in the background.
    pub(super) launcher: Option<RunLauncher>,
    pub(super) start: OwnTurn,
    /// Whether the turn has not started yet, because the session is live and turns of other clients come first.
    pub(super) waits_for_start: bool,
    pub(super) result: TurnOutcome,
    pub(super) decisions: RunDecisions,
    /// What the session had cost when the run began. `None` until then.
    pub(super) cost_before: Option<f64>,
    /// Whether the agent failed before it has said or done anything.
    pub(super) can_be_repeated: bool,
}

impl AgentTurn<'_> {
    /// Connects, opens the session, and runs the turn until it ends.
    pub(super) async fn run(&mut self, client: RunClient, signals: &mut Signals) -> CommandExit {
        let timeout = self.run.args.timeout;
        let deadline = timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        if self.launcher.is_some() && self.run.live.is_none() && self.run.agent.remote.is_none() {
            return CommandExit::usage(format!(
                "--no-wait is not available for {}: it cannot be live",
                self.run.agent.display_name()
            ));
        }
        let session = match self.open(client, signals, deadline).await {
            Ok(session) => session,
            Err(exit) => {
                self.can_be_repeated = exit.code == CommandExit::AGENT_FAILED;
                return exit;
            }
        };
        self.result.begin(&session);
        let content = match self.prompt_content(session.agent()) {
            Ok(content) => content,
            Err(exit) => return exit,
        };
        // Everything so far is history, whether or not it was replayed.
        let history = session.thread().read(acp::Thread::revision);
        if self.run.resume.is_some() {
            self.renderer.skip_to(history);
        }
        self.start.set_thread(session.thread().clone());
        self.waits_for_start = is_live(session.agent());
        let mut exit = self.run_turn(&session, content, signals, deadline).await;
        // In a live session, turns of others may have come first, and this one may not have started.
        let begin = match self.start.revision() {
            Some(begin) => begin,
            None if self.waits_for_start => u64::MAX,
            None => history,
        };
        self.read_result(&session, begin);
        if exit == CommandExit::SUCCESS
            && let Some(schema) = &self.run.schema
        {
            exit = self
                .require_answer(schema, &session, signals, deadline, begin)
                .await;
            // The first turn has been completed.
            self.can_be_repeated = false;
        }
        if exit == CommandExit::SUCCESS {
            exit = self.denial_exit();
        }
        if exit.code != CommandExit::AGENT_FAILED {
            self.show_resume_hint(&session);
        }
        let noise = session.agent().connection().noise();
        session.agent().close();
        if noise.lines > 0 && self.run.args.format == RunFormat::Text {
            let lines = match noise.lines {
                1 => "a line on the agent's stdout that is not a message".to_owned(),
                lines => format!("{lines} lines on the agent's stdout that are not messages"),
            };
            self.renderer
                .note(&format!("warning: ignored {lines} (show with --log warn)"));
        }
        exit
    }

    /// Connects to the agent and opens the session.
    async fn open(
        &mut self,
        client: RunClient,
        signals: &mut Signals,
        deadline: Option<Instant>,
    ) -> Result<ClientSession, CommandExit> {
        let args = &self.run.args;
        let transport = start::turn_transport(
            &self.process,
            args.format,
            self.run.resume.is_some(),
            self.run.live.is_some(),
        )?;
        let transport = match &self.run.trace {
            Some(trace) => trace.attach(transport),
            None => transport,
        };
        for note in self.run.agent.note.iter().chain(&self.notes.take()) {
            self.renderer.note(note);
        }
        let options = start::connection_options(&self.run.agent, &self.process);
        let way = (transport, options);
        let mut opening = std::pin::pin!(self.run.open(way, client, self.notes.clone()));
        let slow = tokio::time::sleep(SLOW_START_DELAY);
        tokio::pin!(slow);
        let mut ticks = self.renderer.ticks();
        loop {
            tokio::select! {
                biased;
                opened = &mut opening => return match opened {
                    Ok(session) => Ok(session),
                    Err(failure) => Err(failure.exit(&self.run.target(), &self.process).await),
                },
                _ = signals.next() => return Err(CommandExit::CANCELLED),
                () = sleep_until(deadline) => {
                    let seconds = self.run.args.timeout.unwrap_or_default();
                    let mut exit = CommandExit::timeout(seconds);
                    let message = exit.message.get_or_insert_default();
                    message.push_str(": the agent did not open a session");
                    message.push_str(&self.process.stderr_excerpt());
                    return Err(exit);
                }
                () = &mut slow, if !slow.is_elapsed() => {
                    self.renderer.note(&format!("{SLOW_NOTE}{}", self.process.stderr_excerpt()));
                }
                () = ticks.next() => self.renderer.tick("starting the agent"),
            }
        }
    }

    /// Runs the turn and shows its output.
    async fn run_turn(
        &mut self,
        session: &ClientSession,
        content: Vec<ContentBlock>,
        signals: &mut Signals,
        deadline: Option<Instant>,
    ) -> CommandExit {
        let thread = session.thread().clone();
        let mut prompt = std::pin::pin!(session.prompt(PromptContent::from(content)));
        // Sent after the prompt, so the response comes when the server has the prompt.
        let accepted = async {
            let connection = session.agent().connection();
            connection
                .request_raw("_live/status", &serde_json::json!({}))
                .await
        };
        tokio::pin!(accepted);
        let mut ticks = self.renderer.ticks();
        let mut seen = 0;
        let mut deadline = deadline;
        let mut timed_out = false;
        let begin = thread.read(acp::Thread::revision);
        // A correction of the answer is part of the same run.
        self.cost_before
            .get_or_insert_with(|| thread.read(session_cost));
        let mut is_too_expensive = false;
        // When the agent must have ended the turn, once a signal has been received.
        let mut interrupt_deadline = None;
        let result = loop {
            tokio::select! {
                biased;
                result = &mut prompt => break result,
                _ = &mut accepted, if self.launcher.is_some() => self.report_accepted(session),
                signal = signals.next() => {
                    if interrupt_deadline.is_some() {
                        return CommandExit::CANCELLED;
                    }
                    interrupt_deadline = Some(Instant::now() + CANCEL_TIMEOUT);
                    let how = if signal == ExitSignal::Interrupt { "cancelling; press Ctrl-C again to exit immediately" } else { "cancelling" };
                    self.renderer.note(how);
                    self.cancel(session).await;
                }
                () = sleep_until(interrupt_deadline) => {
                    let message = "cancelled; the agent did not stop";
                    return CommandExit { message: Some(message.to_owned()), ..CommandExit::CANCELLED };
                }
                () = sleep_until(deadline) => {
                    if timed_out {
                        let message = "the agent did not stop after the turn was cancelled";
                        return self.timeout_exit(Some(message));
                    }
                    timed_out = true;
                    deadline = Some(Instant::now() + CANCEL_TIMEOUT);
                    self.cancel(session).await;
                }
                revision = thread.changed(seen) => {
                    seen = revision;
                    self.show(&thread);
                    if !is_too_expensive && self.is_too_expensive(session) {
                        is_too_expensive = true;
                        self.cancel(session).await;
                    }
                    if self.renderer.is_output_closed() {
                        // The reader has closed stdout, as `head` does.
                        let _ = session.cancel().await;
                        return CommandExit::STDOUT_CLOSED;
                    }
                }
                () = ticks.next() => match self.waits_for_start {
                    true => self.renderer.tick("waiting for other turns of the session"),
                    false => self.renderer.tick_thread(&thread),
                },
            }
        };
        self.show(&thread);
        if result.is_ok() {
            // Some agents send the response before their last updates.
            while self.start.end().is_none()
                && let Ok(revision) = tokio::time::timeout(QUIET_TIME, thread.changed(seen)).await
            {
                seen = revision;
                self.show(&thread);
            }
        }
        if let Ok(reason) = &result {
            self.result.end(reason);
        }
        match result {
            Ok(_) if is_too_expensive => {
                CommandExit::cost_limit(self.run.args.max_cost.unwrap_or_default())
            }
            Ok(StopReason::Cancelled) if timed_out => self.timeout_exit(None),
            Ok(reason) => CommandExit::from_stop_reason(&reason),
            Err(_) if timed_out => self.timeout_exit(None),
            Err(_) if interrupt_deadline.is_some() => {
                CommandExit::from_stop_reason(&StopReason::Cancelled)
            }
            Err(error) if error.is_auth_required() => {
                login::login_required_exit(&self.run.target(), session.agent(), &error)
            }
            Err(error) => {
                self.can_be_repeated = self.has_done_nothing(&thread, begin);
                StartFailure::Agent(error)
                    .exit(&self.run.target(), &self.process)
                    .await
            }
        }
    }

    /// Returns whether the run has cost more than `--max-cost` allows.
    fn is_too_expensive(&self, session: &ClientSession) -> bool {
        let cost = session.thread().read(session_cost) - self.cost_before.unwrap_or_default();
        self.run.args.max_cost.is_some_and(|limit| cost > limit)
    }

    /// Asks the agent again until its answer matches the schema.
    async fn require_answer(
        &mut self,
        schema: &AnswerSchema,
        session: &ClientSession,
        signals: &mut Signals,
        deadline: Option<Instant>,
        begin: u64,
    ) -> CommandExit {
        let mut tries = 0;
        loop {
            let submitted = self.run.answer_tool.as_ref().and_then(AnswerTool::answer);
            let checked = match submitted {
                Some(value) => Ok(value),
                // The agent has not called the tool, perhaps because it does not use MCP servers.
                None => schema.check(&self.result.answer),
            };
            let invalid = match checked {
                Ok(value) => {
                    if self.run.args.format == RunFormat::Quiet {
                        print(format!("{value}\n").as_bytes());
                    }
                    self.result.answer_json = Some(value);
                    return CommandExit::SUCCESS;
                }
                Err(invalid) => invalid,
            };
            if tries == MAX_CORRECTIONS {
                return CommandExit::invalid_answer(&invalid.to_text());
            }
            // Some agents report costs only when a turn has ended.
            if self.is_too_expensive(session) {
                return CommandExit::cost_limit(self.run.args.max_cost.unwrap_or_default());
            }
            tries += 1;
            self.renderer.note(&format!(
                "the answer does not match the schema ({}); asking again",
                invalid.to_text()
            ));
            let content = vec![ContentBlock::text(invalid.prompt())];
            let exit = self.run_turn(session, content, signals, deadline).await;
            if exit != CommandExit::SUCCESS {
                return exit;
            }
            self.read_result(session, begin);
        }
    }

    /// Reads what has happened after a revision of the thread, and the cost.
    fn read_result(&mut self, session: &ClientSession, begin: u64) {
        let end = self.start.end();
        session
            .thread()
            .read(|thread| self.result.read(thread, begin, end));
    }

    /// Returns the exit for actions that were denied.
    fn denial_exit(&self) -> CommandExit {
        let counts = self.decisions.counts();
        match (counts.denied, counts.allowed) {
            (0, _) => CommandExit::SUCCESS,
            (denied, 0) if !counts.is_denied_by_user => {
                CommandExit::denied(format!("all actions of the agent were denied ({denied})"))
            }
            (denied, _) if self.run.args.deny_fails => {
                CommandExit::denied(format!("denied actions: {denied} (--deny-fails)"))
            }
            _ => CommandExit::SUCCESS,
        }
    }

    /// Tells the process that started this one that the prompt has been accepted.
    fn report_accepted(&mut self, session: &ClientSession) {
        let words = self.session_words(session);
        let words: Vec<&str> = ["sessions", "watch"]
            .into_iter()
            .chain(words.iter().map(String::as_str))
            .collect();
        let hint = format!("watch with: {}", self.run.target().command_hint(&words));
        if let Some(launcher) = self.launcher.take()
            && let Err(error) = launcher.report_accepted(&hint)
        {
            tracing::debug!(%error, "cannot report that the prompt was accepted");
        }
    }

    /// Returns the arguments that choose this session for `acp sessions`.
    fn session_words(&self, session: &ClientSession) -> Vec<String> {
        let named = self.run.naming.as_ref();
        let named = named.filter(|named| named.belongs_to(session.id().as_str()));
        let name = named.map_or(session.id().as_str(), SessionNaming::name);
        let mut words = vec![name.to_owned()];
        let cwd = &self.run.args.session_args.cwd;
        if cwd != Path::new(".") {
            words.extend(option_arguments("--cwd", &cwd.to_string_lossy()));
        }
        words
    }

    /// Returns whether the agent has said and done nothing after a revision of the thread.
    fn has_done_nothing(&self, thread: &acp::ThreadHandle, since: u64) -> bool {
        let counts = self.decisions.counts();
        let is_silent = thread.read(|thread| {
            let mut items = thread.items().iter().filter(|item| item.revision > since);
            items.all(|item| matches!(item.kind, ItemKind::User(_)))
        });
        is_silent && counts.allowed == 0 && counts.denied == 0
    }

    /// Cancels the turn, and then all open questions from the agent.
    async fn cancel(&self, session: &ClientSession) {
        let _ = session.cancel().await;
        self.user.cancel_questions();
    }

    fn show(&mut self, thread: &acp::ThreadHandle) {
        for note in self.notes.take() {
            self.renderer.note(&note);
        }
        if self.waits_for_start {
            let Some(revision) = self.start.revision() else {
                return;
            };
            // What other clients did before is not shown.
            self.renderer.skip_to(revision);
            self.waits_for_start = false;
        }
        // Only the answer that matches is printed.
        if self.run.args.format == RunFormat::Quiet && self.run.schema.is_some() {
            return;
        }
        self.renderer.stop_at(self.start.end());
        thread.read(|thread| self.renderer.render(thread));
    }

    fn timeout_exit(&self, more: Option<&str>) -> CommandExit {
        let mut exit = CommandExit::timeout(self.run.args.timeout.unwrap_or_default());
        if let (Some(message), Some(more)) = (&mut exit.message, more) {
            message.push_str("; ");
            message.push_str(more);
        }
        exit
    }

    fn prompt_content(&self, agent: &AgentConnection) -> Result<Vec<ContentBlock>, CommandExit> {
        prompt::to_content_blocks(&self.run.text, &self.run.attachments, agent.capabilities())
    }

    /// Shows how to continue the session, if the agent stores it.
    fn show_resume_hint(&self, session: &ClientSession) {
        let args = &self.run.args;
        let agent = session.agent().capabilities();
        let keeps = agent.load_session || agent.session_capabilities.resume.is_some();
        // In version 2, every agent supports resuming, even the bundled one when it stores nothing.
        let keeps = keeps && (!self.run.agent.is_bundled() || crate::agent::has_stored_sessions());
        if args.format != RunFormat::Text {
            return;
        }
        if !keeps {
            if let Some(why) = self.run.storage_problem() {
                self.renderer
                    .note(&format!("this session is not stored: {why}"));
            }
            return;
        }
        let cwd = args.session_args.cwd.to_string_lossy();
        let mut words = vec!["run".to_owned()];
        let named = self.run.naming.as_ref();
        words.extend(
            match named.filter(|named| named.belongs_to(session.id().as_str())) {
                Some(named) => option_arguments("--session", named.name()),
                None => option_arguments("--resume", session.id().as_str()),
            },
        );
        if args.session_args.cwd != Path::new(".") {
            words.extend(option_arguments("--cwd", &cwd));
        }
        for directory in &args.directories.add_dir {
            words.extend(option_arguments("--add-dir", &directory.to_string_lossy()));
        }
        let confined = self.run.sandbox.iter().flat_map(Confinement::arguments);
        words.extend(confined.map(|word| word.to_string_lossy().into_owned()));
        words.push("PROMPT".to_owned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let command = self.run.target().command_hint(&words);
        self.renderer.hint(&format!("continue with: {command}"));
    }
}

/// Returns the cost of the session so far, or 0 if the agent has not reported it.
fn session_cost(thread: &acp::Thread) -> f64 {
    let cost = thread.usage().and_then(|usage| usage.cost.as_ref());
    cost.map_or(0.0, |cost| cost.amount)
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
