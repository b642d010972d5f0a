//! `acp trace FILE -- COMMAND…`: stands in for an agent, and relays and records all messages.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use acp_host::AgentProcess;
use acp_trace::{
    CreateError, PipeInput, PipeOutput, RecordSettings, Relay, RelayEnd, RelayHandle, Secrets,
    Side, TraceEvent, TraceNotes, TraceRecorder,
};
use tokio::sync::mpsc;

use crate::args::trace::{RecordArgs, RecordingArgs};
use crate::exit::CommandExit;
use crate::remote_agent::RelayedAgent;
use crate::signals::{ExitSignal, Signals};

/// How long an agent may take to exit after its stdin is closed, and again after it is asked to exit.
const EXIT_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// How long to wait for an agent that has closed its stdout to exit, so that its exit code can be reported. Also how
/// long a client may leave an exited agent's remaining output unread.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// How long writing the last records may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn record_trace(args: RecordArgs) -> CommandExit {
    let file = match &args.file {
        None => return CommandExit::usage("no file given"),
        Some(file) => trace_file(file),
    };
    let connection = match RecordedConnection::open(&args.recording, &args.agent, &file) {
        Ok(connection) => connection,
        Err(exit) => return exit,
    };
    let relays = |recorder: &TraceRecorder, to_agent, to_client| {
        let relay = |from, output| recorder.relay(from, output);
        (relay(Side::Client, to_agent), relay(Side::Agent, to_client))
    };
    connection.relay_messages(relays).await
}

/// A connection to record: its agent and its trace.
pub(super) struct RecordedConnection {
    agent: RelayedAgent,
    recorder: TraceRecorder,
    signals: Signals,
}

impl RecordedConnection {
    /// Creates the trace. The agent is not started yet. `command` starts it, unless `args` has a URL.
    pub(super) fn open(
        args: &RecordingArgs,
        command: &[String],
        file: &Path,
    ) -> Result<Self, CommandExit> {
        let signals = Signals::listen()
            .map_err(|e| CommandExit::failed(format!("cannot listen for signals: {e}")))?;
        // Whoever starts the recorder starts it in the agent's place, and has decided which variables the agent gets.
        let given = args.env.process_environment()?;
        let agent = RelayedAgent::from_args(command, &args.url, given.environment())?;
        let recorder = create_recorder(args, &agent, file)?;
        Ok(Self {
            agent,
            recorder,
            signals,
        })
    }

    /// Starts the agent and relays messages until one side ends the connection. `relays` returns the relays for what the
    /// client and the agent send, to these outputs of the agent and the client.
    pub(super) async fn relay_messages(
        mut self,
        relays: impl FnOnce(&TraceRecorder, PipeOutput, PipeOutput) -> (Relay, Relay),
    ) -> CommandExit {
        let exit = relay_messages(&self.agent, &self.recorder, &mut self.signals, relays).await;
        // Write the last messages to the file before exiting.
        let recorder = self.recorder;
        let finished = tokio::task::spawn_blocking(move || recorder.finish(WRITE_TIMEOUT));
        let _ = finished.await;
        exit
    }
}

/// Returns the file for a trace: a new file, if the path is that of a directory.
pub(super) fn trace_file(path: &Path) -> PathBuf {
    match path.is_dir() {
        true => new_file_in(path),
        false => path.to_owned(),
    }
}

/// Returns the path for a new file in a directory. The file is named after the current time in UTC and the id of this
/// process, since several recorders may start at the same time.
fn new_file_in(directory: &Path) -> PathBuf {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H-%M-%S");
    directory.join(format!("{now}-{}.trace", std::process::id()))
}

fn create_recorder(
    args: &RecordingArgs,
    agent: &RelayedAgent,
    file: &Path,
) -> Result<TraceRecorder, CommandExit> {
    let by = concat!("acp ", env!("CARGO_PKG_VERSION"));
    let mut settings = RecordSettings::new(agent.words.clone(), by);
    settings.overwrite = args.force;
    if args.secrets {
        settings.secrets = Secrets::Kept;
    }
    let failed = |error| print_note(&format!("{error}; continuing without recording"));
    TraceRecorder::create(file, &settings, failed).map_err(|e| match e {
        CreateError::Exists { .. } => {
            CommandExit::usage(format!("{e}; use --force to overwrite it"))
        }
        e => CommandExit::failed(e.to_string()),
    })
}

