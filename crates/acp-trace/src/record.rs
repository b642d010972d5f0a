//! Starts and finishes traces, which a separate thread writes.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::format::{FORMAT_VERSION, Secrets, TraceEvent, TraceHeader};
use super::line_relay::{HandRequests, LineRelay, MessageInjector};
use super::log::{LogEntryKind, RecordLog};
use super::pipes::PipeOutput;
use super::record_thread::RecordThread;
use super::recording::RecordingSummary;
use super::redact::Redactor;
use super::relay::Relay;
use super::system::create_private;
use acp_rules::Side;

/// The settings for recording a trace.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecordSettings {
    /// The agent's command line, for the header of the trace.
    pub command: Vec<String>,
    /// The name and version of the recording program, for the header of the trace.
    pub recorder: String,
    /// Whether secrets are redacted or recorded as they are sent.
    pub secrets: Secrets,
    /// Whether an existing file may be overwritten.
    pub overwrite: bool,
}

impl RecordSettings {
    /// Creates settings that redact secrets and do not overwrite a file.
    pub fn new(command: Vec<String>, by: impl Into<String>) -> Self {
        Self {
            command,
            recorder: by.into(),
            secrets: Secrets::Redacted,
            overwrite: false,
        }
    }
}

/// An error that occurred while starting a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The file already exists. It may be another trace.
    #[error("{}: file already exists", path.display())]
    Exists {
        /// The file that already exists.
        path: PathBuf,
    },
    /// The file could not be created or written.
    #[error("cannot write {}: {source}", path.display())]
    Failed {
        /// The file that could not be created or written.
        path: PathBuf,
        /// The error from the operating system.
        source: io::Error,
    },
}

/// The error that stops a recording. The file contains everything recorded before the error, and the conversation is
/// not affected.
#[derive(Debug, thiserror::Error)]
#[error("recording stopped: cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// The file that could not be written.
    pub path: PathBuf,
    /// The error from the operating system.
    pub source: io::Error,
}

/// A recorder for everything that a client and an agent send to each other.
///
/// Bytes are written as soon as the disk accepts them, without waiting for a buffer to fill. At most 4 MiB are buffered
/// for the disk. Beyond that, both sides wait. While the oldest unwritten piece is more than 10 ms old, each further
/// piece waits up to 100 ms before it is passed on, because a client may kill the recorder at any time, and anything
/// that is not in the file by then is lost.
#[derive(Debug)]
pub struct TraceRecorder {
    log: Arc<RecordLog>,
    writer: Option<JoinHandle<()>>,
    summary_receiver: Receiver<RecordingSummary>,
}

/// A handle for recording events and lines of stderr. It can be used from any thread.
#[derive(Debug, Clone)]
pub struct TraceNotes(Arc<RecordLog>);

/// The relays of a connection, and what sends messages by hand between their lines.
#[derive(Debug)]
#[non_exhaustive]
pub struct InjectableRelays {
    /// Passes on what the client sends.
    pub client: Relay,
    /// Passes on what the agent sends.
    pub agent: Relay,
    /// Sends messages to the agent, as if they came from the client.
    pub to_agent: MessageInjector,
    /// Sends messages to the client, as if they came from the agent.
    pub to_client: MessageInjector,
}

impl TraceNotes {
    /// Records a line that the agent printed to stderr. Waits if the disk is too slow.
    pub fn record_stderr(&self, line: &str) {
        self.0.push(LogEntryKind::Stderr, line.as_bytes());
    }

    /// Records an event, such as the agent's exit or a closed stream.
    pub fn record_event(&self, event: TraceEvent) {
        self.0.push(LogEntryKind::Event(event), &[]);
    }
}

