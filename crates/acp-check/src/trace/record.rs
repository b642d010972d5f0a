//! Writing a trace: a thread of its own makes records of what was passed on, and writes them at once.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::format::{self, Event, Header, Secrets, VERSION};
use super::log::{Batch, Log, PieceOf};
use super::pipes::Output;
use super::redact::Redactor;
use super::relay::Relay;
use crate::Side;

/// The longest message that is recorded whole, in bytes: what this project's own connections take at most. Of a
/// longer one, and of a line over 64 KiB that is no message, the beginning is recorded.
pub const LONGEST_MESSAGE: usize = 64 * 1024 * 1024;

/// The longest line that is recorded whole though it is no JSON, in bytes; and how much is of a longer one, and of a
/// message that is too long.
pub(super) const LONGEST_NOISE: usize = 64 * 1024;

/// How much is put together before it is written, if there is more at once, in bytes.
const WRITE: usize = 256 * 1024;

/// The largest buffer that is kept for the next message, in bytes.
const KEPT: usize = 1024 * 1024;

/// What to record, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The agent's command line, for the header.
    pub command: Vec<String>,
    /// The program that records, and its version, for the header.
    pub by: String,
    /// What to do with secrets.
    pub secrets: Secrets,
    /// Whether a file that is there is written over.
    pub overwrite: bool,
}

impl Settings {
    /// Secrets are redacted, and no file is written over.
    pub fn new(command: Vec<String>, by: impl Into<String>) -> Self {
        Self {
            command,
            by: by.into(),
            secrets: Secrets::Redacted,
            overwrite: false,
        }
    }
}

/// Why a trace cannot be begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The file is there already, and may be another trace.
    #[error("{} is there already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be made or written.
    #[error("{} cannot be written: {source}", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// The file cannot be written any more. What was recorded before is in it; the conversation goes on.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written any more: {source}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// What the system says.
    pub source: io::Error,
}

/// What there is in a trace that has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// How many messages were recorded, of both sides.
    pub messages: u64,
    /// How many parts of them were replaced for being secret.
    pub redacted: u64,
    /// Whether the file could be written to its end.
    pub complete: bool,
}

/// Records what passes between a client and an agent.
///
/// What was read is in the file as soon as the disk takes it: nothing waits for a buffer to fill up. At most 4 MiB
/// wait for the disk; beyond that, both sides do.
#[derive(Debug)]
pub struct Recorder {
    log: Arc<Log>,
    writer: Option<JoinHandle<()>>,
    done: Receiver<Recorded>,
}

/// Records lines of standard error and events, from anywhere.
#[derive(Debug, Clone)]
pub struct Notes(Arc<Log>);

impl Notes {
    /// Records a line that the agent printed to its standard error; waits for the disk if it does not keep up.
    pub fn stderr(&self, line: &str) {
        self.0.push(PieceOf::Stderr, line.as_bytes());
    }

    /// Records something that happened.
    pub fn event(&self, event: Event) {
        self.0.push(PieceOf::Event(event), &[]);
    }
}

impl Recorder {
    /// Begins a trace: makes the file, which its user alone can read, and writes the header. Should the file not be
    /// writable later, `failed` is called, once and from another thread, and nothing is recorded from then on.
    ///
    /// # Errors
    /// The file is there already, or cannot be made or written.
    pub fn create(
        path: &Path,
        settings: &Settings,
        failed: impl FnOnce(WriteError) + Send + 'static,
    ) -> Result<Self, CreateError> {
        let could_not = |source: io::Error| CreateError::Failed {
            path: path.to_owned(),
            source,
        };
        let mut file = match private(path, settings.overwrite) {
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
            Some(redactor) => redactor.command(&settings.command),
            None => settings.command.clone(),
        };
        let log = Arc::new(Log::new());
        let header = Header {
            version: VERSION,
            started: jiff::Timestamp::now().to_string(),
            command,
            by: settings.by.clone(),
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
                let mut writing = Writing::new(redactor);
                let written = writing.write_all(&waiting, &mut file);
                writing.recorded.complete = written.is_ok();
                if let Err(source) = written {
                    // Nobody waits for room any more.
                    waiting.close();
                    failed(WriteError { path, source });
                }
                // Nobody may wait for it.
                let _ = sender.send(writing.recorded);
            })
            .map_err(could_not)?;
        Ok(Self {
            log,
            writer: Some(writer),
            done,
        })
    }

    /// A direction whose bytes are recorded: what `from` says, passed on to `output`.
    #[must_use]
    pub fn relay(&self, from: Side, output: Output) -> Relay {
        Relay::new(from, output, self.log.clone())
    }

    /// Records what is no part of the two streams.
    #[must_use]
    pub fn notes(&self) -> Notes {
        Notes(self.log.clone())
    }

    /// Ends the trace once all is written, but waits no longer than this for a disk that hangs.
    #[must_use]
    pub fn finish(mut self, patience: Duration) -> Recorded {
        self.notes().event(Event::End);
        self.log.close();
        let recorded = self.done.recv_timeout(patience);
        if let (Ok(_), Some(writer)) = (&recorded, self.writer.take()) {
            // It has nothing left to do.
            let _ = writer.join();
        }
        recorded.unwrap_or_default()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.log.close();
    }
}

