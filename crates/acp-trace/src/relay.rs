//! What goes on in between: bytes are passed on as they come, and a copy of them is recorded.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::format::TraceEvent;
use super::log::{LogPieceKind, RecordLog};
use super::pipes::{PipeInput, PipeOutput};
use super::tap::PipeTap;
use acp_rules::Side;

/// How much is read at once, in bytes: what a pipe that has grown holds.
const ROOM: usize = 256 * 1024;

/// From how much in one piece on pipes are made to hold more: that is all that one holds at first.
const MUCH: usize = 64 * 1024;

/// Why nothing is passed on any more.
#[derive(Debug)]
#[non_exhaustive]
pub enum RelayEnd {
    /// The one it is read from has closed it.
    Closed,
    /// The one it is passed on to does not read any more.
    ReaderClosed,
    /// It was stopped from here.
    Stopped,
    /// It cannot be read, or not be written.
    Failed(io::Error),
}

/// One direction. It blocks, and is meant for a thread of its own: nothing else can wake as fast.
#[derive(Debug)]
pub struct Relay {
    from: Side,
    output: Arc<Mutex<Option<PipeOutput>>>,
    log: Arc<RecordLog>,
    passed_bytes: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

/// What can be done about a direction while it runs.
#[derive(Debug, Clone)]
pub struct RelayHandle {
    log: Arc<RecordLog>,
    output: Arc<Mutex<Option<PipeOutput>>>,
    passed_bytes: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl RelayHandle {
    /// Closes where it is passed on to, unless something is being written there at the moment.
    pub fn close(&self) {
        if let Ok(mut output) = self.output.try_lock() {
            *output = None;
        }
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// How many bytes were passed on so far, and how many lines of both directions were recorded. As long as it grows,
    /// something goes on: passing on waits for recording that does not keep up.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.passed_bytes.load(Ordering::Relaxed), self.log.lines())
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
        }
    }

    /// What can be done about it while it runs.
    #[must_use]
    pub fn handle(&self) -> RelayHandle {
        RelayHandle {
            log: self.log.clone(),
            output: self.output.clone(),
            passed_bytes: self.passed_bytes.clone(),
            ended: self.ended.clone(),
        }
    }

    /// Passes on until one end is closed; then both are. `ended` is told before that has any consequence.
    pub fn run(self, mut input: PipeInput, ended: impl FnOnce(RelayEnd)) {
        let end = self.copy_all(&mut input);
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
            self.log.push(LogPieceKind::Event(event), &[]);
        }
        self.ended.store(true, Ordering::Relaxed);
        ended(end);
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        *output = None;
    }

    /// What passes goes into a tap, too, where that can be; whoever records is told first.
    fn open_tap(&self, input: &PipeInput) -> Option<PipeTap> {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let (tap, reader) = PipeTap::open(input, output.as_ref()?, ROOM)?;
        self.log.push(LogPieceKind::Tap(self.from, reader), &[]);
        Some(tap)
    }

    fn copy_all(&self, input: &mut PipeInput) -> RelayEnd {
        let mut buffer = vec![0; ROOM];
        let mut grown = false;
        let mut tap = self.open_tap(input);
        loop {
            let read = match &tap {
                Some(tap) => tap.copy(input, ROOM),
                None => input.read(&mut buffer),
            };
            let read = match read {
                Ok(0) => return RelayEnd::Closed,
                Ok(read) => read,
                Err(_) if tap.is_some() => {
                    // Nobody records any more, or the system does not do this. Otherwise reading tells what is wrong.
                    tap = None;
                    continue;
                }
                Err(error) => return RelayEnd::Failed(error),
            };
            let bytes = buffer.get(..read).unwrap_or_default();
            // Recorded first: what is never read by the other side is what one wants to see.
            match &tap {
                Some(_) => self.log.push(LogPieceKind::TapBytes(self.from, read), &[]),
                None => self.log.push(LogPieceKind::Stream(self.from), bytes),
            }
            let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(output) = output.as_mut() else {
                return RelayEnd::Stopped;
            };
            if read >= MUCH && !grown {
                grown = true;
                input.grow(ROOM);
                output.grow(ROOM);
            }
            let passed = match &tap {
                Some(tap) => tap.pass(input, output, read),
                None => output.write_all(bytes),
            };
            match passed {
                Ok(()) => {
                    let length = u64::try_from(read).unwrap_or_default();
                    self.passed_bytes.fetch_add(length, Ordering::Relaxed);
                }
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    return RelayEnd::ReaderClosed;
                }
                Err(error) => return RelayEnd::Failed(error),
            }
        }
    }
}