/// Starts the agent and relays messages until one side ends the connection.
async fn relay_messages(
    agent: &RelayedAgent,
    recorder: &TraceRecorder,
    signals: &mut Signals,
    relays: impl FnOnce(&TraceRecorder, PipeOutput, PipeOutput) -> (Relay, Relay),
) -> CommandExit {
    let notes = recorder.notes();
    let failed = |message: String| {
        let from = Side::Agent;
        let description = message.clone();
        recorder
            .notes()
            .record_event(TraceEvent::Failed { from, message });
        CommandExit::agent_failed(description)
    };
    let stderr = notes.clone();
    let started = AgentProcess::spawn_with(&agent.command, move |line| {
        let _ = writeln!(std::io::stderr(), "{line}");
        stderr.record_stderr(line);
    });
    let process = match started {
        Ok(process) => process,
        Err(e) => return failed(format!("cannot start the agent: {e}")),
    };
    notes.record_event(TraceEvent::Started { pid: process.id() });
    let Some((stdin, stdout)) = process.take_stdio() else {
        return failed("cannot open the agent's stdin and stdout".to_owned());
    };
    let pipes = acp_trace::child(stdin, stdout).and_then(|child| Ok((child, acp_trace::stdio()?)));
    let ((to_agent, from_agent), (from_client, to_client)) = match pipes {
        Ok(pipes) => pipes,
        Err(e) => return failed(format!("cannot use stdin and stdout: {e}")),
    };
    let (client_relay, agent_relay) = relays(recorder, to_agent, to_client);
    let (to_agent, to_client) = (client_relay.handle(), agent_relay.handle());
    let (sender, mut ends) = mpsc::channel(2);
    for (side, relay, input) in [
        (Side::Client, client_relay, from_client),
        (Side::Agent, agent_relay, from_agent),
    ] {
        if let Err(e) = spawn_relay(side, relay, input, sender.clone()) {
            return failed(format!("cannot start a thread: {e}"));
        }
    }
    let exit = wait_for_first_end(agent, &process, &mut ends, &notes, signals).await;
    to_agent.close();
    stop_agent(&process, &notes, signals).await;
    if !to_client.has_ended() {
        drain_output(&mut ends, &to_client).await;
    }
    exit
}

/// The side that the relay was reading from, and how the relay ended.
type EndedRelay = (Side, RelayEnd);

/// Runs the relay for one direction on its own thread. The program exits without waiting for this thread, which may be
/// blocked in a read.
fn spawn_relay(
    side: Side,
    relay: Relay,
    input: PipeInput,
    ends: mpsc::Sender<EndedRelay>,
) -> std::io::Result<()> {
    let relay = move || {
        relay.run(input, |end| {
            // The channel has capacity for both ends, and its receiver may be dropped already.
            let _ = ends.try_send((side, end));
        });
    };
    std::thread::Builder::new().spawn(relay).map(drop)
}

/// Waits until one side ends the connection, and returns the corresponding `CommandExit`.
async fn wait_for_first_end(
    agent: &RelayedAgent,
    process: &AgentProcess,
    ends: &mut mpsc::Receiver<EndedRelay>,
    notes: &TraceNotes,
    signals: &mut Signals,
) -> CommandExit {
    loop {
        let end = tokio::select! {
            Some(end) = ends.recv() => end,
            signal = signals.next() => {
                let by = match signal {
                    ExitSignal::Interrupt => "Ctrl-C",
                    ExitSignal::Terminate => "SIGTERM",
                };
                notes.record_event(TraceEvent::Interrupted { by: by.to_owned() });
                return CommandExit::CANCELLED;
            }
        };
        return match end {
            // The agent has stopped reading, but may still send messages.
            (Side::Client, RelayEnd::ReaderClosed) => continue,
            (Side::Client, RelayEnd::Failed(e)) => {
                CommandExit::agent_failed(format!("connection to the client failed: {e}"))
            }
            (Side::Agent, RelayEnd::Closed) => agent_exit(agent, process).await,
            (Side::Agent, RelayEnd::Failed(e)) => {
                CommandExit::agent_failed(format!("connection to the agent failed: {e}"))
            }
            _ => CommandExit::SUCCESS,
        };
    }
}

/// Returns the `CommandExit` for an agent that has closed its stdout.
async fn agent_exit(agent: &RelayedAgent, process: &AgentProcess) -> CommandExit {
    match tokio::time::timeout(EXIT_TIMEOUT, process.wait()).await {
        Ok(exit) => agent.exit(&exit),
        Err(_) => CommandExit::agent_failed("the agent closed the connection"),
    }
}

/// Shuts down the agent, gracefully or, after a signal, immediately.
async fn stop_agent(process: &AgentProcess, notes: &TraceNotes, signals: &mut Signals) {
    let kindly = async {
        let itself = async {
            if tokio::time::timeout(EXIT_GRACE_PERIOD, process.wait())
                .await
                .is_err()
            {
                notes.record_event(TraceEvent::Killed);
            }
        };
        tokio::join!(process.shutdown(EXIT_GRACE_PERIOD), itself).0
    };
    let exit = tokio::select! {
        exit = kindly => exit,
        _ = signals.next() => {
            notes.record_event(TraceEvent::Killed);
            process.shutdown(Duration::ZERO).await
        }
    };
    let (code, signal) = (exit.code, exit.signal);
    notes.record_event(TraceEvent::Exited { code, signal });
}

/// Waits until the client has received the rest of the agent's output. Gives up once this makes no more progress.
async fn drain_output(ends: &mut mpsc::Receiver<EndedRelay>, to_client: &RelayHandle) {
    let mut progress = to_client.progress();
    loop {
        // The channel closes after the second direction ends. The client's direction may keep reading forever.
        match tokio::time::timeout(EXIT_TIMEOUT, ends.recv()).await {
            Ok(Some((Side::Client, _))) => {}
            Ok(_) => return,
            Err(_) if to_client.progress() == progress => return,
            Err(_) => progress = to_client.progress(),
        }
    }
}

/// Prints a note about the recording. Ignores errors, since stderr may be closed.
fn print_note(what: &str) {
    let _ = writeln!(std::io::stderr(), "acp: {what}");
}