/// Makes a file that its user alone can read.
fn private(path: &Path, overwrite: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    if overwrite {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let file = options.open(path)?;
    #[cfg(unix)]
    if overwrite && file.metadata()?.is_file() {
        use std::os::unix::fs::PermissionsExt;
        // It may have been there, open to others.
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// A line of which not all has come.
#[derive(Debug, Default)]
struct Begun {
    bytes: Vec<u8>,
    /// How much of it is not kept.
    dropped: usize,
}

impl Begun {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.dropped == 0
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.dropped > 0 || self.bytes.len() + bytes.len() > LONGEST_MESSAGE {
            let room = LONGEST_NOISE.saturating_sub(self.bytes.len());
            let kept = bytes.get(..room).unwrap_or(bytes);
            self.bytes.extend_from_slice(kept);
            self.dropped += bytes.len() - kept.len();
            self.dropped += self.bytes.len().saturating_sub(LONGEST_NOISE);
            self.bytes.truncate(LONGEST_NOISE);
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }
}

/// What makes records of pieces.
struct Writing {
    redactor: Option<Redactor>,
    client: Begun,
    agent: Begun,
    out: Vec<u8>,
    recorded: Recorded,
}

impl Writing {
    fn new(redactor: Option<Redactor>) -> Self {
        Self {
            redactor,
            client: Begun::default(),
            agent: Begun::default(),
            out: Vec::with_capacity(WRITE),
            recorded: Recorded::default(),
        }
    }

    /// Writes until the log is closed.
    fn write_all(&mut self, log: &Log, file: &mut impl Write) -> io::Result<()> {
        let mut batch = Batch::default();
        while log.take(&mut batch) {
            let mut bytes = batch.bytes.as_slice();
            for piece in &batch.pieces {
                let (own, rest) = bytes.split_at_checked(piece.length).unwrap_or_default();
                bytes = rest;
                match &piece.what {
                    PieceOf::Stream(side) => self.stream(piece.at, *side, own),
                    PieceOf::Stderr => self.stderr(piece.at, own),
                    PieceOf::Event(event) => self.event(piece.at, event),
                }
                if self.out.len() >= WRITE {
                    self.flush(file)?;
                }
            }
            // Others may be waited for now, and what was said so far is to be seen.
            self.flush(file)?;
        }
        Ok(())
    }

    fn flush(&mut self, file: &mut impl Write) -> io::Result<()> {
        file.write_all(&self.out)?;
        self.out.clear();
        self.out.shrink_to(KEPT);
        Ok(())
    }

    fn begun(&mut self, side: Side) -> &mut Begun {
        match side {
            Side::Client => &mut self.client,
            Side::Agent => &mut self.agent,
        }
    }

    fn stream(&mut self, at: u64, side: Side, mut bytes: &[u8]) {
        let begun = self.begun(side);
        if !begun.is_empty() {
            let Some(end) = memchr::memchr(b'\n', bytes) else {
                begun.push(bytes);
                return;
            };
            let (last, rest) = bytes.split_at(end);
            begun.push(last);
            bytes = rest.get(1..).unwrap_or_default();
            self.end_begun(at, side, false);
        }
        if let Some(end) = memchr::memrchr(b'\n', bytes) {
            let (whole, rest) = bytes.split_at(end);
            self.lines(at, side, whole);
            bytes = rest.get(1..).unwrap_or_default();
        }
        if !bytes.is_empty() {
            self.begun(side).push(bytes);
        }
    }

    /// Records the line that has begun, now that its end, or that of the stream, is there.
    fn end_begun(&mut self, at: u64, side: Side, open: bool) {
        let mut line = std::mem::take(self.begun(side));
        let length = line.bytes.len() + line.dropped;
        if line.dropped > 0 {
            self.cut(at, side, &line.bytes, length, open);
        } else {
            let suspicious = match &mut self.redactor {
                Some(redactor) => redactor.suspects(&line.bytes),
                None => false,
            };
            self.line(at, side, &line.bytes, suspicious, open);
        }
        line.bytes.clear();
        line.bytes.shrink_to(KEPT);
        line.dropped = 0;
        *self.begun(side) = line;
    }

    /// Records lines, of which only the last has no end.
    fn lines(&mut self, at: u64, side: Side, whole: &[u8]) {
        let mut scan = self.redactor.as_mut().map(|redactor| redactor.scan(whole));
        let mut suspects = Vec::new();
        let mut start = 0;
        // Which of them are suspicious is found in one go: most pieces have none, and each has many lines.
        if let Some(scan) = &mut scan {
            while let Some(found) = scan.next_from(start) {
                let end = memchr::memchr(b'\n', whole.get(found..).unwrap_or_default());
                suspects.push(found);
                match end {
                    Some(end) => start = found + end + 1,
                    None => break,
                }
            }
        }
        let mut suspects = suspects.into_iter().peekable();
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', whole).chain([whole.len()]) {
            let line = whole.get(start..end).unwrap_or_default();
            let suspicious = suspects.next_if(|&found| found < end).is_some();
            self.line(at, side, line, suspicious, false);
            start = end + 1;
        }
    }

    fn line(&mut self, at: u64, side: Side, line: &[u8], suspicious: bool, open: bool) {
        let Ok(text) = std::str::from_utf8(line) else {
            self.no_text(at, side, line, suspicious, open);
            return;
        };
        let json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        if !json {
            self.noise(at, side, text, suspicious, open);
            return;
        }
        let redacted = match &self.redactor {
            Some(redactor) if suspicious => redactor.message(text),
            _ => None,
        };
        let shown = redacted.as_ref().map_or(text, |(text, _)| text);
        if shown.len() > LONGEST_MESSAGE {
            // It has become longer.
            self.cut(at, side, shown.as_bytes(), line.len(), open);
            return;
        }
        format::begin(&mut self.out, at, side, line.len());
        self.open(open);
        if let Some((_, count)) = redacted {
            self.out.extend_from_slice(b",\"redacted\":");
            format::number(&mut self.out, count);
            self.recorded.redacted += count;
        }
        self.out.extend_from_slice(b",\"msg\":");
        self.out.extend_from_slice(shown.as_bytes());
        self.out.extend_from_slice(b"}\n");
        self.recorded.messages += 1;
    }

    fn open(&mut self, open: bool) {
        if open {
            self.out.extend_from_slice(b",\"open\":true");
        }
    }

    /// What is no JSON.
    fn noise(&mut self, at: u64, side: Side, text: &str, suspicious: bool, open: bool) {
        if text.len() > LONGEST_NOISE {
            self.cut(at, side, text.as_bytes(), text.len(), open);
            return;
        }
        let redacted = match &mut self.redactor {
            Some(redactor) if suspicious => redactor.text(text),
            _ => None,
        };
        format::begin(&mut self.out, at, side, text.len());
        self.open(open);
        self.out.extend_from_slice(b",\"noise\":");
        format::text(&mut self.out, redacted.as_deref().unwrap_or(text));
        self.out.extend_from_slice(b"}\n");
    }

    /// What is not even text. Where a secret may be in it, what is text of it is recorded, without the secret.
    fn no_text(&mut self, at: u64, side: Side, line: &[u8], suspicious: bool, open: bool) {
        if line.len() > LONGEST_NOISE {
            self.cut(at, side, line, line.len(), open);
            return;
        }
        let lossy = match &mut self.redactor {
            Some(redactor) if suspicious => redactor.text(&String::from_utf8_lossy(line)),
            _ => None,
        };
        format::begin(&mut self.out, at, side, line.len());
        self.open(open);
        match lossy {
            Some(text) => {
                self.out.extend_from_slice(b",\"noise\":");
                format::text(&mut self.out, &text);
            }
            None => {
                self.out.extend_from_slice(b",\"noise64\":");
                format::base64(&mut self.out, line);
            }
        }
        self.out.extend_from_slice(b"}\n");
    }

    /// The beginning of what is too long.
    fn cut(&mut self, at: u64, side: Side, line: &[u8], length: usize, open: bool) {
        let beginning = line.get(..LONGEST_NOISE).unwrap_or(line);
        let text = String::from_utf8_lossy(beginning);
        let redacted = match &mut self.redactor {
            Some(redactor) => redactor.text(&text),
            None => None,
        };
        format::begin(&mut self.out, at, side, length);
        self.open(open);
        self.out.extend_from_slice(b",\"cut\":");
        format::text(&mut self.out, redacted.as_deref().unwrap_or(&text));
        self.out.extend_from_slice(b"}\n");
    }

    fn stderr(&mut self, at: u64, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let redacted = match &mut self.redactor {
            Some(redactor) => redactor.stderr(&text),
            None => None,
        };
        self.out.extend_from_slice(b"{\"t\":");
        format::number(&mut self.out, at);
        self.out.extend_from_slice(b",\"stderr\":");
        format::text(&mut self.out, redacted.as_deref().unwrap_or(&text));
        self.out.extend_from_slice(b"}\n");
    }

    fn event(&mut self, at: u64, event: &Event) {
        // What a stream ends with may have no line end.
        let ended: &[Side] = match event {
            Event::ClientClosed | Event::AgentStoppedReading => &[Side::Client],
            Event::AgentClosed | Event::ClientStoppedReading => &[Side::Agent],
            Event::Failed { from, .. } => &[*from],
            Event::End => &[Side::Client, Side::Agent],
            _ => &[],
        };
        for &side in ended {
            if !self.begun(side).is_empty() {
                self.end_begun(at, side, true);
            }
        }
        format::event(&mut self.out, at, event);
    }
}
