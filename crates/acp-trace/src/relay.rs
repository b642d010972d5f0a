//! Passes bytes on unchanged and records them.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::format::TraceEvent;
use super::line_relay::LineRelay;
use super::log::{LogEntryKind, RecordLog};
use super::pipes::{PipeInput, PipeOutput};
use super::tap::PipeTap;
use acp_rules::Side;

/// The maximum number of bytes to read at a time, which is also the capacity of an enlarged pipe.
const BUFFER_SIZE: usize = 256 * 1024;

/// The size of a read, in bytes, at which pipes are enlarged. This is the default capacity of a pipe.
const GROW_THRESHOLD: usize = 64 * 1024;

/// The reason why a relay ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum RelayEnd {
    /// The sender closed the stream.
    Closed,
    /// The receiver stopped reading.
    ReaderClosed,
    /// The relay was stopped by [`RelayHandle::close`].
    Stopped,
    /// Reading or writing failed.
    Failed(io::Error),
}

/// One direction of a relay. It blocks, so it needs its own thread. Blocking threads also have the shortest wake-up
/// delay.
#[derive(Debug)]
pub struct Relay {
    from: Side,
    output: Arc<Mutex<Option<PipeOutput>>>,
    log: Arc<RecordLog>,
    passed_bytes: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    /// Present if messages can be sent by hand between the lines.
    lines: Option<LineRelay>,
}

/// A handle for controlling a running relay.
#[derive(Debug, Clone)]
pub struct RelayHandle {
    log: Arc<RecordLog>,
    output: Arc<Mutex<Option<PipeOutput>>>,
    passed_bytes: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl RelayHandle {
    /// Closes the output, unless a write to it is in progress.
    pub fn close(&self) {
        if let Ok(mut output) = self.output.try_lock() {
            *output = None;
        }
    }

    /// Returns `true` if this direction of the relay has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes passed on so far, and the number of lines recorded so far from both sides. While
    /// these numbers grow, the relay makes progress, although it may be waiting for a slow disk.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (
            self.passed_bytes.load(Ordering::Relaxed),
            self.log.line_count(),
        )
    }
}

impl Relay {
    pub(super) fn new(from: Side, output: PipeOutput, log: Arc<RecordLog>) -> Self {
        Self {
            from,
            output: Arc::new(Mutex::new(Some(output))),
            log,
            passed_bytes: Arc::default(),
            ended: Arc::default(),
            lines: None,
        }
    }

    /// Creates a relay between whose lines messages can be sent by hand.
    pub(super) fn with_lines(
        from: Side,
        output: Arc<Mutex<Option<PipeOutput>>>,
        log: Arc<RecordLog>,
        lines: LineRelay,
    ) -> Self {
        Self {
            from,
            output,
            log,
            passed_bytes: Arc::default(),
            ended: Arc::default(),
            lines: Some(lines),
        }
    }

    /// Returns a handle to control the relay while it runs.
    #[must_use]
    pub fn handle(&self) -> RelayHandle {
        RelayHandle {
            log: self.log.clone(),
            output: self.output.clone(),
            passed_bytes: self.passed_bytes.clone(),
            ended: self.ended.clone(),
        }
    }

    /// Passes bytes on until one end is closed. Then calls `ended`, and closes the other end.
    pub fn run(mut self, mut input: PipeInput, ended: impl FnOnce(RelayEnd)) {
        let end = match self.lines.take() {
            Some(mut lines) => self.copy_lines(&mut input, &mut lines),
            None => self.copy_all(&mut input),
        };
        let event = match (&end, self.from) {
            (RelayEnd::Stopped, _) => None,
            (RelayEnd::Closed, Side::Client) => Some(TraceEvent::ClientClosed),
            (RelayEnd::Closed, Side::Agent) => Some(TraceEvent::AgentClosed),
            (RelayEnd::ReaderClosed, Side::Client) => Some(TraceEvent::AgentStoppedReading),
            (RelayEnd::ReaderClosed, Side::Agent) => Some(TraceEvent::ClientStoppedReading),
            (RelayEnd::Failed(error), from) => Some(TraceEvent::Failed {
                from,
                message: error.to_string(),
            }),
        };
        if let Some(event) = event {
            self.log.push(LogEntryKind::Event(event), &[]);
        }
        self.ended.store(true, Ordering::Relaxed);
        ended(end);
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        *output = None;
    }