impl TraceRecorder {
    /// Starts a trace. Creates the file, readable only by its owner, and writes the header. If writing fails later,
    /// `failed` is called once from another thread, and recording stops.
    ///
    /// # Errors
    /// The file exists, or could not be created or written.
    pub fn create(
        path: &Path,
        settings: &RecordSettings,
        failed: impl FnOnce(WriteError) + Send + 'static,
    ) -> Result<Self, CreateError> {
        let could_not = |source: io::Error| CreateError::Failed {
            path: path.to_owned(),
            source,
        };
        let mut file = match create_private(path, settings.overwrite) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let path = path.to_owned();
                return Err(CreateError::Exists { path });
            }
            file => file.map_err(could_not)?,
        };
        let redactor = match settings.secrets {
            Secrets::Redacted => Some(Redactor::new()),
            Secrets::Kept => None,
        };
        let command = match &redactor {
            Some(redactor) => redactor.redact_command(&settings.command),
            None => settings.command.clone(),
        };
        let log = Arc::new(RecordLog::new());
        let header = TraceHeader {
            version: FORMAT_VERSION,
            started: jiff::Timestamp::now().to_string(),
            command,
            by: settings.recorder.clone(),
            secrets: settings.secrets,
        };
        let mut line = serde_json::to_vec(&header).map_err(|e| could_not(e.into()))?;
        line.push(b'\n');
        file.write_all(&line).map_err(could_not)?;
        let (sender, done) = channel();
        let (waiting, path) = (log.clone(), path.to_owned());
        let writer = std::thread::Builder::new().name("trace".to_owned());
        let writer = writer
            .spawn(move || {
                let mut writing = RecordThread::new(waiting.clone(), redactor);
                let written = writing.write_all(&mut file);
                let mut recorded = writing.summary();
                recorded.is_complete = written.is_ok();
                if let Err(source) = written {
                    // From here on, nothing waits for capacity, neither in the log nor in a tap.
                    drop(writing);
                    waiting.abandon();
                    failed(WriteError { path, source });
                }
                // The receiver may have been dropped.
                let _ = sender.send(recorded);
            })
            .map_err(could_not)?;
        Ok(Self {
            log,
            writer: Some(writer),
            summary_receiver: done,
        })
    }

    /// Returns a relay that records everything `from` sends, and passes it on to `output`.
    #[must_use]
    pub fn relay(&self, from: Side, output: PipeOutput) -> Relay {
        Relay::new(from, output, self.log.clone())
    }

    /// Returns relays for both directions, between whose lines messages can be sent by hand. The ids of requests that
    /// are sent by hand contain `nonce`, which must be random text.
    #[must_use]
    pub fn injectable_relays(
        &self,
        to_agent: PipeOutput,
        to_client: PipeOutput,
        nonce: &str,
    ) -> InjectableRelays {
        let count = Arc::default();
        let requests = || Arc::new(HandRequests::new(nonce, Arc::clone(&count)));
        let (agent_requests, client_requests) = (requests(), requests());
        let relay = |from, output, responses_to: &Arc<_>, requests: &Arc<_>| {
            let output = Arc::new(Mutex::new(Some(output)));
            let (responses_to, requests) = (Arc::clone(responses_to), Arc::clone(requests));
            let log = || Arc::clone(&self.log);
            let (lines, injector) =
                LineRelay::new(from, Arc::clone(&output), responses_to, requests, log());
            (Relay::with_lines(from, output, log(), lines), injector)
        };
        let (client, to_agent) = relay(Side::Client, to_agent, &client_requests, &agent_requests);
        let (agent, to_client) = relay(Side::Agent, to_client, &agent_requests, &client_requests);
        InjectableRelays {
            client,
            agent,
            to_agent,
            to_client,
        }
    }

    /// Returns a handle for recording events and stderr.
    #[must_use]
    pub fn notes(&self) -> TraceNotes {
        TraceNotes(self.log.clone())
    }

    /// Finishes the trace once everything has been written. Waits for at most `patience`, because writing to a disk can
    /// hang.
    #[must_use]
    pub fn finish(mut self, patience: Duration) -> RecordingSummary {
        self.notes().record_event(TraceEvent::End);
        self.log.close();
        let recorded = self.summary_receiver.recv_timeout(patience);
        if let (Ok(_), Some(writer)) = (&recorded, self.writer.take()) {
            // The thread has nothing left to do.
            let _ = writer.join();
        }
        recorded.unwrap_or_default()
    }
}

impl Drop for TraceRecorder {
    fn drop(&mut self) {
        self.log.close();
    }
}