    /// Opens a tap that gets a copy of all bytes, if the system supports taps. The recorder learns of the tap before
    /// any bytes arrive.
    fn open_tap(&self, input: &PipeInput) -> Option<PipeTap> {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let (tap, reader) = PipeTap::open(input, output.as_ref()?, BUFFER_SIZE)?;
        self.log.push(LogEntryKind::Tap(self.from, reader), &[]);
        Some(tap)
    }

    fn copy_all(&self, input: &mut PipeInput) -> RelayEnd {
        let mut buffer = vec![0; BUFFER_SIZE];
        let mut grown = false;
        let mut tap = self.open_tap(input);
        loop {
            let read = match &tap {
                Some(tap) => tap.copy(input, BUFFER_SIZE),
                None => input.read(&mut buffer),
            };
            let read = match read {
                Ok(0) => return RelayEnd::Closed,
                Ok(read) => read,
                Err(_) if tap.is_some() => {
                    // The recorder has stopped, or the system does not support this. If there is another reason,
                    // reading fails with it too.
                    tap = None;
                    continue;
                }
                Err(error) => return RelayEnd::Failed(error),
            };
            let bytes = buffer.get(..read).unwrap_or_default();
            // Record first, because bytes that the other side never reads matter most.
            match &tap {
                Some(_) => self.log.push(LogEntryKind::TapBytes(self.from, read), &[]),
                None => self.log.push(LogEntryKind::Stream(self.from), bytes),
            }
            let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(output) = output.as_mut() else {
                return RelayEnd::Stopped;
            };
            if read >= GROW_THRESHOLD && !grown {
                grown = true;
                input.enlarge(BUFFER_SIZE);
                output.enlarge(BUFFER_SIZE);
            }
            let passed = match &tap {
                Some(tap) => tap.pass(input, output, read),
                None => output.write_all(bytes),
            };
            match passed {
                Ok(()) => self.count_passed(read),
                Err(error) => return write_end(error),
            }
        }
    }

    /// Like [`copy_all`](Self::copy_all), but reads and writes the bytes, so that other messages can come between two
    /// lines.
    fn copy_lines(&self, input: &mut PipeInput, lines: &mut LineRelay) -> RelayEnd {
        let mut buffer = vec![0; BUFFER_SIZE];
        loop {
            let read = match input.read(&mut buffer) {
                Ok(read) => read,
                Err(error) => return RelayEnd::Failed(error),
            };
            let bytes = buffer.get(..read).unwrap_or_default();
            let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(output) = output.as_mut() else {
                return RelayEnd::Stopped;
            };
            // While the output is locked, nothing is sent by hand. So the order in the trace is that on the wire.
            let passed = match read {
                0 => lines.pass_rest(output),
                _ => {
                    self.log.push(LogEntryKind::Stream(self.from), bytes);
                    lines.pass(bytes, output)
                }
            };
            match passed {
                Ok(()) if read == 0 => return RelayEnd::Closed,
                Ok(()) => self.count_passed(read),
                Err(error) => return write_end(error),
            }
        }
    }

    fn count_passed(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or_default();
        self.passed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Returns the end of a relay whose output could not be written.
fn write_end(error: io::Error) -> RelayEnd {
    match error.kind() {
        ErrorKind::BrokenPipe => RelayEnd::ReaderClosed,
        _ => RelayEnd::Failed(error),
    }
}
